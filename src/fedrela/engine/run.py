"""A run: its data and plans, the blocks that processes share, and what changes from round to round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.base import Algorithm, ArraySpec, Sizes
from fedrela.engine.areas import Area
from fedrela.engine.blocks import share
from fedrela.engine.orders import Kind, Order
from fedrela.engine.plan import RelabelPlan, TrainPlan
from fedrela.engine.pool import CannotSend, Done, Pool
from fedrela.engine.problem import Problem
from fedrela.engine.runner import ClientRunner, Setup, kept_fields, make_model
from fedrela.engine.serial import SerialPool
from fedrela.errors import ArgumentError
from fedrela.models.arrays import FlatModel
from fedrela.models.contract import need_split
from fedrela.models.share import ParameterSplit


class Executor(Protocol):
    """Who does the clients' work: processes, this process, or clients elsewhere.

    Attributes
    ----------
    size
        How many orders are carried out at a time.
    remote_clients
        Whether clients keep their labels and states themselves, and nothing of either is known here.
    """

    remote_clients: bool

    @property
    def size(self) -> int:
        """See above."""

    def load(self, make: Callable[[Any], Any], setup: Any, /) -> None:
        """Prepare for the orders of a run."""

    def run(self, orders: Sequence[Any], /, deadline: float | None = None) -> Iterator[Done]:
        """Have orders carried out, and yield what became of each as it is ready."""


@dataclass(frozen=True)
class Plan:
    """Everything that a run's result depends on, beside its data."""

    seed: int
    train: TrainPlan
    relabel: RelabelPlan
    algorithm: Algorithm
    make: Callable[[], nn.Module]
    device: str = "cpu"


@dataclass
class State:
    """What changes from round to round, beside the labels in force and what clients keep.

    Attributes
    ----------
    round
        The last round that is done, 0 before the first.
    weights
        The shared arrays, one vector.
    server
        What the algorithm's server keeps.
    relabelled
        In which round each client re-labelled last.
    moved
        How many labels of each client are other ones now.
    figures
        What each client's last re-labelling looked like, for the report.
    known
        Which clients have kept a state.
    skipped
        Rounds in a row that had too few clients.
    """

    round: int
    weights: NDArray[Any]
    server: dict[str, NDArray[Any]]
    known: NDArray[np.bool_]
    relabelled: dict[int, int] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    figures: dict[int, dict[str, Any]] = field(default_factory=dict)
    skipped: int = 0


class Run:
    """One federated run in progress.

    Parameters
    ----------
    problem, plan
        What to learn from, and how.
    executor
        Who does the clients' work; where a plan cannot be sent to processes it is done here, and `note` says so.
    folder
        Where blocks lie that are too large for shared memory.
    """

    def __init__(self, problem: Problem, plan: Plan, executor: Executor, folder: Path | None = None) -> None:
        self.problem, self.plan, self.folder, self.note = problem, plan, folder, ""
        model = _checked_model(problem, plan)
        parts = ParameterSplit.of(model.layout, plan.algorithm.private)
        self.layout = parts.shared.layout
        self.sizes = Sizes.of(
            model,
            self.layout,
            classes=problem.num_classes,
            clients=self.clients,
            inputs=problem.input_shape,
            largest=problem.largest,
        )
        self.areas: dict[str, Area] = {}
        collected = plan.relabel.enabled and plan.relabel.collected
        self.keeps = kept_fields(plan.algorithm, self.sizes, parts, collected)
        self._up_fields = {
            "weights": ArraySpec((self.layout.size,), self.layout.dtype),
            **plan.algorithm.sends(self.sizes),
        }
        self._kept_fields = {} if executor.remote_clients else self.keeps
        self.runner = ClientRunner(self._setup(self._kept_fields), model)
        self.state = State(
            round=0,
            weights=parts.shared.read(model),
            server={name: np.array(a) for name, a in plan.algorithm.start(model.module, self.sizes, plan.seed).items()},
            known=np.zeros(self.clients, bool),
        )
        self.executor = self._load(executor)

    @property
    def clients(self) -> int:
        """Number of all clients, K."""
        return len(self.problem.shards)

    @property
    def sent(self) -> dict[str, ArraySpec]:
        """What a client sends after training."""
        return self._up_fields

    @property
    def kept(self) -> dict[str, ArraySpec]:
        """What a client keeps between its turns, where it is kept here."""
        return self._kept_fields

    @property
    def labels(self) -> NDArray[np.int64]:
        """The labels in force by sample id."""
        labels: NDArray[np.int64] = self.areas["in_force"].views()["labels"]
        return labels

    def area(self, name: str, fields: dict[str, ArraySpec], rows: int = 1) -> Area:
        """Return the area of that name, made anew where its fields or its size changed."""
        area = self.areas.get(name)
        if area is None or area.rows.fields != fields or area.count < rows:
            if area is not None:
                area.close()
            self.areas[name] = Area.create(fields, rows, self.folder)
        return self.areas[name]

    def received(self) -> dict[str, NDArray[Any]]:
        """Return what the first client receives now: what all do, and what is its own."""
        algorithm, state = self.plan.algorithm, self.state
        return {"weights": state.weights, **algorithm.broadcast(state.server), **algorithm.message(state.server, 0)}

    def lay_down(self) -> Area:
        """Put where clients read it what every one of them receives: the weights and the algorithm's broadcast."""
        arrays = {"weights": self.state.weights, **self.plan.algorithm.broadcast(self.state.server)}
        fields = {name: ArraySpec(array.shape, str(array.dtype)) for name, array in arrays.items()}
        down = self.area("down", fields)
        for name, place in down.views().items():
            place[...] = arrays[name]
        return down

    def order(self, kind: Kind, round: int, client: int, down: Area, up: Area, row: int, **more: Any) -> Order:
        """Return an order for a client, with its own message and whether it has kept a state."""
        message = self.plan.algorithm.message(self.state.server, client)
        known = bool(self.state.known[client])
        return Order(kind, round, client, down.handle, up.handle, row, message=message, known=known, **more)

    def work(self, orders: Sequence[Order], deadline: float = 0.0) -> Iterator[Done]:
        """Have orders carried out; answers come as they are ready."""
        return self.executor.run(orders, deadline=deadline or None)

    def close(self) -> None:
        """Give back what the run holds; the executor stays."""
        self.runner.close()
        setup = self.runner.setup
        for area in self.areas.values():
            area.close()
        for array in (setup.inputs, setup.labels, setup.test, setup.index):
            array.close()

    def _load(self, executor: Executor) -> Executor:
        if isinstance(executor, Pool):
            try:
                executor.load(ClientRunner, self.runner.setup)
                return executor
            except CannotSend as error:
                self.note = f"runs in one process, since this cannot be sent to another: {error}"
                executor = SerialPool()
        executor.load(lambda runner: runner, self.runner)
        return executor

    def _setup(self, kept: dict[str, ArraySpec]) -> Setup:
        problem, plan = self.problem, self.plan
        lengths = [len(shard.train) for shard in problem.shards]
        empty = np.empty(0, np.int64)
        current_labels = self.area("in_force", {"labels": ArraySpec(problem.y_train.shape, "int64")})
        current_labels.views()["labels"][...] = problem.y_train
        return Setup(
            seed=plan.seed,
            train=plan.train,
            relabel=plan.relabel,
            algorithm=plan.algorithm,
            make=plan.make,
            sizes=self.sizes,
            scaling=problem.scaling,
            device=plan.device,
            inputs=share(problem.x_train, self.folder),
            labels=share(problem.y_train, self.folder),
            test=share(problem.x_test, self.folder),
            index=share(np.concatenate([empty, *(shard.train for shard in problem.shards)]), self.folder),
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            validation=np.concatenate([empty, *(shard.validation for shard in problem.shards)]),
            current_labels=current_labels.handle,
            kept=self.area("kept", kept, self.clients).handle if kept else None,
        )


def _checked_model(problem: Problem, plan: Plan) -> FlatModel:
    if plan.algorithm.needs_images and not problem.is_image:
        raise ArgumentError(f"{plan.algorithm.name}: makes views of images, and these samples are tables")

    def checked() -> nn.Module:
        made = plan.make()
        if plan.algorithm.needs_split:
            need_split(made, plan.algorithm.name)
        return made

    return make_model(plan.algorithm, checked, problem.num_classes, plan.seed, torch.device(plan.device))
