"""Plots with a row or a bar per class: accuracy before and after, samples before and after, labels moved in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedrela.errors import ArgumentError, DataError
from fedrela.metrics.groups import Groups
from fedrela.plots import style
from fedrela.plots.arms import arm_words
from fedrela.plots.runs import GridData, RunData, is_source, mean_over_seeds, read_run, read_source
from fedrela.plots.style import Axes, name
from fedrela.text import points

MOST_ROWS = 40  # classes that all have a row
EXTREMES = 12  # beyond that: the classes with the largest rises, and as many with the largest falls
MOST_BARS = 100


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

    Of a run: before re-labelling and after the last round. Of a comparison: one baseline without and with FedReLa, mean
    over seeds. Plain numbers are a pair of shares per class, before and after, and `labels` name the two dots. Of more
    than 40 classes, the means of the groups are drawn, then the 12 largest rises and the 12 largest falls.

    >>> ax = class_changes(([0.5, 0.5], [0.7, 0.4]), names=["cat", "dog"])
    >>> [text.get_text() for text in ax.texts]
    ['+20.0', '-10.0']
    """
    if is_source(source):
        names, source, groups, labels = _changes_of(read_source(source), baseline)
    before, after = map(style.floats, source)
    names = style.class_names(names, before.size)
    if before.size != after.size or (groups is not None and groups.of_class.size != before.size):
        raise ArgumentError(f"before, after, groups: expected {len(names)} values in each, one per class")
    of_class = np.zeros(before.size, np.int64) if groups is None else groups.of_class
    rows = list(map(Change, map(style.limited, names), before.tolist(), after.tolist(), of_class.tolist()))
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
    """Return the runs of a baseline without and with FedReLa, and what the two arms are called; None without any."""
    for found in (data.summary or {}).get("baselines", []):
        if baseline not in (None, found["label"]):
            continue
        for pair in found["pairs"]:
            base, treated = (data.of(found["label"], pair[key]) for key in ("base", "treated"))
            if pair["base"] in ("baseline", "baseline-drop"):
                if not base or not treated or base[0].accuracy is None:
                    return None
                return base, treated, (arm_words(pair["base"]), arm_words(pair["treated"]))
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
            means.append(Change(f"mean of {style.limited(words)}", before, after, group))
    ranking = sorted(classes, key=lambda row: row.before - row.after)
    return [*means, *ranking[:EXTREMES], *ranking[-EXTREMES:]], len(means)


def _draw_changes(ax: Axes, rows: list[Change], groups: Groups | None, labels: tuple[str, str]) -> None:
    colours = [style.SERIES[0]] if groups is None else style.group_colours(len(groups.names))
    for y, row in enumerate(rows):
        colour = colours[row.group]
        ax.plot([row.before, row.after], [y, y], color=colour, linestyle="-", linewidth=2, zorder=2)
        for x, face in ((row.before, style.PAPER), (row.after, colour)):
            (dot,) = ax.plot(x, y, "o", markersize=6, markerfacecolor=face, markeredgecolor=colour, zorder=3)
            style.tooltips(dot, [f"{row.name}: {row.before:.1%} to {row.after:.1%}"])
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

    `source` is a run, of which `client` chooses one client in place of all, or a pair of counts per class, before and
    after.

    >>> ax = class_counts(([90, 10], [80, 20]), names=["cat", "dog"])
    >>> [int(bar.get_height()) for bar in ax.patches]
    [90, 10, 80, 20]
    """
    run = read_run(source)
    before, after = map(style.floats, source if run is None else _counts_of(run, client))
    names = style.class_names(run.classes if run else names, before.size)
    looks = (("before", style.LINE, before, -0.2), ("after", style.SERIES[0], after, 0.2))
    for words, colour, counts, shift in looks:
        x = np.arange(len(names)) + shift
        bars = ax.bar(x, counts, 0.4, color=colour, edgecolor=style.MUTED, linewidth=0.4, label=words)
        named = zip(names, counts, strict=True)
        style.tooltips(bars, [f"{style.limited(label)}, {words}: {style.short(count)}" for label, count in named])
    _name_bars(ax, names)
    ax.set_ylabel("training samples" if client is None else f"samples of client {client}")


def _counts_of(run: RunData, client: int | None) -> tuple[Any, Any]:
    counts, record = run.client_counts, run.label_moves
    if client is None:
        return record["before"], record["after"]
    if counts is None:
        raise DataError("this run does not say which classes its clients have")
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

    Expected is the sum of all re-labelling probabilities towards a class; the limit is tau of the samples. `source` is
    a run, or a number of moves per class, for which both are given here.

    >>> ax = moves_into_classes([3, 5], expected=[2.5, 5.5], names=["cat", "dog"])
    >>> [int(bar.get_height()) for bar in ax.patches]
    [3, 5]
    """
    groups = None
    if run := read_run(source):
        record, names, groups = run.label_moves, run.classes, run.groups
        source, expected, limit = np.sum(record["flow"], axis=0), record["expected"], record["bound"] or None
    moved = style.floats(source)
    names = style.class_names(names, moved.size)
    colours = style.class_colours(groups, moved.size)
    starts, sizes = style.stretches(moved.size, MOST_BARS)
    heights = tops = np.add.reduceat(moved, starts) / sizes
    bars = ax.bar(starts + (sizes - 1) / 2, heights, 0.72 * sizes, color=[colours[start] for start in starts])
    texts = list(map(style.short, heights))
    style.tooltips(bars, [f"{style.limited(names[k])}: {text}" for k, text in zip(starts, texts, strict=True)])
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
    _name_bars(ax, names)
    ax.set_ylabel("labels moved in")


def _name_bars(ax: Axes, names: Sequence[str]) -> None:
    """Name the bars along the lower axis, some of them where they are many."""
    chosen = range(0, len(names), len(names) // 40 + 1)
    upright = len(names) > 14 or sum(min(len(label), 18) for label in names) + 2 * len(names) > 60
    ax.set_xticks(list(chosen), [name(names[c], 18) for c in chosen], rotation=90 if upright else 0)
    ax.margins(x=0.01)
