"""Sections of a run's page on its clients and its cost: who has what, whose updates did not count, time and bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedrela import plots
from fedrela.metrics.heterogeneity import measure_heterogeneity
from fedrela.plots.clients import describe_clients
from fedrela.plots.rounds import SPANS
from fedrela.plots.runs import RunData
from fedrela.plots.style import limited, short
from fedrela.report.page import Block, Facts, Figure, Table, Text
from fedrela.text import plural, seconds, size

MOST_ROWS = 40
LONGEST_REASON = 160
SOME_ROUNDS = 8


def who_has_what(run: RunData) -> list[Block]:
    """Return the clients by classes, with measures of imbalance and heterogeneity."""
    counts = run.client_counts
    if counts is None:
        sizes = np.array(run.manifest.data["client_sizes"])
        said = f"{plural(sizes.size, 'client')} have from {sizes.min():,} to {sizes.max():,} training samples. "
        return [Text(said + "Their classes are written when a run has finished.")]
    said = describe_clients(counts, run.classes, run.groups)
    width = 6.6 if len(counts) > 12 else 5.0
    draw, caption = partial(plots.client_classes, run), f"Original labels, before any was moved. {said}"
    title = "Training samples by client and class"
    blocks: list[Block] = [Figure("clients", title, draw, said, caption, width)]
    if counts.sum():
        columns = ("measure", "here", "what it means")
        blocks.append(Table(columns, heterogeneity_facts(counts), ("measure", "what it means")))
    if note := run.manifest.data["note"]:
        blocks.append(Text(f"Partition: {note}", "muted"))
    return blocks


class Fact(NamedTuple):
    """A measure: what it is called, what it is here, what it means."""

    name: str
    value: str
    meaning: str


def effective_clients(client_counts: ArrayLike) -> list[str]:
    """Return for each class over how many clients it is effectively spread, with one decimal; 0.0 where it is absent.

    >>> effective_clients([[30, 0, 0], [10, 20, 0]])
    ['1.6', '1.0', '0.0']
    """
    return [f"{clients:,.1f}" for clients in measure_heterogeneity(client_counts).effective_clients]


def heterogeneity_facts(client_counts: ArrayLike) -> tuple[Fact, ...]:
    """Measure a (clients, classes) count matrix and put the numbers into words.

    Examples
    --------
    >>> [f"{fact.name} {fact.value}" for fact in heterogeneity_facts([[30, 0], [10, 20]])][:2]
    ['imbalance ratio 2', 'class absence 25.0%']
    """
    found = measure_heterogeneity(client_counts)
    spread = np.array([clients for clients in found.effective_clients if clients > 0])
    spreads = " / ".join(map(short, (spread.min(), float(np.median(spread)), spread.max())))
    return (
        Fact("imbalance ratio", short(found.imbalance_ratio), "IR of the training set: largest class over smallest"),
        Fact("class absence", f"{found.absence_rate:.1%}", "pairs of a client and a class without a sample"),
        Fact("local/global mismatch", f"{found.mismatch:.1%}", "pairs of classes that a client has in reverse order"),
        Fact("effective clients", spreads, "clients a class is spread over: least, median, most"),
        Fact("total variation", f"{found.total_variation:.3f}", "mean distance from the global class mix, 0 to 1"),
    )


def lost_clients(run: RunData) -> list[Block]:
    """Return whose updates did not count and why, and the rounds that had too few clients."""
    turns: dict[tuple[int, str], list[int]] = {}
    for record in run.rounds:
        for client, reason in record.excluded:
            turns.setdefault((-1 if client is None else client, reason), []).append(record.round)
    blocks: list[Block] = []
    if not turns:
        blocks.append(Text("No client was lost: every update counted."))
    else:
        number, clients = sum(map(len, turns.values())), len({client for client, _ in turns})
        rows = [
            ("unknown" if client < 0 else f"{client:,}", f"{len(when):,}", _some(when), reason[:LONGEST_REASON])
            for (client, reason), when in sorted(turns.items())
        ]
        more = f", the first {MOST_ROWS} of {len(rows):,}" if len(rows) > MOST_ROWS else ""
        columns = ("client", "updates", "rounds", "why")
        said = Text(f"{plural(number, 'update')} of {plural(clients, 'client')} did not count.")
        blocks += [said, Table(columns, rows[:MOST_ROWS], columns[2:], f"Updates lost{more}")]
    if skipped := [record.round for record in run.rounds if record.skipped]:
        left = f"Too few clients were left in {plural(len(skipped), 'round')} ({_some(skipped)})"
        blocks.append(Text(f"{left}: the model stayed."))
    return blocks


def _some(rounds: list[int]) -> str:
    """Return round numbers, some of them where they are many.

    >>> _some([1, 2, 5]), _some(list(range(1, 60)))
    ('1, 2, 5', '1, 2, 3, 4, 5, 6, 7, 8 … 59')
    """
    shown = ", ".join(map(str, rounds[:SOME_ROUNDS]))
    return shown if len(rounds) <= SOME_ROUNDS else f"{shown} … {rounds[-1]}"


def cost(run: RunData) -> list[Block]:
    """Return time and bytes per round, and what FedReLa added: the only section that differs between machines."""
    blocks: list[Block] = [Facts(_bytes(run))]
    if run.timing:
        times = [np.array([record.get(span, 0.0) for record in run.timing]) for span in SPANS.values()]
        middle = seconds(float(np.median(times[0] + times[1])))
        said = f"{plural(len(run.timing), 'round')} of {middle} each at the median."
        note = "Re-labelling is summed over clients, which may work side by side: the part drawn is the most it can be."
        figure = Figure("time", "Seconds per round", partial(plots.cost, run), said, note if run.enabled else "")
        blocks += [Facts(_times(run, times)), figure]
    if run.machine:
        blocks.append(Text(f"This section alone depends on the machine. {_machine(run.machine)}", "muted"))
    return blocks


def _bytes(run: RunData) -> list[tuple[str, str]]:
    pairs, whole = [], 0
    for way in ("sends", "receives"):
        arrays = {
            name: math.prod(shape) * np.dtype(dtype).itemsize
            for name, (shape, dtype) in run.manifest.algorithm.get(way, {}).items()
        }
        whole += sum(arrays.values())
        if arrays or way == "sends":
            parts = ", ".join(f"{limited(name)} {size(number)}" for name, number in arrays.items())
            pairs.append((f"a client {way}", f"{size(sum(arrays.values()))} per round ({parts})"))
    if run.rounds:
        clients = sum(len(record.chosen) for record in run.rounds) / len(run.rounds)
        pairs.append(("a round moves", f"{size(clients * whole)} with {clients:.4g} clients"))
    if run.enabled:
        pairs.append(("FedReLa adds", "0 B: it sends nothing, and uploads keep their names, shapes and types"))
    return pairs


def _times(run: RunData, times: list[Any]) -> list[tuple[str, str]]:
    train, score, relabel = times
    whole = train + score
    plain = whole[relabel == 0]
    middle = float(np.median(plain if plain.size else whole))
    pairs = [("all rounds", seconds(whole.sum())), ("per round", f"{seconds(middle)} (median)")]
    if relabel.any():
        first = int(np.argmax(relabel > 0))
        took = f"{seconds(whole[first])}, of which re-labelling, summed over clients, {seconds(relabel[first])}"
        pairs.append((f"round {run.timing[first]['round']}, re-labelling", took))
        part = relabel.sum() / whole.sum()
        pairs.append(("FedReLa added", f"{seconds(relabel.sum())} in the whole run, {part:.1%} of its time"))
    return pairs


def _machine(machine: Mapping[str, Any]) -> str:
    workers = (machine.get("engine") or {}).get("workers")
    said = [f"{machine.get('system', '')} {machine.get('machine', '')}".strip(), f"Python {machine.get('python', '?')}"]
    said += [plural(machine["cores"], "core")] if machine.get("cores") else []
    said += [f"workers {workers}"] if workers is not None else []
    return f"{', '.join(said)}; begun {machine.get('started', 'at an unknown time')}."
