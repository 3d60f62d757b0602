"""Prefixes: rounds that several runs share, those before re-labelling, trained once.

Nothing in ``[relabel]`` acts before its first round, except that posteriors may be collected. So all runs that differ
in nothing else continue from one prefix, up to the round before their own first one, and equal the same runs made
alone, byte for byte. A longer prefix continues from a shorter one.
"""

from __future__ import annotations

from pathlib import Path

from fedrela.engine.options import RelabelPlan
from fedrela.errors import DataError
from fedrela.experiment.load import config_sha256
from fedrela.experiment.overlay import overlay
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.engine import ReportConfig
from fedrela.options import options_of
from fedrela.runfolder import RunFolder

DIGITS = 12  # of an address


def address(config: Config) -> str:
    """Return the address of a run: the beginning of its configuration's digest."""
    return config_sha256(config)[:DIGITS]


def prefix_rounds(config: Config) -> int:
    """Return how many rounds lie before the first one of re-labelling."""
    return config.relabel.schedule.first(config.train.rounds) - 1


def prefix_config(config: Config) -> Config:
    """Return the configuration of the prefix that a run continues from: it would re-label in its last round only."""
    plan = RelabelPlan(start=config.train.rounds, collected=config.relabel.collected)
    relabel = {each.name: getattr(plan, each.name) for each in options_of(RelabelPlan)}
    report = {name: field.default for name, field in ReportConfig.model_fields.items()}
    return overlay(config, {"relabel": relabel, "report": report})


def prefix_name(config: Config, rounds: int) -> str:
    """Return the name of the folder of a prefix of so many rounds."""
    return f"{config.algorithm.name}-s{config.seed}-{address(config)}-to-{rounds}"


def finished_prefix(path: Path) -> RunFolder | None:
    """Return the prefix at `path` where all its rounds are done."""
    try:
        folder = RunFolder.open(path)
    except DataError:
        return None
    saved = folder.load_checkpoint()
    return folder if saved is not None and path.name.endswith(f"-to-{saved.round}") else None
