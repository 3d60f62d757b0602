"""The page of a table of the paper, run again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.report.grid.agreement import agreement_chart, agreement_words, gains
from fedrela.report.grid.runs import Runs
from fedrela.report.grid.sensitivity import sensitivity_figures
from fedrela.report.grid.setting import setting
from fedrela.report.page import Block, Figure, Page, Section, Text
from fedrela.report.run.words import many, name
from fedrela.report.tables.documents import DOUBTFUL, NOTES, OURS, REDUCED, remarks
from fedrela.report.tables.reproduce import reproduce_tables

Summary = Mapping[str, Any]
KEYS = {REDUCED: "reduced", OURS: "ours", NOTES: "notes", DOUBTFUL: "doubtful"}


def reproduce_page(summary: Summary, runs: Runs) -> Page:
    """Return a table of the paper beside what was measured, the gains, and what was chosen or reduced."""
    title = f"{name(summary['name'])}, scale {name(summary['scale'])}"
    return Page(title, _lead(summary, runs), [Section("summary", "", _opening(summary)), *_sections(summary, runs)])


def _lead(summary: Summary, runs: Runs) -> str:
    """Say what was run, in one sentence."""
    measured = sum(entry["measured"] is not None for entry in summary["entries"])
    entries = f"{measured:,} of the {len(summary['entries']):,} entries measured"
    seeds = many(len(summary["seeds"]), "seed")
    return f"{summary['title']}: {entries} over {seeds}; the first run: {setting(runs)}."


def _opening(summary: Summary) -> list[Block]:
    """Return what a reader must know first: that the scale is not the paper's."""
    if summary["scale"] == "paper":
        return []
    said = "These numbers are of a reduced setting and cannot equal the paper's; what can be compared is their order."
    return [Text(said, "warning")]


def _sections(summary: Summary, runs: Runs) -> list[Section]:
    """Return the table, the gains, and what was chosen or reduced."""
    found = gains(summary)
    compared: list[Block] = [Text(agreement_words(found)), Figure("gains", agreement_chart(found))] if found else []
    return [
        Section("table", "Published and measured", reproduce_tables(summary, split=True)),
        Section("gains", "Gains, published against measured", compared),
        Section("curves", "Over the values", sensitivity_figures(summary)),
        *(Section(KEYS[title], title, [Text(line) for line in lines]) for title, lines in remarks(summary).items()),
    ]
