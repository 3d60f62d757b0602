"""Plots over the rounds of a run: accuracy, and seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrela.arms import arm_label
from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.folders import Floats, GridData, RunData, mean_over_seeds, read_run, read_source
from fedrela.plots.style import Axes
from fedrela.text import not_one_of, percent

SHARED = "shared by all arms"
VALIDATION = "balanced, validation samples"
SPANS = {"training": "train_seconds", "evaluation": "evaluate_seconds", "re-labelling": "relabel_seconds"}
MOST_BARS = 120
DASHES = ("-", "--", "-.", ":")


@style.plot
def accuracy_over_rounds(
    source: Any, *, baseline: str | None = None, metric: str | None = None, start: int | None = None,
    ax: Axes = style.NEW,
) -> None:  # fmt: skip
    """Draw accuracy over rounds, with a mark at T, the first round of re-labelling.

    Parameters
    ----------
    source
        A run: its headline accuracy and that of each group of classes. A comparison: all arms of one baseline, as means
        over seeds with a band of one standard deviation. Or a mapping of names to shares, ``(rounds,)`` or
        ``(seeds, rounds)``.
    baseline, metric
        Of a comparison: the baseline, by default the first, and the metric, by default the headline.
    start
        Of a mapping: T.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = accuracy_over_rounds({"FedAvg": [0.2, 0.5, 0.6], "FedReLa": [0.2, 0.5, 0.7]}, start=3)
    >>> [line.get_label() for line in ax.get_lines()[:2]]
    ['FedAvg', 'FedReLa']
    """
    data, what = read_source(source), ""
    if data is None:
        for label, values in source.items():
            _curve(ax, style.name(label), *mean_over_seeds(np.atleast_2d(style.floats(values))))
    elif isinstance(data, RunData):
        start, what = _run_curves(ax, data)
    else:
        start = _arm_curves(ax, data, baseline, metric)
    ax.set_ylabel("test accuracy")
    style.percent_axis(ax.yaxis)
    style.round_axis(ax)
    ax.margins(x=0.01)
    if start is not None:
        style.mark(ax, start, f"T = {start}{what}")


def _run_curves(ax: Axes, run: RunData) -> tuple[int | None, str]:
    """Draw the curves of a run; return T and what happens there, if anything does."""
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
        ax.plot(*zip(*held, strict=True), color=style.SERIES[3], linestyle=":", label=VALIDATION)
    scale = run.config["relabel"]["lr_scale"]
    rate = "" if scale == 1 else f"learning rate × {scale:g}"
    what = ", ".join(filter(None, ["re-labelling" if run.enabled else "", rate]))
    return (run.first if what and run.first <= run.all_rounds else None), f": {what}"


def _arm_curves(ax: Axes, grid: GridData, baseline: str | None, metric: str | None) -> int | None:
    """Draw all arms of a baseline, shared rounds only once; return T."""
    if grid.summary is None or grid.summary["kind"] != "compare":
        raise DataError("expected a run or a finished comparison for accuracy over rounds")
    metric = metric or grid.summary["headline"]
    arms = arm_runs(grid, baseline or grid.summary["baselines"][0]["label"])
    if not arms:
        raise DataError("no round of this baseline was evaluated on a test set")
    first = next(iter(arms.values()))[0].first
    curves = {arm: mean_over_seeds([_shares(run, metric) for run in runs]) for arm, runs in arms.items()}
    rounds = min(mean.size for mean, _ in curves.values())
    heads = [mean[: min(rounds, first - 1)] for mean, _ in curves.values()]
    same = len(heads) > 1 and all(np.array_equal(heads[0], head, equal_nan=True) for head in heads)
    shared = heads[0].size if same else 0
    if shared:
        mean, deviation = next(iter(curves.values()))
        _curve(ax, SHARED, mean[:shared], deviation[:shared], color=style.INK, linestyle="-")
    for arm, (mean, deviation) in curves.items():
        _curve(ax, arm_label(arm), mean, deviation, skip=max(shared - 1, 0))
    return first if 1 < first <= rounds else None


def arm_runs(grid: GridData, baseline: str) -> dict[str, list[RunData]]:
    """Return the runs of each arm of a baseline that have equally many rounds, some of them evaluated."""
    labels = {found["label"]: found for found in (grid.summary or {}).get("baselines", [])}
    if baseline not in labels:
        raise ArgumentError(f"baseline: {not_one_of(baseline, labels)}")
    arms = {arm: grid.of(baseline, arm) for arm in labels[baseline]["arms"]}
    equal = {arm: runs for arm, runs in arms.items() if len({len(run.rounds) for run in runs}) == 1}
    return {arm: runs for arm, runs in equal.items() if any(record.accuracy for record in runs[0].rounds)}


def _shares(run: RunData, metric: str) -> list[float | None]:
    found = [record.accuracy for record in run.rounds]
    return [None if share is None else {**share, **share["groups"]}.get(metric) for share in found]


def _curve(ax: Axes, label: str, mean: Floats, deviation: Floats, skip: int = 0, **look: Any) -> None:
    """Draw a line from round `skip` + 1 on, with a band of one standard deviation if there is one."""
    x = np.arange(1, mean.size + 1)
    there = ~np.isnan(mean) & (x > skip)
    if there.any():
        style.line(ax, x[there], mean[there], deviation[there], label=label, **look)


@style.plot
def cost(source: Any, *, ax: Axes = style.NEW) -> None:
    """Draw the seconds of each round: training, evaluation, re-labelling.

    Re-labelling is summed over clients, which may work in parallel, so its part is an upper bound. Beyond
    120 rounds a bar is the mean of neighbouring rounds.

    Parameters
    ----------
    source
        A run, or a mapping of names to seconds per round.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = cost({"training": [2.0, 2.1], "evaluation": [0.5, 0.5]})
    >>> [round(float(bar.get_height()), 1) for bar in ax.patches]
    [2.0, 2.1, 0.5, 0.5]
    """
    run = read_run(source)
    parts = {label: style.floats(values) for label, values in source.items()} if run is None else _seconds(run)
    if len({len(values) for values in parts.values()}) != 1:
        raise ArgumentError("source: expected lists of equal length, the seconds of each round by name")
    number = len(next(iter(parts.values())))
    rounds = np.arange(1, number + 1) if run is None else np.array([record["round"] for record in run.timing])
    starts, widths = style.bins(number, MOST_BARS)
    middles, floor = rounds[starts] + (widths - 1) / 2, np.zeros(starts.size)
    whole = max(sum(values.sum() for values in parts.values()), 1e-300)
    for k, (label, values) in enumerate(parts.items()):
        height = np.add.reduceat(values, starts) / widths
        words, colour = f"{style.name(label)} ({percent(values.sum() / whole, 0)})", style.SERIES[k % len(style.SERIES)]
        bars = ax.bar(middles, height, 0.8 * widths, floor, color=colour, label=words)
        numbered = zip(rounds[starts], height, strict=True)
        style.tooltips(bars, [f"round {number}, {label}: {seconds:.3g} s" for number, seconds in numbered])
        floor = floor + height
    ax.set_ylabel("seconds")
    style.round_axis(ax)
    style.set_height(ax, 2.8)


def _seconds(run: RunData) -> dict[str, Floats]:
    """Return the seconds of each round by activity."""
    if not run.timing:
        raise DataError("this run has no timing yet")
    found = {label: style.floats([record.get(span, 0.0) for record in run.timing]) for label, span in SPANS.items()}
    inside = np.minimum(found["re-labelling"], found["training"])
    found |= {"training": found["training"] - inside, "re-labelling": inside}
    return {label: values for label, values in found.items() if values.any()}
