"""A grid of runs as tables and as a page: a comparison, a sweep or a table of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fedrela.arms import arm_label
from fedrela.plots.comparisons import Summary, value_text
from fedrela.plots.folders import GridData, RunData
from fedrela.plots.rounds import SPANS
from fedrela.report.compare_page import compare_page, compare_tables, compare_values
from fedrela.report.page import Block, Facts, Page, Section, Table, Text, say
from fedrela.report.reproduction_page import remarks, reproduce_page, reproduce_tables, reproduce_values
from fedrela.report.run_page import SAMPLES, gallery, without_paths
from fedrela.report.sweep_page import sweep_page, sweep_tables, sweep_values
from fedrela.report.tables import Value, csv_text, latex, markdown
from fedrela.runfolder.grids import GridFolder
from fedrela.runfolder.json_records import json_file
from fedrela.runfolder.names import RESULT
from fedrela.text import duration, limited, plural

MOST_ROWS = 200
Tables = Callable[[Summary], list[Table]]
Values = Callable[[Summary], list[dict[str, Value]]]
Pages = Callable[[GridData, str], Page]
# kind of grid -> its tables, its values for programs, its page
KINDS: dict[str, tuple[Tables, Values, Pages]] = {
    "compare": (compare_tables, compare_values, compare_page),
    "sweep": (sweep_tables, sweep_values, sweep_page),
    "reproduce": (reproduce_tables, reproduce_values, reproduce_page),
}


def grid_page(folder: GridFolder, *, samples: bool = True) -> Page:
    """Return the page of a grid, with `samples` or without; without a summary yet, its progress.

    Nothing but the folder is read, and its location does not matter.
    """
    kind, runs = folder.record["kind"], GridData.read(folder)
    if runs.summary is not None:
        found, warning = summary_page(runs), ""
        if missing := list(runs.runs).count(None):
            warning = (
                f"{missing:,} of {plural(len(runs.cells), 'run')} did not finish, or their folders are gone: plots are "
                "made without them, and tables have what the summary says."
            )
    else:
        found = Page(f"{kind}: {limited(folder.record['name'])}", "", [])
        warning = f"This {kind} is unfinished: {folder.status_text}."
    parts = [Section("unfinished", "", [Text(warning, "warning")] if warning else []), *found.sections]
    parts += [_samples(folder)] if samples and kind == "compare" else []
    parts += [_cost(runs), _list_of_runs(runs), _configuration(folder.record["config"], runs)]
    version = f" {runs.any.manifest.version}" if runs.any else ""
    return replace(found, sections=parts, foot=f"Made by fedrela{version} from this folder alone.")


def summary_page(runs: GridData) -> Page:
    """Return the page of a summary, without the sections that every grid has."""
    assert runs.summary is not None
    run = runs.any
    setting = f"{say('data', run)}, {say('model', run)}" if run else "No folder of a finished run is left"
    _, _, make = KINDS[runs.summary["kind"]]
    return make(runs, setting)


def all_tables(summary: Summary) -> dict[str, bytes]:
    """Return ``table.md``, ``table.csv``, ``table.tex`` and ``table.json`` of a summary.

    The CSV has one value per column, shares in per cent; the JSON is the summary itself.
    """
    tables, values, _ = KINDS[summary["kind"]]
    parts = tables(summary), heading(summary), remarks(summary)
    return {
        "table.md": markdown(*parts).encode(),
        "table.csv": csv_text(values(summary)).encode(),
        "table.tex": latex(*parts).encode(),
        "table.json": json_file(summary),
    }


def heading(summary: Summary) -> str:
    """Return the title of the tables."""
    title = f": {summary['title']}, scale {summary['scale']}" if summary["kind"] == "reproduce" else ""
    return f"{summary['kind']} {summary['name']}{title}"


def _samples(folder: GridFolder) -> Section:
    """Return the gallery of the first finished run with FedReLa."""
    for cell in folder.cells:
        if cell["arm"] in ("fedrela", "fedrela-drop") and (folder.place(cell) / RESULT).exists():
            said = Text(f"From {limited(cell['baseline'])} with seed {cell['seed']}, {cell['folder']}.", "muted")
            return Section("samples", SAMPLES, [said, *gallery(RunData(folder.run_folder(cell)))])
    return Section("samples", SAMPLES, [])


def _cost(runs: GridData) -> Section:
    """Return the time of a run of every baseline and arm: the only section that differs between machines."""
    rows = []
    for baseline, arm in dict.fromkeys((cell["baseline"], cell["arm"]) for cell in runs.cells):
        if found := list(
            {id(run): run for run in runs.of(baseline, arm) if run.timing}.values()
        ):  # cells may share one
            sums = [[sum(record.get(span, 0.0) for record in run.timing) for span in SPANS.values()] for run in found]
            times = np.mean(sums, axis=0)
            per_round = np.sum(sums, axis=0)[:2].sum() / sum(len(run.timing) for run in found)
            shown = map(duration, (per_round, *times.tolist()))
            rows.append((limited(baseline), arm_label(arm), f"{len(found)}", *shown))
    columns = ("baseline", "arm", "runs", "per round", *SPANS)
    caption = "Time of a run, mean over its runs, the shared rounds included"
    return Section(
        "cost", "Cost", [Table(columns, rows, ("baseline", "arm"), caption), Text(say("grid_cost"), "muted")]
    )


def _list_of_runs(runs: GridData) -> Section:
    """Return the folder of each run, below the folder of this page."""
    keys = list(dict.fromkeys(key for cell in runs.cells for key in cell["values"]))
    rows = []
    for cell, run in zip(runs.cells, runs.runs, strict=True):
        values = (value_text(cell["values"].get(key, "")) for key in keys)
        done = "not finished" if run is None else "done"
        who = limited(cell["baseline"]), arm_label(cell["arm"]), str(cell["seed"])
        rows.append((*who, *values, done, cell["folder"]))
    columns = ("baseline", "arm", "seed", *keys, "status", "folder")
    more = f"The first {MOST_ROWS} of {len(rows):,}" if len(rows) > MOST_ROWS else ""
    table = Table(columns, rows[:MOST_ROWS], [name for name in columns if name != "seed"], more)
    said = "Folders below that of this page; fedrela report FOLDER writes the page of a run."
    return Section("runs", "Runs", [Text(said), table])


def _configuration(toml: str, runs: GridData) -> Section:
    """Return the configuration that all runs were made from, and the versions."""
    blocks: list[Block] = [Text(without_paths(toml), "code")]
    run = runs.any
    if run is not None and "[data]" not in toml:  # a table of the paper is made from many settings
        said = Text("Every run has its own config.toml; this is the first one:")
        blocks += [said, Text(without_paths(run.toml), "code")]
    if run is not None:
        blocks.append(Facts(list(run.manifest.packages.items())))
    return Section("configuration", "Configuration and versions", blocks)
