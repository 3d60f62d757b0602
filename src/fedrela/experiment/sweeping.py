"""Sweep keys of a configuration over values: every combination is a run, and none is done twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.experiment.comparing import base_digest
from fedrela.experiment.grid import Grid, name_of
from fedrela.experiment.load import config_toml
from fedrela.experiment.running import Configuration, as_config
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.sweep import entries_of
from fedrela.experiment.sweep_cells import cells_of
from fedrela.experiment.sweep_summary import sweep_summary
from fedrela.runfolder.grids import GridFolder


@dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    Attributes
    ----------
    folder
        Where it lies.
    record
        All of ``summary.json``.
    """

    folder: Path
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> Sweep:
        """Read what a finished sweep found; an unfinished one is a `DataError`."""
        there = GridFolder.open(folder)
        return cls(there.path, there.summary("sweep"))

    @property
    def points(self) -> list[dict[str, Any]]:
        """Baseline, arm, values, figures over seeds and validation of every combination."""
        points: list[dict[str, Any]] = self.record["points"]
        return points

    @property
    def choice(self) -> list[dict[str, Any]]:
        """For each baseline and arm the values that validation would choose, and what the test set says of them."""
        choice: list[dict[str, Any]] = self.record["choice"]
        return choice

    def rows(self) -> list[dict[str, Any]]:
        """Return a long table, one row a combination and seed, such as `pandas.DataFrame` takes.

        Keys: ``baseline``, ``arm``, ``seed``, the swept keys with their dots, each figure as a share, ``moved`` and
        ``validation``; None stands for what is not known.
        """
        return [
            {"baseline": point["baseline"], "arm": point["arm"], "seed": seed, **point["values"]}
            | {name: spread["values"][i] for name, spread in point["figures"].items()}
            | {"validation": point["validation"]["values"][i] if point["validation"] else None}
            for point in self.points
            for i, seed in enumerate(self.record["seeds"])
        ]


def sweep(config: Configuration, *, out: str | Path, workers: int | str | None = None) -> Sweep:
    """Carry out a sweep below a folder, or what is left of it.

    Parameters
    ----------
    config
        A TOML file, or the same as a dictionary; keys and values stand in its table ``[sweep]``, seeds, baselines and arms
        in ``[compare]``.
    out
        A folder, new, empty, or of this sweep; what is finished there is not done again.
    workers
        Processes, or ``"auto"``; by default what ``[engine]`` says.

    Raises
    ------
    FedrelaError
        Where every run failed; one that failed beside others is in the summary, with the reason.

    Examples
    --------
    >>> import tempfile
    >>> small = {"train": {"rounds": 2, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = sweep({**small, "sweep": {"relabel.tau": [0.05, 0.2]}}, out=folder, workers=1)
    >>> [(row["seed"], row["relabel.tau"], row["overall"] > 0.5) for row in found.rows()]
    [(1, 0.05, True), (1, 0.2, True)]
    """
    plan = SweepPlan(as_config(config), out)
    plan.grid.complete(workers)
    return plan.conclude()


class SweepPlan:
    """A sweep that is to be carried out below a folder.

    Parameters
    ----------
    config
        With a table ``[sweep]``.
    out
        Where the runs lie, or will lie.

    Attributes
    ----------
    values, grid
        The values of each swept key, and all runs.
    """

    def __init__(self, config: Config, out: str | Path) -> None:
        self.values = {entry.key: list(entry.values) for entry in entries_of(config.sweep)}
        if not self.values:
            example = '[sweep] "relabel.tau" = [0.01, 0.05]'
            raise ArgumentError(f"{config.origin.name}: sweep: keys with values to try are needed, such as {example}")
        self.grid = Grid(
            out, list(cells_of(config)), kind="sweep", name=name_of(config, out), base=base_digest(config),
            config=config_toml(config),
        )  # fmt: skip

    def conclude(self) -> Sweep:
        """Write ``summary.json`` and return it; each run must be done, or have failed."""
        summary = sweep_summary(self.grid, self.values)
        return Sweep(self.grid.conclude(summary).path, summary)
