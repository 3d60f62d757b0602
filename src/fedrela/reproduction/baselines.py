"""A table of the paper with additions of your own: more baselines in every cell, and other settings for every run.

Nothing is published about added baselines. Other settings replace the paper's, such as a model, source or re-allocator
of your own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.experiment.load import parse_config
from fedrela.experiment.toml.writer import as_plain, leaves, toml_text
from fedrela.files import digest
from fedrela.reproduction.paper_table import PaperCell, PaperTable, Setting, TableScale

METHOD = "method"  # the axis of baselines


def with_baselines(table: PaperTable, baselines: Sequence[Any]) -> PaperTable:
    """Return a table with further baselines, perhaps your own, under the same protocol as those of the paper.

    They are given as in ``[compare] baselines``: names, classes, or tables. Settings of
    the table for one method alone do not apply to them; what they change in ``[train]`` and ``[model]`` does, at every
    scale.

    >>> from fedrela.reproduction.paper_table import paper_table
    >>> cells = with_baselines(paper_table("zscore"), ["scaffold"]).cells
    >>> [(cell.at, cell.published.get("overall")) for cell in cells if cell.arm == "baseline"]
    [({'variant': 'Baseline', 'method': 'FedLOGE'}, 57.5), ({'variant': 'Baseline', 'method': 'SCAFFOLD'}, None)]
    """
    if not baselines:
        return table
    compared = parse_config({"compare": {"baselines": list(baselines)}}, name=table.label).compare
    added = compared.baselines or () if compared else ()
    cells = [_with_method(cell, table.fixed.get(METHOD, "")) for cell in table.cells]
    for label in {cell.at[METHOD] for cell in cells} & {each.label for each in added}:
        raise ArgumentError(f"{table.label} already has {label}; leave it out or give it another label")
    places = {(*cell.at.items(), cell.arm): cell for cell in cells}
    for each in added:
        for cell in cells:
            at = {**cell.at, METHOD: each.label}
            places.setdefault((*at.items(), cell.arm), PaperCell(at, cell.arm, {}, ""))
    last = [Setting({METHOD: (each.label,)}, each.changes()) for each in added]
    return replace(
        table,
        rows=table.rows if METHOD in table.rows else (METHOD, *table.rows),
        fixed={axis: value for axis, value in table.fixed.items() if axis != METHOD},
        cells=tuple(places.values()),
        scales={name: _with_settings(scale, last) for name, scale in table.scales.items()},
    )


def with_changes(table: PaperTable, changes: Mapping[str, Any]) -> PaperTable:
    """Return a table with `changes`, tables of a configuration, merged into every run at every scale.

    Baselines in ``[compare] baselines`` are added, see `with_baselines`.

    >>> from fedrela.reproduction.paper_table import paper_table
    >>> table = with_changes(paper_table("zscore"), {"relabel": {"method": "margin"}})
    >>> table.config(table.cells[1], "fedrela", "smoke", seed=1).relabel.method
    'margin'
    """
    if not changes:
        return table
    given = {key: value for key, value in changes.items() if key != "compare"}
    wrong = [f"compare.{key}" for key in changes.get("compare", {}) if key != "baselines"]
    if wrong := [*wrong, *(key for key in ("seed", "sweep") if key in given)]:
        raise ArgumentError(f"{wrong[0]}: is set by the table; leave it out")
    table = with_baselines(table, changes.get("compare", {}).get("baselines", ()))
    plain, _ = as_plain(given)
    return replace(
        table,
        scales={name: _with_settings(scale, [Setting({}, plain)]) for name, scale in table.scales.items()},
        notes=(*table.notes, *(f"Not the paper's, in every run: {key} = {value}" for key, value in leaves(plain))),
        sha256=digest(f"{table.sha256}\n{toml_text(plain)}".encode()),
    )


def _with_method(cell: PaperCell, method: str) -> PaperCell:
    """Return a cell with its method; in a table of one method that is the name of its baseline."""
    if METHOD in cell.at:
        return cell
    plain = {axis: value.replace(f" ({method})", "").replace(method, "Baseline") for axis, value in cell.at.items()}
    return replace(cell, at={**plain, METHOD: method})


def _with_settings(scale: TableScale, last: Sequence[Setting]) -> TableScale:
    """Return a scale with more settings; their methods join its selection of methods, if it has one."""
    labels = tuple(label for setting in last for label in setting.at.get(METHOD, ()))
    only = [{axis: values + labels * (axis == METHOD) for axis, values in each.at.items()} for each in scale.only]
    return replace(scale, only=tuple(Setting(at, {}) for at in only), settings=(*scale.settings, *last))
