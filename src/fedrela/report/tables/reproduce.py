"""A table of the paper in its own layout, published and measured one below the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.report.page import Table
from fedrela.report.tables.cells import NONE, paper_cell
from fedrela.report.tables.values import Value, Values, counted, in_percent

Summary = Mapping[str, Any]
Entry = Mapping[str, Any]
MACHINE, TREATED = "baseline", "+FedReLa"
DOUBTFUL = "†"
DIGITS = 2  # as the paper prints


def reproduce_tables(summary: Summary, *, split: bool = False) -> list[Table]:
    """Return the table of a reproduction: for every row of the paper's a published and a measured one.

    Where the paper has both arms in a place, they stand in one cell, ``baseline (+FedReLa) +gain / -trade-off``. A dagger
    marks what is doubtful in the paper, a hyphen what was not measured.

    Parameters
    ----------
    summary
        Of a reproduction.
    split
        Return a table for each place along the columns' axes, for where there is less room than in a paper.
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
    rows_of, figures = row_axes(summary), summary["figures"]
    cells, sources = _cells(summary, rows_of), _sources(summary)
    rows = []
    for row in _places(summary, rows_of):
        for source in sources:
            arms = (cells.get((row, column), {}) for column in across)
            rows.append([*row, source, *(_cell(found, figure, source) for found in arms for figure in figures)])
    left = [*rows_of, ""]
    named = [", ".join([*(column if len(across) > 1 else ()), f["name"]]) for column in across for f in figures]
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
    """Return what can be shown; of a figure of the paper's no numbers are published."""
    values = (value for entry in summary["entries"] for value in (entry["published"] or {}).values())
    return ["published", "measured"] if any(value is not None for value in values) else ["measured"]


def is_paired(summary: Summary) -> bool:
    """Whether some place of the table has both a baseline and the same baseline with FedReLa."""
    arms: dict[tuple[tuple[str, str], ...], set[str]] = {}
    for entry in summary["entries"]:
        arms.setdefault(tuple(sorted(entry["at"].items())), set()).add(entry["arm"])
    return any({MACHINE, TREATED} <= found for found in arms.values())


def doubts(summary: Summary) -> list[str]:
    """Return every reason for a doubt once, with the places it concerns."""
    places: dict[str, list[str]] = {}
    for entry in summary["entries"]:
        if entry["doubtful"]:
            places.setdefault(entry["doubtful"], []).append(", ".join([*entry["at"].values(), entry["arm"]]))
    return [f"{DOUBTFUL} {'; '.join(at)}: {why}" for why, at in places.items()]


def reproduce_values(summary: Summary) -> Values:
    """Return a reproduction for machines: one row an entry and figure, in per cent."""
    axes = list(
        dict.fromkeys([*summary["rows"], *summary["columns"], *(a for e in summary["entries"] for a in e["at"])])
    )
    columns = [*axes, "arm", "figure", "published", "measured_mean", "measured_deviation", "seeds", "doubtful"]
    rows: list[list[Value]] = []
    for entry in summary["entries"]:
        place = [entry["at"].get(axis) for axis in axes]
        for figure in summary["figures"]:
            of = figure["of"]
            measured = (counted if of == "moved" else in_percent)(
                (entry["measured"] or {}).get(of), ("mean", "deviation")
            )
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


def _cell(arms: Mapping[str, Entry], figure: Mapping[str, str], source: str) -> str:
    """Write what was published or measured of a figure at one place."""
    values = {arm: figure_of(entry, figure["of"], source) for arm, entry in arms.items()}
    if figure["of"] == "moved":
        moved = values.get(TREATED, values.get(MACHINE))
        return NONE if moved is None else f"{moved:,.0f}"
    if set(values) == {TREATED, MACHINE}:
        text = paper_cell(values[MACHINE], values[TREATED], digits=DIGITS)
    else:  # one arm only: its row or column says which
        text = paper_cell(next(iter(values.values()), None), None, digits=DIGITS)
    doubtful = source == "published" and text != NONE and any(entry["doubtful"] for entry in arms.values())
    return text + doubtful * DOUBTFUL


def figure_of(entry: Entry, figure: str, source: str) -> float | None:
    """Return a figure of an entry as it was published or measured: a share, or the number of labels moved."""
    found = (entry[source] or {}).get(figure)
    if found is None:
        return None
    value: float | None = found["mean"] if source == "measured" else found
    published = source == "published" and figure != "moved"
    return value / 100 if published and value is not None else value
