"""A comparison as tables and as a page: arms side by side, paired gains and what is noise, curves, classes, labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.metrics.paired import is_noise
from fedrela.plots.arms import arm_words, drop_words, pair_name, pair_title, score_words, seeds_words
from fedrela.plots.classes import first_pair
from fedrela.plots.comparisons import gain_rows
from fedrela.plots.rounds import arm_runs
from fedrela.plots.runs import GridData
from fedrela.plots.style import limited
from fedrela.report.numbers import (
    Value,
    Values,
    interval_points,
    listed,
    paper_cell,
    spread_count,
    spread_percent,
    values_of,
)
from fedrela.report.page import Block, Figure, Page, Section, Table, Text
from fedrela.text import percent, plural, points

Summary = Mapping[str, Any]
MOVED = "labels moved"
INTERVAL = ("mean", "deviation", "low", "high")
MOST_BASELINES = 4  # that get plots of their own beside the tables
CHANCE = 0.05  # of an interval of 95 % to miss a difference of zero
MANY = 10  # differences among which chance must be spoken of
VERDICTS = {
    "gain": "Gains beyond noise, in points",
    "loss": "Losses beyond noise",
    "noise": "Within noise",
    "unknown": "With one seed nothing says how much of it is noise",
}


def compare_tables(summary: Summary) -> list[Table]:
    """Return all tables of a comparison; those of pairs only where there are any."""
    if not any(pairs(summary)):
        return [arms_table(summary)]
    return [compare_table(summary), difference_table(summary), arms_table(summary)]


def compare_table(summary: Summary) -> Table:
    """Return the matched pairs in the paper's form, ``baseline (+FedReLa) +gain / -trade-off``."""
    rows = []
    for baseline, pair in pairs(summary):
        base, treated = baseline["arms"][pair["base"]], baseline["arms"][pair["treated"]]
        cells = (
            paper_cell(base[metric]["mean"], treated[metric]["mean"], pair["differences"][metric]["mean"])
            for metric in summary["metrics"]
        )
        what = pair_name(pair["base"], pair["treated"])
        rows.append((baseline["label"], what, *cells, spread_count(treated["moved"])))
    seeds = len(summary["seeds"])
    mean = f"mean over {seeds} seeds" if seeds > 1 else "one seed"
    caption = f"{score_words(summary)}: without (with) FedReLa, and the gain or trade-off in points; {mean}"
    return _table(("baseline", "pair", *summary["metrics"], MOVED), rows, f"{caption}{_drop(summary)}.")


def difference_table(summary: Summary) -> Table:
    """Return by how much the second arm of each pair exceeds the first, seed by seed, with 95 % intervals."""
    rows = [
        (
            baseline["label"],
            pair_name(pair["base"], pair["treated"]),
            *(interval_points(pair["differences"][metric]) for metric in summary["metrics"]),
        )
        for baseline, pair in pairs(summary)
    ]
    words = "Paired differences in points"
    if len(summary["seeds"]) > 1:
        words += f", mean over {len(summary['seeds'])} seeds with the 95 % interval of Student's t"
    return _table(("baseline", "pair", *summary["metrics"]), rows, f"{words}{_drop(summary)}.")


def arms_table(summary: Summary) -> Table:
    """Return every baseline and arm by itself."""
    rows = [
        (
            baseline["label"],
            arm_words(arm),
            *(spread_percent(found[metric]) for metric in summary["metrics"]),
            spread_count(found["moved"]),
        )
        for baseline in summary["baselines"]
        for arm, found in baseline["arms"].items()
    ]
    caption = f"{score_words(summary)}; {seeds_words(summary)}{_drop(summary)}."
    return _table(("baseline", "arm", *summary["metrics"], MOVED), rows, caption)


def compare_values(summary: Summary) -> Values:
    """Return a comparison for programs: one row per baseline, arm, metric and arm it is compared with, in per cent."""
    columns = (
        "baseline", "algorithm", "arm", "metric", "mean", "deviation", "against", "difference_mean",
        "difference_deviation", "difference_low", "difference_high", "moved_mean", "moved_deviation", "seeds",
    )  # fmt: skip
    rows: list[list[Value]] = []
    for baseline in summary["baselines"]:
        for arm, found in baseline["arms"].items():
            of_arm = [pair for pair in baseline["pairs"] if pair["treated"] == arm]
            for pair in of_arm or [None]:
                for metric in summary["metrics"]:
                    row = [baseline["label"], baseline["algorithm"], arm, metric]
                    row += [*values_of(found[metric], INTERVAL[:2]), pair and pair["base"]]
                    row += values_of(pair and pair["differences"][metric], INTERVAL)
                    rows.append([*row, *values_of(found["moved"], INTERVAL[:2], 1), len(summary["seeds"])])
    return Values(columns, rows)


def pairs(summary: Summary) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield every baseline with each of its matched pairs."""
    for baseline in summary["baselines"]:
        for pair in baseline["pairs"]:
            yield baseline, pair


def _drop(summary: Summary) -> str:
    return drop_words(arm for baseline in summary["baselines"] for arm in baseline["arms"])


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> Table:
    return Table(columns, rows, words=columns[:2], caption=caption)


def compare_page(summary: Summary, runs: GridData, setting: str) -> Page:
    """Return what a comparison found, from its tables to the labels moved."""
    baselines = listed([limited(baseline["label"]) for baseline in summary["baselines"]])
    arms = plural(max(len(baseline["arms"]) for baseline in summary["baselines"]), "matched arm")
    lead = f"{setting}: {baselines} in {arms} each, over {plural(len(summary['seeds']), 'seed')}."
    runs = GridData(runs.cells, runs.runs, summary)
    paper = [compare_table(summary)] if any(pairs(summary)) else []
    sections = [
        Section("summary", "", _warnings(summary)),
        Section("arms", "Arms side by side", [*paper, arms_table(summary)]),
        Section("gains", "Gains, and what is noise", _gains(summary)),
        Section("rounds", "Accuracy over rounds", _curves(summary, runs)),
        Section("classes", "Change by class", _class_changes(summary, runs)),
        Section("moves", "Labels moved", _label_moves(summary, runs)),
    ]
    shown = [section for section in sections if section.blocks or section.key == "summary"]
    return Page(f"Comparison: {limited(summary['name'])}", lead, shown)


def _warnings(summary: Summary) -> list[Block]:
    """Return what a reader must know first."""
    blocks: list[Block] = [
        Text(f"{limited(baseline['label'])} is left out, since a run of it failed: {baseline['failed']}", "warning")
        for baseline in summary["baselines"]
        if "failed" in baseline
    ]
    if summary["score"] == "best-test":
        said = (
            "Every accuracy is of the round that is best on the test set itself, which nobody can choose without "
            "looking at it. It is what the official code reports, and no fair estimate."
        )
        blocks.append(Text(said, "warning"))
    return blocks


def _gains(summary: Summary) -> list[Block]:
    """Return a plot per kind of pair, and in words which differences are beyond noise."""
    blocks: list[Block] = []
    for k, ((base, treated), said) in enumerate(verdicts(summary).items(), 1):
        draw = partial(plots.gains, gain_rows(summary, base, treated))
        blocks += [Figure(f"gains-{k}", pair_title(base, treated), draw, said), Text(said)]
    return [*blocks, Text(meaning(summary), "muted")] if blocks else []


def verdict(difference: Mapping[str, Any]) -> str:
    """Return whether a paired difference lies beyond noise: whether its 95 % interval leaves zero out.

    >>> verdict({"mean": 0.2, "low": 0.1, "high": 0.3}), verdict({"mean": -0.2, "low": -0.3, "high": -0.1})
    ('gain', 'loss')
    >>> verdict({"mean": 0.2, "low": -0.1, "high": 0.5}), verdict({"mean": 0.2, "low": None, "high": None})
    ('noise', 'unknown')
    """
    noise = is_noise(difference)
    if noise is None:
        return "unknown"
    return "noise" if noise else "gain" if difference["mean"] > 0 else "loss"


def verdicts(summary: Summary) -> dict[tuple[str, str], str]:
    """Return for every kind of matched pair what the differences of all baselines say."""
    kinds: dict[tuple[str, str], dict[str, list[str]]] = {}
    for baseline, pair in pairs(summary):
        found = kinds.setdefault((pair["base"], pair["treated"]), {})
        for metric in summary["metrics"]:
            difference = pair["differences"][metric]
            words = f"{limited(baseline['label'])} {limited(metric)} {points(difference['mean'])}"
            if difference["mean"] is not None:
                found.setdefault(verdict(difference), []).append(words)
    return {
        kind: " ".join(f"{words}: {listed(found[key])}." for key, words in VERDICTS.items() if key in found)
        for kind, found in kinds.items()
    }


def meaning(summary: Summary) -> str:
    """Say what beyond noise means here."""
    seeds, number = len(summary["seeds"]), sum(len(pair["differences"]) for _, pair in pairs(summary))
    if seeds < 2:
        return "One seed was run. It takes two or more to tell a difference from noise."
    said = (
        "A difference is taken seed by seed, between arms that share every round before re-labelling. It lies beyond "
        f"noise where its 95 % interval (Student's t over {seeds} seeds) leaves zero out."
    )
    if number >= MANY:
        said += f" Of {number} differences about {max(1, round(CHANCE * number))} would do so by chance alone."
    if seeds < 4:
        said += " So few seeds make wide intervals: what is within noise here may still be real."
    return said


def _curves(summary: Summary, runs: GridData) -> list[Block]:
    """Return accuracy over rounds: the headline, and the group of the rarest classes."""
    metrics = summary["metrics"]
    shown = dict.fromkeys([metrics[-1], metrics[max(len(metrics) - 2, 0)]])
    seeds = len(summary["seeds"])
    band = f"Mean over {seeds} seeds; bands are one standard deviation." if seeds > 1 else "One seed."
    blocks: list[Block] = []
    for k, baseline in enumerate(summary["baselines"][:MOST_BASELINES], 1):
        label = baseline["label"]
        if not arm_runs(runs, label):
            continue
        for metric, kind in zip(shown, ("headline", "rarest"), strict=False):
            title = f"{limited(label)}: {limited(metric)} accuracy"
            draw = partial(plots.accuracy_over_rounds, runs, baseline=label, metric=metric)
            blocks.append(Figure(f"rounds-{k}-{kind}", title, draw, caption=band))
    return [*blocks, *_left_out(summary)]


def _class_changes(summary: Summary, runs: GridData) -> list[Block]:
    """Return what re-labelling changed for each class, mean over seeds."""
    blocks: list[Block] = []
    for k, baseline in enumerate(summary["baselines"][:MOST_BASELINES], 1):
        label = baseline["label"]
        if pair := first_pair(runs, label):
            words = f"Mean over {plural(len(pair[0]), 'seed')}, after the last round."
            said = f"Accuracy of each class, {pair[2][0]} and {pair[2][1]}. {words}"
            title = f"{limited(label)}: accuracy by class"
            draw = partial(plots.class_changes, runs, baseline=label)
            blocks.append(Figure(f"classes-{k}", title, draw, said, words))
    return [*blocks, *(_left_out(summary) if blocks else [])]


def _label_moves(summary: Summary, runs: GridData) -> list[Block]:
    """Return how many labels every arm moved, and from where to where FedReLa did."""
    rows: list[tuple[str, ...]] = []
    maps: list[Figure] = []
    for baseline in summary["baselines"]:
        for arm, found in baseline["arms"].items():
            there = [run for run in runs.of(baseline["label"], arm) if run.enabled]
            if not there:
                continue
            moved = found["moved"]
            of_all = None if moved["mean"] is None else moved["mean"] / max(there[0].samples, 1)
            rows.append((limited(baseline["label"]), arm_words(arm), spread_count(moved), percent(of_all)))
            if arm == "fedrela" and len(maps) < MOST_BASELINES:
                maps += _flow(baseline, runs, f"flow-{len(maps) + 1}")
    if not rows:
        return [Text("No arm moves labels.")]
    columns, caption = ("baseline", "arm", MOVED, "of all"), "Training labels, mean over seeds"
    return [Table(columns, rows, ("baseline", "arm"), caption), *maps]


def _flow(baseline: Mapping[str, Any], runs: GridData, key: str) -> list[Figure]:
    there = [run for run in runs.of(baseline["label"], "fedrela") if run.relabelling]
    flows = [np.array(run.relabelling["flow"]) for run in there if run.relabelling and run.relabelling["moved"]]
    if not flows:
        return []
    flow, classes = np.mean(flows, axis=0), there[0].classes
    a, b = divmod(int(flow.argmax()), len(classes))
    most = f"The most frequent move is from {limited(classes[a])} to {limited(classes[b])}, {flow[a, b]:.1f} labels."
    caption = f"Mean over {plural(len(flows), 'seed')}. {most}"
    title = f"{limited(baseline['label'])} + FedReLa: labels moved"
    return [Figure(key, title, partial(plots.label_flows, flow, names=classes), most, caption)]


def _left_out(summary: Summary) -> list[Block]:
    """Say where plots of only some baselines are shown."""
    more = len(summary["baselines"]) - MOST_BASELINES
    said = f"Plots of the first {MOST_BASELINES} baselines; {more} more are in the tables."
    return [Text(said, "muted")] if more > 0 else []
