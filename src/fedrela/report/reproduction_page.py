"""A table of the paper in its own layout, published above measured, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.arms import BASELINE, TREATED
from fedrela.plots.comparisons import Entry, Gain, Summary, entry_value, gains_of, table_gains
from fedrela.plots.folders import GridData
from fedrela.report.page import Block, Figure, Page, Section, Table, Text, say
from fedrela.report.tables import NONE, Value, paper_cell, values_of
from fedrela.text import limited, points, stated_number

Place = tuple[str, ...]  # values along some axes of a table
Cells = dict[tuple[Place, Place], dict[str, Entry]]
DOUBTFUL = "†"
DIGITS = 2  # as the paper prints
FEWEST = 3  # values that make a line
ONE_SHOT = "one-shot"  # a period of 0
PLAIN = ("dataset", "method")  # axes whose values need no explanation
AXES = {"tau": "tau, in per cent", "start": "T, in per cent of the rounds", "period": "the period (0: one shot)"}
REMARKS = {
    "reduced": "What was reduced",
    "unlike": "What the official code does, and the published protocol here does not",
    "ours": "Settings the paper does not state: ours",
    "notes": "Notes",
    "doubtful": "Doubtful in the paper",
}


def reproduce_tables(summary: Summary, *, split: bool = False) -> list[Table]:
    """Return the table of a reproduction: a published and a measured row for every row of the paper's table.

    Where the paper has both arms in a place, they share one cell, ``baseline (+FedReLa) +gain / -trade-off``. A dagger
    marks what is doubtful in the paper, a hyphen what was not measured. With `split` there is a table for each place
    along the columns' axes, which fits narrow pages. If the published protocol was run, tables of the differences
    between the protocols, and of the gains under both, follow.
    """
    return [*_entry_tables(summary, split), *_protocol_tables(summary)]


def _entry_tables(summary: Summary, split: bool) -> list[Table]:
    cells = _cells(summary)
    across = list(dict.fromkeys(column for _, column in cells))
    paired = any({BASELINE, TREATED} <= arms.keys() for arms in cells.values())
    caption = say("cells", summary, paired, doubts(summary))
    if not split or len(across) < 2:
        return [_table(summary, cells, across, caption)]
    places = (zip(summary["columns"], column, strict=True) for column in across)
    captions = [", ".join(f"{axis} {value}" for axis, value in place) for place in places]
    captions[0] += f". {caption}"
    return [_table(summary, cells, [column], words) for column, words in zip(across, captions, strict=True)]


def _protocol_tables(summary: Summary) -> list[Table]:
    """Return the settings in which the protocols differ, and the gains by both of them beside the printed ones."""
    tables = []
    if rows := summary.get("differences"):
        names = ("setting", "matched", "published")
        caption = "What differs between the protocols, with the place in brackets if not everywhere."
        tables.append(Table(names, [[row[name] for name in names] for row in rows], names, caption))
    if summary.get("protocol") == "both":
        gains = []
        for place, metric, *of in gains_of(summary, ("published", "published_protocol", "measured")):
            printed, published, matched = of
            if published is not None and matched is not None:
                rest = None if printed is None else printed - published
                gains.append([place, metric, *(points(gain, DIGITS) for gain in (*of, published - matched, rest))])
        on = f" on {summary['stand_in']}" if summary.get("stand_in") else ""
        columns = ("place", "metric", "printed", f"published protocol{on}", f"matched{on}", "by the protocol", "rest")
        tables += [Table(columns, gains, columns[:2], say("protocol_gains"))] if gains else []
    return tables


def _cells(summary: Summary) -> Cells:
    """Return the entries by arm at every place; a place is a row and a column."""
    cells: Cells = {}
    down_and_across = _axes(summary)
    for entry in summary["entries"]:
        row, column = (tuple(str(entry["at"].get(axis, "")) for axis in axes) for axes in down_and_across)
        cells.setdefault((row, column), {})[entry["arm"]] = entry
    return cells


def _axes(summary: Summary) -> tuple[list[str], list[str]]:
    """Return the names of the axes that run down, those that the table names first, and of those that run across."""
    others = (axis for entry in summary["entries"] for axis in entry["at"])
    across = list(summary["columns"])
    return [axis for axis in dict.fromkeys([*summary["rows"], *others]) if axis not in across], across


def _table(summary: Summary, cells: Cells, across: Sequence[Place], caption: str) -> Table:
    metrics, printed = summary["metrics"], [entry["published"] or {} for entry in summary["entries"]]
    known = any(value is not None for values in printed for value in values.values())  # a plot in the paper has none
    measured = measured_rows(summary)
    rows = []
    for row, source in product(dict.fromkeys(row for row, _ in cells), [*(["published"] if known else []), *measured]):
        found = (_cell(cells.get((row, column), {}), metric, source) for column in across for metric in metrics)
        rows.append([*row, measured.get(source, source), *found])
    left = [*_axes(summary)[0], ""]
    named = [", ".join([*(column if len(across) > 1 else ()), m["name"]]) for column in across for m in metrics]
    return Table([*left, *named], rows, left, caption)


def measured_rows(summary: Summary) -> Mapping[str, str]:
    """Return the measured rows of every entry: their keys, and their names in tables."""
    found: Mapping[str, str] = summary.get("measured", {"measured": "measured"})
    return found


def _cell(arms: Mapping[str, Entry], metric: Mapping[str, str], source: str) -> str:
    """Write the published or measured value of a metric at one place."""
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


def reproduce_values(summary: Summary) -> list[dict[str, Value]]:
    """Return a reproduction for programs: one row per entry and metric, in per cent."""
    down, across = _axes(summary)
    return [
        {
            **{axis: entry["at"].get(axis) for axis in dict.fromkeys([*summary["rows"], *across, *down])},
            "arm": entry["arm"].removeprefix("+"),
            "metric": metric["of"],
            "published": (entry["published"] or {}).get(metric["of"]),
            "measured_on": entry.get("measured_on"),
            **_measured_values(summary, entry, metric["of"]),
            "seeds": len(summary["seeds"]),
            "doubtful": entry["doubtful"],
        }
        for entry in summary["entries"]
        for metric in summary["metrics"]
    ]


def _measured_values(summary: Summary, entry: Entry, metric: str) -> dict[str, Value]:
    found = (values_of((entry[row] or {}).get(metric), metric, f"{row}_") for row in measured_rows(summary))
    return {name: value for values in found for name, value in values.items()}


def doubts(summary: Summary) -> list[str]:
    """Return every reason for doubt once, with the places it concerns."""
    places: dict[str, list[str]] = {}
    for entry in summary["entries"]:
        if entry["doubtful"]:
            places.setdefault(entry["doubtful"], []).append(", ".join([*entry["at"].values(), entry["arm"]]))
    return [f"{DOUBTFUL} {'; '.join(at)}: {why}" for why, at in places.items()]


def remarks(summary: Summary) -> dict[str, list[str]]:
    """Return remarks for readers of the tables by heading: a reproduction's reductions, choices, doubts."""
    if summary["kind"] != "reproduce":
        return {}
    lines = (summary["reduction"], summary.get("unlike"), summary["ours"], summary["notes"], doubts(summary))
    return {title: found for title, found in zip(REMARKS.values(), lines, strict=True) if found}


def reproduce_page(runs: GridData, setting: str) -> Page:
    """Return a table of the paper beside the measured values, the gains, and our choices and reductions."""
    summary = runs.summary or {}
    said = "These numbers come from a reduced setting and cannot equal the paper's; only their order can be compared."
    found, keys = table_gains(summary), {title: key for key, title in REMARKS.items()}
    sections = [
        Section("summary", "", [] if summary["scale"] == "paper" else [Text(said, "warning")]),
        Section("table", "Published and measured", reproduce_tables(summary, split=True)),
        Section("gains", f"Gains, published against {measured_rows(summary)['measured']}", _gains(found)),
        Section("curves", "Over the values", sensitivity_figures(summary)),
        *(Section(keys[title], title, [Text(line) for line in lines]) for title, lines in remarks(summary).items()),
    ]
    title = f"{limited(summary['name'])}, scale {limited(summary['scale'])}"
    return Page(title, say("reproduce_lead", summary, setting), sections)


def _gains(found: Sequence[Gain]) -> list[Block]:
    """Return published against measured gains, and say how often their signs agree."""
    if not found:
        return []
    same = sum((gain.published > 0) == (gain.measured > 0) for gain in found)
    apart = points(float(np.mean([abs(gain.published - gain.measured) for gain in found]))).lstrip("+")
    said = f"{same} of {len(found)} gains have the published sign; on average they lie {apart} points apart."
    draw = partial(plots.published_and_measured, found)
    return [Text(said), Figure("gains", "Gains by FedReLa; on the dashed line both agree", draw, said)]


def sensitivity_figures(summary: Summary) -> list[Block]:
    """Return accuracy and labels moved over the axis that a table varies; nothing if it varies none.

    That axis has numbers with FedReLa and a word for the baseline, which is dashed. Lines are metrics, one figure per
    place; with a single metric, lines are places.
    """
    axis = _varied(summary["entries"])
    if axis is None:
        return []
    shown: list[Block] = []
    places = _places(summary["entries"], axis)
    for (row, words), moved in product([*measured_rows(summary).items(), ("published", "published")], (False, True)):
        metrics = [metric for metric in summary["metrics"] if (metric["of"] == "moved") == moved]
        figures: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        for (place, entries), metric in product(places.items(), metrics):
            values = [(_position(e["at"][axis]), entry_value(e, metric["of"], row), e["arm"]) for e in entries]
            line = [(x, y) for x, y, _ in values if x is not None]
            if all(y is None for _, y in line):
                continue
            several = len(metrics) > 1 or moved
            title, label = (place, metric["name"]) if several else ("", place or metric["name"])
            lines, dashed = figures.setdefault(title, ({}, {}))
            lines[label] = (*zip(*line, strict=True), None)
            baselines = [y for x, y, arm in values if x is None and arm == BASELINE]
            if baselines and not moved:
                dashed[label] = baselines[0]
        over = limited(AXES.get(axis, axis))
        what = f"{'Labels moved' if moved else 'Test accuracy'} over {over}, {words}"
        for k, (title, (lines, dashed)) in enumerate(figures.items()):
            draw = partial(plots.sensitivity, lines, metric="moved" if moved else None, dashed=dashed, over=over)
            name = f"{row.replace('_', '-')}-{'moved' if moved else 'accuracy'}{f'-{k + 1}' if title else ''}"
            caption = "Dashed: the baseline." if dashed else ""
            shown.append(Figure(name, f"{limited(title)}: {what}" if title else what, draw, caption=caption))
    return shown


def _varied(entries: Sequence[Entry]) -> str | None:
    """Return the axis that has numbers, but none for a baseline."""
    for axis in entries[0]["at"] if entries else ():
        values = {entry["at"][axis] for entry in entries if _position(entry["at"][axis]) is not None}
        baselines = {entry["at"][axis] for entry in entries if entry["arm"] == BASELINE}
        if len(values) >= FEWEST and not values & baselines:
            return str(axis)
    return None


def _places(entries: Sequence[Entry], axis: str) -> dict[str, list[Entry]]:
    """Group the entries by place, without the axis that varies."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        others = ((key, value) for key, value in entry["at"].items() if key != axis)
        place = ", ".join(value if key in PLAIN else f"{key} {value}" for key, value in others)
        found.setdefault(place, []).append(entry)
    return found


def _position(value: str) -> float | None:
    """Return where a value of an axis is drawn: a percentage at its number, one shot at 0, a word nowhere.

    >>> [_position(value) for value in ("5%", "0.3", "one-shot", "Original")]
    [5, 0.3, 0, None]
    """
    return 0 if value == ONE_SHOT else stated_number(value.removesuffix("%"))
