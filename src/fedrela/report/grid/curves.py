"""Accuracy over rounds of all arms of a baseline: what they share once, then each arm by itself, mean over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.report.charts import Series, line_chart
from fedrela.report.grid.runs import Runs, mean_over_seeds, numbers
from fedrela.report.page import Figure
from fedrela.report.run.story import Story
from fedrela.report.run.words import name
from fedrela.report.tables.arms import arm_words

SHARED = "shared by all arms"


def accuracy_curves(runs: Runs, baseline: Mapping[str, Any], figure: str, key: str) -> Figure | None:
    """Draw one accuracy of all arms of a baseline over rounds, with a mark at T; None where no round was scored."""
    arms = {
        arm: stories for arm in baseline["arms"] if (stories := runs.of(baseline["label"], arm)) and _scored(stories)
    }
    if not arms:
        return None
    stories = next(iter(arms.values()))
    first = stories[0].first
    curves = {arm: mean_over_seeds(found, lambda story: _values(story, figure)) for arm, found in arms.items()}
    rounds = min(mean.size for mean, _ in curves.values())
    shared = _shared_rounds({arm: mean[:rounds] for arm, (mean, _) in curves.items()}, first)
    series = [_series(arm_words(arm), *curve, max(shared, 1)) for arm, curve in curves.items()]
    if shared:
        mean, deviation = next(iter(curves.values()))
        series.insert(0, _series(SHARED, mean[:shared], deviation[:shared], 1, "ink"))
    seeds = len(stories)
    chart = line_chart(
        series, title=f"{name(baseline['label'])}: {name(figure)} accuracy", x_label="round", y_label="test accuracy",
        marks=[(first, f"T = {first}")] if 1 < first <= rounds else [],
    )  # fmt: skip
    band = f"Mean over {seeds} seeds; bands are one standard deviation." if seeds > 1 else "One seed."
    return Figure(key, chart, band)


def _scored(stories: Sequence[Story]) -> bool:
    """Whether all runs have the same number of rounds, and some were scored."""
    return len({len(story.rounds) for story in stories}) == 1 and any(record.accuracy for record in stories[0].rounds)


def _values(story: Story, figure: str) -> list[float | None]:
    found = [record.accuracy for record in story.rounds]
    return [None if share is None else {**share, **share["groups"]}.get(figure) for share in found]


def _shared_rounds(means: Mapping[str, NDArray[np.float64]], first: int) -> int:
    """Return how many rounds before T are the same in all arms; 0 where only one is there, or some differ."""
    head = [mean[: first - 1] for mean in means.values()]
    same = len(head) > 1 and all(np.array_equal(head[0], other, equal_nan=True) for other in head)
    return head[0].size if same else 0


def _series(
    words: str, mean: NDArray[np.float64], deviation: NDArray[np.float64], start: int, style: str = ""
) -> Series:
    """Return a curve from round `start` on."""
    x = list(range(start, mean.size + 1))
    y, spread = mean[start - 1 :], deviation[start - 1 :]
    return Series(words, x, numbers(y), style, numbers(np.maximum(y - spread, 0)), numbers(np.minimum(y + spread, 1)))
