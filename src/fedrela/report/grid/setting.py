"""What the runs of a grid have in common, in half a sentence."""

from __future__ import annotations

from typing import Any

from fedrela.report.grid.runs import Runs
from fedrela.report.run.words import many, name

NAMED = ("ratio", "factor", "alpha")  # of imbalance and partition, where they have them


def setting(runs: Runs) -> str:
    """Return data, clients, model and rounds of the first finished run."""
    story = runs.any
    if story is None:
        return "No run has finished"
    data, train = story.manifest.data, story.config["train"]
    recipe = data["recipe"]
    samples, classes = many(story.samples, "training sample"), many(len(story.classes), "class")
    who = f"{samples} of {classes} at {many(data['clients'], 'client')}"
    how = f"{_kind(recipe['imbalance'])} imbalance, {_kind(recipe['partition'])} partition"
    model = f"{name(story.config['model']['name'])} for {many(train['rounds'], 'round')}"
    return f"{name(data['source'])}, {who} ({how}), {model}"


def _kind(table: dict[str, Any]) -> str:
    numbers = [f"{key} {table[key]:g}" for key in NAMED if isinstance(table.get(key), int | float)]
    return " ".join([name(table["kind"]).replace("_", " "), *numbers])
