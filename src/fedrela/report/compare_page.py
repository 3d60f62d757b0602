"""A comparison as tables and as a page: arms side by side, paired gains and what is noise, curves, classes, labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.arms import ARMS, Arm, arm_label, is_matched
from fedrela.metrics.paired import is_noise
from fedrela.plots.classes import first_pair
from fedrela.plots.comparisons import Summary, gain_rows, gain_text
from fedrela.plots.folders import GridData, RunData
from fedrela.plots.rounds import arm_runs
from fedrela.report.page import Block, Figure, Page, Section, Table, Text, say
from fedrela.report.run_page import largest
from fedrela.report.tables import MOVED, Value, paper_cell, spread_text, values_of
from fedrela.text import limited, percent, plural, points

INTERVAL = ("mean", "deviation", "low", "high")
MOST_BASELINES = 4  # baselines that also have plots
CHANCE = 0.05  # of an interval of 95 % to miss a difference of zero
MANY = 10  # with at least this many differences, chance is mentioned


def compare_tables(summary: Summary) -> list[Table]:
    """Return all tables of a comparison; tables of pairs only if there are pairs."""
    paired = [compare_table(summary), difference_table(summary)] if any(pairs(summary)) else []
    return [*paired, arms_table(summary)]


def compare_table(summary: Summary) -> Table:
    """Return the pairs in the paper's form, ``baseline (+FedReLa) +gain / -trade-off``."""
    rows = []
    for baseline, pair in pairs(summary):
        base, treated = (baseline["arms"][pair[key]] for key in ("base", "treated"))
        found = (base, treated, pair["differences"])
        cells = (paper_cell(*(of[metric]["mean"] for of in found)) for metric in summary["metrics"])
        name = say("pair", pair["base"], pair["treated"])
        rows.append((baseline["label"], name, *cells, spread_text(treated["moved"], "moved")))
    matched = all(is_matched(pair["base"], pair["treated"]) for _, pair in pairs(summary))
    return _table(summary, ("baseline", "pair", *summary["metrics"], MOVED), rows, say("pair_cells", summary, matched))


def difference_table(summary: Summary) -> Table:
    """Return by how much the second arm of each pair exceeds the first, seed by seed, with 95 % intervals."""
    rows = []
    for baseline, pair in pairs(summary):
        found = (pair["differences"][metric] for metric in summary["metrics"])
        cells = (gain_text(of["mean"], of["low"], of["high"]) for of in found)
        rows.append((baseline["label"], say("pair", pair["base"], pair["treated"]), *cells))
    return _table(summary, ("baseline", "pair", *summary["metrics"]), rows, say("differences", len(summary["seeds"])))


def arms_table(summary: Summary) -> Table:
    """Return every baseline and arm by itself."""
    metrics = (*summary["metrics"], "moved")
    rows = [
        (baseline["label"], arm_label(arm), *(spread_text(found[metric], metric) for metric in metrics))
        for baseline in summary["baselines"]
        for arm, found in baseline["arms"].items()
    ]
    caption = f"{say('score', summary)}; {say('seeds', summary)}"
    return _table(summary, ("baseline", "arm", *summary["metrics"], MOVED), rows, caption)


def _table(summary: Summary, columns: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> Table:
    if any(arm in ARMS and ARMS[arm].drop for baseline in summary["baselines"] for arm in baseline["arms"]):
        caption += "; lr / 10: the learning rate divided by 10 from re-labelling on"
    return Table(columns, rows, columns[:2], f"{caption}.")


def compare_values(summary: Summary) -> list[dict[str, Value]]:
    """Return a comparison for programs: one row per baseline, arm, metric and reference arm, in per cent."""
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
    """Yield every baseline with each of its pairs."""
    return ((baseline, pair) for baseline in summary["baselines"] for pair in baseline["pairs"])


def compare_page(runs: GridData, setting: str) -> Page:
    """Return the page of a comparison, from its tables to the labels moved."""
    summary = runs.summary or {}
    paper = [compare_table(summary)] if any(pairs(summary)) else []
    sections = [
        Section("summary", "", _warnings(summary)),
        Section("arms", "Arms side by side", [*paper, arms_table(summary)]),
        Section("gains", "Gains, and what is noise", _gains(summary)),
        Section("rounds", "Accuracy over rounds", _curves(summary, runs)),
        Section("classes", "Change by class", _class_changes(summary, runs)),
        Section("moves", "Labels moved", _label_moves(summary, runs)),
    ]
    return Page(f"Comparison: {limited(summary['name'])}", say("compare_lead", summary, setting), sections)


def _warnings(summary: Summary) -> list[Block]:
    """Return warnings that a reader must see first."""
    failed = [baseline for baseline in summary["baselines"] if "failed" in baseline]
    said = [f"{limited(of['label'])} is left out because one of its runs failed: {of['failed']}" for of in failed]
    for of in summary["baselines"]:
        said += [f"{limited(of['label'])}, {arm_label(arm)}, {words}" for arm, words in of.get("lost", {}).items()]
    if summary["score"] == "best-test":
        said.append(say("best_test"))
    return [Text(words, "warning") for words in said]


def _gains(summary: Summary) -> list[Block]:
    """Return a plot per kind of pair, and sentences on which differences are beyond noise."""
    blocks: list[Block] = []
    for k, ((base, treated), said) in enumerate(verdicts(summary).items(), 1):
        draw = partial(plots.gains, gain_rows(summary, base, treated))
        blocks += [Figure(f"gains-{k}", say("pair_title", base, treated), draw, said), Text(said)]
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
    return {kind: say("verdicts", found) for kind, found in kinds.items()}


def meaning(summary: Summary) -> str:
    """Explain what beyond noise means here."""
    number = sum(len(pair["differences"]) for _, pair in pairs(summary))
    chance = max(1, round(CHANCE * number)) if number >= MANY else 0
    return say("noise", len(summary["seeds"]), number, chance)


def _curves(summary: Summary, runs: GridData) -> list[Block]:
    """Return accuracy over rounds: the headline, and the group of the rarest classes."""
    shown, band = dict.fromkeys(summary["metrics"][:-3:-1]), say("band", len(summary["seeds"]))
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
    """Return how many labels every arm moved, and FedReLa's moves from class to class."""
    rows: list[tuple[str, ...]] = []
    maps: list[Figure] = []
    for baseline in summary["baselines"]:
        for arm, found in baseline["arms"].items():
            relabelled = [run for run in runs.of(baseline["label"], arm) if run.enabled]
            moved = found["moved"]
            if not (ARMS[arm].relabels if arm in ARMS else relabelled):
                continue
            of_all = None if moved["mean"] is None or not relabelled else moved["mean"] / max(relabelled[0].samples, 1)
            rows.append((limited(baseline["label"]), arm_label(arm), spread_text(moved, "moved"), percent(of_all)))
            if ARMS.get(arm) == Arm(relabels=True) and len(maps) < MOST_BASELINES:
                maps += _flow(limited(baseline["label"]), relabelled, f"flow-{len(maps) + 1}")
    if not rows:
        return [Text("No arm moves labels.")]
    columns, caption = ("baseline", "arm", MOVED, "of all"), "Training labels, mean over seeds"
    return [Table(columns, rows, columns[:2], caption), *maps]


def _flow(label: str, runs: Sequence[RunData], key: str) -> list[Figure]:
    flows = [np.array(run.relabelling["flow"]) for run in runs if run.relabelling and run.relabelling["moved"]]
    if not flows:
        return []
    flow, classes = np.mean(flows, axis=0), runs[0].classes
    number, a, b = largest(flow, classes)
    most = f"The most frequent move is from {a} to {b}, {number:.1f} labels."
    caption = f"Mean over {plural(len(flows), 'seed')}. {most}"
    draw = partial(plots.label_flows, flow, names=classes)
    return [Figure(key, f"{label} + FedReLa: labels moved", draw, most, caption)]


def _left_out(summary: Summary) -> list[Block]:
    """Return a note if only some baselines have plots."""
    more = len(summary["baselines"]) - MOST_BASELINES
    said = f"Plots of the first {MOST_BASELINES} baselines; {more} more are in the tables."
    return [Text(said, "muted")] if more > 0 else []
