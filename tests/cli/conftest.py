"""What the tests of the command line share: a way to run it, and a small clinic."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fedrela.cli.main import main

NAMES = ("healthy", "flu", "rare")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def line(self) -> str:
        """The one line on standard error of a call that failed."""
        assert self.out == ""
        assert self.err.startswith("fedrela: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.removeprefix("fedrela: ").rstrip("\n")


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test work in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(monkeypatch, capsys) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fedrela", *map(str, arguments)])
        capsys.readouterr()
        code = main()
        return Outcome(code, *capsys.readouterr())

    return call


@dataclass(frozen=True)
class Clinic:
    """A posterior in which the frequent classes are a little unsure, and files made of it."""

    folder: Path
    posterior: np.ndarray
    labels: np.ndarray

    def csv(self, name="clinic.csv", *, names=NAMES, header=True, as_names=True, label="label") -> Path:
        path = self.folder / name
        with open(path, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerows([[*names, label]] if header else [])
            for row, code in zip(self.posterior.tolist(), self.labels.tolist(), strict=True):
                rows.writerow([*map(repr, row), names[code] if as_names else code])
        return path

    def npz(self, name="clinic.npz", **more) -> Path:
        path = self.folder / name
        arrays = {"posterior": self.posterior, "labels": self.labels, "class_names": np.array(NAMES)} | more
        np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
        return path

    def files(self) -> set[str]:
        return {path.name for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def clinic(tmp_path) -> Clinic:
    rng = np.random.default_rng(5)
    labels = rng.permutation(np.repeat([0, 1, 2], [120, 50, 20]))
    concentration = np.full((3, 3), 0.7) + np.diag([4.0, 3.0, 2.0])
    posterior = np.array([rng.dirichlet(concentration[label]) for label in labels])
    return Clinic(tmp_path, posterior, labels)
