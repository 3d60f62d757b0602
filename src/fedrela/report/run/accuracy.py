"""Accuracy: over rounds, by class before and after, and what was taken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.report.charts import Series, change_chart, heat_map, line_chart
from fedrela.report.figures.shapes import Drawing
from fedrela.report.page.parts import Block, Figure, Section, Table, Text
from fedrela.report.run.story import Story
from fedrela.report.run.words import listed, many, name, percent, points

MOST_ROWS = 30  # classes of a table; more are in the figure alone


def over_rounds(story: Story) -> Section:
    """Return accuracy over rounds, overall and by group, with a mark at T."""
    scored = [record for record in story.rounds if record.accuracy]
    if not scored:
        return Section("rounds", "Accuracy over rounds", [Text("No round was scored on a test set.")])
    x = [record.round for record in scored]
    shares = [record.accuracy for record in scored if record.accuracy]
    series = [Series(story.headline, x, [share[story.headline] for share in shares], "ink")]
    series += [
        Series(name(group), x, [share["groups"][group] for share in shares], f"g{g}")
        for g, group in enumerate(story.groups.names)
    ]
    held = [record for record in story.rounds if record.validation]
    if held:
        values = [record.validation["balanced"] for record in held if record.validation]
        series.append(Series("balanced, held back by clients", [record.round for record in held], values))
    figure = line_chart(
        series, title="Accuracy on the test set", description=_course(story), x_label="round", y_label="accuracy",
        marks=_marks(story),
    )  # fmt: skip
    return Section("rounds", "Accuracy over rounds", [Figure("accuracy", figure), Text(_course(story))])


def _marks(story: Story) -> list[tuple[float, str]]:
    if story.first > story.all_rounds:
        return []
    scale = story.config["relabel"]["lr_scale"]
    rate = "" if scale == 1 else f"learning rate × {scale:g}"
    what = ", ".join(filter(None, ["re-labelling" if story.enabled else "", rate]))
    return [(story.first, f"T = {story.first}: {what}")] if what else []


def _course(story: Story) -> str:
    """Say what the curves say: where each stood before T, and where at the end."""
    accuracy, before = story.accuracy, _before(story)
    if accuracy is None:
        return ""
    after = {story.headline: accuracy[story.headline], **accuracy["groups"]}
    if before is None:
        parts = [f"{name(key)} {percent(share)}" for key, share in after.items()]
        return f"After round {story.last_scored}: {listed(parts)}."
    earlier = {story.headline: before[story.headline], **before["groups"]}
    parts = [
        f"{name(key)} went from {percent(earlier[key])} to {percent(share)} ({points(earlier[key], share)} points)"
        for key, share in after.items()
    ]
    return f"From round {story.first - 1} to round {story.last_scored}, {listed(parts)}."


def _before(story: Story) -> Mapping[str, Any] | None:
    """Return the accuracies of round T - 1, where it was scored and rounds came after it."""
    number = story.first - 1
    if not 0 < number < min(len(story.rounds), story.last_scored):
        return None
    return story.rounds[number - 1].accuracy


def by_class(story: Story) -> Section:
    """Return the accuracy of every class before T and after the last round."""
    accuracy, before = story.accuracy, _recalls_before(story)
    if accuracy is None:
        return Section("classes", "Accuracy by class", [Text("There is no test set.")])
    after = accuracy["per_class"]
    if before is None:
        why = f"Round {story.first}, before which accuracy would be compared, has not been reached."
        return Section("classes", "Accuracy by class", [Text(why), *_class_table(story, None, after)])
    words = (f"before round {story.first}", f"after round {story.last_scored}")
    risen = sum(b is not None and a is not None and a > b for b, a in zip(before, after, strict=True))
    fallen = sum(b is not None and a is not None and a < b for b, a in zip(before, after, strict=True))
    said = f"{many(risen, 'class')} rose and {fallen:,} fell, of {len(after):,}."
    if story.first == 1:
        said += " Round 1 is the first of re-labelling: before it the model was untrained."
    chart = change_chart(
        story.classes,
        before,
        after,
        groups=story.groups,
        title=" and ".join(words).capitalize(),
        description=said,
        words=words,
    )
    blocks = [Text(said), Figure("classes", chart), *_class_table(story, before, after)]
    return Section("classes", "Accuracy by class", blocks)


def _recalls_before(story: Story) -> list[float | None] | None:
    """Return each class's accuracy of the model that round T began with, None for a class without test samples."""
    before = _before(story)
    if before is not None:
        return list(before["per_class"])
    if story.confusion_before is None:
        return None
    rows = np.array(story.confusion_before)
    return [float(row[c] / row.sum()) if row.sum() else None for c, row in enumerate(rows)]


def _class_table(story: Story, before: Sequence[float | None] | None, after: Sequence[float | None]) -> list[Block]:
    if len(story.classes) > MOST_ROWS:
        return []
    counts = (story.relabelling or {}).get("before") or story.manifest.data["class_counts"]
    labels = (story.relabelling or {}).get("after")
    groups = [story.groups.names[g] for g in story.groups.of_class]
    columns = ["class", "group", "samples", *(["labels after"] if labels and story.enabled else [])]
    columns += ["before", "after", "points"] if before else ["accuracy"]
    rows = []
    for c, label in enumerate(story.classes):
        row = [name(label), name(groups[c]), f"{counts[c]:,}"]
        row += [f"{labels[c]:,}"] if labels and story.enabled else []
        row += [percent(before[c])] if before else []
        rows.append([*row, percent(after[c]), *([points(before[c], after[c])] if before else [])])
    return [Table(columns, rows, ("class", "group"), "Training samples and accuracy on the test set")]


def confusion(story: Story) -> Section:
    """Return what the model took for what, before T and at the end."""
    before, after = story.confusion_before, (story.result or {}).get("confusion")
    found = [
        (before, "confusion-before", f"Before round {story.first}"),
        (after, "confusion-after", f"After round {story.last_scored}"),
    ]
    blocks: list[Block] = [
        Figure(key, _matrix(story, matrix, words)) for matrix, key, words in found if matrix is not None
    ]
    if not blocks:
        why = "There is no test set." if story.result else "It is written when a run has finished."
        return Section("confusion", "What was taken for what", [Text(why)])
    said = "Rows are true classes, columns predicted ones, in per cent of the row; the diagonal is what was right."
    return Section("confusion", "What was taken for what", [Text(said), *blocks, Text(_worst(story, before, after))])


def _matrix(story: Story, matrix: Sequence[Sequence[int]], words: str) -> Drawing:
    n = np.array(matrix, np.float64)
    shares = n / np.maximum(n.sum(axis=1, keepdims=True), 1)
    return heat_map(
        shares.tolist(), story.classes, story.classes, title=words, description=_errors(story, n),
        row_label="true class", column_label="predicted class", percent=True, mark_diagonal=True,
    )  # fmt: skip


def _errors(story: Story, n: NDArray[Any]) -> str:
    wrong = n - np.diag(n.diagonal())
    total = int(n.sum())
    if not wrong.any():
        return f"All of {many(total, 'answer')} are right."
    a, b = divmod(int(wrong.argmax()), len(n))
    most = f"{many(int(wrong[a, b]), 'sample')} of “{name(story.classes[a])}” taken for “{name(story.classes[b])}”"
    return f"{int(n.diagonal().sum()):,} of {many(total, 'answer')} are right; the most frequent error is {most}."


def _worst(story: Story, before: Sequence[Sequence[int]] | None, after: Sequence[Sequence[int]] | None) -> str:
    found = [("Before", before), ("After", after)]
    return " ".join(f"{word}: {_errors(story, np.array(matrix))}" for word, matrix in found if matrix is not None)
