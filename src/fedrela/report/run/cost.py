"""What a run cost, and what FedReLa added: the only part of a page that differs between machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.report.charts import stacked_bars
from fedrela.report.figures.shapes import Drawing
from fedrela.report.page.parts import Block, Facts, Figure, Section, Text
from fedrela.report.run.story import Story
from fedrela.report.run.words import many, name, seconds, size

Floats = NDArray[np.float64]
SPANS = ("train_seconds", "evaluate_seconds", "relabel_seconds")


def cost(story: Story) -> Section:
    """Return time and bytes a round, and what re-labelling added to them."""
    blocks: list[Block] = [Facts(_bytes(story))]
    times = {span: np.array([record.get(span, 0.0) for record in story.timing]) for span in SPANS}
    if story.timing:
        blocks += [Facts(_times(story, times)), Figure("time", _chart(story, times), _note(story))]
    if machine := _machine(story.machine):
        blocks.append(Text(f"This section alone depends on the machine. {machine}", "muted"))
    return Section("cost", "Cost", blocks)


def _bytes(story: Story) -> list[tuple[str, str]]:
    algorithm = story.manifest.algorithm
    up, down = (sum(map(_size, algorithm.get(way, {}).values())) for way in ("sends", "receives"))
    turns = [len(record.chosen) for record in story.rounds]
    pairs = [("a client sends", f"{size(up)} a turn ({_named(algorithm['sends'])})")]
    if down:
        pairs.append(("a client receives", f"{size(down)} a turn ({_named(algorithm['receives'])})"))
    if turns:
        clients = sum(turns) / len(turns)
        pairs.append(("a round moves", f"{size(clients * (up + down))} with {clients:.4g} clients"))
    if story.enabled:
        pairs.append(("FedReLa adds", "0 B: it sends nothing, and uploads keep their names, shapes and types"))
    return pairs


def _size(declared: list[Any]) -> int:
    shape, dtype = declared
    return int(math.prod(shape)) * int(np.dtype(dtype).itemsize)


def _named(arrays: Mapping[str, Any]) -> str:
    return ", ".join(f"{name(key)} {size(_size(declared))}" for key, declared in arrays.items())


def _times(story: Story, times: dict[str, Floats]) -> list[tuple[str, str]]:
    train, score, relabel = (times[span] for span in SPANS)
    whole = train + score
    plain = whole[relabel == 0]
    middle = float(np.median(plain if plain.size else whole))
    pairs = [("all rounds", seconds(float(whole.sum()))), ("a round", f"{seconds(middle)} (median)")]
    busy = np.flatnonzero(relabel > 0)
    if busy.size:
        first = int(busy[0])
        number = story.timing[first]["round"]
        took = f"{seconds(float(whole[first]))}, of which re-labelling, summed over clients,"
        pairs.append((f"round {number}, re-labelling", f"{took} {seconds(float(relabel[first]))}"))
        share = relabel.sum() / whole.sum()
        pairs.append(("FedReLa added", f"{seconds(float(relabel.sum()))} in the whole run, {share:.1%} of its time"))
    return pairs


def _chart(story: Story, times: dict[str, Floats]) -> Drawing:
    train, score, relabel = (times[span] for span in SPANS)
    inside = np.minimum(relabel, train)
    parts = {"training": train - inside, "scoring": score, "re-labelling": inside}
    return stacked_bars(
        [str(record["round"]) for record in story.timing],
        {key: values.tolist() for key, values in parts.items() if values.any()},
        title="Seconds a round", y_label="seconds",
        description=f"{many(train.size, 'round')} of {seconds(float(np.median(train + score)))} each at the median.",
    )  # fmt: skip


def _note(story: Story) -> str:
    if not story.enabled:
        return ""
    return "Re-labelling is summed over clients, which may work side by side: its part is drawn as the most it can be."


def _machine(machine: Mapping[str, Any]) -> str:
    if not machine:
        return ""
    workers = (machine.get("engine") or {}).get("workers")
    said = [f"{machine.get('system', '')} {machine.get('machine', '')}".strip(), f"Python {machine.get('python', '?')}"]
    said += [many(machine["cores"], "core")] if machine.get("cores") else []
    said += [f"workers {workers}"] if workers is not None else []
    return f"{', '.join(said)}; begun {machine.get('started', 'at an unknown time')}."
