"""Heat maps: what was taken for what, and which labels went where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.runs import Floats, RunData, read_run
from fedrela.plots.style import Axes
from fedrela.text import not_one_of, points

MOST_CELLS = 64  # rows or columns; beyond it a cell is a block of neighbours
MOST_NUMBERS = 14  # columns in whose cells numbers have room
MOST_NAMES = 34  # rows or columns that are all named
LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green and blue
PANELS = ("before", "after", "difference")


def heat_map(
    ax: Axes, matrix: Any, rows: Sequence[str], columns: Sequence[str], *, percent: bool = False,
    diverging: bool = False, from_zero: bool = True,
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
    found, side = _blocks(found, percent and not diverging)
    most = float(np.nanmax(np.abs(found))) if not np.isnan(found).all() else 0.0
    low = -most if diverging else 0.0 if from_zero else float(np.nanmin(found))
    colours = ListedColormap([*style.FALLS[::-1], *style.RISES] if diverging else style.RISES)
    shown = np.ma.masked_where(np.isnan(found) | (np.abs(found) < 1e-12), found)
    look: dict[str, Any] = {"edgecolors": style.PAPER, "linewidth": 0.4, "clip_on": False}
    mesh = ax.pcolormesh(shown, cmap=colours, vmin=low, vmax=max(most, low + 1e-9), **look)
    ax.invert_yaxis()
    _name_cells(ax, rows, columns, side)
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color=style.LINE)
    texts = [_number(value, percent, diverging) for value in found.ravel().tolist()]
    if side == 1:
        places = [f"{style.limited(row)}, {style.limited(column)}" for row in rows for column in columns]
        style.tooltips(mesh, [f"{place}: {text}" for place, text in zip(places, texts, strict=True)])
    if found.shape[1] <= MOST_NUMBERS and found.shape[0] <= 2 * MOST_NUMBERS:
        _write_numbers(ax, mesh, found, texts)
    else:
        bar = style.colour_bar(ax, mesh, shrink=0.7, aspect=25, pad=0.02)
        bar.ax.tick_params(colors=style.MUTED)
        if percent:
            style.percent_axis(bar.ax.yaxis, 0)
    style.set_height(ax, min(1.1 + max(0.26 * found.shape[0], 0.9), 6.0))


def _blocks(found: Floats, mean: bool) -> tuple[Floats, int]:
    """Return a matrix small enough to draw, and of how many rows and columns its cells are."""
    side = -(-max(found.shape) // MOST_CELLS)
    if side == 1:
        return found, 1
    starts = [list(range(0, size, side)) for size in found.shape]
    sums = np.add.reduceat(np.add.reduceat(np.nan_to_num(found), starts[0], axis=0), starts[1], axis=1)
    return (sums / np.diff([*starts[0], len(found)])[:, None] if mean else sums), side


def _name_cells(ax: Axes, rows: Sequence[str], columns: Sequence[str], side: int) -> None:
    """Name rows and columns, some of them where they are many; wide names stand upright."""
    for axis, names in ((ax.yaxis, rows), (ax.xaxis, columns)):
        chosen = range(0, len(names), side * (-(-len(names) // side) // MOST_NAMES + 1))
        shown = [style.name(names[k], 18) for k in chosen]
        upright = axis is ax.xaxis and (len(shown) > 12 or sum(map(len, shown)) + 2 * len(shown) > 52)
        axis.set_ticks([k / side + 0.5 for k in chosen], shown, rotation=90 if upright else 0)


def _number(value: float, percent: bool, diverging: bool) -> str:
    """Write the number of a cell with at most one decimal; nothing where it is zero or missing."""
    if np.isnan(value) or abs(value) < 1e-12:
        return ""
    if diverging:
        return points(value) if percent else f"{value:+.1f}".removesuffix(".0")
    return style.short(100 * value) if percent else style.short(value) if value < 10_000 else f"{value / 1000:,.0f}k"


def _write_numbers(ax: Axes, mesh: Any, found: Floats, texts: Sequence[str]) -> None:
    """Write the number of each cell, dark on light or light on dark."""
    size = "small" if found.shape[1] <= 8 else 6.5 if found.shape[1] <= 11 else 5.5
    for text, ((row, column), value) in zip(texts, np.ndenumerate(found), strict=True):
        if text:
            dark = np.dot(mesh.to_rgba(value)[:3], LUMINANCE) < 0.5
            look: dict[str, Any] = {"color": style.LIGHT["on-high" if dark else "on-low"], "fontsize": size}
            ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", in_layout=False, **look)


@style.plot
def confusion(source: Any, *, panel: str = "after", names: Sequence[str] | None = None, ax: Axes = style.NEW) -> None:
    """Draw what the model took for what, in per cent of each true class.

    `source` is a run, of which `panel` chooses ``before`` re-labelling, ``after`` the last round, or their
    ``difference`` in points; or a matrix of counts whose rows are true classes and whose columns are predicted ones.

    >>> ax = confusion([[3, 1], [0, 4]], names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['75', '25', '100']
    """
    if panel not in PANELS:
        raise ArgumentError(f"panel: {not_one_of(panel, PANELS)}")
    run = read_run(source)
    found = _of_rows(source) if run is None else _shares(run, panel)
    names = style.class_names(run.classes if run else names, len(found))
    heat_map(ax, found, names, names, percent=True, diverging=panel == "difference")
    ax.set(xlabel="predicted class", ylabel="true class")


def _shares(run: RunData, panel: str) -> Floats:
    found = {"before": run.confusion_before, "after": (run.result or {}).get("confusion")}
    wanted = [found[of] for of in found if panel in (of, "difference")]
    if any(matrix is None for matrix in wanted):
        raise DataError(f"this run has no confusion matrix for panel {panel!r}")
    shares = [_of_rows(matrix) for matrix in wanted]
    return shares[-1] - shares[0] if panel == "difference" else shares[0]


def _of_rows(matrix: Any) -> Floats:
    """Return counts as shares of their rows."""
    n = style.floats(matrix)
    return np.asarray(n / np.maximum(n.sum(axis=1, keepdims=True), 1))


@style.plot
def label_flows(source: Any, *, names: Sequence[str] | None = None, ax: Axes = style.NEW) -> None:
    """Draw how many labels of each class became which other class.

    `source` is a run, or a matrix of moves from class (row) to class (column), such as ``Ledger.flow``.

    >>> ax = label_flows([[0, 12], [1, 0]], names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['12', '1']
    """
    run = read_run(source)
    found = style.floats(source if run is None else run.label_moves["flow"])
    names = style.class_names(run.classes if run else names, len(found))
    heat_map(ax, found, names, names)
    ax.set(xlabel="new class", ylabel="original class")
