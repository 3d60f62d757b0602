"""A sweep as tables and as a page: one row per point, the layout of a sensitivity analysis, and the choice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fedrela import plots
from fedrela.arms import AS_GIVEN, arm_label, arm_of_baseline
from fedrela.plots.comparisons import VALIDATION, Summary, arms_of, points_of, value_text
from fedrela.plots.folders import GridData
from fedrela.report.page import Block, Figure, Page, Section, Table, Text, say
from fedrela.report.tables import MOVED, Value, spread_text, values_of
from fedrela.text import limited, listed, percent

MOST_FAILURES = 8


def sweep_tables(summary: Summary) -> list[Table]:
    """Return all tables of a sweep; the wide one only for one or two keys."""
    wide = wide_table(summary)
    return [sweep_table(summary), *([wide] if wide else [])]


def sweep_table(summary: Summary) -> Table:
    """Return one row per point: the values of the keys, all metrics, and the labels moved."""
    keys, metrics = summary["keys"], summary["metrics"]
    validated = any(point["validation"] for point in summary["points"])
    rows = []
    for point in summary["points"]:
        row = _who(summary, point["baseline"], point["arm"]) + [value_text(point["values"][key]) for key in keys]
        row += [spread_text(point["metrics"][metric]) for metric in metrics]
        row += [spread_text(point["validation"])] if validated else []
        rows.append([*row, spread_text(point["metrics"]["moved"], "moved")])
    words = [*_who(summary), *keys]
    columns = [*words, *metrics, *([VALIDATION] if validated else []), MOVED]
    held = f"; {VALIDATION}: balanced accuracy on the clients' validation samples" if validated else ""
    return Table(columns, rows, words, f"{say('score', summary)}; {say('seeds', summary)}{held}.")


def wide_table(summary: Summary) -> Table | None:
    """Return a row per metric (and value of the first of two keys), a column per value of the last key; else None."""
    if len(summary["keys"]) not in (1, 2):
        return None
    *first, last = summary["keys"]
    across, down = summary["values"][last], summary["values"][first[0]] if first else [None]
    rows = []
    for baseline, arm in arms_of(summary):
        found = {
            repr([point["values"][key] for key in summary["keys"]]): point["metrics"]
            for point in points_of(summary, baseline, arm)
        }
        for metric in (*summary["metrics"], "moved"):
            for start in ([value] if first else [] for value in down):
                there = (found.get(repr([*start, value]), {}) for value in across)
                cells = (spread_text(metrics.get(metric), metric) for metrics in there)
                label = MOVED if metric == "moved" else metric
                rows.append([*_who(summary, baseline, arm), label, *map(value_text, start), *cells])
    words = [*_who(summary), "metric", *first]
    return Table([*words, *map(value_text, across)], rows, words, f"The same, with {last} from left to right.")


def sweep_values(summary: Summary) -> list[dict[str, Value]]:
    """Return a sweep for programs: one row per point, shares in per cent."""
    rows = []
    for point in summary["points"]:
        row: dict[str, Value] = {"baseline": point["baseline"], "arm": point["arm"]}
        for key in summary["keys"]:
            value = point["values"][key]
            number = isinstance(value, int | float) and not isinstance(value, bool)
            row[key] = value if number else value_text(value)
        for metric in summary["metrics"]:
            row |= values_of(point["metrics"][metric], metric, f"{metric}_")
        row |= values_of(point["validation"], prefix="validation_")
        rows.append(row | values_of(point["metrics"]["moved"], "moved", "moved_") | {"seeds": len(summary["seeds"])})
    return rows


def _who(summary: Summary, baseline: str = "baseline", arm: str = "arm") -> list[str]:
    """Return baseline and arm, by default the names of their columns; a sweep without arms has no column of arms."""
    named = any(point["arm"] != AS_GIVEN for point in summary["points"])
    return [baseline, *([arm_label(arm)] if named else [])]


def sweep_page(runs: GridData, setting: str) -> Page:
    """Return the results of a sweep: the choice as a sentence, plots for one or two keys, all points."""
    summary = runs.summary or {}
    title = f"Sweep of {listed([limited(key) for key in summary['keys']])}: {limited(summary['name'])}"
    sections = [
        Section("summary", "", _opening(summary)),
        Section("figures", "What the values do", _plots(summary)),
        Section("points", "All points", [sweep_table(summary)]),
    ]
    return Page(title, say("sweep_lead", summary, setting), sections)


def _opening(summary: Summary) -> list[Block]:
    """Return the start of a page: the choice as a sentence."""
    failed = [point for point in summary["points"] if "failed" in point][:MOST_FAILURES]
    said = [choice_sentence(summary, choice) for choice in summary["choice"]] or [summary["why_no_choice"]]
    warnings = (f"{_values(point['values'])}: a run failed: {point['failed']}" for point in failed)
    return [*(Text(words, "warning") for words in warnings), *(Text(words) for words in said if words)]


def _plots(summary: Summary) -> list[Block]:
    """Return lines over one key, heat maps over two, and nothing over more keys."""
    metrics, arms = summary["metrics"], arms_of(summary)
    draw = partial(plots.sensitivity, summary)
    words = {metric: f"{limited(metric)} accuracy" for metric in metrics} | {"moved": MOVED}
    if len(summary["keys"]) == 2:
        chosen, over = dict.fromkeys([*metrics[:-3:-1], "moved"]), listed([limited(key) for key in summary["keys"]])
        return [
            Figure(f"map-{k}-{j}", title, partial(draw, metric=metric, baseline=baseline, arm=arm),
                   f"{title} over {over}.", "Mean over seeds.")
            for k, (baseline, arm) in enumerate(arms, 1)
            for j, metric in enumerate(chosen, 1)
            for title in [f"{limited(arm_of_baseline(baseline, arm))}: {words[metric]}"]
        ]  # fmt: skip
    if len(summary["keys"]) != 1:
        return []
    band = say("band", len(summary["seeds"]))
    moved = Figure("moved", "Labels moved", partial(draw, metric="moved"), caption="All clients, mean over seeds.")
    if len(arms) == 1:
        return [Figure("accuracy", f"{limited(arm_of_baseline(*arms[0]))}: test accuracy", draw, caption=band), moved]
    shown = [
        Figure(f"accuracy-{k}", words[metric], partial(draw, metric=metric), caption=band)
        for k, metric in enumerate(metrics, 1)
    ]
    return [*shown, moved]


def choice_sentence(summary: Summary, choice: Mapping[str, Any]) -> str:
    """Return which value validation would choose, and its accuracy on the test set."""
    chosen, best = (_values(choice[key]) for key in ("values", "best_test_values"))
    test = [f"{limited(metric)} {percent(choice['test'][metric])}" for metric in summary["metrics"]]
    arm = ", ".join(
        filter(None, (limited(arm_of_baseline(choice["baseline"], choice["arm"])), _values(choice.get("at", {}))))
    )
    return say("choice", choice, arm, chosen, best, test, summary["metrics"][-1])


def _values(values: Mapping[str, Any]) -> str:
    return listed([f"{limited(key)} = {limited(value_text(value))}" for key, value in values.items()])
