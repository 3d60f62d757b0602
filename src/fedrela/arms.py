"""Matched arms: what is compared with what, to isolate the effect of re-labelling.

The official code lowers the learning rate together with re-labelling, which confounds the two. The four matched arms
cross them; ``random`` moves as many labels between the same classes, but of random samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

DROP = 0.1  # factor of the learning rate in the official code
BASELINE, TREATED = "baseline", "+FedReLa"  # the arms of the paper's tables
AS_GIVEN = "as given"  # the arm if [compare] names none: [relabel] as it is


@dataclass(frozen=True)
class Arm:
    """One arm of a comparison.

    Examples
    --------
    >>> arm = Arm(relabels=True, drop=True)
    >>> arm.name, arm.label
    ('fedrela-drop', 'FedReLa, lr / 10')
    """

    relabels: bool
    drop: bool = False  # whether the learning rate is lowered from the first round of re-labelling on
    random: bool = False  # whether the samples that move are drawn at random: the control

    @property
    def name(self) -> str:
        """Its name in files and tables, such as ``fedrela-drop``."""
        kind = ("random" if self.random else "fedrela") if self.relabels else "baseline"
        return f"{kind}-drop" if self.drop else kind

    @property
    def label(self) -> str:
        """What it does, as tables and pages show it."""
        kind = ("random moves" if self.random else "FedReLa") if self.relabels else "baseline"
        return f"{kind}, lr / 10" if self.drop else kind

    @property
    def is_fedrela(self) -> bool:
        """Whether it moves the labels that FedReLa chooses."""
        return self.relabels and not self.random

    def relabel(self) -> dict[str, Any]:
        """Return the keys of ``[relabel]`` that it sets."""
        table: dict[str, Any] = {"enabled": self.relabels, "lr_scale": DROP if self.drop else 1.0}
        return table | ({"moves": "random" if self.random else "fedrela"} if self.relabels else {})


_KINDS = (Arm(relabels=False), Arm(relabels=True), Arm(relabels=True, random=True))
ARMS = {arm.name: arm for kind in _KINDS for arm in (kind, replace(kind, drop=True))}
MATCHED = tuple(name for name, arm in ARMS.items() if not arm.random)
PAIRS = (  # the arm to compare with comes first
    ("baseline", "fedrela"),
    ("baseline-drop", "fedrela-drop"),
    ("random", "fedrela"),
    ("random-drop", "fedrela-drop"),
)


def arm_label(name: str) -> str:
    """Return the label of an arm.

    >>> arm_label("baseline"), arm_label("fedrela-drop"), arm_label("as given")
    ('baseline', 'FedReLa, lr / 10', 'as given')
    """
    return ARMS[name].label if name in ARMS else name


def arm_of_baseline(baseline: str, name: str) -> str:
    """Return the label of an arm together with its baseline.

    >>> [arm_of_baseline("FedAvg", arm) for arm in ("fedrela-drop", "baseline-drop", "as given")]
    ['FedAvg + FedReLa, lr / 10', 'FedAvg, lr / 10', 'FedAvg']
    """
    if name == AS_GIVEN:
        return baseline
    if name in ARMS and not ARMS[name].relabels:
        return ARMS[name].label.replace("baseline", baseline)
    return f"{baseline} + {arm_label(name)}"


def is_matched(base: str, treated: str) -> bool:
    """Whether the second arm is FedReLa and the first one the same without it, or with random moves.

    >>> is_matched("random-drop", "fedrela-drop"), is_matched("baseline", "fedrela-drop")
    (True, False)
    >>> is_matched("as given", "fedrela")
    False
    """
    if not {base, treated} <= ARMS.keys():
        return False
    first, second = ARMS[base], ARMS[treated]
    return second.is_fedrela and not first.is_fedrela and first.drop == second.drop
