"""Plots of many runs: gains with intervals, sensitivity to swept keys, published against measured gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.arms import arm_name
from fedrela.plots.matrices import heat_map
from fedrela.plots.runs import is_source, read_summary
from fedrela.text import not_one_of, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Summary = Mapping[str, Any]
BASELINE, TREATED = "baseline", "+FedReLa"  # the arms of the paper's tables
MOST_ROWS = 80
MARKERS = "os^Dv*"
MOVED = "moved"
HELD_BACK = "held back"  # balanced accuracy on what clients hold back


@style.plot
def gains(source: Any, *, base: str = "baseline", treated: str = "fedrela", ax: Axes = style.NEW) -> Axes:
    """Draw paired gains in points with their 95 % intervals; a filled dot has an interval without zero.

    Parameters
    ----------
    source
        A comparison, its summary, or rows of a name, a mean and the two ends of an interval (None without one), as
        differences of shares.
    base, treated
        Of a comparison, which matched arms.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.gains([("minority", 0.12, 0.05, 0.19), ("overall", 0.01, -0.02, 0.04)])
    >>> [text.get_text() for text in ax.texts]
    ['+12.0 [+5.0, +19.0]', '+1.0 [-2.0, +4.0]']
    """
    plain = not is_source(source) and not isinstance(source, Mapping)
    rows = list(source) if plain else gain_rows(read_summary(source, "compare"), base, treated)
    rows = [row for row in rows if row[1] is not None][:MOST_ROWS]
    kinds = set()
    for y, (label, *numbers) in enumerate(rows):
        mean, low, high = 100 * style.floats(numbers)
        clear, interval = bool(low > 0 or high < 0), not np.isnan(low)
        kinds.add((clear, interval))
        if interval:
            ax.plot([low, high], [y, y], "|-", color=style.SERIES[0], linewidth=1.4, markersize=7)
        face = style.SERIES[0] if clear else style.PAPER
        (dot,) = ax.plot(mean, y, "o", color=style.SERIES[0], markerfacecolor=face, markersize=6)
        style.tooltips(dot, [f"{style.limited(label)}: {gain_text(*numbers)}"])
    ax.axvline(0, color=style.MUTED, linewidth=1)
    style.name_rows(ax, [row[0] for row in rows], [gain_text(*row[1:]) for row in rows], 30)
    ax.set_xlabel("gain in points")
    words = {(True, True): "interval without zero", (False, True): "within noise: interval holds zero"}
    words[False, False] = "no interval"
    shown = [kind for kind in words if kind in kinds]
    style.legend_above(ax, [style.dot(style.SERIES[0], clear) for clear, _ in shown], [words[kind] for kind in shown])
    style.set_height(ax, 1.1 + 0.22 * max(len(rows), 2))
    return ax


def gain_rows(summary: Summary, base: str, treated: str) -> list[tuple[str, Any, Any, Any]]:
    """Return the differences of all baselines between two arms: name, mean and both ends of the interval."""
    return [
        (
            f"{style.limited(baseline['label'])}, {style.limited(metric)}",
            *(pair["differences"][metric][key] for key in ("mean", "low", "high")),
        )
        for baseline in summary["baselines"]
        for pair in baseline["pairs"]
        if (pair["base"], pair["treated"]) == (base, treated)
        for metric in summary["metrics"]
    ]


def gain_text(mean: float, low: float | None = None, high: float | None = None) -> str:
    """Write a gain in points with its interval.

    >>> gain_text(0.12, 0.05, 0.19), gain_text(-0.1)
    ('+12.0 [+5.0, +19.0]', '-10.0')
    """
    return points(mean) if low is None else f"{points(mean)} [{points(low)}, {points(high)}]"


@style.plot
def sensitivity(
    source: Any, *, metric: str | None = None, baseline: str | None = None, arm: str | None = None, ax: Axes = style.NEW
) -> Axes:
    """Draw what swept keys do: lines with bands over one key, a heat map over two.

    Parameters
    ----------
    source
        A sweep of one or two keys, its summary, or a mapping of names to a triple of values of the key, means and
        standard deviations (None without).
    metric
        Of a sweep: a group, the headline, or ``moved``; by default all accuracies as lines of one arm, or the
        headline as lines of several arms or as a heat map.
    baseline, arm
        Those of a heat map; by default the first.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.sensitivity({"minority": ([0.01, 0.05, 0.1], [0.5, 0.7, 0.6], None)})
    >>> ax.get_lines()[0].get_ydata().tolist()
    [0.5, 0.7, 0.6]
    """
    if isinstance(source, Mapping) and source.get("kind") != "sweep":
        _lines(ax, source, metric != MOVED)
        return ax
    summary = read_summary(source, "sweep")
    arms = arms_of(summary)
    if metric is not None and metric not in (*summary["metrics"], MOVED):
        raise ArgumentError(f"metric: {not_one_of(metric, [*summary['metrics'], MOVED])}")
    if len(summary["keys"]) == 2:
        chosen = next((a for a in arms if baseline in (None, a[0]) and arm in (None, a[1])), None)
        if chosen is None:
            raise ArgumentError("baseline, arm: not in this sweep")
        _surface(ax, summary, chosen, metric or summary["metrics"][-1])
    elif len(summary["keys"]) == 1:
        _over_one_key(ax, summary, arms, metric)
    else:
        raise DataError(f"expected a sweep of one or two keys, got {len(summary['keys'])}")
    return ax


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
    key = summary["keys"][0]
    if len(arms) == 1 and metric is None:
        found = points_of(summary, *arms[0])
        lines = {style.name(label): [point["metrics"][label] for point in found] for label in summary["metrics"]}
        if all(point["validation"] for point in found):
            lines[HELD_BACK] = [point["validation"] for point in found]
    else:
        metric = metric or summary["metrics"][-1]
        lines = {style.name(arm_name(*a)): [p["metrics"][metric] for p in points_of(summary, *a)] for a in arms}
    values = summary["values"][key]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        at = [[point["values"][key] for point in points_of(summary, *a)] for a in arms]
        numbers = {
            label: (at[min(k, len(at) - 1)], [s["mean"] for s in spreads], [s["deviation"] for s in spreads])
            for k, (label, spreads) in enumerate(lines.items())
        }
        _lines(ax, numbers, metric != MOVED)
        ax.set_xlabel(style.name(key))
        return
    matrix = [
        [spreads[k]["mean"] if k < len(spreads) else None for spreads in lines.values()] for k in range(len(values))
    ]
    heat_map(
        ax, matrix, [value_text(v) for v in values], list(lines), percent=metric != MOVED, row_label=style.name(key)
    )


def _lines(ax: Axes, lines: Mapping[str, Sequence[Any]], percent: bool) -> None:
    for k, (label, (x, mean, deviation)) in enumerate(lines.items()):
        at, y = style.floats(x), style.floats(mean)
        order = np.argsort(at, kind="stable")
        order = order[~np.isnan(y[order])]
        marker = MARKERS[k % len(MARKERS)]
        (line,) = ax.plot(at[order], y[order], marker=marker, markeredgecolor=style.PAPER, label=style.name(label))
        found = zip(at[order], y[order], strict=True)
        style.tooltips(line, [f"{label}, {a:g}: {f'{b:.1%}' if percent else style.short(b)}" for a, b in found])
        spread = style.floats([None] * at.size if deviation is None else deviation)[order]
        if order.size and not np.isnan(spread).all():
            low, high = np.maximum(y[order] - spread, 0), y[order] + spread
            high = np.minimum(high, 1) if percent else high
            ax.fill_between(at[order], low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    values = np.unique(np.concatenate([style.floats(x) for x, _, _ in lines.values()] or [style.floats([])]))
    if 1 < values.size <= 8 and values[0] > 0 and values[-1] / values[0] > 8:
        ax.set_xscale("log")
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.minorticks_off()
    ax.set_ylabel("test accuracy" if percent else "labels moved")
    if percent:
        style.percent_axis(ax.yaxis)
    style.legend_above(ax)


def _surface(ax: Axes, summary: Summary, arm: tuple[str, str], metric: str) -> None:
    """Draw the means of one arm over two keys."""
    first, last = summary["keys"]
    rows, columns = summary["values"][first], summary["values"][last]
    found = {
        (repr(point["values"][first]), repr(point["values"][last])): point["metrics"][metric]["mean"]
        for point in points_of(summary, *arm)
    }
    matrix = [[found.get((repr(row), repr(column))) for column in columns] for row in rows]
    heat_map(
        ax, matrix, [value_text(row) for row in rows], [value_text(column) for column in columns],
        percent=metric != MOVED, from_zero=False, row_label=style.name(first), column_label=style.name(last),
    )  # fmt: skip


@dataclass(frozen=True)
class Gain:
    """What FedReLa added to a metric at one place of a table, as shares."""

    place: str
    metric: str
    published: float
    measured: float


@style.plot
def published_and_measured(source: Any, *, ax: Axes = style.NEW) -> Axes:
    """Draw gains by FedReLa as published against as measured; on the dashed line both agree.

    `source` is a reproduction, its summary, or a sequence of `Gain`.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.published_and_measured([plots.Gain("CIFAR-10, FedAvg", "minority", 0.12, 0.10)])
    >>> ax.get_lines()[-1].get_xydata().tolist()
    [[12.0, 10.0]]
    """
    plain = not is_source(source) and not isinstance(source, Mapping)
    found: Sequence[Gain] = list(source) if plain else table_gains(read_summary(source, "reproduce"))
    if not found:
        raise DataError("no gain was both published and measured")
    values = 100 * np.array([[gain.published, gain.measured] for gain in found])
    room = 0.08 * max(float(np.ptp(values)), 1.0)
    ends = min(float(values.min()), 0.0) - room, max(float(values.max()), 0.0) + room
    ax.axhline(0, color=style.MUTED, linewidth=0.8)
    ax.axvline(0, color=style.MUTED, linewidth=0.8)
    ax.plot(ends, ends, color=style.MUTED, linestyle=(0, (2, 2)), linewidth=1)
    for k, metric in enumerate(dict.fromkeys(gain.metric for gain in found)):
        chosen = [gain for gain in found if gain.metric == metric]
        x, y = ([100 * getattr(gain, key) for gain in chosen] for key in ("published", "measured"))
        look: dict[str, Any] = {"markeredgecolor": style.PAPER, "markersize": 7, "linestyle": "none"}
        look |= {"marker": MARKERS[k % len(MARKERS)], "color": style.SERIES[k % len(style.SERIES)]}
        (dots,) = ax.plot(x, y, label=style.name(metric), **look)
        style.tooltips(dots, [f"{style.limited(g.place)}, {style.limited(metric)}: published {points(g.published)}, "
                        f"measured {points(g.measured)}" for g in chosen])  # fmt: skip
    ax.set(xlim=ends, ylim=ends, xlabel="published gain in points", ylabel="measured gain in points")
    ax.grid(True, axis="both")
    style.legend_above(ax)
    style.set_height(ax, 4.2)
    return ax


def table_gains(summary: Summary) -> list[Gain]:
    """Return the gains of all places and metrics that were both published and measured."""
    arms: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in summary["entries"]:
        arms.setdefault(", ".join(map(str, entry["at"].values())), {})[entry["arm"]] = entry
    found = [
        (place, metric["name"], *(_gain(both, metric, source) for source in ("published", "measured")))
        for place, both in arms.items()
        for metric in summary["metrics"]
        if metric["of"] != MOVED
    ]
    return [Gain(place, words, a, b) for place, words, a, b in found if a is not None and b is not None]


def _gain(arms: Mapping[str, Mapping[str, Any]], metric: Mapping[str, Any], source: str) -> float | None:
    """Return what FedReLa added; some tables of the paper print that instead of accuracies."""
    if TREATED not in arms:
        return None
    treated = entry_value(arms[TREATED], metric["of"], source)
    if metric.get("gain"):
        return treated
    baseline = entry_value(arms[BASELINE], metric["of"], source) if BASELINE in arms else None
    return None if baseline is None or treated is None else treated - baseline


def entry_value(entry: Mapping[str, Any], metric: str, source: str) -> float | None:
    """Return a metric of a table's entry as it was published or measured: a share, or the number of labels moved."""
    found = (entry[source] or {}).get(metric)
    if found is None:
        return None
    value: float | None = found["mean"] if source == "measured" else found
    published = source == "published" and metric != MOVED
    return value / 100 if published and value is not None else value
