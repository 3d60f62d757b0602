"""How the arms of a comparison, and the rounds and seeds of a summary, are called in plots, tables and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DROP = ", lr / 10"
WORDS = {"baseline": "baseline", "fedrela": "FedReLa", "random": "random moves"}
SCORES = {
    "last": "after the last round",
    "best-validation": "after the round that is best on what clients hold back",
    "best-test": "after the round that is best on the test set itself, which flatters every arm",
}


def arm_words(arm: str) -> str:
    """Return what an arm does.

    >>> arm_words("baseline"), arm_words("fedrela-drop"), arm_words("as given")
    ('baseline', 'FedReLa, lr / 10', 'as given')
    """
    kind = arm.removesuffix("-drop")
    return WORDS.get(kind, kind) + _drop(arm)


def arm_name(baseline: str, arm: str) -> str:
    """Return how an arm of a baseline is called.

    >>> arm_name("FedAvg", "fedrela-drop"), arm_name("FedAvg", "baseline-drop"), arm_name("FedAvg", "as given")
    ('FedAvg + FedReLa, lr / 10', 'FedAvg, lr / 10', 'FedAvg')
    """
    plain = arm.removesuffix("-drop") in ("baseline", "as given")
    return baseline + _drop(arm) if plain else f"{baseline} + {arm_words(arm)}"


def pair_name(base: str, treated: str) -> str:
    """Return in few words what a matched pair of arms tells.

    >>> pair_name("baseline", "fedrela"), pair_name("random-drop", "fedrela-drop")
    ('FedReLa', 'over random moves, lr / 10')
    """
    what = f"over {WORDS['random']}" if base.startswith("random") else WORDS["fedrela"]
    return what + _drop(treated)


def pair_title(base: str, treated: str) -> str:
    """Return which arms a matched pair compares.

    >>> pair_title("baseline", "fedrela"), pair_title("random-drop", "fedrela-drop")
    ('FedReLa against the baseline', 'FedReLa against random moves, both with lr / 10')
    """
    other = WORDS["random"] if base.startswith("random") else "the baseline"
    return f"FedReLa against {other}" + _drop(treated).replace(",", ", both with")


def drop_words(arms: Iterable[str]) -> str:
    """Explain the learning-rate drop where some arm has it.

    >>> drop_words(["baseline", "baseline-drop"])
    '; lr / 10: the learning rate divided by 10 from re-labelling on'
    """
    return f";{DROP[1:]}: the learning rate divided by 10 from re-labelling on" if any(map(_drop, arms)) else ""


def _drop(arm: str) -> str:
    return DROP if arm.endswith("-drop") else ""


def seeds_words(summary: Mapping[str, Any]) -> str:
    """Return over what a mean is taken.

    >>> seeds_words({"seeds": [1, 2, 3]}), seeds_words({"seeds": [7]})
    ('mean ± standard deviation over 3 seeds', 'one seed')
    """
    seeds = len(summary["seeds"])
    return f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"


def score_words(summary: Mapping[str, Any]) -> str:
    """Return what an accuracy is of.

    >>> score_words({"score": "last"})
    'Test accuracy after the last round, in per cent'
    """
    return f"Test accuracy {SCORES[summary.get('score', 'last')]}, in per cent"
