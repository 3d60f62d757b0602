"""A comparison as tables and as a page: arms side by side, paired gains and what is noise, curves, classes, labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.metrics.paired import is_noise
from fedrela.plots.arms import arm_words, drop_words, pair_name, pair_title, score_words, seeds_words
from fedrela.plots.classes import first_pair
from fedrela.plots.comparisons import gain_rows, gain_text
from fedrela.plots.rounds import arm_runs
from fedrela.plots.runs import GridData, RunData
from fedrela.plots.style import limited
from fedrela.report.page import Block, Figure, Page, Section, Table, Text
from fedrela.report.tables import MOVED, Value, paper_cell, spread_text, values_of
from fedrela.text import listed, percent, plural, points

Summary = Mapping[str, Any]
INTERVAL = ("mean", "deviation", "low", "high")
MOST_BASELINES = 4  # that get plots of their own beside the tables
CHANCE = 0.05  # of an interval of 95 % to miss a difference of zero
MANY = 10  # differences among which chance must be spoken of
BEST_TEST = (
    "Every accuracy is of the round that is best on the test set itself, which nobody can choose without looking at "
    "it. It is what the official code reports, and no fair estimate."
)
VERDICTS = {
    "gain": "Gains beyond noise, in points",
    "loss": "Losses beyond noise",
    "noise": "Within noise",
    "unknown": "With one seed nothing says how much of it is noise",
}


def compare_tables(summary: Summary) -> list[Table]:
    """Return all tables of a comparison; those of pairs only where there are any."""
    paired = [compare_table(summary), difference_table(summary)] if any(pairs(summary)) else []
    return [*paired, arms_table(summary)]


def compare_table(summary: Summary) -> Table:
    """Return the matched pairs in the paper's form, ``baseline (+FedReLa) +gain / -trade-off``."""
    rows = []
    for baseline, pair in pairs(summary):
        base, treated = (baseline["arms"][pair[key]] for key in ("base", "treated"))
        found = (base, treated, pair["differences"])
        cells = (paper_cell(*(of[metric]["mean"] for of in found)) for metric in summary["metrics"])
        name = pair_name(pair["base"], pair["treated"])
        rows.append((baseline["label"], name, *cells, spread_text(treated["moved"], "moved")))
    seeds = len(summary["seeds"])
    mean = f"mean over {seeds} seeds" if seeds > 1 else "one seed"
    caption = f"{score_words(summary)}: without (with) FedReLa, and the gain or trade-off in points; {mean}"
    return _table(summary, ("baseline", "pair", *summary["metrics"], MOVED), rows, caption)


def difference_table(summary: Summary) -> Table:
    """Return by how much the second arm of each pair exceeds the first, seed by seed, with 95 % intervals."""
    rows = []
    for baseline, pair in pairs(summary):
        found = (pair["differences"][metric] for metric in summary["metrics"])
        cells = (gain_text(of["mean"], of["low"], of["high"]) for of in found)
        rows.append((baseline["label"], pair_name(pair["base"], pair["treated"]), *cells))
    caption = "Paired differences in points"
    if len(summary["seeds"]) > 1:
        caption += f", mean over {len(summary['seeds'])} seeds with the 95 % interval of Student's t"
    return _table(summary, ("baseline", "pair", *summary["metrics"]), rows, caption)


def arms_table(summary: Summary) -> Table:
    """Return every baseline and arm by itself."""
    metrics = (*summary["metrics"], "moved")
    rows = [
        (baseline["label"], arm_words(arm), *(spread_text(found[metric], metric) for metric in metrics))
        for baseline in summary["baselines"]
        for arm, found in baseline["arms"].items()
    ]
    caption = f"{score_words(summary)}; {seeds_words(summary)}"
    return _table(summary, ("baseline", "arm", *summary["metrics"], MOVED), rows, caption)


def _table(summary: Summary, columns: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> Table:
    drop = drop_words(arm for baseline in summary["baselines"] for arm in baseline["arms"])
    return Table(columns, rows, columns[:2], f"{caption}{drop}.")


def compare_values(summary: Summary) -> list[dict[str, Value]]:
    """Return a comparison for programs: one row per baseline, arm, metric and arm it is compared with, in per cent."""
    return [
        {
            "baseline": baseline["label"], "algorithm": baseline["algorithm"], "arm": arm, "metric": metric,
            **values_of(found[metric]),
            "against": pair and pair["base"],
            **values_of(pair and pair["differences"][metric], prefix="difference_", keys=INTERVAL),
            **values_of(found["moved"], "moved", "moved_"),
            "seeds": len(summary["seeds"]),
        }
        for baseline in summary["baselines"]
        for arm, found in baseline["arms"].items()
        for pair in [pair for pair in baseline["pairs"] if pair["treated"] == arm] or [None]
        for metric in summary["metrics"]
    ]  # fmt: skip


def pairs(summary: Summary) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield every baseline with each of its matched pairs."""
    return ((baseline, pair) for baseline in summary["baselines"] for pair in baseline["pairs"])


def compare_page(runs: GridData, setting: str) -> Page:
    """Return what a comparison found, from its tables to the labels moved."""
    summary = runs.summary or {}
    baselines = listed([limited(baseline["label"]) for baseline in summary["baselines"]])
    arms = plural(max(len(baseline["arms"]) for baseline in summary["baselines"]), "matched arm")
    lead = f"{setting}: {baselines} in {arms} each, over {plural(len(summary['seeds']), 'seed')}."
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
    failed = [baseline for baseline in summary["baselines"] if "failed" in baseline]
    said = [f"{limited(of['label'])} is left out, since a run of it failed: {of['failed']}" for of in failed]
    if summary["score"] == "best-test":
        said.append(BEST_TEST)
    return [Text(words, "warning") for words in said]


def _gains(summary: Summary) -> list[Block]:
    """Return a plot per kind of pair, and in words which differences are beyond noise."""
    blocks: list[Block] = []
    for k, ((base, treated), said) in enumerate(verdicts(summary).items(), 1):
        draw = partial(plots.gains, gain_rows(summary, base, treated))
        blocks += [Figure(f"gains-{k}", pair_title(base, treated), draw, said), Text(said)]
    return [*blocks, Text(meaning(summary), "muted")] if blocks else []


def verdicts(summary: Summary) -> dict[tuple[str, str], str]:
    """Return for every kind of matched pair which differences of all baselines lie beyond noise, and which do not."""
    kinds: dict[tuple[str, str], dict[str, list[str]]] = {}
    for baseline, pair in pairs(summary):
        found = kinds.setdefault((pair["base"], pair["treated"]), {})
        for metric in summary["metrics"]:
            difference = pair["differences"][metric]
            if difference["mean"] is None:
                continue
            noise, sign = is_noise(difference), "gain" if difference["mean"] > 0 else "loss"
            verdict = "unknown" if noise is None else "noise" if noise else sign
            words = f"{limited(baseline['label'])} {limited(metric)} {points(difference['mean'])}"
            found.setdefault(verdict, []).append(words)
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
    shown, seeds = dict.fromkeys(summary["metrics"][:-3:-1]), len(summary["seeds"])
    band = f"Mean over {seeds} seeds; bands are one standard deviation." if seeds > 1 else "One seed."
    blocks: list[Block] = []
    for k, label in _plotted(summary):
        for metric, kind in zip(shown, ("headline", "rarest"), strict=False):
            if arm_runs(runs, label):
                draw = partial(plots.accuracy_over_rounds, runs, baseline=label, metric=metric)
                title = f"{limited(label)}: {limited(metric)} accuracy"
                blocks.append(Figure(f"rounds-{k}-{kind}", title, draw, caption=band))
    return [*blocks, *_left_out(summary)]


def _class_changes(summary: Summary, runs: GridData) -> list[Block]:
    """Return what re-labelling changed for each class, mean over seeds."""
    blocks: list[Block] = []
    for k, label in _plotted(summary):
        if pair := first_pair(runs, label):
            words = f"Mean over {plural(len(pair[0]), 'seed')}, after the last round."
            said = f"Accuracy of each class, {pair[2][0]} and {pair[2][1]}. {words}"
            draw = partial(plots.class_changes, runs, baseline=label)
            blocks.append(Figure(f"classes-{k}", f"{limited(label)}: accuracy by class", draw, said, words))
    return [*blocks, *(_left_out(summary) if blocks else [])]


def _plotted(summary: Summary) -> list[tuple[int, str]]:
    """Return numbers and labels of the baselines that have plots of their own."""
    return list(enumerate((baseline["label"] for baseline in summary["baselines"][:MOST_BASELINES]), 1))


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
            rows.append((limited(baseline["label"]), arm_words(arm), spread_text(moved, "moved"), percent(of_all)))
            if arm == "fedrela" and len(maps) < MOST_BASELINES:
                maps += _flow(limited(baseline["label"]), there, f"flow-{len(maps) + 1}")
    if not rows:
        return [Text("No arm moves labels.")]
    columns, caption = ("baseline", "arm", MOVED, "of all"), "Training labels, mean over seeds"
    return [Table(columns, rows, columns[:2], caption), *maps]


def _flow(label: str, runs: Sequence[RunData], key: str) -> list[Figure]:
    flows = [np.array(run.relabelling["flow"]) for run in runs if run.relabelling and run.relabelling["moved"]]
    if not flows:
        return []
    flow, classes = np.mean(flows, axis=0), runs[0].classes
    a, b = divmod(int(flow.argmax()), len(classes))
    most = f"The most frequent move is from {limited(classes[a])} to {limited(classes[b])}, {flow[a, b]:.1f} labels."
    caption = f"Mean over {plural(len(flows), 'seed')}. {most}"
    draw = partial(plots.label_flows, flow, names=classes)
    return [Figure(key, f"{label} + FedReLa: labels moved", draw, most, caption)]


def _left_out(summary: Summary) -> list[Block]:
    """Say where plots of only some baselines are shown."""
    more = len(summary["baselines"]) - MOST_BASELINES
    said = f"Plots of the first {MOST_BASELINES} baselines; {more} more are in the tables."
    return [Text(said, "muted")] if more > 0 else []
