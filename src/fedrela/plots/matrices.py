"""Heat maps: what was taken for what, and which labels went where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.runs import Floats, is_source, read_run
from fedrela.text import not_one_of, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CELLS = 64  # rows or columns; beyond it a cell is a block of neighbours
MOST_NUMBERS = 14  # columns in whose cells numbers have room
MOST_NAMES = 34  # rows or columns that are all named
PANELS = ("before", "after", "difference")


def heat_map(
    ax: Axes, matrix: Any, rows: Sequence[str], columns: Sequence[str], *, percent: bool = False,
    diverging: bool = False, from_zero: bool = True, row_label: str = "", column_label: str = "",
) -> None:  # fmt: skip
    """Draw a matrix as coloured cells, with numbers where there is room and a colour bar where there is none.

    Numbers have at most one decimal, in per cent where they are shares (`percent`). Those that are differences
    (`diverging`) are coloured on two sides of zero. Beyond 64 rows or columns a cell is a block of neighbours: its sum,
    or, of shares of a row, the mean over its rows of the sum over its columns.
    """
    from matplotlib.colors import ListedColormap

    found = np.atleast_2d(style.floats(matrix))
    if found.shape != (len(rows), len(columns)):
        raise ArgumentError(f"matrix: expected {len(rows)} rows of {len(columns)} numbers, got {found.shape}")
    found, blocks = _blocks(found, percent and not diverging)
    most = float(np.nanmax(np.abs(found))) if not np.isnan(found).all() else 0.0
    low, high = (-most, most) if diverging else (0.0 if from_zero else float(np.nanmin(found)), most)
    high = max(high, low + 1e-9)
    colours = [*style.FALLS[::-1], *style.RISES] if diverging else style.RISES
    shown = np.ma.masked_where(np.isnan(found) | (np.abs(found) < 1e-12), found)
    mesh = ax.pcolormesh(
        shown, cmap=ListedColormap(colours), vmin=low, vmax=high, edgecolors=style.PAPER, linewidth=0.4
    )
    mesh.set_clip_on(False)
    ax.invert_yaxis()
    _name_cells(ax, rows, columns, blocks)
    ax.set(xlabel=column_label, ylabel=row_label)
    ax.grid(False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.LIGHT["grid"])
    texts = [[_number(value, percent, diverging) for value in line] for line in found.tolist()]
    if blocks == 1:
        labels = [[f"{style.limited(r)}, {style.limited(c)}" for c in columns] for r in rows]
        style.tooltips(
            mesh, [f"{a}: {b}" for x, y in zip(labels, texts, strict=True) for a, b in zip(x, y, strict=True)]
        )
    if found.shape[1] <= MOST_NUMBERS and found.shape[0] <= 2 * MOST_NUMBERS:
        _write_numbers(ax, found, texts, low, high, diverging)
    else:
        bar = style.colour_bar(ax, mesh, shrink=0.7, aspect=25, pad=0.02)
        bar.ax.tick_params(colors=style.MUTED)
        if percent:
            style.percent_axis(bar.ax.yaxis, 0)
    style.set_height(ax, min(1.1 + max(0.26 * found.shape[0], 0.9), 6.0))


def _blocks(found: Floats, mean: bool) -> tuple[Floats, int]:
    """Return a matrix small enough to draw, and of how many rows and columns its cells are."""
    side = max(style.bands(size, MOST_CELLS)[0][1] for size in found.shape)
    if side == 1:
        return found, 1
    starts = [list(range(0, size, side)) for size in found.shape]
    sums = np.add.reduceat(np.add.reduceat(np.nan_to_num(found), starts[0], axis=0), starts[1], axis=1)
    heights = np.diff([*starts[0], found.shape[0]])[:, None]
    return (sums / heights if mean else sums), side


def _name_cells(ax: Axes, rows: Sequence[str], columns: Sequence[str], side: int) -> None:
    """Name rows and columns, some of them where they are many; wide names stand upright."""
    for set_ticks, names in ((ax.set_yticks, rows), (ax.set_xticks, columns)):
        step = side * (-(-len(names) // side) // MOST_NAMES + 1)
        chosen = range(0, len(names), step)
        shown = [style.name(names[k], 18) for k in chosen]
        upright = names is columns and (len(shown) > 12 or sum(map(len, shown)) + 2 * len(shown) > 52)
        places = [k / side + 0.5 for k in chosen]
        set_ticks(places, shown, rotation=90 if upright else 0)


def _number(value: float, percent: bool, diverging: bool) -> str:
    """Write the number of a cell with at most one decimal; nothing where it is zero or missing."""
    if np.isnan(value) or abs(value) < 1e-12:
        return ""
    if diverging:
        return points(value) if percent else f"{value:+.1f}".removesuffix(".0")
    return style.short(100 * value) if percent else style.short(value) if value < 10_000 else f"{value / 1000:,.0f}k"


def _write_numbers(
    ax: Axes, found: Floats, texts: Sequence[Sequence[str]], low: float, high: float, diverging: bool
) -> None:
    size = "small" if found.shape[1] <= 8 else 6.5 if found.shape[1] <= 11 else 5.5
    for (r, c), value in np.ndenumerate(found):
        if texts[r][c]:
            place = int((value - low) / max(high - low, 1e-12) * (2 * style.STEPS if diverging else style.STEPS))
            depth = (place - style.STEPS if place >= style.STEPS else style.STEPS - 1 - place) if diverging else place
            colour = style.LIGHT["on-high" if min(depth, style.STEPS - 1) >= style.STEPS // 2 else "on-low"]
            look: dict[str, Any] = {"ha": "center", "va": "center", "color": colour, "fontsize": size}
            ax.text(c + 0.5, r + 0.5, texts[r][c], in_layout=False, **look)  # inside its cell: needs no room of its own


@style.plot
def confusion(source: Any, *, panel: str = "after", names: Sequence[str] | None = None, ax: Axes = style.NEW) -> Axes:
    """Draw what the model took for what, in per cent of each true class.

    `source` is a run, of which `panel` chooses ``before`` re-labelling, ``after`` the last round, or their
    ``difference`` in points; or a matrix of counts whose rows are true classes and whose columns are predicted ones.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.confusion([[3, 1], [0, 4]], names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['75', '25', '100']
    """
    if panel not in PANELS:
        raise ArgumentError(f"panel: {not_one_of(panel, PANELS)}")
    if is_source(source):
        run = read_run(source)
        before, after = run.confusion_before, (run.result or {}).get("confusion")
        wanted = [matrix for matrix, of in ((before, "before"), (after, "after")) if panel in (of, "difference")]
        if any(matrix is None for matrix in wanted):
            raise DataError(f"this run has no confusion matrix for panel {panel!r}")
        shares = [_of_rows(matrix) for matrix in wanted]
        found, names = (shares[-1] - shares[0] if panel == "difference" else shares[0]), run.classes
    else:
        found = _of_rows(source)
    names = style.class_names(names, len(found))
    labels: dict[str, Any] = {"row_label": "true class", "column_label": "predicted class"}
    heat_map(ax, found, names, names, percent=True, diverging=panel == "difference", **labels)
    return ax


def _of_rows(matrix: Any) -> Floats:
    """Return counts as shares of their rows."""
    n = style.floats(matrix)
    return np.asarray(n / np.maximum(n.sum(axis=1, keepdims=True), 1))


@style.plot
def label_flows(source: Any, *, names: Sequence[str] | None = None, ax: Axes = style.NEW) -> Axes:
    """Draw how many labels of each class became which other class.

    `source` is a run, or a matrix of moves from class (row) to class (column), such as ``Ledger.flow``.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.label_flows([[0, 12], [1, 0]], names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['12', '1']
    """
    if is_source(source):
        run = read_run(source)
        found, names = style.floats(run.label_moves["flow"]), run.classes
    else:
        found = style.floats(source)
    names = style.class_names(names, len(found))
    heat_map(ax, found, names, names, row_label="original class", column_label="new class")
    return ax
