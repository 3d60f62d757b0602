"""The page of runs that belong together: a comparison, a sweep, a table of the paper."""

from __future__ import annotations

from dataclasses import replace

from fedrela.report.grid.compare import compare_page
from fedrela.report.grid.ending import configuration, cost, list_of_runs, unfinished
from fedrela.report.grid.reproduce import reproduce_page
from fedrela.report.grid.runs import Runs
from fedrela.report.grid.sweep import sweep_page
from fedrela.report.page import Page, Section, Text
from fedrela.report.run.gallery import gallery
from fedrela.report.run.story import Story
from fedrela.report.run.words import name
from fedrela.runfolder.grids import SUMMARY, GridFolder

PAGES = {"compare": compare_page, "sweep": sweep_page, "reproduce": reproduce_page}


def grid_page(folder: GridFolder, *, samples: bool = True) -> Page:
    """Return the page of a grid; of one without a summary yet, how far it is.

    Parameters
    ----------
    folder
        The grid. Nothing else is read, and where the folder lies does not matter.
    samples
        With False no sample is shown.
    """
    kind, runs = folder.record["kind"], Runs.read(folder)
    ending = [cost(runs), list_of_runs(runs), configuration(folder.record["config"], runs)]
    if (folder.path / SUMMARY).exists():
        found = PAGES[kind](folder.read_json(SUMMARY), runs)
        warned = Section("unfinished", "", unfinished(runs))
    else:
        found = Page(f"{kind}: {name(folder.record['name'])}", "", [])
        warned = Section("unfinished", "", [Text(f"This {kind} is not done: {folder.status}.", "warning")])
    shown = [_samples(folder)] if samples and kind == "compare" else []
    parts = [section for section in (warned, *found.sections, *shown, *ending) if section.blocks]
    version = f" {runs.any.manifest.version}" if runs.any else ""
    return replace(found, sections=parts, foot=f"Made by fedrela{version} from this folder alone.")


def _samples(folder: GridFolder) -> Section:
    """Return the gallery of the first finished run with FedReLa."""
    for cell in folder.cells:
        if cell["arm"].startswith("fedrela") and (folder.place(cell) / "result.json").exists():
            found = gallery(Story.read(folder.run_folder(cell)))
            said = Text(f"From {name(cell['baseline'])} with seed {cell['seed']}, {cell['folder']}.", "muted")
            return Section(found.key, found.title, [said, *found.blocks])
    return Section("samples", "Re-labelled samples", [])
