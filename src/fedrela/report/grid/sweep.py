"""The page of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.report.grid.runs import Runs
from fedrela.report.grid.setting import setting
from fedrela.report.grid.surfaces import curves, heat_maps
from fedrela.report.page import Block, Page, Section, Text
from fedrela.report.run.words import listed, many, name, percent
from fedrela.report.tables.arms import arm_name
from fedrela.report.tables.cells import points
from fedrela.report.tables.sweep import sweep_table, value_text

Summary = Mapping[str, Any]
MOST_FAILURES = 8


def sweep_page(summary: Summary, runs: Runs) -> Page:
    """Return what a sweep found: the choice in words, pictures for one or two keys, all points."""
    title = f"Sweep of {listed([name(key) for key in summary['keys']])}: {name(summary['name'])}"
    return Page(title, _lead(summary, runs), [Section("summary", "", _opening(summary)), *_sections(summary, runs)])


def _lead(summary: Summary, runs: Runs) -> str:
    """Say what was run, in one sentence."""
    keys = listed([f"{name(key)} over {many(len(summary['values'][key]), 'value')}" for key in summary["keys"]])
    baselines = listed(list(dict.fromkeys(name(point["baseline"]) for point in summary["points"])))
    return f"{setting(runs)}: {baselines} with {keys}, over {many(len(summary['seeds']), 'seed')}."


def _opening(summary: Summary) -> list[Block]:
    """Return what a page begins with: the choice, in words."""
    failed = [
        Text(f"{_values(point['values'])}: a run failed: {point['failed']}", "warning")
        for point in summary["points"]
        if "failed" in point
    ]
    said = [Text(choice_words(summary, choice)) for choice in summary["choice"]]
    return [*failed[:MOST_FAILURES], *(said or _no_choice(summary))]


def _sections(summary: Summary, runs: Runs) -> list[Section]:
    """Return pictures for one or two keys, and all points as tables."""
    number = len(summary["keys"])
    pictures = {1: curves, 2: heat_maps}[number](summary) if number in (1, 2) else []
    return [
        Section("figures", "What the values do", pictures),
        Section("points", "All points", [sweep_table(summary)]),
    ]


def choice_words(summary: Summary, choice: Mapping[str, Any]) -> str:
    """Say which value the validation split would choose, and what the test set says of it."""
    headline = summary["figures"][-1]
    chosen, best = (_values(choice[key]) for key in ("values", "best_test_values"))
    test = listed([f"{name(figure)} {percent(choice['test'][figure])}" for figure in summary["figures"]])
    said = (
        f"{name(arm_name(choice['baseline'], choice['arm']))}: {choice['by']} is highest at {chosen} "
        f"({percent(choice['validation'])}), so that is what one would choose. There the test set says: {test}."
    )
    if choice["best_test"] <= choice["test"][headline]:
        return f"{said} No other value is better on the test set ({headline})."
    more = points(choice["best_test"] - choice["test"][headline]).lstrip("+")
    return (
        f"{said} Best on the test set itself is {best}, {headline} {percent(choice['best_test'])}: {more} points more, "
        "which nobody can have without looking at the test set."
    )


def _no_choice(summary: Summary) -> list[Block]:
    return [Text(summary["why_no_choice"])] if summary["why_no_choice"] else []


def _values(values: Mapping[str, Any]) -> str:
    return listed([f"{name(key)} = {name(value_text(value))}" for key, value in values.items()])
