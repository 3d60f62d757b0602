"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.report.charts import interval_chart
from fedrela.report.grid.classes import MOST_BASELINES, class_changes, label_moves, left_out
from fedrela.report.grid.curves import accuracy_curves
from fedrela.report.grid.noise import meaning, verdicts
from fedrela.report.grid.runs import Runs
from fedrela.report.grid.setting import setting
from fedrela.report.page import Block, Figure, Page, Section, Text
from fedrela.report.run.words import listed, many, name
from fedrela.report.tables.arms import pair_title
from fedrela.report.tables.compare import arms_table, compare_table, pairs

Summary = Mapping[str, Any]


def compare_page(summary: Summary, runs: Runs) -> Page:
    """Return what a comparison found, from its tables to the labels moved."""
    title = f"Comparison: {name(summary['name'])}"
    return Page(title, _lead(summary, runs), [Section("summary", "", _opening(summary)), *_sections(summary, runs)])


def _opening(summary: Summary) -> list[Block]:
    """Return what a reader must know first."""
    blocks: list[Block] = [
        Text(f"{name(baseline['label'])} is left out, since a run of it failed: {baseline['failed']}", "warning")
        for baseline in summary["baselines"]
        if "failed" in baseline
    ]
    if summary["score"] == "best-test":
        said = (
            "Every figure is of the round that is best on the test set itself, which nobody can choose without looking "
            "at it. It is what the official code reports, and no fair estimate."
        )
        blocks.append(Text(said, "warning"))
    return blocks


def _lead(summary: Summary, runs: Runs) -> str:
    """Say what was run, in one sentence."""
    baselines = listed([name(baseline["label"]) for baseline in summary["baselines"]])
    arms = many(max(len(baseline["arms"]) for baseline in summary["baselines"]), "matched arm")
    return f"{setting(runs)}: {baselines} in {arms} each, over {many(len(summary['seeds']), 'seed')}."


def _sections(summary: Summary, runs: Runs) -> list[Section]:
    """Return what a comparison found, from the tables to the labels."""
    found = [
        Section("arms", "Arms side by side", _arms(summary)),
        Section("gains", "Gains, and what is noise", _gains(summary)),
        Section("rounds", "Accuracy over rounds", _curves(summary, runs)),
        Section("classes", "Change by class", class_changes(summary, runs)),
        Section("moves", "Labels moved", label_moves(summary, runs)),
    ]
    return [section for section in found if section.blocks]


def _arms(summary: Summary) -> list[Block]:
    paper = [compare_table(summary)] if any(pairs(summary)) else []
    return [*paper, arms_table(summary)]


def _gains(summary: Summary) -> list[Block]:
    """Return a chart a kind of pair, and in words which differences are beyond noise."""
    if not any(pairs(summary)):
        return []
    blocks: list[Block] = []
    for k, ((base, treated), said) in enumerate(verdicts(summary).items(), 1):
        rows = [
            (
                f"{name(baseline['label'])}, {figure}",
                *(pair["differences"][figure][key] for key in ("mean", "low", "high")),
            )
            for baseline, pair in pairs(summary)
            if (pair["base"], pair["treated"]) == (base, treated)
            for figure in summary["figures"]
        ]
        chart = interval_chart(rows, title=pair_title(base, treated), description=said, x_label="points")
        blocks += [Figure(f"gains-{k}", chart), Text(said)]
    return [*blocks, Text(meaning(summary), "muted")]


def _curves(summary: Summary, runs: Runs) -> list[Block]:
    """Return accuracy over rounds: the headline, and the group of the rarest classes."""
    shown = dict.fromkeys([summary["figures"][-1], summary["figures"][max(len(summary["figures"]) - 2, 0)]])
    baselines = summary["baselines"][:MOST_BASELINES]
    figures = [
        accuracy_curves(runs, baseline, figure, f"rounds-{k}-{kind}")
        for k, baseline in enumerate(baselines, 1)
        for figure, kind in zip(shown, ("headline", "rarest"), strict=False)
    ]
    return [*(figure for figure in figures if figure is not None), *left_out(summary)]
