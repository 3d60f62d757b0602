"""Where labels went: from class to class, into each class, and which scores decided it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.report.charts import bar_chart, heat_map, histogram
from fedrela.report.page.parts import Block, Figure, Section, Table, Text
from fedrela.report.run.story import Story
from fedrela.report.run.words import listed, many, name

MOST_NOTES, LONGEST_NOTE = 12, 160
PRIVATE = (
    "In this run clients keep to themselves which labels they change: counts, ledgers and class histograms stay where "
    "the samples are, unless a client's own policy opts in. So this page cannot show where labels went."
)


def why_not(story: Story) -> str:
    """Return why there is nothing to show of re-labelling; empty where there is."""
    if not story.enabled:
        return "Re-labelling was off in this run."
    if story.moved is None or (story.relabelling or {"moved": 0}).get("moved") is None:
        return PRIVATE
    if story.relabelling is None:
        so_far = f"{many(story.moved, 'label')} moved so far" if story.moved else "No label has moved so far"
        return f"{so_far}. Where labels went is written when a run has finished."
    return "" if story.relabelling["clients"] else "No client had a turn at or after the first round of re-labelling."


def where_labels_went(story: Story) -> Section:
    """Return the moves from class to class, and those into each class beside what was expected."""
    if why := why_not(story):
        return Section("moves", "Where labels went", [Text(why)])
    record = story.relabelling or {}
    blocks: list[Block] = [Text(_moves(story, record))]
    if record["moved"]:
        chart = heat_map(
            record["flow"], story.classes, story.classes, title="Labels moved, from class to class",
            description=_moves(story, record), row_label="original class", column_label="new class",
        )  # fmt: skip
        blocks.append(Figure("flow", chart, "How many labels of the class at the left became the class below."))
    blocks.append(_into_each(story, record))
    return Section("moves", "Where labels went", [*blocks, *_notes(record["clients"])])


def _moves(story: Story, record: Mapping[str, Any]) -> str:
    flow = np.array(record["flow"], np.int64)
    share = record["moved"] / max(story.samples, 1)
    said = [f"{record['moved']:,} of {many(story.samples, 'label')} moved ({share:.1%}),"]
    said.append(f"at {many(len(record['clients']), 'client')}.")
    into = [(name(group), int(flow[:, story.groups.members(group)].sum())) for group in story.groups.names]
    said.append(f"{listed([f'{number:,} into {group} classes' for group, number in into])}.".capitalize())
    if flow.any():
        a, b = divmod(int(flow.argmax()), len(flow))
        most = f"from “{name(story.classes[a])}” to “{name(story.classes[b])}”"
        said.append(f"The most frequent move is {most}, {many(int(flow[a, b]), 'label')}.")
    return " ".join(said)


def _into_each(story: Story, record: Mapping[str, Any]) -> Figure:
    flow = np.array(record["flow"], np.int64)
    chance = story.config["relabel"]["moves"] == "random"
    limit = f"at most {record['bound']:,}: tau of the samples" if record["bound"] else ""
    chart = bar_chart(
        story.classes, flow.sum(axis=0).tolist(), title="Labels moved into each class",
        description=f"{many(int(flow.sum()), 'label')} moved; {sum(record['expected']):.1f} were expected.",
        y_label="labels", expected=record["expected"], limit=record["bound"] or None, limit_name=limit,
    )  # fmt: skip
    said = "Expected: the sum of all re-labelling probabilities towards a class. "
    if chance:
        said = "Expected is what FedReLa's probabilities say; this run moved as many labels of random samples. "
    budget = f"No more than {many(record['bound'], 'label')}, tau times each client's samples, can move into one class."
    quantile = story.config["relabel"].get("threshold")
    known = quantile in (None, "higher", "order")
    return Figure("targets", chart, said + (budget if known else "The threshold chosen sets no limit by itself."))


def _notes(clients: Mapping[str, Any]) -> list[Block]:
    """Tell what clients refused or noted, each thing once."""
    said: dict[tuple[str, str], list[str]] = {}
    for client, facts in clients.items():
        told = [("note", str(note)) for note in facts["notes"]]
        for key in told + ([("refused", str(facts["refusal"]))] if facts["refusal"] is not None else []):
            said.setdefault(key, []).append(client)
    if not said:
        return []
    rows = [(kind, what[:LONGEST_NOTE], f"{len(who):,}") for (kind, what), who in sorted(said.items(), reverse=True)]
    more = f"; {len(rows) - MOST_NOTES:,} more are in relabelling.json" if len(rows) > MOST_NOTES else ""
    caption = f"What clients said when they re-labelled{more}"
    return [Table(("kind", "what", "clients"), rows[:MOST_NOTES], ("kind", "what"), caption)]


def scores(story: Story) -> Section:
    """Return the distribution of z for the classes of each group, with the thresholds."""
    heading = "Scores and thresholds"
    if why := why_not(story):
        return Section("scores", heading, [Text(why)])
    record = story.relabelling or {}
    normalize = story.config["relabel"]["normalize"]
    said = (
        "For each sample and each class that it might move to, z is how much the model's probability of that class "
        "exceeds the mean over samples with the same label, in standard deviations. Only samples above a client's "
        "threshold for the class may move."
    )
    blocks: list[Block] = [Text(said)]
    if normalize != "zscore":
        blocks.append(Text(f"With normalize = {normalize}, as here, thresholds are no z values, and not drawn."))
    blocks += [_histogram(story, record, group, normalize == "zscore") for group in story.groups.names]
    return Section("scores", heading, blocks)


def _histogram(story: Story, record: Mapping[str, Any], group: str, marked: bool) -> Figure:
    members = story.groups.members(group)
    edges, step = record["z"]["edges"], record["z"]["edges"][1] - record["z"]["edges"][0]
    counts = np.array(record["z"]["counts"], np.int64)[members].sum(axis=0)
    outer = [edges[0] - step, *edges, edges[-1] + step]
    limits = _thresholds(record, members) if marked else []
    marks = [(float(np.clip(z, outer[0], outer[-1])), f"{word} threshold {z:.2f}") for word, z in limits]
    above = f" Thresholds lie between {limits[0][1]:.2f} and {limits[-1][1]:.2f}." if limits else ""
    chart = histogram(
        outer, counts.tolist(), title=f"z towards {name(group)} classes", x_label="z",
        description=f"{many(int(counts.sum()), 'score')}.{above} The outermost bars hold all that is beyond.",
        marks=marks,
    )  # fmt: skip
    return Figure(f"scores-{story.groups.names.index(group)}", chart)


def _thresholds(record: Mapping[str, Any], members: NDArray[np.int64]) -> list[tuple[str, float]]:
    """Return the lowest, the median and the highest threshold over clients and classes."""
    found = [facts["threshold"][c] for facts in record["clients"].values() for c in members]
    z = np.array([value for value in found if value is not None], np.float64)
    if not z.size:
        return []
    spread = [("lowest", z.min()), ("median", np.median(z)), ("highest", z.max())]
    return [("", float(z[0]))] if z.min() == z.max() else [(word, float(value)) for word, value in spread]
