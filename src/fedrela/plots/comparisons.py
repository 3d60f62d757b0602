"""Plots of many runs: gains with intervals, sensitivity to swept keys, published against measured gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrela.arms import BASELINE, TREATED, arm_of_baseline
from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.classes import heat_map
from fedrela.plots.folders import read_summary
from fedrela.plots.style import Axes
from fedrela.text import limited, not_one_of, percent, points, short

Summary = Mapping[str, Any]
Entry = Mapping[str, Any]  # of a table of the paper
Dashed = Mapping[str, float | None] | None
MOST_ROWS = 80
GAP = 0.7  # between rows of two names, in rows
OPEN_DOTS = {  # by whether there are rows with an interval that includes zero, and without one
    (True, False): "interval includes zero",
    (False, True): "no interval",
    (True, True): "interval includes zero, or none",
}
MARKERS = "os^Dv*"
MOVED = "moved"
DASHES = (0, (4, 3))
VALIDATION = "validation"  # balanced accuracy on the clients' validation samples


@style.plot
def gains(source: Any, *, base: str = "baseline", treated: str = "fedrela", ax: Axes = style.NEW) -> None:
    """Draw paired gains in points with their 95 % intervals, a colour per metric; open dots are not beyond noise.

    Parameters
    ----------
    source
        A comparison or its summary; or rows of a name, a metric, a mean and the two ends of an interval (None without
        one), as differences of shares. Rows of one name follow one another.
    base, treated
        Of a comparison: the matched arms.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = gains([("FedAvg", "minority", 0.12, 0.05, 0.19), ("FedAvg", "overall", 0.01, -0.02, 0.04)])
    >>> [text.get_text() for text in ax.texts]
    ['+12.0 [+5.0, +19.0]', '+1.0 [-2.0, +4.0]']
    """
    summary = read_summary(source, "compare")
    rows = list(source) if summary is None else gain_rows(summary, base, treated)
    rows = [row for row in rows if row[2] is not None][:MOST_ROWS]
    texts = [gain_text(*numbers) for _, _, *numbers in rows]
    metrics = list(dict.fromkeys(row[1] for row in rows))
    colours = {metric: style.SERIES[k % len(style.SERIES)] for k, metric in enumerate(metrics)}
    breaks = [k > 0 and rows[k][0] != rows[k - 1][0] for k in range(len(rows))]
    places = [k + GAP * sum(breaks[: k + 1]) for k in range(len(rows))]
    kinds = set()
    for y, text, (label, metric, *numbers) in zip(places, texts, rows, strict=True):
        mean, low, high = 100 * style.floats(numbers)
        clear, interval, colour = bool(low > 0 or high < 0), not np.isnan(low), colours[metric]
        kinds.add((clear, interval))
        if interval:
            ax.plot([low, high], [y, y], "|-", color=colour, linewidth=1.4, markersize=6)
        face = colour if clear else style.PAPER
        (dot,) = ax.plot(mean, y, "o", color=colour, markerfacecolor=face, markersize=6)
        style.tooltips(dot, [f"{limited(label)}, {limited(metric)}: {text}"])
    ax.axvline(0, color=style.MUTED, linewidth=1)
    style.name_rows(ax, [row[0] for row in rows], texts, 46, places)
    ax.set_xlabel("gain in points")
    keys = {style.name(metric): style.dot(colour, True) for metric, colour in colours.items()}
    if (True, True) in kinds:
        keys["interval excludes zero"] = style.dot(style.MUTED, True)
    if words := OPEN_DOTS.get(((False, True) in kinds, (False, False) in kinds)):
        keys[words] = style.dot(style.MUTED, False)
    style.legend_above(ax, keys.values(), keys)
    style.set_height(ax, 1.1 + 0.18 * max(len(rows) + GAP * sum(breaks), 2))


def gain_rows(summary: Summary, base: str, treated: str) -> list[tuple[str, str, Any, Any, Any]]:
    """Return the differences between two arms: baseline, metric, mean and both ends of the interval."""
    rows = []
    for baseline in summary["baselines"]:
        for pair in baseline["pairs"]:
            for metric in summary["metrics"] if (pair["base"], pair["treated"]) == (base, treated) else ():
                found = pair["differences"][metric]
                rows.append((baseline["label"], metric, found["mean"], found["low"], found["high"]))
    return rows


def gain_text(mean: float, low: float | None = None, high: float | None = None) -> str:
    """Write a gain in points with its interval.

    >>> gain_text(0.12, 0.05, 0.19), gain_text(-0.1)
    ('+12.0 [+5.0, +19.0]', '-10.0')
    """
    return points(mean) if low is None else f"{points(mean)} [{points(low)}, {points(high)}]"


@style.plot
def sensitivity(
    source: Any, *, metric: str | None = None, baseline: str | None = None, arm: str | None = None,
    dashed: Dashed = None, over: str = "", ax: Axes = style.NEW,
) -> None:  # fmt: skip
    """Draw the effect of swept keys: lines with bands over one key, a heat map over two.

    Parameters
    ----------
    source
        A sweep of one or two keys, its summary, or a mapping of names to a triple of values of the key, means and
        standard deviations (None without).
    metric
        A group, the headline, or ``moved``; by default all accuracies as lines of one arm, or the headline as lines of
        several arms or as a heat map.
    baseline, arm
        Of a sweep of two keys: what the heat map shows, by default the first.
    dashed
        Of a mapping: values of a baseline by the name of a line, drawn across in its colour.
    over
        Of a mapping: the name of the key.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = sensitivity({"minority": ([0.01, 0.05, 0.1], [0.5, 0.7, 0.6], None)})
    >>> ax.get_lines()[0].get_ydata().tolist()
    [0.5, 0.7, 0.6]
    """
    plain = isinstance(source, Mapping) and "kind" not in source
    summary = None if plain else read_summary(source, "sweep")
    if summary is None:
        _lines(ax, source, metric != MOVED, dashed)
        ax.set_xlabel(style.name(over))
        return
    arms, keys, known = arms_of(summary), len(summary["keys"]), [*summary["metrics"], MOVED]
    if metric is not None and metric not in known:
        raise ArgumentError(f"metric: {not_one_of(metric, known)}")
    if keys > 2:
        raise DataError(f"expected a sweep of one or two keys, got {keys}")
    chosen = [found for found in arms if baseline in (None, found[0]) and arm in (None, found[1])]
    if keys == 1:
        _over_one_key(ax, summary, arms, metric)
    elif chosen:
        _surface(ax, summary, chosen[0], metric or summary["metrics"][-1])
    else:
        raise ArgumentError("baseline, arm: not in this sweep")


def arms_of(summary: Summary) -> list[tuple[str, str]]:
    """Return every pair of baseline and arm, in the order of the points."""
    return list(dict.fromkeys((point["baseline"], point["arm"]) for point in summary["points"]))


def points_of(summary: Summary, baseline: str, arm: str) -> list[Mapping[str, Any]]:
    """Return the points of a baseline and arm."""
    return [point for point in summary["points"] if (point["baseline"], point["arm"]) == (baseline, arm)]


def value_text(value: object) -> str:
    """Write a value that a key may have, as TOML does where that is short.

    >>> value_text(0.05), value_text(True), value_text("minmax"), value_text([1, 2])
    ('0.05', 'true', 'minmax', '[1, 2]')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def _over_one_key(ax: Axes, summary: Summary, arms: Sequence[tuple[str, str]], metric: str | None) -> None:
    """Draw lines over the only key, or a row of cells per value where its values are not numbers."""
    (key,), values = summary["keys"], summary["values"][summary["keys"][0]]
    one = metric is None and len(arms) == 1
    lines: dict[str, tuple[list[Any], ...]] = {}  # by label: values of the key, means and deviations
    for arm in arms:
        found = points_of(summary, *arm)
        shown = summary["metrics"] if one else [metric or summary["metrics"][-1]]
        spreads = {label: [point["metrics"][label] for point in found] for label in shown}
        if one and all(point["validation"] for point in found):
            spreads[VALIDATION] = [point["validation"] for point in found]
        at = [point["values"][key] for point in found]
        for label, line in spreads.items():
            parts = ([spread[part] for spread in line] for part in ("mean", "deviation"))
            lines[label if one else arm_of_baseline(*arm)] = (at, *parts)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        _lines(ax, lines, metric != MOVED)
        ax.set_xlabel(style.name(key))
    else:
        means = [dict(zip(map(repr, at), mean, strict=True)) for at, mean, _ in lines.values()]
        matrix = [[line.get(repr(value)) for line in means] for value in values]
        heat_map(ax, matrix, list(map(value_text, values)), list(lines), percent=metric != MOVED, average=True)
        ax.set_ylabel(style.name(key))


def _lines(ax: Axes, lines: Mapping[str, Sequence[Any]], shares: bool, dashed: Dashed = None) -> None:
    for k, (label, (x, mean, deviation)) in enumerate(lines.items()):
        at, y = style.floats(x), style.floats(mean)
        order = np.argsort(at, kind="stable")
        order = order[~np.isnan(y[order])]
        at, y = at[order], y[order]
        spread = style.floats([None] * len(x) if deviation is None else deviation)[order]
        look = {"marker": MARKERS[k % len(MARKERS)], "markeredgecolor": style.PAPER, "label": style.name(label)}
        look |= {"linestyle": "solid"} if dashed else {}
        line = style.line(ax, at, y, spread, 1.0 if shares else np.inf, **look)
        texts = [percent(value) if shares else short(value) for value in y]
        style.tooltips(line, [f"{limited(label)}, {a:g}: {text}" for a, text in zip(at, texts, strict=True)])
        if (value := (dashed or {}).get(label)) is not None:
            ax.axhline(value, color=line.get_color(), linestyle=DASHES, linewidth=1)
    if dashed:
        handles, labels = ax.get_legend_handles_labels()
        baseline = style.key(style.MUTED, linestyle=DASHES, linewidth=1)
        style.legend_above(ax, [*handles, baseline], [*labels, BASELINE])
    values = np.unique(np.concatenate([style.floats(x) for x, _, _ in lines.values()] or [style.floats([])]))
    if 1 < values.size <= 8 and values[0] > 0 and values[-1] / values[0] > 8:
        ax.set_xscale("log")
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.minorticks_off()
    ax.set_ylabel("test accuracy" if shares else "labels moved")
    if shares:
        style.percent_axis(ax.yaxis)


def _surface(ax: Axes, summary: Summary, arm: tuple[str, str], metric: str) -> None:
    """Draw the means of one arm over two keys."""
    keys = summary["keys"]
    rows, columns = (summary["values"][key] for key in keys)
    means = {
        tuple(repr(point["values"][key]) for key in keys): point["metrics"][metric]["mean"]
        for point in points_of(summary, *arm)
    }
    matrix = [[means.get((repr(row), repr(column))) for column in columns] for row in rows]
    names = list(map(value_text, rows)), list(map(value_text, columns))
    heat_map(ax, matrix, *names, percent=metric != MOVED, from_zero=False, average=True)
    ax.set(ylabel=style.name(keys[0]), xlabel=style.name(keys[1]))


@dataclass(frozen=True)
class Gain:
    """The gain of FedReLa in a metric at one place of a table.

    Parameters
    ----------
    place, metric
        Where in the table, and the name of the metric.
    published, measured
        The gains, as shares.

    Examples
    --------
    >>> gain = Gain("CIFAR-10, FedAvg", "minority", published=0.12, measured=0.10)
    >>> gain.place, gain.measured
    ('CIFAR-10, FedAvg', 0.1)
    """

    place: str
    metric: str
    published: float
    measured: float


@style.plot
def published_and_measured(source: Any, *, ax: Axes = style.NEW) -> None:
    """Draw published against measured gains of FedReLa; on the dashed line both agree.

    Parameters
    ----------
    source
        A reproduction, its summary, or a sequence of `Gain`.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = published_and_measured([Gain("CIFAR-10, FedAvg", "minority", 0.12, 0.10)])
    >>> ax.get_lines()[-1].get_xydata().tolist()
    [[12.0, 10.0]]
    """
    summary = read_summary(source, "reproduce")
    found: Sequence[Gain] = list(source) if summary is None else table_gains(summary)
    if not found:
        raise DataError("no gain was both published and measured")
    values = 100 * np.array([[gain.published, gain.measured] for gain in found])
    room = 0.08 * max(float(np.ptp(values)), 1.0)
    ends = min(float(values.min()), 0.0) - room, max(float(values.max()), 0.0) + room
    ax.axhline(0, color=style.MUTED, linewidth=0.8)
    ax.axvline(0, color=style.MUTED, linewidth=0.8)
    ax.plot(ends, ends, color=style.MUTED, linestyle=(0, (2, 2)), linewidth=1)
    for k, metric in enumerate(dict.fromkeys(gain.metric for gain in found)):
        chosen = [k for k, gain in enumerate(found) if gain.metric == metric]
        look: dict[str, Any] = {"markeredgecolor": style.PAPER, "markersize": 7, "linestyle": "none"}
        look |= {"marker": MARKERS[k % len(MARKERS)], "color": style.SERIES[k % len(style.SERIES)]}
        (dots,) = ax.plot(*values[chosen].T, label=style.name(metric), **look)
        places = [(limited(found[k].place), *map(points, values[k] / 100)) for k in chosen]
        where = limited(metric)
        style.tooltips(dots, [f"{place}, {where}: published {a}, measured {b}" for place, a, b in places])
    ax.set(xlim=ends, ylim=ends, xlabel="published gain in points", ylabel="measured gain in points")
    ax.grid(True, axis="both")
    style.set_height(ax, 4.2)


def table_gains(summary: Summary) -> list[Gain]:
    """Return the gains at all places and metrics that were both published and measured."""
    rows = gains_of(summary, ("published", "measured"))
    return [Gain(place, metric, a, b) for place, metric, a, b in rows if a is not None and b is not None]


def gains_of(summary: Summary, sources: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return place, metric and the gain of FedReLa in each of the sources: ``published``, or a measured row."""
    return [
        (place, metric["name"], *(_gain(baseline, treated, metric, source) for source in sources))
        for place, baseline, treated in _pairs(summary["entries"])
        for metric in summary["metrics"]
        if metric["of"] != MOVED
    ]


def _pairs(entries: Sequence[Entry]) -> Iterator[tuple[str, Entry | None, Entry]]:
    """Yield the place of each entry with FedReLa, its baseline and the entry itself.

    The baseline is at the same place, or at one where an axis has a word for it, such as Original, and no value.
    """
    baselines = {tuple(entry["at"].items()): entry for entry in entries if entry["arm"] == BASELINE}
    treated = [entry for entry in entries if entry["arm"] == TREATED]
    words = {
        axis: {at[axis] for at in map(dict, baselines)} - {entry["at"][axis] for entry in treated}
        for axis in (treated[0]["at"] if treated else ())
    }
    for entry in treated:
        at = entry["at"]
        others = ({**at, axis: word} for axis, found in words.items() for word in found)
        places = [tuple(place.items()) for place in (at, *others)]
        yield ", ".join(map(str, at.values())), next((baselines[p] for p in places if p in baselines), None), entry


def _gain(baseline: Entry | None, treated: Entry, metric: Mapping[str, Any], source: str) -> float | None:
    """Return the gain of FedReLa; some tables of the paper print that instead of accuracies."""
    after = entry_value(treated, metric["of"], source)
    if metric.get("gain"):
        return after
    before = entry_value(baseline, metric["of"], source) if baseline else None
    return None if before is None or after is None else after - before


def entry_value(entry: Mapping[str, Any], metric: str, source: str) -> float | None:
    """Return a metric of a table's entry as it was published or measured: a share, or the number of labels moved.

    `source` is ``published``, or one of the rows that were measured.
    """
    found: Any = (entry[source] or {}).get(metric)
    if found is not None and source != "published":
        found = found["mean"]
    share = found / 100 if found is not None and source == "published" and metric != MOVED else found
    return None if share is None else float(share)
