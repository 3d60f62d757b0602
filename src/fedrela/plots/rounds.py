"""Plots over the rounds of a run: accuracy, and seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.arms import arm_words
from fedrela.plots.runs import Floats, GridData, RunData, is_source, mean_over_seeds, read_run, read_source
from fedrela.text import not_one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARED = "shared by all arms"
HELD_BACK = "balanced, held back by clients"
SPANS = {"training": "train_seconds", "evaluation": "evaluate_seconds", "re-labelling": "relabel_seconds"}
MOST_BARS = 120
DASHES = ("-", "--", "-.", ":")


@style.plot
def accuracy_over_rounds(
    source: Any,
    *,
    baseline: str | None = None,
    metric: str | None = None,
    start: int | None = None,
    ax: Axes = style.NEW,
) -> Axes:
    """Draw accuracy over rounds, with a mark at T, the first round of re-labelling.

    Parameters
    ----------
    source
        A run: its headline accuracy and that of each group of classes. A comparison: all arms of one baseline, mean
        over seeds with a band of one standard deviation. Or a mapping of names to shares, each of shape
        ``(rounds,)`` or ``(seeds, rounds)``.
    baseline, metric, start
        Of a comparison, which baseline (the first) and which accuracy (the headline); T for plain numbers.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.accuracy_over_rounds({"FedAvg": [0.2, 0.5, 0.6], "FedReLa": [0.2, 0.5, 0.7]}, start=3)
    >>> [line.get_label() for line in ax.get_lines()[:2]]
    ['FedAvg', 'FedReLa']
    """
    if isinstance(source, Mapping):
        for label, values in source.items():
            _curve(ax, style.name(label), *mean_over_seeds(np.atleast_2d(style.floats(values))))
        words = f"T = {start}"
    else:
        data = read_source(source)
        if isinstance(data, RunData):
            start, words = _run_curves(ax, data)
        else:
            start = _arm_curves(ax, data, baseline, metric)
            words = f"T = {start}"
    ax.set(xlabel="round", ylabel="test accuracy")
    style.percent_axis(ax.yaxis)
    style.whole_axis(ax.xaxis)
    ax.margins(x=0.01)
    if start is not None:
        style.mark(ax, start, words)
    style.legend_above(ax)
    return ax


def _run_curves(ax: Axes, run: RunData) -> tuple[int | None, str]:
    """Draw the curves of a run; return T and what happens there, where anything does."""
    scored = [(record.round, record.accuracy) for record in run.rounds if record.accuracy]
    if not scored:
        raise DataError("no round of this run was evaluated on a test set")
    x = [number for number, _ in scored]
    overall = style.floats([share[run.headline] for _, share in scored])
    ax.plot(x, overall, color=style.INK, linestyle="-", label=style.name(run.headline))
    for k, (group, colour) in enumerate(zip(run.groups.names, style.group_colours(len(run.groups.names)), strict=True)):
        shares = style.floats([share["groups"][group] for _, share in scored])
        if not np.isnan(shares).all():
            ax.plot(x, shares, color=colour, linestyle=DASHES[(k + 1) % 4], label=style.name(group))
    held = [(record.round, record.validation["balanced"]) for record in run.rounds if record.validation]
    if held:
        ax.plot(*zip(*held, strict=True), color=style.SERIES[3], linestyle=":", label=HELD_BACK)
    scale = run.config["relabel"]["lr_scale"]
    rate = "" if scale == 1 else f"learning rate × {scale:g}"
    what = ", ".join(filter(None, ["re-labelling" if run.enabled else "", rate]))
    return (run.first if what and run.first <= run.all_rounds else None), f"T = {run.first}: {what}"


def _arm_curves(ax: Axes, grid: GridData, baseline: str | None, metric: str | None) -> int | None:
    """Draw all arms of a baseline, what they share once; return T."""
    if grid.summary is None or grid.summary["kind"] != "compare":
        raise DataError("accuracy over rounds is of a run or of a finished comparison")
    metric = metric or grid.summary["headline"]
    labels = [found["label"] for found in grid.summary["baselines"]]
    arms = arm_runs(grid, baseline or labels[0])
    if not arms:
        raise DataError("no round of this baseline was evaluated on a test set")
    first = next(iter(arms.values()))[0].first
    curves = {arm: mean_over_seeds([_shares(run, metric) for run in runs]) for arm, runs in arms.items()}
    rounds = min(mean.size for mean, _ in curves.values())
    shared = _shared_rounds([mean[:rounds] for mean, _ in curves.values()], first)
    if shared:
        mean, deviation = next(iter(curves.values()))
        _curve(ax, SHARED, mean[:shared], deviation[:shared], color=style.INK, linestyle="-")
    for arm, (mean, deviation) in curves.items():
        _curve(ax, arm_words(arm), mean, deviation, skip=max(shared - 1, 0))
    return first if 1 < first <= rounds else None


def arm_runs(grid: GridData, baseline: str) -> dict[str, list[RunData]]:
    """Return the runs of each arm of a baseline that have equally many rounds, some of them evaluated."""
    labels = {found["label"]: found for found in (grid.summary or {}).get("baselines", [])}
    if baseline not in labels:
        raise ArgumentError(f"baseline: {not_one_of(baseline, labels)}")
    arms = {arm: grid.of(baseline, arm) for arm in labels[baseline]["arms"]}
    return {
        arm: runs
        for arm, runs in arms.items()
        if len({len(run.rounds) for run in runs}) == 1 and any(record.accuracy for record in runs[0].rounds)
    }


def _shares(run: RunData, metric: str) -> list[float | None]:
    found = [record.accuracy for record in run.rounds]
    return [None if share is None else {**share, **share["groups"]}.get(metric) for share in found]


def _shared_rounds(means: Sequence[Floats], first: int) -> int:
    """Return how many rounds before T are the same in all arms; 0 where only one is there, or some differ."""
    head = [mean[: first - 1] for mean in means]
    same = len(head) > 1 and all(np.array_equal(head[0], other, equal_nan=True) for other in head)
    return head[0].size if same else 0


def _curve(ax: Axes, label: str, mean: Floats, deviation: Floats, skip: int = 0, **look: Any) -> None:
    """Draw a line from round `skip` + 1 on, with a band of one standard deviation where there is one."""
    x = np.arange(1, mean.size + 1)
    there = ~np.isnan(mean) & (x > skip)
    if not there.any():
        return
    (line,) = ax.plot(x[there], mean[there], label=label, **look)
    if not np.isnan(deviation[there]).all():
        low, high = np.maximum(mean - deviation, 0)[there], np.minimum(mean + deviation, 1)[there]
        ax.fill_between(x[there], low, high, color=line.get_color(), alpha=0.15, linewidth=0)


@style.plot
def cost(source: Any, *, ax: Axes = style.NEW) -> Axes:
    """Draw the seconds of each round: training, evaluation, re-labelling.

    Re-labelling is summed over clients, which may work side by side, so its part is the most that it can be. Beyond
    120 rounds a bar is the mean of neighbouring rounds. `source` is a run, or a mapping of names to seconds per round.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.cost({"training": [2.0, 2.1], "evaluation": [0.5, 0.5]})
    >>> [round(float(bar.get_height()), 1) for bar in ax.patches]
    [2.0, 2.1, 0.5, 0.5]
    """
    rounds, parts = _seconds(source)
    stretches = style.bands(len(rounds), MOST_BARS)
    starts = np.array([start for start, _ in stretches])
    widths = np.array([end - start for start, end in stretches])
    floor = np.zeros(len(stretches))
    for k, (label, values) in enumerate(parts.items()):
        height = np.add.reduceat(values, starts) / widths
        share = f"{style.name(label)} ({values.sum() / max(sum(v.sum() for v in parts.values()), 1e-300):.0%})"
        middles, colour = rounds[starts] + (widths - 1) / 2, style.SERIES[k % len(style.SERIES)]
        bars = ax.bar(middles, height, 0.8 * widths, floor, color=colour, label=share)
        numbered = zip(rounds[starts], height, strict=True)
        style.tooltips(bars, [f"round {number}, {label}: {seconds:.3g} s" for number, seconds in numbered])
        floor = floor + height
    ax.set(xlabel="round", ylabel="seconds")
    style.whole_axis(ax.xaxis)
    style.set_height(ax, 2.8)
    style.legend_above(ax)
    return ax


def _seconds(source: Any) -> tuple[Any, dict[str, Floats]]:
    if not is_source(source):
        parts: dict[str, ArrayLike] = dict(source)
        found = {label: style.floats(values) for label, values in parts.items()}
        return np.arange(1, len(next(iter(found.values()))) + 1), found
    timing = read_run(source).timing
    if not timing:
        raise DataError("this run has no timing yet")
    found = {label: style.floats([record.get(span, 0.0) for record in timing]) for label, span in SPANS.items()}
    inside = np.minimum(found["re-labelling"], found["training"])
    found |= {"training": found["training"] - inside, "re-labelling": inside}
    numbers = np.array([record["round"] for record in timing])
    return numbers, {label: values for label, values in found.items() if values.any()}
