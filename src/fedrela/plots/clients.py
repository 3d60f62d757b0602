"""Samples per client and class: clients across, classes down, the area of each dot is the number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedrela.errors import ArgumentError, DataError
from fedrela.metrics.groups import Groups
from fedrela.plots import style
from fedrela.plots.folders import Floats, Ints, read_run
from fedrela.plots.style import Axes
from fedrela.text import limited, plural, short

MOST_CLIENTS = 60
MOST_NAMED_CLASSES = 60
MOST_ROWS = 120
SMALLEST_DOT = 2.5  # area in square points below which a dot needs a ring to be seen


@dataclass(frozen=True)
class ClientRows:
    """The part of a count matrix that is drawn: rows of classes, columns of clients."""

    clients: Ints  # those shown, from left to right
    sizes: Ints  # samples of each of them
    bands: list[tuple[int, ...]]  # the classes of each row, from top to bottom: one, or several neighbours in frequency
    cells: Floats  # samples of each row at each client, (rows, clients); in a band the mean over its classes
    totals: Floats  # the same over all clients, shown or not, (rows,)


@style.plot
def client_classes(
    source: Any, *, names: Sequence[str] | None = None, groups: Groups | None = None, ax: Axes = style.NEW
) -> None:
    """Draw how many samples of each class each client has, as is usual in papers on heterogeneity.

    Up to 60 classes are drawn as dots whose area is proportional to the number of samples, with a ring around those too
    small to see. More are drawn as coloured cells, from the most frequent class to the rarest. Of more than 60 clients,
    60 are shown, spread over their ranking by size.

    Parameters
    ----------
    source
        A run, or the samples of each class at each client, ``(clients, classes)`` integers.
    names, groups
        Of such counts: names of the classes, and groups that colour them.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> dots = client_classes([[30, 0], [10, 20]], names=["cat", "dog"]).collections[0]
    >>> dots.get_offsets().tolist(), (dots.get_sizes() / dots.get_sizes().max() * 30).round().tolist()
    ([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]], [30.0, 20.0, 10.0])
    """
    from matplotlib.patches import Patch

    counts, names, groups = _counts(source, names, groups)
    rows = client_rows(counts, groups)
    named = len(names) <= MOST_NAMED_CLASSES
    spoken = [[limited(names[c]) for c in band[:3]] for band in rows.bands]
    more = [f" and {len(band) - 3} more" if len(band) > 3 else "" for band in rows.bands]
    labels = [", ".join(few) + rest for few, rest in zip(spoken, more, strict=True)]
    colours = style.class_colours(groups, len(names))
    shades = [style.LIGHT["group-0"] if groups is None else colours[band[0]] for band in rows.bands]
    width = 6.6 if rows.clients.size > 12 else 5.0
    inner = max(0.21 * len(rows.bands), 0.6) if named else 4.2
    style.set_height(ax, inner + 1.6)
    handles: dict[str, Any] = {}
    if groups is not None:
        labelled = zip(groups.sizes.items(), style.group_colours(len(groups.names)), strict=True)
        handles = {f"{style.name(group)}: {plural(size, 'class')}": Patch(color=c) for (group, size), c in labelled}
    if named:
        handles |= _dots(ax, rows, labels, shades, min(width * 0.62 / rows.clients.size, inner / len(rows.bands)))
    else:
        _cells(ax, rows, labels)
    _name_axes(ax, rows, labels, named)
    _margins(ax, rows, labels, shades, 0.36 * len(rows.bands) / inner)
    style.legend_above(ax, handles.values(), handles)


def _counts(source: Any, names: Any, groups: Groups | None) -> tuple[Ints, Sequence[str], Groups | None]:
    if run := read_run(source):
        if run.client_counts is None:
            raise DataError("the clients' classes are available once a run has finished")
        return run.client_counts, run.classes, run.groups
    n = np.asarray(source)
    if n.ndim != 2 or n.dtype.kind not in "iu" or n.size == 0 or n.min() < 0:
        raise ArgumentError(f"counts: expected integers >= 0, (clients, classes), got {n.dtype} {n.shape}")
    names = style.class_names(names, n.shape[1])
    if groups is not None and groups.of_class.shape != n.shape[1:]:
        raise ArgumentError(f"groups: expected {n.shape[1]} classes, got {groups.of_class.size}")
    return n.astype(np.int64, copy=False), names, groups


def client_rows(counts: ArrayLike, groups: Groups | None = None) -> ClientRows:
    """Choose the clients and rows that a plot of ``(clients, classes)`` counts has room for."""
    n = np.asarray(counts)
    sizes, totals = n.sum(axis=1), n.sum(axis=0)
    shown = np.arange(sizes.size)
    if sizes.size > MOST_CLIENTS:  # spread evenly over the ranking by size, the largest first
        ranking = np.argsort(-sizes, kind="stable")
        shown = ranking[np.linspace(0, sizes.size - 1, MOST_CLIENTS).round().astype(np.int64)]
    bands: list[tuple[int, ...]] = [(c,) for c in range(totals.size)]
    if totals.size > MOST_NAMED_CLASSES:  # by group and then by decreasing count, rows of neighbours within one group
        group = np.zeros(totals.size, np.int64) if groups is None else groups.of_class
        order, height = np.lexsort((-totals, group)), -(-totals.size // MOST_ROWS)
        members = [order[group[order] == g] for g in np.unique(group)]
        parts = [part for found in members for part in np.array_split(found, -(-found.size // height))]
        bands = [tuple(part.tolist()) for part in parts]
    cells = np.stack([n[shown][:, list(band)].mean(axis=1) for band in bands])
    return ClientRows(shown, sizes[shown], bands, cells, np.array([totals[list(band)].mean() for band in bands]))


def _dots(ax: Axes, rows: ClientRows, labels: list[str], shades: list[str], cell: float) -> dict[str, Any]:
    """Draw a dot in every cell with samples, large ones first, its area proportional to their number.

    Return example dots for a legend, by their number of samples.
    """
    largest = (72 * min(1.25 * cell, 0.42)) ** 2 * 0.9  # square points
    order = np.argsort(-rows.cells, axis=None, kind="stable")
    order = order[rows.cells.ravel()[order] > 0]
    y, x = np.divmod(order, rows.clients.size)
    counts = rows.cells.ravel()[order]
    area = largest * counts / max(float(rows.cells.max()), 1.0)
    colours = [shades[row] for row in y]
    dots = ax.scatter(x, y, s=area, c=colours, edgecolors=style.PAPER, linewidths=0.4, zorder=3, clip_on=False)
    tips = [f"client {rows.clients[k]}, {labels[i]}: {n:,.0f}" for i, k, n in zip(y, x, counts, strict=True)]
    style.tooltips(dots, tips)
    small = area < SMALLEST_DOT
    if small.any():
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": [colours[k] for k in np.flatnonzero(small)]}
        ax.scatter(x[small], y[small], s=20, linewidths=0.7, zorder=3, clip_on=False, **look)
    ax.hlines(range(len(labels)), -0.5, rows.clients.size - 0.5, color=style.LINE, linewidth=0.8, zorder=1)
    ax.vlines(range(rows.clients.size), -0.5, len(labels) - 0.5, color=style.LINE, linewidth=0.8, zorder=1)
    return _dot_examples(float(rows.cells.max()), largest, bool(small.any()))


def _dot_examples(most: float, largest: float, ringed: bool) -> dict[str, Any]:
    look: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    smaller = [n for n in (1000, 100, 10) if SMALLEST_DOT * most / largest <= n < most / 2.5]
    chosen = {f"{n:,.0f} samples": (largest * n / most) ** 0.5 for n in [most, *smaller][:3] if most}
    found = {label: style.key(style.MUTED, markersize=size, **look) for label, size in chosen.items()}
    if ringed:
        limit = max(1, int(SMALLEST_DOT * most / largest))
        found[f"{limit:,} or fewer"] = style.key(style.MUTED, markersize=20**0.5, markerfacecolor="none", **look)
    return found


def _cells(ax: Axes, rows: ClientRows, labels: list[str]) -> None:
    from matplotlib.colors import ListedColormap, LogNorm

    shown = np.ma.masked_less_equal(rows.cells, 0)
    norm = LogNorm(vmin=1, vmax=max(float(rows.cells.max()), 2.0), clip=True)
    across, down = np.arange(-0.5, rows.clients.size), np.arange(-0.5, len(labels))
    mesh = ax.pcolormesh(across, down, shown, cmap=ListedColormap(style.RISES), norm=norm, clip_on=False)
    bar = style.colour_bar(ax, mesh, orientation="horizontal", shrink=0.5, aspect=40, pad=0.01)
    bar.set_label("samples of a class at a client")
    bar.ax.xaxis.set_major_formatter("{x:,.0f}")
    bar.minorticks_off()


def _name_axes(ax: Axes, rows: ClientRows, labels: list[str], named: bool) -> None:
    """Name clients and classes, or only some of many."""
    number = rows.clients.size
    step = number // 16 + 1
    ax.set_xticks(range(0, number, step), [str(client) for client in rows.clients[::step]])
    ax.set_xlabel("client", loc="left")
    if named:
        ax.set_yticks(range(len(labels)), [style.name(label, 22) for label in labels])
    else:
        ranks = np.cumsum([0, *(len(band) for band in rows.bands)])[:-1] + 1
        chosen = range(0, len(labels), len(labels) // 8 + 1)
        ax.set_yticks(list(chosen), [f"{ranks[k]:,}" for k in chosen])
        ax.set_ylabel("class by rank")
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _margins(ax: Axes, rows: ClientRows, labels: list[str], shades: list[str], high: float) -> None:
    """Draw the samples of each row in bars at the right, those of each client above, the largest `high` rows high."""
    number, named = rows.clients.size, len(labels) <= MOST_NAMED_CLASSES
    left, longest = number - 0.5 + 0.03 * number, 0.2 * number
    widths = longest * rows.totals / max(float(rows.totals.max()), 1.0)
    bars = ax.barh(np.arange(len(labels)), widths, 0.6 if named else 1.0, left=left, color=shades)
    shown = [short(total) for total in rows.totals]
    style.tooltips(bars, [f"{label}: {total}" for label, total in zip(labels, shown, strict=True)])
    if named:
        ax.bar_label(bars, shown, padding=2, fontsize=7, color=style.MUTED)
    heights = -high * rows.sizes / max(int(rows.sizes.max()), 1)
    bars = ax.bar(np.arange(number), heights, 0.6, bottom=-0.7, color=style.MUTED)
    style.tooltips(bars, [f"client {k}: {size:,}" for k, size in zip(rows.clients, rows.sizes, strict=True)])
    look: dict[str, Any] = {"color": style.MUTED, "fontsize": "small", "va": "bottom"}
    ax.text(left, -0.7, "samples per class", **look)
    ax.text(-0.5, -0.7 - 1.08 * high, f"samples per client, at most {rows.sizes.max():,}", **look)
    ax.set(xlim=(-0.6, left + longest * (1.75 if named else 1.1)), ylim=(len(labels) - 0.4, -0.7 - 1.6 * high))
