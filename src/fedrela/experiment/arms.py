"""Matched arms: what is compared with what, so that re-labelling is told from all that comes with it.

The official code lowers the learning rate together with re-labelling, so that neither can be told from the other. The
four matched arms cross the two; ``random`` moves as many labels between the same classes, of samples drawn at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedrela.errors import ArgumentError

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

DROP = 0.1  # what the official code multiplies the learning rate by
ARMS: dict[str, dict[str, Any]] = {
    "baseline": {"enabled": False, "lr_scale": 1.0},
    "baseline-drop": {"enabled": False, "lr_scale": DROP},
    "fedrela": {"enabled": True, "lr_scale": 1.0, "moves": "fedrela"},
    "fedrela-drop": {"enabled": True, "lr_scale": DROP, "moves": "fedrela"},
    "random": {"enabled": True, "lr_scale": 1.0, "moves": "random"},
    "random-drop": {"enabled": True, "lr_scale": DROP, "moves": "random"},
}
MATCHED = ("baseline", "baseline-drop", "fedrela", "fedrela-drop")
PAIRS = (  # what an arm is compared with comes first
    ("baseline", "fedrela"),
    ("baseline-drop", "fedrela-drop"),
    ("random", "fedrela"),
    ("random-drop", "fedrela-drop"),
)


def arm_config(config: Config, arm: str, seed: int, changes: dict[str, Any] | None = None) -> Config:
    """Return the configuration of one arm with one seed, and with further changes, such as another baseline."""
    from fedrela.experiment.overlay import overlay  # which needs the schema, which names the arms

    if arm not in ARMS:
        raise ArgumentError(f"arm: expected one of {', '.join(ARMS)}, got {arm!r}")
    return overlay(config, {**(changes or {}), "seed": seed, "relabel": ARMS[arm]})
