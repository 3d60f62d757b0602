"""Matched arms from one shared prefix: the part before re-labelling is trained once, and every arm goes on from it.

The official code lowers the learning rate together with re-labelling, so that neither can be told from the other. The
four arms cross the two; ``random`` moves as many labels between the same classes, of samples drawn at random. An arm
from a prefix equals the same arm run alone, byte for byte.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrela.engine.loop import RoundDone
from fedrela.engine.run import Crew
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.execution import Execution
from fedrela.experiment.load import config_sha256, parse_config
from fedrela.experiment.result import Result
from fedrela.experiment.running import begin, resume
from fedrela.experiment.schema import Config
from fedrela.runfolder import RunFolder

DROP = 0.1  # what the official code multiplies the learning rate by
ARMS: dict[str, dict[str, Any]] = {
    "host": {"enabled": False, "lr_scale": 1.0},
    "host-drop": {"enabled": False, "lr_scale": DROP},
    "fedrela": {"enabled": True, "lr_scale": 1.0, "moves": "fedrela"},
    "fedrela-drop": {"enabled": True, "lr_scale": DROP, "moves": "fedrela"},
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
    left = [arm for arm in arms if not is_done(config, arm, seed, out)]
    if not left:
        return
    prefix = yield from _run_prefix(arm_config(config, "fedrela", seed), seed, out / "prefix", crew)
    for arm in left:
        with _begin_or_resume(arm_config(config, arm, seed), out / arm, crew, prefix) as execution:
            for done in execution.rounds():
                yield Progress(seed, arm, done)
            execution.finish()


def is_done(config: Config, arm: str, seed: int, out: Path) -> bool:
    """Whether an arm of one seed is finished below `out`; another run in its place is an `ArgumentError`."""
    return _status(arm_config(config, arm, seed), out / arm) == "done"


def arm_results(out: Path, arms: tuple[str, ...] = MATCHED) -> dict[str, Result]:
    """Return the results of the arms of one seed."""
    return {arm: Result.load(out / arm) for arm in arms}


def _run_prefix(config: Config, seed: int, out: Path, crew: Crew) -> Generator[Progress, None, RunFolder | None]:
    """Run what all arms share, up to the round before re-labelling; return its folder, or None where that is none."""
    last = config.relabel.schedule().first(config.train.rounds) - 1
    if last == 0:
        return None
    with _begin_or_resume(config, out, crew, None) as execution:
        for done in execution.rounds(last):
            yield Progress(seed, "prefix", done)
    return RunFolder.open(out)


def _begin_or_resume(
    config: Config, out: Path, crew: Crew, prefix: RunFolder | None
) -> contextlib.AbstractContextManager[Execution]:
    """Begin a run, or go on with what was left of it."""
    status = _status(config, out)
    if status == "missing" or (status == "new" and prefix is not None):  # a fork that was cut off is made again
        return begin(config, out=out, crew=crew, prefix=prefix)
    return resume(out, crew=crew)


def _status(config: Config, path: Path) -> str:
    try:
        there = RunFolder.open(path)
    except DataError:
        return "missing"
    if there.manifest.get("config_sha256") != config_sha256(config):
        raise ArgumentError(f"{path}: a run of another configuration is here; choose another folder or remove this one")
    return there.status
