"""A table of the paper: in its own layout, published and measured one below the other, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.plots.comparisons import BASELINE, TREATED, Gain, entry_value, table_gains
from fedrela.plots.style import limited
from fedrela.report.numbers import NONE, Value, Values, paper_cell, values_of
from fedrela.report.page import Block, Figure, Page, Section, Table, Text
from fedrela.text import plural, points

Summary = Mapping[str, Any]
Entry = Mapping[str, Any]
DOUBTFUL = "†"
DIGITS = 2  # as the paper prints
FEWEST = 3  # values that make a line
REMARKS = {
    "reduced": "What was reduced",
    "ours": "Settings the paper does not state: ours",
    "notes": "Notes",
    "doubtful": "Doubtful in the paper",
}


def reproduce_tables(summary: Summary, *, split: bool = False) -> list[Table]:
    """Return the table of a reproduction: for every row of the paper's a published and a measured one.

    Where the paper has both arms in a place, they share one cell, ``baseline (+FedReLa) +gain / -trade-off``. A dagger
    marks what is doubtful in the paper, a hyphen what was not measured. With `split` there is a table for each place
    along the columns' axes, for where there is less room than in a paper.
    """
    across = _places(summary, summary["columns"])
    if not split or len(across) < 2:
        return [_table(summary, across, caption(summary))]
    tables = []
    for k, column in enumerate(across):
        named = zip(summary["columns"], column, strict=True)
        words = ", ".join(f"{axis} {value}" for axis, value in named)
        tables.append(_table(summary, [column], words if k else f"{words}. {caption(summary)}"))
    return tables


def _table(summary: Summary, across: Sequence[tuple[str, ...]], words: str) -> Table:
    rows_of, metrics = row_axes(summary), summary["metrics"]
    cells, sources = _cells(summary, rows_of), _sources(summary)
    rows = []
    for row in _places(summary, rows_of):
        for source in sources:
            arms = (cells.get((row, column), {}) for column in across)
            rows.append([*row, source, *(_cell(found, metric, source) for found in arms for metric in metrics)])
    left = [*rows_of, ""]
    named = [", ".join([*(column if len(across) > 1 else ()), f["name"]]) for column in across for f in metrics]
    return Table([*left, *named], rows, left, words)


def caption(summary: Summary) -> str:
    """Say what the cells of the table are."""
    pair = "without (with) FedReLa and gain or trade-off; " if is_paired(summary) else ""
    seeds = len(summary["seeds"])
    mean = f"measured: mean over {seeds} seeds" if seeds > 1 else "measured: one seed"
    columns = f"columns by {', '.join(summary['columns'])}; " if summary["columns"] else ""
    doubt = f"; {DOUBTFUL}: doubtful in the paper" if doubts(summary) else ""
    return f"In per cent; {pair}{columns}{mean}; {NONE}: not published or not measured{doubt}."


def row_axes(summary: Summary) -> list[str]:
    """Return the names of the axes that run down: those named, then all others but the columns' ones."""
    rows, columns = summary["rows"], summary["columns"]
    others = dict.fromkeys(axis for entry in summary["entries"] for axis in entry["at"])
    return [*rows, *(axis for axis in others if axis not in {*rows, *columns})]


def _sources(summary: Summary) -> list[str]:
    """Return what can be shown; of a plot in the paper no numbers are published."""
    values = (value for entry in summary["entries"] for value in (entry["published"] or {}).values())
    return ["published", "measured"] if any(value is not None for value in values) else ["measured"]


def is_paired(summary: Summary) -> bool:
    """Whether some place of the table has both a baseline and the same baseline with FedReLa."""
    arms: dict[tuple[tuple[str, str], ...], set[str]] = {}
    for entry in summary["entries"]:
        arms.setdefault(tuple(sorted(entry["at"].items())), set()).add(entry["arm"])
    return any({BASELINE, TREATED} <= found for found in arms.values())


def doubts(summary: Summary) -> list[str]:
    """Return every reason for a doubt once, with the places it concerns."""
    places: dict[str, list[str]] = {}
    for entry in summary["entries"]:
        if entry["doubtful"]:
            places.setdefault(entry["doubtful"], []).append(", ".join([*entry["at"].values(), entry["arm"]]))
    return [f"{DOUBTFUL} {'; '.join(at)}: {why}" for why, at in places.items()]


def reproduce_values(summary: Summary) -> Values:
    """Return a reproduction for programs: one row per entry and metric, in per cent."""
    others = [axis for entry in summary["entries"] for axis in entry["at"]]
    axes = list(dict.fromkeys([*summary["rows"], *summary["columns"], *others]))
    columns = [*axes, "arm", "metric", "published", "measured_mean", "measured_deviation", "seeds", "doubtful"]
    rows: list[list[Value]] = []
    for entry in summary["entries"]:
        place = [entry["at"].get(axis) for axis in axes]
        for metric in summary["metrics"]:
            of = metric["of"]
            spread, factor = (entry["measured"] or {}).get(of), 1 if of == "moved" else 100
            measured = values_of(spread, ("mean", "deviation"), factor)
            arm = entry["arm"].removeprefix("+")
            published = (entry["published"] or {}).get(of)
            rows.append([*place, arm, of, published, *measured, len(summary["seeds"]), entry["doubtful"]])
    return Values(columns, rows)


def _places(summary: Summary, axes: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what stands along some axes, in the order of the entries."""
    return list(dict.fromkeys(_place(entry, axes) for entry in summary["entries"]))


def _place(entry: Entry, axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(entry["at"].get(axis, "")) for axis in axes)


def _cells(summary: Summary, rows: Sequence[str]) -> dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, Entry]]:
    """Return the entries at every place, by arm."""
    cells: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, Entry]] = {}
    for entry in summary["entries"]:
        at = (_place(entry, rows), _place(entry, summary["columns"]))
        cells.setdefault(at, {})[entry["arm"]] = entry
    return cells


def _cell(arms: Mapping[str, Entry], metric: Mapping[str, str], source: str) -> str:
    """Write what was published or measured of a metric at one place."""
    values = {arm: entry_value(entry, metric["of"], source) for arm, entry in arms.items()}
    if metric["of"] == "moved":
        moved = values.get(TREATED, values.get(BASELINE))
        return NONE if moved is None else f"{moved:,.0f}"
    if set(values) == {TREATED, BASELINE}:
        text = paper_cell(values[BASELINE], values[TREATED], digits=DIGITS)
    else:  # one arm only: its row or column says which
        text = paper_cell(next(iter(values.values()), None), None, digits=DIGITS)
    doubtful = source == "published" and text != NONE and any(entry["doubtful"] for entry in arms.values())
    return text + doubtful * DOUBTFUL


def remarks(summary: Summary) -> dict[str, list[str]]:
    """Return under headings what a reader of the tables has to know: a reproduction's reductions, choices, doubts."""
    if summary["kind"] != "reproduce":
        return {}
    lines = (summary["reduction"], summary["ours"], summary["notes"], doubts(summary))
    return {title: found for title, found in zip(REMARKS.values(), lines, strict=True) if found}


def reproduce_page(summary: Summary, setting: str) -> Page:
    """Return a table of the paper beside what was measured, the gains, and what was chosen or reduced."""
    measured = sum(entry["measured"] is not None for entry in summary["entries"])
    entries = f"{measured:,} of the {len(summary['entries']):,} entries measured"
    lead = f"{summary['title']}: {entries} over {plural(len(summary['seeds']), 'seed')}; the first run: {setting}."
    said = "These numbers are of a reduced setting and cannot equal the paper's; what can be compared is their order."
    found, keys = table_gains(summary), {title: key for key, title in REMARKS.items()}
    sections = [
        Section("summary", "", [] if summary["scale"] == "paper" else [Text(said, "warning")]),
        Section("table", "Published and measured", reproduce_tables(summary, split=True)),
        Section("gains", "Gains, published against measured", _gains(found)),
        Section("curves", "Over the values", sensitivity_figures(summary)),
        *(Section(keys[title], title, [Text(line) for line in lines]) for title, lines in remarks(summary).items()),
    ]
    return Page(f"{limited(summary['name'])}, scale {limited(summary['scale'])}", lead, sections)


def _gains(found: Sequence[Gain]) -> list[Block]:
    if not found:
        return []
    said, title = agreement_words(found), "Gains by FedReLa; on the dashed line both agree"
    return [Text(said), Figure("gains", title, partial(plots.published_and_measured, found), said)]


def agreement_words(found: Sequence[Gain]) -> str:
    """Say how often published and measured gains have one sign."""
    if not found:
        return "No gain was both published and measured."
    same = sum((gain.published > 0) == (gain.measured > 0) for gain in found)
    apart = points(float(np.mean([abs(gain.published - gain.measured) for gain in found]))).lstrip("+")
    return f"{same} of {len(found)} gains have the published sign; on average they lie {apart} points apart."


def sensitivity_figures(summary: Summary) -> list[Block]:
    """Return accuracy and labels moved over a table's only axis, where its values are numbers; else nothing."""
    axes = {axis for entry in summary["entries"] for axis in entry["at"]}
    if len(axes) != 1:
        return []
    axis = next(iter(axes))
    placed = [(number(entry["at"][axis]), entry) for entry in summary["entries"]]
    there = [(value, entry) for value, entry in placed if value is not None]
    if len(there) < FEWEST:
        return []
    shown: list[Block] = []
    for source in ("measured", "published"):
        for moved in (False, True):
            metrics = [metric for metric in summary["metrics"] if (metric["of"] == "moved") == moved]
            lines = {
                metric["name"]: ([x for x, _ in there], [entry_value(e, metric["of"], source) for _, e in there], None)
                for metric in metrics
            }
            if any(value is not None for _, y, _ in lines.values() for value in y):
                title = f"{'Labels moved' if moved else 'Test accuracy'} over {limited(axis)}, {source}"
                draw = partial(plots.sensitivity, lines, metric="moved" if moved else None)
                shown.append(Figure(f"{source}-{'moved' if moved else 'accuracy'}", title, draw))
    return shown


def number(text: str) -> float | None:
    """Return the number that an axis states, or None for a word.

    >>> number("5%"), number("0.3"), number("Original")
    (5.0, 0.3, None)
    """
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        return None
