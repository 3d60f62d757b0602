"""What every page of a grid ends with: cost, the list of runs, the configuration."""

from __future__ import annotations

import numpy as np

from fedrela.report.grid.runs import Runs
from fedrela.report.page import Block, Code, Facts, Section, Table, Text
from fedrela.report.run.settings import without_places
from fedrela.report.run.story import Story
from fedrela.report.run.words import many, name, seconds
from fedrela.report.tables.arms import arm_words
from fedrela.report.tables.sweep import value_text

MOST_ROWS = 200
SPANS = ("train_seconds", "evaluate_seconds", "relabel_seconds")


def cost(runs: Runs) -> Section:
    """Return the time of a run of every baseline and arm: the only part of a page that differs between machines."""
    groups: dict[tuple[str, str], list[Story]] = {}
    for cell, story in zip(runs.cells, runs.stories, strict=True):
        if story is not None and story.timing:
            groups.setdefault((cell["baseline"], cell["arm"]), []).append(story)
    rows = []
    for (baseline, arm), stories in groups.items():
        spans = np.mean(
            [[sum(record.get(span, 0.0) for record in s.timing) for span in SPANS] for s in stories], axis=0
        )
        a_round = spans[:2].sum() / max(len(stories[0].timing), 1)
        rows.append((name(baseline), arm_words(arm), f"{len(stories)}", *map(seconds, (a_round, *spans.tolist()))))
    columns = ("baseline", "arm", "runs", "a round", "training", "scoring", "re-labelling")
    blocks: list[Block] = [
        Table(columns, rows, ("baseline", "arm"), "Time of a run, mean over its runs, the shared rounds included")
    ]
    said = (
        "FedReLa sends nothing of its own: uploads keep their names, shapes and bytes. Re-labelling is summed over "
        "clients. Rounds that several runs share were trained once. This section alone depends on the machine."
    )
    return Section("cost", "Cost", [*blocks, Text(said, "muted")])


def list_of_runs(runs: Runs) -> Section:
    """Return where each run lies, below the folder of this page."""
    keys = list(dict.fromkeys(key for cell in runs.cells for key in cell["values"]))
    rows = [
        (
            name(cell["baseline"]), arm_words(cell["arm"]), str(cell["seed"]),
            *(value_text(cell["values"].get(key, "")) for key in keys),
            "not finished" if story is None else "done", cell["folder"],
        )
        for cell, story in zip(runs.cells, runs.stories, strict=True)
    ]  # fmt: skip
    columns = ("baseline", "arm", "seed", *keys, "status", "folder")
    more = f"The first {MOST_ROWS} of {len(rows):,}" if len(rows) > MOST_ROWS else ""
    table = Table(columns, rows[:MOST_ROWS], ("baseline", "arm", *keys, "status", "folder"), more)
    said = "Folders below the one of this page; fedrela report with one of them writes the page of that run."
    return Section("runs", "Runs", [Text(said), table])


def configuration(toml: str, runs: Runs) -> Section:
    """Return the configuration that all runs were made from, and the versions."""
    blocks: list[Block] = [Code(without_places(toml))]
    story = runs.any
    if story is not None and "[data]" not in toml:  # a table of the paper is made from many settings
        blocks += [Text("Every run has a config.toml of its own; that of the first:"), Code(without_places(story.toml))]
    if story is not None:
        blocks.append(Facts(list(story.manifest.packages.items())))
    return Section("configuration", "Configuration and versions", blocks, print_break=True)


def unfinished(runs: Runs) -> list[Block]:
    """Return a warning where runs are missing."""
    if not runs.missing:
        return []
    said = f"{runs.missing:,} of {many(len(runs.cells), 'run')} did not finish; what is below leaves them out."
    return [Text(said, "warning")]
