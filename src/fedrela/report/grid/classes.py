"""What re-labelling did to classes: their accuracy without and with it, and where labels went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedrela.report.charts import change_chart, heat_map
from fedrela.report.grid.runs import Runs, mean_over_seeds, numbers
from fedrela.report.page import Block, Figure, Table, Text
from fedrela.report.run.words import many, name, percent
from fedrela.report.tables.arms import arm_words
from fedrela.report.tables.cells import spread_count

Summary = Mapping[str, Any]
MOST_BASELINES = 4  # that get figures of their own beside the tables


def class_changes(summary: Summary, runs: Runs) -> list[Block]:
    """Return what re-labelling changed for each class, mean over seeds."""
    blocks: list[Block] = []
    for k, baseline in enumerate(summary["baselines"][:MOST_BASELINES], 1):
        for pair in [pair for pair in baseline["pairs"] if pair["base"].startswith("baseline")][:1]:
            base, treated = (runs.of(baseline["label"], pair[key]) for key in ("base", "treated"))
            if not base or not treated or base[0].accuracy is None:
                continue
            before, after = (
                mean_over_seeds(stories, lambda story: (story.accuracy or {})["per_class"])[0]
                for stories in (base, treated)
            )
            chart = change_chart(
                base[0].classes, numbers(before), numbers(after), groups=base[0].groups,
                title=f"{name(baseline['label'])}: accuracy by class",
                words=(arm_words(pair["base"]), arm_words(pair["treated"])),
            )  # fmt: skip
            seeds = f"Mean over {many(len(base), 'seed')}, after the last round."
            blocks.append(Figure(f"classes-{k}", chart, seeds))
    return [*blocks, *(left_out(summary) if blocks else [])]


def label_moves(summary: Summary, runs: Runs) -> list[Block]:
    """Return how many labels every arm moved, and from where to where FedReLa did."""
    rows: list[tuple[str, ...]] = []
    maps: list[Figure] = []
    for baseline in summary["baselines"]:
        for arm, found in baseline["arms"].items():
            stories = [story for story in runs.of(baseline["label"], arm) if story.enabled]
            if not stories:
                continue
            moved, samples = found["moved"], stories[0].samples
            share = None if moved["mean"] is None else moved["mean"] / max(samples, 1)
            rows.append((name(baseline["label"]), arm_words(arm), spread_count(moved), percent(share)))
            if arm == "fedrela" and len(maps) < MOST_BASELINES:
                maps += _flow(baseline, runs, f"flow-{len(maps) + 1}")
    if not rows:
        return [Text("No arm moves labels.")]
    return [
        Table(
            ("baseline", "arm", "labels moved", "of all"), rows, ("baseline", "arm"), "Training labels, mean over seeds"
        ),
        *maps,
    ]


def _flow(baseline: Mapping[str, Any], runs: Runs, key: str) -> list[Figure]:
    stories = [story for story in runs.of(baseline["label"], "fedrela") if story.relabelling]
    flows = [
        np.array(story.relabelling["flow"]) for story in stories if story.relabelling and story.relabelling["moved"]
    ]
    if not flows:
        return []
    flow, classes = np.mean(flows, axis=0), stories[0].classes
    a, b = divmod(int(flow.argmax()), len(classes))
    most = f"The most frequent move is from {name(classes[a])} to {name(classes[b])}, {flow[a, b]:.1f} labels."
    chart = heat_map(
        flow.tolist(), classes, classes, title=f"{name(baseline['label'])} + FedReLa: labels moved", description=most,
        row_label="original class", column_label="new class",
    )  # fmt: skip
    return [Figure(key, chart, f"Mean over {many(len(flows), 'seed')}. {most}")]


def left_out(summary: Summary) -> list[Block]:
    """Say where figures of only some baselines are shown."""
    more = len(summary["baselines"]) - MOST_BASELINES
    return (
        [Text(f"Figures of the first {MOST_BASELINES} baselines; {more} more are in the tables.", "muted")]
        if more > 0
        else []
    )
