"""Sections of a run's page on accuracy: over rounds, by class, and what was taken for what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.plots.runs import RunData
from fedrela.plots.style import limited
from fedrela.report.numbers import listed
from fedrela.report.page import Block, Figure, Table, Text
from fedrela.text import percent, plural, points

MOST_ROWS = 30  # classes of a table; more are in the plot alone


def over_rounds(run: RunData) -> list[Block]:
    """Return accuracy over rounds, overall and by group, with a mark at T."""
    if not any(record.accuracy for record in run.rounds):
        return [Text("No round was scored on a test set.")]
    said = _course(run)
    return [Figure("accuracy", "Accuracy on the test set", partial(plots.accuracy_over_rounds, run), said), Text(said)]


def _course(run: RunData) -> str:
    """Say what the curves say: where each stood before T, and where at the end."""
    before, after = (
        of and {run.headline: of[run.headline], **of["groups"]} for of in (run.accuracy_before, run.accuracy)
    )
    if after is None:
        return ""
    if before is None:
        parts = [f"{limited(key)} {percent(share)}" for key, share in after.items()]
        return f"After round {run.last_scored}: {listed(parts)}."
    parts = [
        f"{limited(key)} went from {percent(before[key])} to {percent(share)} ({_change(before[key], share)} points)"
        for key, share in after.items()
    ]
    return f"From round {run.first - 1} to round {run.last_scored}, {listed(parts)}."


def _change(before: float | None, after: float | None) -> str:
    return points(None if before is None or after is None else after - before)


def by_class(run: RunData) -> list[Block]:
    """Return the accuracy of every class before T and after the last round."""
    accuracy, before = run.accuracy, run.recalls_before
    if accuracy is None:
        return [Text("There is no test set.")]
    after = accuracy["per_class"]
    if before is None:
        why = f"Round {run.first}, before which accuracy would be compared, has not been reached."
        return [Text(why), *_class_table(run, None, after)]
    both = [(b, a) for b, a in zip(before, after, strict=True) if b is not None and a is not None]
    risen, fallen = sum(a > b for b, a in both), sum(a < b for b, a in both)
    said = f"{plural(risen, 'class')} rose and {fallen:,} fell, of {len(after):,}."
    if run.first == 1:
        said += " Round 1 is the first of re-labelling: before it the model was untrained."
    title = f"Before round {run.first} and after round {run.last_scored}"
    figure = Figure("classes", title, partial(plots.class_changes, run), said)
    return [Text(said), figure, *_class_table(run, before, after)]


def _class_table(run: RunData, before: Sequence[float | None] | None, after: Sequence[float | None]) -> list[Block]:
    if len(run.classes) > MOST_ROWS:
        return []
    record, groups = run.relabelling or {}, run.groups
    columns: dict[str, Iterable[str]] = {"class": map(limited, run.classes)}
    columns["group"] = (limited(groups.names[g]) for g in groups.of_class)
    columns["samples"] = (f"{count:,}" for count in record.get("before") or run.manifest.data["class_counts"])
    if run.enabled and record.get("after"):
        columns["labels after"] = (f"{count:,}" for count in record["after"])
    if before:
        columns |= {"before": map(percent, before), "after": map(percent, after)}
        columns["points"] = map(_change, before, after)
    else:
        columns["accuracy"] = map(percent, after)
    return [Table.of_columns(columns, ("class", "group"), "Training samples and accuracy on the test set")]


def confusion(run: RunData) -> list[Block]:
    """Return what the model took for what, before T, at the end, and the difference."""
    found = {"before": run.confusion_before, "after": (run.result or {}).get("confusion")}
    there = {panel: np.array(matrix, np.float64) for panel, matrix in found.items() if matrix is not None}
    if not there:
        return [Text("There is no test set." if run.result else "It is written when a run has finished.")]
    titles = {"before": f"Before round {run.first}", "after": f"After round {run.last_scored}"}
    said = {panel: _errors(run, matrix) for panel, matrix in there.items()}
    if len(there) == 2:
        titles["difference"], said["difference"] = "The difference, in points", _largest_change(run, there)
    figures = [
        Figure(f"confusion-{panel}", titles[panel], partial(plots.confusion, run, panel=panel), words)
        for panel, words in said.items()
    ]
    what = "Rows are true classes, columns predicted ones, in per cent of the row; the diagonal is what was right."
    words = " ".join(f"{panel.capitalize()}: {said[panel]}" for panel in there)
    return [Text(what), *figures, Text(words)]


def _errors(run: RunData, n: Any) -> str:
    wrong, total = n - np.diag(n.diagonal()), int(n.sum())
    if not wrong.any():
        return f"All of {plural(total, 'answer')} are right."
    a, b = divmod(int(wrong.argmax()), len(n))
    classes = f"“{limited(run.classes[a])}” taken for “{limited(run.classes[b])}”"
    most = f"{plural(int(wrong[a, b]), 'sample')} of {classes}"
    return f"{int(n.diagonal().sum()):,} of {plural(total, 'answer')} are right; the most frequent error is {most}."


def _largest_change(run: RunData, there: dict[str, Any]) -> str:
    before, after = (n / np.maximum(n.sum(axis=1, keepdims=True), 1) for n in there.values())
    a, b = divmod(int(np.abs(after - before).argmax()), len(run.classes))
    change = points(float(after[a, b] - before[a, b]))
    return f"The largest change is {change} points: “{limited(run.classes[a])}” taken for “{limited(run.classes[b])}”."
