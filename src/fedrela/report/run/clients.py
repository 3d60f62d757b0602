"""The clients: who has what, and which of their turns did not count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrela.report.clients.picture import client_class_drawing
from fedrela.report.facts import heterogeneity_facts
from fedrela.report.page.parts import Block, Figure, Section, Table, Text
from fedrela.report.run.story import Story
from fedrela.report.run.words import many

MOST_ROWS = 40
LONGEST_REASON = 160
SOME_ROUNDS = 8


def who_has_what(story: Story) -> Section:
    """Return the client-by-class picture, with the figures of imbalance and heterogeneity."""
    heading = "Who has what"
    counts = _counts(story)
    if counts is None:
        sizes = np.array(story.manifest.data["client_sizes"])
        said = f"{many(sizes.size, 'client')} have from {sizes.min():,} to {sizes.max():,} training samples. "
        return Section("clients", heading, [Text(said + "Their classes are written when a run has finished.")])
    drawing = client_class_drawing(counts, story.classes, groups=story.groups)
    blocks: list[Block] = [Figure("clients", drawing, "Original labels, before any was moved.")]
    if counts.sum():
        facts = heterogeneity_facts(counts)
        rows = [(fact.name, fact.value, fact.meaning) for fact in facts]
        blocks.append(Table(("figure", "here", "what it means"), rows, ("figure", "what it means")))
    if note := story.manifest.data["note"]:
        blocks.append(Text(f"Partition: {note}", "muted"))
    return Section("clients", heading, blocks)


def _counts(story: Story) -> NDArray[np.int64] | None:
    """Return the training samples of each client by class, (clients, classes)."""
    rows = (story.relabelling or {}).get("counts")
    if rows is None:
        return None
    counts = np.zeros((len(rows), len(story.classes)), np.int64)
    for client, pairs in enumerate(rows):
        for label, number in pairs:
            counts[client, label] = number
    return counts


def lost(story: Story) -> Section:
    """Return whose turns did not count and why, and the rounds that had too few clients."""
    turns: dict[tuple[int, str], list[int]] = {}
    for record in story.rounds:
        for client, reason in record.excluded:
            turns.setdefault((-1 if client is None else client, reason), []).append(record.round)
    skipped = [record.round for record in story.rounds if record.skipped]
    blocks: list[Block] = []
    if not turns:
        blocks.append(Text("No client was lost: every turn counted."))
    else:
        all_turns, clients = sum(map(len, turns.values())), len({client for client, _ in turns})
        blocks.append(Text(f"{many(all_turns, 'turn')} of {many(clients, 'client')} did not count."))
        rows = [
            ("unknown" if client < 0 else f"{client:,}", f"{len(when):,}", _some(when), reason[:LONGEST_REASON])
            for (client, reason), when in sorted(turns.items())
        ]
        more = f", the first {MOST_ROWS} of {len(rows):,}" if len(rows) > MOST_ROWS else ""
        blocks.append(
            Table(("client", "turns", "rounds", "why"), rows[:MOST_ROWS], ("rounds", "why"), f"Turns lost{more}")
        )
    if skipped:
        rounds = _some(skipped)
        blocks.append(Text(f"Too few clients were left in {many(len(skipped), 'round')} ({rounds}): the model stayed."))
    return Section("lost", "Clients lost", blocks)


def _some(rounds: list[int]) -> str:
    """Return round numbers, some of them where they are many.

    >>> _some([1, 2, 5]), _some(list(range(1, 60)))
    ('1, 2, 5', '1, 2, 3, 4, 5, 6, 7, 8 … 59')
    """
    shown = ", ".join(map(str, rounds[:SOME_ROUNDS]))
    return shown if len(rounds) <= SOME_ROUNDS else f"{shown} … {rounds[-1]}"
