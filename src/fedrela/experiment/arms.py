"""Matched arms: what is compared with what, to isolate the effect of re-labelling.

The official code lowers the learning rate together with re-labelling, which confounds the two. The four matched arms
cross them; ``random`` moves as many labels between the same classes, but of random samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

DROP = 0.1  # factor of the learning rate in the official code


@dataclass(frozen=True)
class Arm:
    """One arm of a comparison."""

    relabels: bool
    drop: bool = False  # whether the learning rate is lowered from the first round of re-labelling on
    random: bool = False  # whether the samples that move are drawn at random: the control

    @classmethod
    def of(cls, config: Config) -> Arm:
        """Return the arm that a run's configuration belongs to."""
        relabel = config.relabel
        return cls(relabel.enabled, relabel.lr_scale != 1, relabel.enabled and relabel.moves == "random")

    @property
    def name(self) -> str:
        """Its name in files and tables, such as ``fedrela-drop``."""
        kind = ("random" if self.random else "fedrela") if self.relabels else "baseline"
        return f"{kind}-drop" if self.drop else kind

    def relabel(self) -> dict[str, Any]:
        """Return the keys of ``[relabel]`` that it sets."""
        table: dict[str, Any] = {"enabled": self.relabels, "lr_scale": DROP if self.drop else 1.0}
        return table | ({"moves": "random" if self.random else "fedrela"} if self.relabels else {})


_KINDS = (Arm(relabels=False), Arm(relabels=True), Arm(relabels=True, random=True))
ARMS = {arm.name: arm for kind in _KINDS for arm in (kind, replace(kind, drop=True))}
MATCHED = ("baseline", "baseline-drop", "fedrela", "fedrela-drop")
PAIRS = (  # what an arm is compared with comes first
    ("baseline", "fedrela"),
    ("baseline-drop", "fedrela-drop"),
    ("random", "fedrela"),
    ("random-drop", "fedrela-drop"),
)
