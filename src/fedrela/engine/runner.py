"""Where a client's turn happens: one resident model a process, which every client of that process uses in turn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.base import Algorithm, ArraySpec, Sizes
from fedrela.algorithms.context import ClientContext
from fedrela.algorithms.local import Samples
from fedrela.engine.areas import Area, AreaHandle
from fedrela.engine.blocks import Handle, SharedArray, shared_array
from fedrela.engine.orders import Answer, Moves, Order
from fedrela.engine.plan import RelabelPlan, TrainPlan
from fedrela.engine.randomness import torch_stream
from fedrela.engine.relabel import labels_in_force, relabel_client
from fedrela.engine.rows import fill
from fedrela.errors import FedrelaError
from fedrela.models.arrays import FlatModel
from fedrela.models.augment import crop_and_flip
from fedrela.models.inputs import Scaling
from fedrela.models.repeatable import seeded
from fedrela.models.share import ParameterSlice, ParameterSplit

SCORE_BATCH = 500  # samples scored at once; fixed, since the last bits depend on it


class NoStepError(FedrelaError):
    """A client had nothing to train on."""


@dataclass(frozen=True)
class Setup:
    """What a process needs to do the work of clients, as it is sent to it once a run.

    Attributes
    ----------
    make
        Makes the model of the configuration; the algorithm may add to it.
    inputs, labels, test
        Stored training samples, their original labels, and the test samples.
    index, starts
        Sample ids of all clients one after the other, and where each client's begin.
    validation
        Ids of the samples held back.
    in_force
        Labels that clients train on now, by sample id.
    kept
        What each client keeps between its turns, a row a client; None where it keeps nothing.
    """

    seed: int
    train: TrainPlan
    relabel: RelabelPlan
    algorithm: Algorithm
    make: Callable[[], nn.Module]
    sizes: Sizes
    scaling: Scaling
    device: str
    inputs: SharedArray
    labels: SharedArray
    test: SharedArray
    index: SharedArray
    starts: NDArray[np.int64]
    validation: NDArray[np.int64]
    current_labels: AreaHandle
    kept: AreaHandle | None


def make_model(
    algorithm: Algorithm, make: Callable[[], nn.Module], classes: int, seed: int, device: torch.device
) -> FlatModel:
    """Return what clients train, on one vector; equal in every process, also where torch's own generator is used."""
    with seeded(seed, "module"):
        module = algorithm.module(make(), classes, seed)
    return FlatModel(module.to(device))


def kept_fields(algorithm: Algorithm, sizes: Sizes, share: ParameterSplit, collected: bool) -> dict[str, ArraySpec]:
    """Return what a client keeps between its turns: the algorithm's state, private arrays, collected logits."""
    fields = {f"state.{name}": field for name, field in algorithm.keeps(sizes).items()}
    if share.private.layout.size:
        fields["private"] = ArraySpec((share.private.layout.size,), share.private.layout.dtype)
    if collected:
        fields["scores"] = ArraySpec((sizes.largest, sizes.classes))
    return fields


class ClientRunner:
    """Carries out orders. The server's own process has one too, and lends its model to a server that trains."""

    def __init__(self, setup: Setup, model: FlatModel | None = None) -> None:
        self.setup = setup
        self.device = torch.device(setup.device)
        self.model = model or make_model(setup.algorithm, setup.make, setup.sizes.classes, setup.seed, self.device)
        self.share = ParameterSplit.of(self.model.layout, setup.algorithm.private)
        self.first_private = self.share.private.read(self.model)
        self._frozen = ParameterSlice.of(self.model.layout, lambda entry: entry.kind == "frozen")
        self._first_frozen = self._frozen.read(self.model)
        self._gradients = [(each, each.grad) for each in self.model.module.parameters()]
        self.inputs, self.test = _tensor(shared_array(setup.inputs)), _tensor(shared_array(setup.test))
        self.labels, self.index = shared_array(setup.labels), shared_array(setup.index)
        self._areas: dict[Handle, Area] = {}
        self.current_labels = self.area(setup.current_labels).views()["labels"]

    def area(self, handle: AreaHandle) -> Area:
        """Return an area, opened at its first use."""
        if handle.block not in self._areas:
            self._areas[handle.block] = Area.attach(handle)
        return self._areas[handle.block]

    def close(self) -> None:
        """Let go of all areas."""
        for area in self._areas.values():
            area.close()
        self._areas.clear()

    def __call__(self, order: Order) -> Answer:
        """Carry out an order."""
        work = {"train": self._train, "ask": self._ask, "score": self._score, "score_local": self._score_local}
        start = time.perf_counter()
        with torch_stream(self.device, self.setup.seed, order.kind, order.round, order.client):
            samples, moves = work[order.kind](order)
        return Answer(samples, moves, time.perf_counter() - start)

    def _train(self, order: Order) -> tuple[int, Moves | None]:
        setup, context = self.setup, self._turn(order)
        original, samples, moves = context.samples.labels, len(context.samples), None
        kept = self._kept(order)
        if order.relabel:
            scores = kept["scores"][:samples] if order.known and "scores" in kept else None
            moves = relabel_client(context, setup.algorithm, setup.relabel, scores)
            self._take(context, labels_in_force(moves.ledger))
        else:
            self._take(context, self.current_labels[context.samples.index])
        mine = context.samples
        context.samples = setup.algorithm.prepare(context)
        if setup.relabel.collects(order.round, setup.train.rounds) and context.samples.index is mine.index:
            context.scores = np.full((samples, setup.sizes.classes), np.nan, np.float32)
        sent = dict(setup.algorithm.client(context))
        if context.steps == 0:
            raise NoStepError("no step")
        self._leave(order, context, sent)
        return len(original), moves

    def _take(self, context: ClientContext, labels: NDArray[np.int64]) -> None:
        """Put labels in force for a turn."""
        context.samples.labels = labels
        context.counts = np.bincount(labels, minlength=self.setup.sizes.classes)

    def _leave(self, order: Order, context: ClientContext, sent: dict[str, Any]) -> None:
        """Put into the client's row what it sends and what it will keep."""
        row, algorithm = self.area(order.up).views(order.row), self.setup.algorithm
        self.share.shared.read(self.model, row["weights"])
        fill(algorithm.name, row, sent, algorithm.sends(self.setup.sizes))
        fill(f"{algorithm.name}: state", _kept_part(row), context.state, algorithm.keeps(self.setup.sizes))
        if "kept.private" in row:
            self.share.private.read(self.model, row["kept.private"])
        if "kept.scores" in row:
            row["kept.scores"][...] = np.nan
            if context.scores is not None:
                row["kept.scores"][: len(context.scores)] = context.scores

    def _ask(self, order: Order) -> tuple[int, None]:
        setup, context = self.setup, self._turn(order)
        self._take(context, self.current_labels[context.samples.index])
        answer = setup.algorithm.answer(order.subject, context)
        fields = setup.algorithm.answers(order.subject, setup.sizes)
        fill(f"{setup.algorithm.name}: {order.subject}", self.area(order.up).views(order.row), answer, fields)
        return len(context.samples), None

    def _score(self, order: Order) -> tuple[int, None]:
        self._receive(order)
        self.model.module.eval()
        ids = self.setup.validation if order.subject == "validation" else np.arange(len(self.test))
        inputs = self.inputs if order.subject == "validation" else self.test
        at = slice(order.row * SCORE_BATCH, (order.row + 1) * SCORE_BATCH)
        logits = self._logits(self.setup.algorithm.logits, inputs, ids[at], order)
        self.area(order.up).views()["scores"][at] = logits
        return len(logits), None

    def _score_local(self, order: Order) -> tuple[int, None]:
        self._receive(order)
        self.model.module.eval()
        logits = self.setup.algorithm.local_logits
        row = self.area(order.up).views(order.row)["scores"]
        for start in range(0, len(self.test), SCORE_BATCH):
            at = np.arange(start, min(start + SCORE_BATCH, len(self.test)))
            row[at] = self._logits(logits, self.test, at, order)
        return len(self.test), None

    @torch.no_grad()
    def _logits(self, score: Any, inputs: torch.Tensor, ids: NDArray[np.int64], order: Order) -> NDArray[Any]:
        raw = inputs.index_select(0, torch.from_numpy(ids)).to(self.device)
        x = self.setup.scaling.apply(raw, self.model.vector.dtype)
        logits: NDArray[Any] = score(self.model.module, x, self._received(order)).float().cpu().numpy()
        return logits

    def _turn(self, order: Order) -> ClientContext:
        """Return the client's turn, with its original labels."""
        setup, client = self.setup, order.client
        kept = self._receive(order)
        index = self.index[setup.starts[client] : setup.starts[client + 1]].copy()
        view = crop_and_flip if setup.train.augment and self.inputs.ndim == 4 else None
        labels = self.labels[index]
        samples = Samples(self.inputs, index, labels, setup.scaling, self.device, view, self.model.vector.dtype)
        state = {name.removeprefix("state."): a.copy() for name, a in kept.items() if name.startswith("state.")}
        return ClientContext(
            seed=setup.seed,
            round=order.round,
            rounds=setup.train.rounds,
            client=client,
            model=self.model,
            share=self.share,
            samples=samples,
            counts=np.bincount(labels, minlength=setup.sizes.classes),
            local=setup.train.local(order.round, setup.relabel.scale(order.round, setup.train.rounds)),
            received=self._received(order),
            state=state if order.known else {},
        )

    def load(self, weights: NDArray[Any], private: NDArray[Any] | None = None) -> None:
        """Load shared and private arrays, by default those before a first turn, so that nothing is left of others."""
        self.share.shared.write(self.model, weights)
        self.share.private.write(self.model, self.first_private if private is None else private)
        self._frozen.write(self.model, self._first_frozen)
        self.model.restore_counters()
        for parameter, gradient in self._gradients:
            parameter.requires_grad_(gradient is not None)
            parameter.grad = gradient
        self.model.zero_grad()
        self.model.module.train()

    def _receive(self, order: Order) -> Mapping[str, NDArray[Any]]:
        """Load the weights received and the client's private arrays, and return what it kept."""
        kept = self._kept(order)
        self.load(self.area(order.down).views()["weights"], kept.get("private") if order.known else None)
        return kept

    def _kept(self, order: Order) -> Mapping[str, NDArray[Any]]:
        return self.area(self.setup.kept).views(order.client) if self.setup.kept else {}

    def _received(self, order: Order) -> dict[str, NDArray[Any]]:
        """Return copies: what one client writes to is nobody else's."""
        sent = self.area(order.down).views() | dict(order.message)
        return {name: np.array(array) for name, array in sent.items() if name != "weights"}


def _kept_part(row: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix("kept.state."): array for name, array in row.items() if name.startswith("kept.state.")}


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """Return a tensor on the same memory, which nobody writes to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns of arrays that are read-only
        return torch.from_numpy(array)
