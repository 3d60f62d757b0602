"""Plots of classes: accuracy and samples before and after, labels moved in, and matrices from class to class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedrela.arms import ARMS, arm_label
from fedrela.errors import ArgumentError, DataError
from fedrela.metrics.groups import Groups
from fedrela.plots import style
from fedrela.plots.folders import Floats, GridData, RunData, mean_over_seeds, read_run, read_source
from fedrela.plots.style import Axes, name
from fedrela.text import limited, not_one_of, percent, points, short

MOST_ROWS = 40  # up to this number every class has a row
EXTREMES = 12  # beyond that: the classes with the largest rises, and as many with the largest falls
MOST_BARS = 100
MOST_CELLS = 64  # rows or columns; beyond it a cell is a block of neighbours
MOST_NUMBERS = 14  # columns whose cells have room for numbers
MOST_NAMES = 34  # rows or columns that are all named
LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green and blue
PANELS = ("before", "after", "difference")


class Change(NamedTuple):
    """A class, or the mean of a group, before and after."""

    name: str
    before: float
    after: float
    group: int


@style.plot
def class_changes(
    source: Any, *, names: Sequence[str] | None = None, groups: Groups | None = None, baseline: str | None = None,
    labels: tuple[str, str] = ("before", "after"), ax: Axes = style.NEW,
) -> None:  # fmt: skip
    """Draw each class's accuracy before (open dot) and after (filled dot), with the change in points.

    With more than 40 classes, the group means are drawn, then the 12 largest rises and the 12 largest falls.

    Parameters
    ----------
    source
        A run: before re-labelling and after the last round. A comparison: one baseline without and with FedReLa, mean
        over seeds. Or a pair of shares per class, before and after.
    names, groups, labels
        Of a pair: names of the classes, their groups, and names of the two dots.
    baseline
        Of a comparison: the baseline, by default the first.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = class_changes(([0.5, 0.5], [0.7, 0.4]), names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['+20.0', '-10.0']
    """
    if data := read_source(source):
        names, source, groups, labels = _changes_of(data, baseline)
    before, after = map(style.floats, source)
    names = style.class_names(names, before.size)
    if before.size != after.size or (groups is not None and groups.of_class.size != before.size):
        raise ArgumentError(f"before, after, groups: expected {len(names)} values in each, one per class")
    of_class = np.zeros(before.size, np.int64) if groups is None else groups.of_class
    rows = list(map(Change, map(limited, names), before.tolist(), after.tolist(), of_class.tolist()))
    rows, means = _chosen([row for row in rows if not np.isnan(row.after - row.before)], groups)
    _draw_changes(ax, rows, groups, labels)
    if means:
        ax.axhline(means - 0.5, color=style.MUTED, linewidth=0.8)


def _changes_of(data: RunData | GridData, baseline: str | None) -> tuple[list[str], Any, Groups, tuple[str, str]]:
    if isinstance(data, RunData):
        before, accuracy = data.recalls_before, data.accuracy
        if before is None or accuracy is None:
            raise DataError("this run has no accuracy by class before and after re-labelling")
        labels = (f"before round {data.first}", f"after round {data.last_scored}")
        return data.classes, (before, accuracy["per_class"]), data.groups, labels
    pair = first_pair(data, baseline)
    if pair is None:
        raise DataError("expected a comparison with a baseline and FedReLa, both with finished runs")
    *arms, labels = pair
    shares = [mean_over_seeds([(run.accuracy or {})["per_class"] for run in runs])[0] for runs in arms]
    return pair[0][0].classes, shares, pair[0][0].groups, labels


def first_pair(data: GridData, baseline: str | None) -> tuple[list[RunData], list[RunData], tuple[str, str]] | None:
    """Return the runs of a baseline without and with FedReLa, and the labels of both arms; None if there are none."""
    for found in (data.summary or {}).get("baselines", []):
        for pair in found["pairs"] if baseline in (None, found["label"]) else ():
            if pair["base"] in ARMS and not ARMS[pair["base"]].relabels:
                base, treated = (data.of(found["label"], pair[key]) for key in ("base", "treated"))
                there = base and treated and base[0].accuracy is not None
                return (base, treated, (arm_label(pair["base"]), arm_label(pair["treated"]))) if there else None
    return None


def _chosen(classes: list[Change], groups: Groups | None) -> tuple[list[Change], int]:
    """Return the rows to draw, those of one group together, and how many of them are means."""
    if len(classes) <= MOST_ROWS:
        return sorted(classes, key=lambda row: row.group), 0
    means = []
    for group, words in enumerate(["classes"] if groups is None else groups.names):
        members = [(row.before, row.after) for row in classes if row.group == group]
        if members:
            before, after = np.mean(members, axis=0).tolist()
            means.append(Change(f"mean of {limited(words)}", before, after, group))
    ranking = sorted(classes, key=lambda row: row.before - row.after)
    return [*means, *ranking[:EXTREMES], *ranking[-EXTREMES:]], len(means)


def _draw_changes(ax: Axes, rows: list[Change], groups: Groups | None, labels: tuple[str, str]) -> None:
    colours = [style.SERIES[0]] if groups is None else style.group_colours(len(groups.names))
    for y, row in enumerate(rows):
        colour = colours[row.group]
        ax.plot([row.before, row.after], [y, y], color=colour, linestyle="-", linewidth=2, zorder=2)
        for x, face in ((row.before, style.PAPER), (row.after, colour)):
            (dot,) = ax.plot(x, y, "o", markersize=6, markerfacecolor=face, markeredgecolor=colour, zorder=3)
            style.tooltips(dot, [f"{row.name}: {percent(row.before)} to {percent(row.after)}"])
    style.name_rows(ax, [row.name for row in rows], [points(row.after - row.before) for row in rows])
    style.percent_axis(ax.xaxis)
    ax.set_xlabel("test accuracy")
    handles, words = [style.dot(style.INK, filled) for filled in (False, True)], list(labels)
    if groups is not None:
        shown = sorted({row.group for row in rows})
        handles += [style.key(colours[g], linewidth=3) for g in shown]
        words += [groups.names[g] for g in shown]
    style.legend_above(ax, handles, map(name, words))
    style.set_height(ax, 1.15 + 0.2 * max(len(rows), 3))


@style.plot
def class_counts(
    source: Any, *, client: int | None = None, names: Sequence[str] | None = None, ax: Axes = style.NEW
) -> None:
    """Draw the training samples of each class by the labels before and after re-labelling.

    Parameters
    ----------
    source
        A run, or a pair of counts per class, before and after.
    client
        Of a run: one client in place of all.
    names
        Of a pair: names of the classes.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = class_counts(([90, 10], [80, 20]), names=["cat", "dog"])
    >>> [int(bar.get_height()) for bar in ax.patches]
    [90, 10, 80, 20]
    """
    run = read_run(source)
    before, after = map(style.floats, source if run is None else _counts_of(run, client))
    if before.shape != after.shape:
        raise ArgumentError(f"source: expected as many classes before as after, got {before.size} and {after.size}")
    names = style.class_names(run.classes if run else names, before.size)
    looks = (("before", style.LINE, before, -0.2), ("after", style.SERIES[0], after, 0.2))
    for words, colour, counts, shift in looks:
        x = np.arange(len(names)) + shift
        bars = ax.bar(x, counts, 0.4, color=colour, edgecolor=style.MUTED, linewidth=0.4, label=words)
        named = zip(names, counts, strict=True)
        style.tooltips(bars, [f"{limited(label)}, {words}: {short(count)}" for label, count in named])
    _name_ticks(ax.xaxis, names)
    ax.margins(x=0.01)
    ax.set_ylabel("training samples" if client is None else f"samples of client {client}")


def _counts_of(run: RunData, client: int | None) -> tuple[Any, Any]:
    counts, record = run.client_counts, run.label_moves
    if client is None:
        return record["before"], record["after"]
    if counts is None:
        raise DataError("this run has no class counts of its clients")
    if not 0 <= client < len(counts):
        raise ArgumentError(f"client: expected an integer from 0 to {len(counts) - 1}, got {client}")
    old, new = (np.bincount(labels, minlength=len(run.classes)) for labels in run.moves_of(client))
    return counts[client], counts[client] - old + new


@style.plot
def moves_into_classes(
    source: Any, *, expected: Sequence[float] | None = None, limit: float | None = None,
    names: Sequence[str] | None = None, ax: Axes = style.NEW,
) -> None:  # fmt: skip
    """Draw how many labels moved into each class, with the expected number and the limit.

    Parameters
    ----------
    source
        A run, or a number of moves per class.
    expected, limit
        Of such numbers: the sum of all re-labelling probabilities towards each class, and tau times the number of
        samples.
    names
        Of such numbers: names of the classes.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = moves_into_classes([3, 5], expected=[2.5, 5.5], names=["cat", "dog"])
    >>> [int(bar.get_height()) for bar in ax.patches]
    [3, 5]
    """
    groups = None
    if run := read_run(source):
        record, names, groups = run.label_moves, run.classes, run.groups
        source, expected, limit = np.sum(record["flow"], axis=0), record["expected"], run.bound or None
    moved = style.floats(source)
    names = style.class_names(names, moved.size)
    colours = style.class_colours(groups, moved.size)
    starts, sizes = style.bins(moved.size, MOST_BARS)
    heights = tops = np.add.reduceat(moved, starts) / sizes
    bars = ax.bar(starts + (sizes - 1) / 2, heights, 0.72 * sizes, color=[colours[start] for start in starts])
    texts = list(map(short, heights))
    style.tooltips(bars, [f"{limited(names[k])}: {text}" for k, text in zip(starts, texts, strict=True)])
    if expected is not None:
        means = np.add.reduceat(style.floats(expected), starts) / sizes
        ax.hlines(means, starts - 0.45, starts + sizes - 0.55, color=style.INK, linewidth=1.6, label="expected")
        tops = np.fmax(heights, means)
    if len(bars) <= 14:
        look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
        for x, (text, top) in enumerate(zip(texts, tops, strict=True)):
            ax.annotate(text, (x, top), (0, 2), **look)
    if limit is not None and limit <= 5 * max(float(np.nanmax(heights, initial=0)), 1):
        words = f"at most {limit:,.0f}, tau of the samples"
        ax.axhline(limit, color=style.MUTED, linestyle=(0, (2, 2)), linewidth=1, label=words)
    _name_ticks(ax.xaxis, names)
    ax.margins(x=0.01)
    ax.set_ylabel("labels moved in")


def heat_map(
    ax: Axes, matrix: Any, rows: Sequence[str], columns: Sequence[str], *, percent: bool = False,
    diverging: bool = False, from_zero: bool = True, average: bool = False,
) -> None:  # fmt: skip
    """Draw a matrix as coloured cells, with numbers where there is room and a colour bar where there is none.

    Numbers have at most one decimal, in per cent where they are shares (`percent`). Those that are differences
    (`diverging`) are coloured on two sides of zero. Beyond 64 rows or columns a cell is a block of neighbours: their
    mean (`average`); else their sum, or, of shares of a row, the mean over its rows of the sum over its columns.
    """
    from matplotlib.colors import ListedColormap

    found = np.atleast_2d(style.floats(matrix))
    if found.shape != (len(rows), len(columns)):
        raise ArgumentError(f"matrix: expected {len(rows)} rows of {len(columns)} numbers, got {found.shape}")
    found, side = _blocks(found, percent, average)
    most = float(np.fmax.reduce(np.abs(found), axis=None, initial=0.0))
    low = -most if diverging else 0.0 if from_zero else float(np.fmin.reduce(found, axis=None, initial=most))
    colours = ListedColormap([*style.FALLS[::-1], *style.RISES] if diverging else style.RISES)
    shown = np.ma.masked_where(np.isnan(found) | ((np.abs(found) < 1e-12) & from_zero), found)
    look: dict[str, Any] = {"edgecolors": style.PAPER, "linewidth": 0.4, "clip_on": False}
    mesh = ax.pcolormesh(shown, cmap=colours, vmin=low, vmax=max(most, low + 1e-9), **look)
    ax.invert_yaxis()
    _name_ticks(ax.yaxis, rows, side, 0.5)
    _name_ticks(ax.xaxis, columns, side, 0.5)
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color=style.LINE)
    texts = [_number(value, percent, diverging, from_zero) for value in found.ravel().tolist()]
    if side == 1:
        places = [f"{limited(row)}, {limited(column)}" for row in rows for column in columns]
        style.tooltips(mesh, [f"{place}: {text}" for place, text in zip(places, texts, strict=True)])
    if found.shape[1] <= MOST_NUMBERS and found.shape[0] <= 2 * MOST_NUMBERS:
        _write_numbers(ax, mesh, found, texts)
    else:
        bar = style.colour_bar(ax, mesh, shrink=0.7, aspect=25, pad=0.02)
        bar.ax.tick_params(colors=style.MUTED)
        if percent:
            style.percent_axis(bar.ax.yaxis, 0)
    style.set_height(ax, min(1.1 + max(0.26 * found.shape[0], 0.9), 6.0))


def _blocks(found: Floats, mean: bool, average: bool = False) -> tuple[Floats, int]:
    """Return a matrix small enough to draw, and how many rows and columns one of its cells covers."""
    side = -(-max(found.shape) // MOST_CELLS)
    if side == 1:
        return found, 1
    starts = [list(range(0, size, side)) for size in found.shape]

    def total(values: Floats) -> Floats:
        summed: Floats = np.add.reduceat(np.add.reduceat(values, starts[0], axis=0), starts[1], axis=1)
        return summed

    sums = total(np.nan_to_num(found))
    if average:
        known = total((~np.isnan(found)).astype(float))
        return np.divide(sums, known, out=np.full_like(sums, np.nan), where=known > 0), side
    return (sums / np.diff([*starts[0], len(found)])[:, None] if mean else sums), side


def _name_ticks(axis: Any, names: Sequence[str], side: int = 1, middle: float = 0.0) -> None:
    """Name bars, or cells of `side` classes, or only some of many; wide names are rotated."""
    chosen = range(0, len(names), side * (-(-len(names) // side) // MOST_NAMES + 1))
    shown = [name(names[k], 18) for k in chosen]
    upright = axis.axis_name == "x" and (len(shown) > 12 or sum(map(len, shown)) + 2 * len(shown) > 52)
    axis.set_ticks([k / side + middle for k in chosen], shown, rotation=90 if upright else 0)


def _number(value: float, percent: bool, diverging: bool, from_zero: bool) -> str:
    """Write the number of a cell with at most one decimal; nothing if it is missing, or zero where colours begin."""
    if np.isnan(value) or (abs(value) < 1e-12 and from_zero):
        return ""
    if diverging:
        return points(value) if percent else f"{value:+.1f}".removesuffix(".0")
    return short(100 * value) if percent else short(value) if value < 10_000 else f"{value / 1000:,.0f}k"


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
    """Draw the confusion matrix, in per cent of each true class.

    Parameters
    ----------
    source
        A run, or a matrix of counts whose rows are true classes and whose columns are predicted ones.
    panel
        Of a run: ``before`` re-labelling, ``after`` the last round, or their ``difference`` in points.
    names
        Of a matrix: names of the classes.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = confusion([[3, 1], [0, 4]], names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['75', '25', '100']
    """
    if panel not in PANELS:
        raise ArgumentError(f"panel: {not_one_of(panel, PANELS)}")
    run = read_run(source)
    found = _of_rows(source) if run is None else confusion_shares(run, panel)
    names = style.class_names(run.classes if run else names, len(found))
    heat_map(ax, found, names, names, percent=True, diverging=panel == "difference")
    ax.set(xlabel="predicted class", ylabel="true class")


def confusion_shares(run: RunData, panel: str) -> Floats:
    """Return a confusion matrix of a run, or the difference of both, as shares of the true classes."""
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

    Parameters
    ----------
    source
        A run, or a matrix of moves from class (row) to class (column), such as ``Ledger.flow``.
    names
        Of a matrix: names of the classes.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = label_flows([[0, 12], [1, 0]], names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['12', '1']
    """
    run = read_run(source)
    found = style.floats(source if run is None else run.label_moves["flow"])
    names = style.class_names(run.classes if run else names, len(found))
    heat_map(ax, found, names, names)
    ax.set(xlabel="new class", ylabel="original class")
