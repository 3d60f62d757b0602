"""The tables of a comparison, a sweep or a reproduction as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedrela.report.page import Table
from fedrela.report.tables.compare import compare_tables, compare_values
from fedrela.report.tables.formats import csv_text, latex, latex_text, markdown, markdown_text, paragraph
from fedrela.report.tables.reproduce import doubts, reproduce_tables, reproduce_values
from fedrela.report.tables.sweep import sweep_tables, sweep_values
from fedrela.report.tables.values import Values
from fedrela.runfolder.records import page

Summary = Mapping[str, Any]
TABLES: dict[str, Callable[[Summary], list[Table]]] = {
    "compare": compare_tables,
    "sweep": sweep_tables,
    "reproduce": reproduce_tables,
}
VALUES: dict[str, Callable[[Summary], Values]] = {
    "compare": compare_values,
    "sweep": sweep_values,
    "reproduce": reproduce_values,
}
REDUCED, OURS = "What was reduced", "Settings the paper does not state: ours"
NOTES, DOUBTFUL = "Notes", "Doubtful in the paper"


def all_tables(summary: Summary) -> dict[str, bytes]:
    """Return ``table.md``, ``table.csv``, ``table.tex`` and ``table.json`` of a summary.

    The CSV has one value a column, shares in per cent; the JSON is the summary itself.
    """
    kind, tables = summary["kind"], TABLES[summary["kind"]](summary)
    return {
        "table.md": _markdown(summary, tables).encode(),
        "table.csv": csv_text(VALUES[kind](summary)).encode(),
        "table.tex": _latex(summary, tables).encode(),
        "table.json": page(summary),
    }


def remarks(summary: Summary) -> dict[str, list[str]]:
    """Return under headings what a reader of the tables has to know: a reproduction's reductions, choices, doubts."""
    if summary["kind"] != "reproduce":
        return {}
    found = {REDUCED: summary["reduction"], OURS: summary["ours"], NOTES: summary["notes"], DOUBTFUL: doubts(summary)}
    return {title: lines for title, lines in found.items() if lines}


def heading(summary: Summary) -> str:
    """Return the title of the tables."""
    title = f": {summary['title']}, scale {summary['scale']}" if summary["kind"] == "reproduce" else ""
    return f"{summary['kind']} {summary['name']}{title}"


def _markdown(summary: Summary, tables: list[Table]) -> str:
    parts = [f"# {markdown_text(heading(summary))}\n", *map(markdown, tables)]
    for title, lines in remarks(summary).items():
        parts.append(f"## {title}\n\n" + "".join(f"- {paragraph(line)}\n" for line in lines))
    return "\n".join(parts)


def _latex(summary: Summary, tables: list[Table]) -> str:
    lines = [heading(summary), *(f"{title}: {line}" for title, found in remarks(summary).items() for line in found)]
    head = "".join(f"% {latex_text(line)}\n" for line in lines)
    return "\n".join([f"% \\usepackage{{booktabs}}\n{head}", *map(latex, tables)])
