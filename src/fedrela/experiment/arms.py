"""Matched arms from one shared prefix: the part before re-labelling is trained once, and every arm goes on from it.

The official code lowers the learning rate together with re-labelling, so that neither can be told from the other. The
four arms cross the two; ``random`` moves as many labels between the same classes, of samples drawn at random. An arm
from a prefix equals the same arm run alone, byte for byte.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrela.engine.loop import RoundDone
from fedrela.engine.run import Crew
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.load import parse_config
from fedrela.experiment.result import Result
from fedrela.experiment.run import begin, resume
from fedrela.experiment.schema import Config
from fedrela.runfolder import RunFolder

DROP = 0.1  # what the official code multiplies the learning rate by
ARMS: dict[str, dict[str, Any]] = {
    "host": {"enabled": False, "lr_scale": 1.0},
    "host-drop": {"enabled": False, "lr_scale": DROP},
    "fedrela": {"enabled": True, "lr_scale": 1.0},
    "fedrela-drop": {"enabled": True, "lr_scale": DROP},
    "random": {"enabled": True, "lr_scale": 1.0, "moves": "random"},
    "random-drop": {"enabled": True, "lr_scale": DROP, "moves": "random"},
}
MATCHED = ("host", "host-drop", "fedrela", "fedrela-drop")


@dataclass(frozen=True)
class Progress:
    """One round of one arm; `arm` is ``"prefix"`` for what all arms share."""

    seed: int
    arm: str
    done: RoundDone


def arm_config(config: Config, arm: str, seed: int) -> Config:
    """Return the configuration of one arm with one seed."""
    if arm not in ARMS:
        raise ArgumentError(f"arm: one of {', '.join(ARMS)} is needed, got {arm!r}")
    table = config.as_table()
    table["seed"] = seed
    table["relabel"] = table["relabel"] | ARMS[arm]
    return parse_config(table, name=config.origin.name)


def run_arms(config: Config, seed: int, out: Path, crew: Crew, arms: tuple[str, ...] = MATCHED) -> Iterator[Progress]:
    """Run the arms of one seed, each in a folder of its own below `out`; what is there already is not done again."""
    prefix = yield from _run_prefix(arm_config(config, "fedrela", seed), seed, out / "prefix", crew)
    for arm in arms:
        target = out / arm
        if _status(target) == "done":
            continue
        chosen = arm_config(config, arm, seed)
        fresh = _status(target) in ("missing", "new")
        with begin(chosen, out=target, crew=crew, prefix=prefix) if fresh else resume(target, crew=crew) as execution:
            for done in execution.rounds():
                yield Progress(seed, arm, done)
            execution.finish()


def arm_results(out: Path, arms: tuple[str, ...] = MATCHED) -> dict[str, Result]:
    """Return the results of the arms of one seed."""
    return {arm: Result.load(out / arm) for arm in arms}


def _run_prefix(config: Config, seed: int, out: Path, crew: Crew) -> Generator[Progress, None, RunFolder | None]:
    """Run what all arms share, up to the round before re-labelling; return its folder, or None where that is none."""
    last = config.relabel.schedule().first(config.train.rounds) - 1
    if last == 0:
        return None
    fresh = _status(out) in ("missing", "new")
    with begin(config, out=out, crew=crew) if fresh else resume(out, crew=crew) as execution:
        for done in execution.rounds(last):
            yield Progress(seed, "prefix", done)
    return RunFolder.open(out)


def _status(path: Path) -> str:
    try:
        return RunFolder.open(path).status
    except DataError:
        return "missing"
