"""A client's work, with one resident model per process that its clients use in turn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.base import ArraySpec
from fedrela.algorithms.context import ClientContext
from fedrela.algorithms.local import Local, Samples
from fedrela.engine.client_relabelling import relabel_client
from fedrela.engine.problem import STATE, Plan, Problem, RunArrays
from fedrela.engine.shared_memory import ArrayHandle, RowsHandle, SharedArrays, SharedMemory, copy_declared
from fedrela.engine.tasks import ClientRelabelling, ClientResult, NoStepError, Task
from fedrela.errors import ArgumentError
from fedrela.files.mapped import FileRegion
from fedrela.models.augment import crop_and_flip
from fedrela.models.contract import need_split
from fedrela.models.flat_model import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.layout import ParameterSlice, ParameterSplit
from fedrela.models.recording import package_of
from fedrela.models.runtime import seeded, torch_stream

SCORE_BATCH = 500  # samples scored at once; fixed, since the last bits depend on it
# Torch's layers that draw no random numbers; any other may.
DRAW_NOTHING = {
    nn.AdaptiveAvgPool2d, nn.AvgPool2d, nn.BatchNorm1d, nn.BatchNorm2d, nn.Conv2d, nn.Flatten, nn.Identity, nn.Linear,
    nn.MaxPool2d, nn.ModuleDict, nn.ModuleList, nn.ReLU, nn.Sequential,
}  # fmt: skip


@dataclass(frozen=True)
class ClientSetup:
    """What a process needs for the work of clients; sent to each process once per run."""

    plan: Plan
    arrays: RunArrays
    scaling: Scaling
    inputs: ArrayHandle  # stored training samples
    labels: ArrayHandle  # their original labels
    test: ArrayHandle
    index: ArrayHandle  # sample ids of all clients, one client after the other
    starts: NDArray[np.int64]  # where each client's ids begin
    validation: NDArray[np.int64]  # ids of the validation samples
    current_labels: RowsHandle  # by sample id
    client_state: RowsHandle | None  # one row per client; None if there is no state, or at remote clients

    @classmethod
    def of(cls, problem: Problem, plan: Plan, arrays: RunArrays, memory: SharedMemory, with_state: bool) -> ClientSetup:
        """Write the data of a run, the original labels as current ones, and empty client states to shared memory."""
        labels = memory.allocate("current_labels", {"labels": ArraySpec(problem.y_train.shape, "int64")})
        labels.row()["labels"][...] = problem.y_train
        lengths = [len(shard.train) for shard in problem.shards]
        empty = np.empty(0, np.int64)
        state = memory.allocate("client_state", arrays.client_state, len(lengths)) if with_state else None
        return cls(
            plan=plan,
            arrays=arrays,
            scaling=problem.scaling,
            inputs=memory.share(problem.x_train),
            labels=memory.share(problem.y_train),
            test=memory.share(problem.x_test),
            index=memory.share(np.concatenate([empty, *(shard.train for shard in problem.shards)])),
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            validation=np.concatenate([empty, *(shard.validation for shard in problem.shards)]),
            current_labels=labels.handle,
            client_state=state.handle if state else None,
        )


def make_model(plan: Plan, num_classes: int) -> FlatModel:
    """Return the model that clients train, on one vector; the same in every process, even if it draws from torch."""
    algorithm = plan.algorithm
    with seeded(plan.seed, "module"):
        module = plan.make()
        if algorithm.needs_split:
            need_split(module, algorithm.name)
        module = algorithm.module(module, num_classes, plan.seed)
    return FlatModel(module.to(torch.device(plan.device)))


def _own_code(*parts: object) -> bool:
    """Whether code is neither this package's nor torch's, so that it may draw from any generator."""
    return not {package_of(type(part)) for part in parts} <= {"fedrela", "torch", "builtins"}


def _is_changed(layer: nn.Module) -> bool:
    """Whether a layer has hooks or functions of its own, which may draw from any generator."""
    hooks = [value for name, value in vars(layer).items() if "_hooks" in name]
    return any(hooks) or any(callable(value) for name, value in vars(layer).items() if not name.startswith("_"))


class ClientRunner:
    """Carries out tasks. The server's process has one too: it scores, and a server that trains uses its model."""

    def __init__(self, setup: ClientSetup, model: FlatModel | None = None) -> None:
        plan = setup.plan
        self.setup, self.plan, self.arrays = setup, plan, setup.arrays
        self.device = torch.device(plan.device)
        self.model = model or make_model(plan, setup.arrays.sizes.classes)
        self.split = ParameterSplit.of(self.model.layout, plan.algorithm.private)
        self.first_private = self.split.private.read(self.model)
        self._frozen = ParameterSlice.of(self.model.layout, lambda entry: entry.kind == "frozen")
        self._first_frozen = self._frozen.read(self.model)
        self._gradients = [(each, each.grad) for each in self.model.module.parameters()]
        self.inputs = resident(_tensor(setup.inputs.open()), self.device)
        self.test = _tensor(setup.test.open())
        self.labels, self._index = setup.labels.open(), setup.index.open()
        self.own_code = _own_code(plan.algorithm, plan.relabel.method, *self.model.module.modules())
        self.own_code |= any(map(_is_changed, self.model.module.modules()))
        layers = {type(part) for part in self.model.module.modules()}
        may_draw = self.own_code or any(package_of(kind) == "torch" for kind in layers - DRAW_NOTHING)
        self._is_seeded = may_draw or self.device.type != "cpu"  # seeding takes as long as a small client's training
        self._local: tuple[int, Local] = (0, plan.local(1))
        self._attached: dict[FileRegion, SharedArrays] = {}
        self.current_labels = self.shared(setup.current_labels).row()["labels"]

    @classmethod
    def create(cls, problem: Problem, plan: Plan, memory: SharedMemory, keeps_state: bool = True) -> ClientRunner:
        """Return a runner for the clients of a problem, with their data in shared memory."""
        if plan.algorithm.needs_images and not problem.is_image:
            raise ArgumentError(f"{plan.algorithm.name}: expected uint8 images to augment, got other samples")
        if plan.algorithm.mixes_inputs and problem.x_train.dtype == np.int64:
            raise ArgumentError(f"{plan.algorithm.name}: mixes samples, which is impossible with integers (token ids)")
        model = make_model(plan, problem.num_classes)
        arrays = RunArrays.of(problem, plan, model)
        with_state = keeps_state and bool(arrays.client_state)
        return cls(ClientSetup.of(problem, plan, arrays, memory, with_state), model)

    def __call__(self, task: Task) -> ClientResult:
        """Carry out a task."""
        work = {"train": self._train, "ask": self._answer, "score": self._score, "score_local": self._score_local}
        if not self._is_seeded:
            return work[task.kind](task)
        address = self.plan.seed, task.kind, task.round, task.client
        with torch_stream(self.device, *address, own_code=self.own_code):
            return work[task.kind](task)

    def __reduce__(self) -> tuple[type[ClientRunner], tuple[ClientSetup]]:
        return type(self), (self.setup,)  # another process creates its own model and opens the shared arrays

    def shared(self, handle: RowsHandle) -> SharedArrays:
        """Return shared arrays, which are attached when first used."""
        if handle.region not in self._attached:
            self._attached[handle.region] = SharedArrays.attach(handle)
        return self._attached[handle.region]

    def samples_of(self, client: int) -> NDArray[np.int64]:
        """Return the ids of a client's samples."""
        starts = self.setup.starts
        return self._index[starts[client] : starts[client + 1]].copy()

    def load(self, weights: NDArray[Any], private: NDArray[Any] | None = None) -> None:
        """Load shared and private arrays, by default the initial private ones, and reset everything else."""
        self.split.shared.write(self.model, weights)
        self.split.private.write(self.model, self.first_private if private is None else private)
        self._frozen.write(self.model, self._first_frozen)
        self.model.restore_buffers()
        for parameter, gradient in self._gradients:
            parameter.requires_grad_(gradient is not None)
            parameter.grad = gradient
        self.model.zero_grad()
        self.model.train()

    def close(self) -> None:
        """Release all shared arrays."""
        for arrays in self._attached.values():
            arrays.close()
        self._attached.clear()

    def _train(self, task: Task) -> ClientResult:
        """Re-label if due, train, and write upload and new state to the client's row."""
        plan = self.plan
        context = self.context(task, self.labels if task.relabel else self.current_labels)
        own, relabelling = context.samples, self._relabel(task, context) if task.relabel else None
        context.samples = plan.algorithm.prepare(context)
        if plan.relabel.collects(task.round, plan.train.rounds) and context.samples.index is own.index:
            context.scores = np.full((len(own), self.arrays.sizes.classes), np.nan, np.float32)
        sent = dict(plan.algorithm.client(context) or {})
        if context.steps == 0:
            raise NoStepError("no step")
        self._write_results(task, context, sent)
        return ClientResult(len(own), relabelling)

    def _relabel(self, task: Task, context: ClientContext) -> ClientRelabelling:
        """Re-label the client's samples with the model it received, and have it train on the new labels."""
        own, state = context.samples, self._state(task)
        scores = state["scores"][: len(own)] if task.has_state and "scores" in state else None
        relabelling = relabel_client(context, self.plan.algorithm, self.plan.relabel, scores)
        own.labels = np.asarray(relabelling.ledger.labels, np.int64)
        context.counts = np.bincount(own.labels, minlength=self.arrays.sizes.classes)
        return relabelling

    def _write_results(self, task: Task, context: ClientContext, sent: dict[str, Any]) -> None:
        """Write the client's upload and new state to its row."""
        row, algorithm, sizes = self.shared(task.output).row(task.row), self.plan.algorithm, self.arrays.sizes
        self.split.shared.read(self.model, row["weights"])
        copy_declared(algorithm.name, row, sent, algorithm.sends(sizes))
        state = {name.removeprefix(STATE): array for name, array in row.items() if name.startswith(STATE)}
        own = {name.removeprefix("state."): array for name, array in state.items() if name.startswith("state.")}
        copy_declared(f"{algorithm.name}: state", own, context.state, algorithm.keeps(sizes))
        if "private" in state:
            self.split.private.read(self.model, state["private"])
        if "scores" in state:
            state["scores"][...] = np.nan
            if context.scores is not None:
                state["scores"][: len(context.scores)] = context.scores

    def _answer(self, task: Task) -> ClientResult:
        """Compute the client's answer in an exchange."""
        algorithm, context = self.plan.algorithm, self.context(task, self.current_labels)
        answer = algorithm.answer(task.subject, context)
        specs = algorithm.answers(task.subject, self.arrays.sizes)
        copy_declared(f"{algorithm.name}: {task.subject}", self.shared(task.output).row(task.row), answer, specs)
        return ClientResult(len(context.samples))

    def _score(self, task: Task) -> ClientResult:
        """Score one batch of an evaluation set with the global model."""
        self._receive(task)
        validation = task.subject == "validation"
        ids = self.setup.validation if validation else np.arange(len(self.test))
        at = slice(task.row * SCORE_BATCH, (task.row + 1) * SCORE_BATCH)
        inputs = self.inputs if validation else self.test
        self.shared(task.output).row()["scores"][at] = self._logits(self.plan.algorithm.logits, inputs, ids[at], task)
        return ClientResult(len(ids[at]))

    def _score_local(self, task: Task) -> ClientResult:
        """Score the test set with the client's own model."""
        self._receive(task)
        scores, ids = self.shared(task.output).row(task.row)["scores"], np.arange(len(self.test))
        for start in range(0, len(ids), SCORE_BATCH):
            at = slice(start, start + SCORE_BATCH)
            scores[at] = self._logits(self.plan.algorithm.local_logits, self.test, ids[at], task)
        return ClientResult(len(ids))

    @torch.no_grad()
    def _logits(self, score: Any, inputs: torch.Tensor, ids: NDArray[np.int64], task: Task) -> NDArray[Any]:
        self.model.module.eval()
        raw = inputs.index_select(0, torch.from_numpy(ids).to(inputs.device)).to(self.device)
        x = self.setup.scaling.apply(raw, self.model.vector.dtype)
        logits: NDArray[Any] = score(self.model.module, x, self._received(task)).float().cpu().numpy()
        return logits

    def context(self, task: Task, labels: NDArray[np.int64]) -> ClientContext:
        """Return the algorithm's context for a client; `labels` are those of all samples."""
        setup, plan = self.setup, self.plan
        state = self._receive(task)
        index = self.samples_of(task.client)
        view = crop_and_flip if plan.train.augment and self.inputs.dtype == torch.uint8 else None
        samples = Samples(self.inputs, index, labels[index], setup.scaling, self.device, view, self.model.vector.dtype)
        own = {name.removeprefix("state."): a.copy() for name, a in state.items() if name.startswith("state.")}
        return ClientContext(
            seed=plan.seed,
            round=task.round,
            rounds=plan.train.rounds,
            client=task.client,
            model=self.model,
            split=self.split,
            samples=samples,
            counts=np.bincount(samples.labels, minlength=self.arrays.sizes.classes),
            local=self._local_in(task.round),
            received=self._received(task),
            state=own if task.has_state else {},
        )

    def _local_in(self, round: int) -> Local:
        """Return how clients train in a round, which is the same for all of them."""
        if self._local[0] != round:
            self._local = round, self.plan.local(round)
        return self._local[1]

    def _receive(self, task: Task) -> Mapping[str, NDArray[Any]]:
        """Load the weights received and the client's private arrays, and return its state."""
        state = self._state(task)
        private = state.get("private") if task.has_state else None
        self.load(self.shared(task.broadcast).row()["weights"], private)
        return state

    def _state(self, task: Task) -> Mapping[str, NDArray[Any]]:
        return self.shared(self.setup.client_state).row(task.client) if self.setup.client_state else {}

    def _received(self, task: Task) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays sent besides the weights, so that clients cannot change each other's."""
        sent = self.shared(task.broadcast).row() | dict(task.message)
        return {name: np.array(array) for name, array in sent.items() if name != "weights"}


def resident(samples: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return samples on a GPU if they fit into half of its free memory, or else where they are."""
    if device.type != "cuda" or samples.nbytes > torch.cuda.mem_get_info(device)[0] // 2:
        return samples
    return samples.to(device)


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """Return a tensor on the same memory; nothing writes to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns of arrays that are read-only
        return torch.from_numpy(array)
