"""A run for MLflow and for Weights & Biases: the scalars that TensorBoard gets, through those packages."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.files import make_folders
from fedrela.report.tensorboard import scalars
from fedrela.runfolder import RunFolder

PROJECT = "fedrela"


class MLflowLog:
    """A run of MLflow's experiment ``fedrela`` at a tracking URI: a server, or a file such as ``sqlite:///runs.db``."""

    def __init__(self, uri: str, name: str) -> None:
        _require("mlflow")
        import mlflow

        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(PROJECT)
            place = self._client.create_experiment(PROJECT) if found is None else found.experiment_id
            self._run = self._client.create_run(place, run_name=name).info.run_id
        except Exception as error:  # of many kinds: a wrong URI, an unreachable server
            raise ArgumentError(f"--mlflow: {uri}: {str(error).partition(chr(10))[0]}") from None

    def add_round(self, record: Mapping[str, Any]) -> None:
        """Add what is known of a round."""
        for tag, value in scalars(record).items():
            self._client.log_metric(self._run, tag, value, step=record["round"])

    def close(self, folder: Path, rounds: int) -> None:
        """End MLflow's run."""
        self._client.set_terminated(self._run)


class WandbLog:
    """An offline run of Weights & Biases in a folder; ``wandb sync`` uploads it on request."""

    def __init__(self, folder: str | Path, name: str) -> None:
        _require("wandb")
        import wandb

        make_folders(Path(folder))
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self._run = wandb.init(project=PROJECT, name=name, dir=str(folder), mode=mode)

    def add_round(self, record: Mapping[str, Any]) -> None:
        """Add what is known of a round."""
        self._run.log(scalars(record), step=record["round"])

    def close(self, folder: Path, rounds: int) -> None:
        """End the run."""
        self._run.finish()


def write_trackers(folder: RunFolder, mlflow: str | None, wandb: Path | None) -> None:
    """Write a run, finished or not, to MLflow, to Weights & Biases, or to both."""
    for log in open_trackers(mlflow, wandb, folder.path.name):
        for record in folder.rounds():
            log.add_round(record)
        log.close(folder.path, len(folder.rounds()))


def open_trackers(mlflow: str | None, wandb: Path | None, name: str) -> list[MLflowLog | WandbLog]:
    """Return the requested logs, for a run of that name."""
    logs: list[MLflowLog | WandbLog] = [] if mlflow is None else [MLflowLog(mlflow, name)]
    return logs if wandb is None else [*logs, WandbLog(wandb, name)]


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ArgumentError(f"{package}: is not installed; run `pip install {package}`")
