"""`check_algorithm`: whether your own algorithm keeps the contract of the engine.

It runs on a tiny federation of edge cases: absent classes, a client of one class, a last batch of one sample.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from fedrela.algorithms.base import Algorithm, ArraySpec
from fedrela.arguments import check_choice
from fedrela.engine.checkpoint import restore_checkpoint, save_checkpoint
from fedrela.engine.executors import Executor
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.round import next_round
from fedrela.engine.run import Run
from fedrela.engine.run_options import RelabelPlan, TrainOptions
from fedrela.errors import DataError, FedrelaError
from fedrela.metrics import Groups
from fedrela.models import build
from fedrela.models.inputs import Scaling
from fedrela.records import Shard
from fedrela.runfolder import RunFolder
from fedrela.streams import stream

ROUNDS, RELABEL_AT = 4, 3
CLASSES, SIDE = 4, 8
# Samples per client and class; 17 and 25 leave one sample for the last batch of eight.
CLIENTS = ((10, 5, 2, 0), (0, 12, 6, 3), (14, 0, 0, 0), (6, 6, 10, 3), (3, 2, 9, 2))
TEST = 6  # samples per class
MODELS: dict[str, dict[str, Any]] = {"mlp": {"hidden": [8]}, "cnn_small": {}, "resnet8": {"width": 4}}


def check_algorithm(
    make: Callable[[], Algorithm], *, model: str = "mlp", executor: Executor | None = None, inputs: str = "images"
) -> list[str]:
    """Run an algorithm for a few rounds on a tiny federation, in several ways, and return the names of all checks.

    The first check that fails raises a `DataError` that starts with its name.

    Parameters
    ----------
    make
        Returns the algorithm, with parameters that keep it quick.
    model
        ``"mlp"``, ``"cnn_small"`` (no BatchNorm) or ``"resnet8"`` (BatchNorm).
    executor
        A pool of processes, to compare with this process.
    inputs
        ``"images"`` or ``"tables"``.

    Examples
    --------
    >>> from fedrela.algorithms.fedavg import FedAvg
    >>> check_algorithm(FedAvg)[0]
    'is described'
    """
    case = Case(make, model, inputs)
    checks: dict[str, Callable[[], None]] = {
        "is described": case.described,
        "stays finite and loses no client": case.finite,
        "sends what it declares": case.declared,
        "sends the same with FedReLa as without": case.same_uploads,
        "repeats to the bit": partial(case.repeats, SerialExecutor()),
        "resumes from a checkpoint": case.resumes,
        "is unchanged if nothing is re-labelled": case.tau_zero,
    }
    if executor is not None:
        checks["gives the same bits in worker processes"] = partial(case.repeats, executor)
    for name, check in checks.items():
        try:
            check()
        except Exception as error:
            raise DataError(f"{name}: {problem(error)}") from error
    return list(checks)


def problem(error: Exception) -> str:
    """Return what a check says: its own words, or an error of the code that it tried, with its type.

    >>> problem(AssertionError("loss differs")), problem(KeyError("x"))
    ('loss differs', "KeyError: 'x'")
    """
    return str(error) if isinstance(error, AssertionError | FedrelaError) else f"{type(error).__name__}: {error}"


class Case:
    """One algorithm on one model."""

    def __init__(self, make: Callable[[], Algorithm], model: str, inputs: str) -> None:
        self.make, self.model, self.inputs = make, model, inputs

    @cached_property
    def first(self) -> list[dict[str, bytes]]:
        """The states of the reference run."""
        return self._run(SerialExecutor())

    def begin(self, executor: Executor, *, enabled: bool = True, tau: float = 0.2) -> Run:
        """Return a run before its first round."""
        algorithm = self.make()
        problem = small_federation(self.inputs, auxiliary=algorithm.auxiliary)
        train = TrainOptions(rounds=ROUNDS, participation=0.6, epochs=1, batch_size=8, lr=0.02, norm_limit=0.0)
        relabel = RelabelPlan(enabled=enabled, start=RELABEL_AT, tau=tau)
        network = partial(build, self.model, problem.input_shape, CLASSES, seed=1, **MODELS[self.model])
        return Run(problem, Plan(1, train, relabel, algorithm, network), executor)

    def _run(self, executor: Executor, **choices: Any) -> list[dict[str, bytes]]:
        """Return the state after every round, as bytes."""
        run = self.begin(executor, **choices)
        try:
            return [self._round(run) for _ in range(ROUNDS)]
        finally:
            run.close()

    def _round(self, run: Run) -> dict[str, bytes]:
        record = next_round(run).record
        lost = [f"client {client}: {reason}" for client, reason in record.excluded]
        assert not lost, f"round {record.round}: {'; '.join(lost)}"
        assert record.loss is not None, f"round {record.round}: the loss on the test set is not finite"
        state = {"weights": run.state.weights.tobytes(), "loss": repr(record.loss).encode()}
        return state | {f"server {name}": array.tobytes() for name, array in run.state.server.items()}

    def described(self) -> None:
        """Check the attributes that tables and pages show."""
        algorithm = self.make()
        for name in ("name", "label", "description", "paper"):
            assert isinstance(getattr(algorithm, name, None), str), f"the attribute {name} is missing"
        assert algorithm.cost > 0, "cost must be that of a round relative to FedAvg"
        assert algorithm.uploads[:1] == ("weights",), "uploads must begin with 'weights'"
        pages = (sys.modules[type(algorithm).__module__].__doc__, type(algorithm).__doc__)
        said = any("What leaves the client" in (page or "") for page in pages)
        assert said, "the docstring of the class or its module must say: What leaves the client"

    def finite(self) -> None:
        """Check that a run completes."""
        assert len(self.first) == ROUNDS, "the run did not complete"

    def declared(self) -> None:
        """Compare the names in `uploads` with the arrays declared, which the engine compares with what is sent."""
        named, declared = list(self.make().uploads), list(self._uploads())
        assert named == declared, f"uploads names {named}, but sends declares {declared}"

    def same_uploads(self) -> None:
        """Compare what is sent with and without re-labelling."""
        assert self._uploads() == self._uploads(enabled=False), "names, shapes or dtypes differ"

    def _uploads(self, **choices: Any) -> dict[str, ArraySpec]:
        run = self.begin(SerialExecutor(), **choices)
        run.close()
        return dict(run.arrays.upload)

    def repeats(self, executor: Executor) -> None:
        """Repeat the run and compare."""
        _same(self.first, self._run(executor))

    def tau_zero(self) -> None:
        """Compare re-labelling that moves nothing with no re-labelling."""
        _same(self._run(SerialExecutor(), enabled=False), self._run(SerialExecutor(), tau=0.0))

    def resumes(self) -> None:
        """Stop after two rounds, resume from a checkpoint in another run, and compare."""
        with tempfile.TemporaryDirectory() as place:
            folder = RunFolder.create(Path(place) / "run", {}, "", {})
            run = self.begin(SerialExecutor())
            before = [self._round(run) for _ in range(2)]
            for number in (1, 2):
                folder.append_round({"round": number})
            save_checkpoint(run, folder)
            run.close()
            saved = folder.load_checkpoint()
            assert saved is not None, "no checkpoint was written"
            again = self.begin(SerialExecutor())
            restore_checkpoint(again, saved)
            after = [self._round(again) for _ in range(2)]
            again.close()
        _same(self.first, before + after)


def _same(first: list[dict[str, bytes]], second: list[dict[str, bytes]]) -> None:
    for number, (a, b) in enumerate(zip(first, second, strict=True), start=1):
        differing = [name for name in a if a[name] != b.get(name)]
        assert not differing, f"round {number}: {differing[0]} differs"


def small_federation(inputs: str = "images", *, auxiliary: int = 0) -> Problem:
    """Return the federation: ``"images"`` of 3 x 8 x 8, or ``"tables"`` of 12 columns.

    `auxiliary` is the number of samples per class for the server, which belong to no client.

    >>> problem = small_federation()
    >>> [len(shard.train) for shard in problem.shards], problem.input_shape
    ([17, 21, 14, 25, 16], (3, 8, 8))
    """
    images = check_choice("inputs", inputs, ("images", "tables")) == "images"
    rng = stream(1, "small federation")
    labels = [np.repeat(np.arange(CLASSES), counts) for counts in CLIENTS]
    y = np.concatenate([*labels, np.repeat(np.arange(CLASSES), auxiliary)])
    starts = np.cumsum([0, *(len(part) for part in labels)])
    shards = [Shard(k, np.arange(starts[k], starts[k + 1]), np.empty(0, np.int64)) for k in range(len(labels))]
    y_test = np.repeat(np.arange(CLASSES), TEST)
    shape = (3, SIDE, SIDE) if images else (12,)
    centres = rng.normal(0, 1, (CLASSES, *shape))
    x, x_test = (centres[each] + rng.normal(0, 1, (len(each), *shape)) for each in (y, y_test))
    kind = np.uint8 if images else np.float32
    x, x_test = ((np.clip(128 + 40 * values, 0, 255) if images else values).astype(kind) for values in (x, x_test))
    return Problem(
        x_train=x,
        y_train=y,
        x_test=x_test,
        y_test=y_test,
        shards=shards,
        num_classes=CLASSES,
        groups=Groups(("majority", "minority"), np.array([0, 0, 0, 1]), "counts"),
        scaling=Scaling.fit(x),
        class_names=tuple("abcd"),
        auxiliary=np.arange(starts[-1], len(y)) if auxiliary else None,
    )
