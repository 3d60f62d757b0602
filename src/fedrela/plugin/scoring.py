"""Class probabilities of a user's model on the user's data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.arguments import check_choice
from fedrela.core.ledger import arrays_digest
from fedrela.errors import ArgumentError, FedrelaError
from fedrela.models.contract import evaluation_mode
from fedrela.plugin.dataset import LabelKey, as_rows, label_key, own_label, rows_at
from fedrela.plugin.rows import InputsDigest, as_numpy, same_random_numbers
from fedrela.text import one_line

BATCH = 256  # samples of one forward pass; fixed, since the last bits depend on it
ROUNDED = 0.02  # distance from 1 of the sum of probabilities, as short floats round them
SIGMOIDS = 0.2  # mean of outputs in [0, 1] that are sigmoids: before training it is 0.5; that of logits is nearly 0
OUTPUTS = ("logits", "probabilities", "logit")
Forward = Callable[[nn.Module, Any], Any]


@dataclass(frozen=True, eq=False)
class Scored:
    """What a model says about rows."""

    posterior: NDArray[np.float64]  # (n, C)
    labels: NDArray[np.int64]  # as the rows carry them
    inputs_sha256: str  # of the rows without their labels


def posterior(
    model: nn.Module,
    data: Any,
    *,
    forward: Forward | None = None,
    label: LabelKey | None = None,
    outputs: str | None = None,
    batch_size: int = BATCH,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the posterior ``(n, C)`` of all rows, and their labels, in one pass in evaluation mode.

    The model is unchanged afterwards (modes, buffers, gradients), and so are the random generators of PyTorch, NumPy
    and Python. Give data without augmentation.

    Parameters
    ----------
    model
        Returns logits ``(B, C)``, one logit per sample for two classes, or an object with ``logits``.
    data
        A map-style data set, a `DataLoader` of one (its order is not used), or tensors ``(X, y)``.
    forward
        Function of model and batch, in place of ``model(batch[0])`` (``batch[1]`` where `label` is 0), or for mappings
        of ``model(...)`` with all values but the label.
    label
        Key or position of the label; see `RelabeledDataset`.
    outputs
        What the model returns: ``"logits"``, ``"probabilities"`` (it ends in softmax, or in sigmoid for two classes),
        or ``"logit"`` (one output, the logit of the second of two classes). None for logits, where outputs that look
        like probabilities are refused.
    batch_size
        Samples of one forward pass.
    """
    if outputs is not None:
        check_choice("outputs", outputs, OUTPUTS)
    scored = score(model, data, forward=forward, label=label, outputs=outputs, batch_size=batch_size)
    return scored.posterior, scored.labels


def score(
    model: nn.Module,
    data: Any,
    *,
    forward: Forward | None = None,
    label: LabelKey | None = None,
    outputs: str | None = None,
    batch_size: int = BATCH,
    most: int | None = None,
) -> Scored:
    """Return what a model says about all rows, or about the first `most`; see `posterior`."""
    rows, collate = as_rows(data)
    number = len(rows) if most is None else min(most, len(rows))
    if number == 0:
        raise ArgumentError("expected at least one row, got none", argument="data")
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    found, labels, inputs = [], np.empty(number, np.int64), InputsDigest()
    with _unchanged(model):
        for start in range(0, number, batch_size):
            numbers = range(start, min(start + batch_size, number))
            batch = rows_at(rows, list(numbers))
            for row, place in zip(batch, numbers, strict=True):
                labels[place] = own_label(row, place, label)
                inputs.add(row, label)
            found.append(_output(model, _to_device(device, collate(batch)), len(batch), forward, label))
    return Scored(_probabilities(torch.cat(found), outputs), labels, inputs.hexdigest())


def rows_of(data: Any, label: LabelKey | None) -> tuple[NDArray[np.int64], str]:
    """Return the labels of all rows and the digest of their inputs, as `score` does but without a model."""
    rows, _ = as_rows(data)
    inputs, labels = InputsDigest(), np.empty(len(rows), np.int64)
    with same_random_numbers():
        for number in range(len(rows)):
            row = rows[number]
            labels[number] = own_label(row, number, label)
            inputs.add(row, label)
    return labels, inputs.hexdigest()


def model_digest(model: nn.Module) -> str:
    """Return the digest of a model's parameters and buffers by name."""
    state = model.state_dict().items()
    return arrays_digest({name: as_numpy(value) for name, value in state if isinstance(value, Tensor)})


@contextlib.contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Evaluate without gradients inside, then restore every mode and buffer, and the random generators."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with evaluation_mode(model), same_random_numbers():
            yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)


def _to_device(device: torch.device, batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: _to_device(device, value) for key, value in batch.items()}
    return [_to_device(device, value) for value in batch] if isinstance(batch, tuple | list) else batch


def _output(model: nn.Module, batch: Any, size: int, forward: Forward | None, label: LabelKey | None) -> Tensor:
    """Return what the model says about one batch, as one row or one number per sample."""
    try:
        given = forward(model, batch) if forward else _called(model, batch, label)
    except FedrelaError:
        raise
    except Exception as error:  # whatever a user's model raises
        what = "failed" if forward else f"called as model({_how(batch, label)}) it failed"
        hint = "" if forward else "; forward= takes a function of model and batch"
        reason = f"{what}: {one_line(error)}{hint}"
        raise ArgumentError(reason, argument="forward" if forward else "model") from error
    found = getattr(given, "logits", given)
    if not isinstance(found, Tensor) or found.ndim not in (1, 2) or len(found) != size:
        kind = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise ArgumentError(f"expected logits of shape (batch, classes), got {kind}; see forward=", argument="model")
    return found.detach().cpu().double().reshape(size, -1)


def _how(batch: Any, label: LabelKey | None) -> str:
    return "**batch without the label" if isinstance(batch, Mapping) else f"batch[{int(label == 0)}]"


def _called(model: nn.Module, batch: Any, label: LabelKey | None) -> Any:
    if not isinstance(batch, Mapping):
        return model(batch[int(label == 0)])
    key = label_key(batch, label)
    inputs = {name: value for name, value in batch.items() if name != key}
    return model(*inputs.values()) if len(inputs) == 1 else model(**inputs)


def _probabilities(found: Tensor, outputs: str | None) -> NDArray[np.float64]:
    """Return outputs of all samples as probabilities of all classes."""
    one = found.shape[1] == 1
    if outputs is None and (what := _like_probabilities(found)):
        raise ArgumentError(
            f'{what}, or outputs="{"logit" if one else "logits"}" if they are not normalised yet', argument="model"
        )
    if one and outputs == "logits":
        raise ArgumentError('it has one output per sample: say outputs="logit"', argument="model")
    if not one and outputs == "logit":
        raise ArgumentError(f'it has {found.shape[1]} outputs per sample: say outputs="logits"', argument="model")
    if outputs == "probabilities":
        return np.asarray((torch.cat([1 - found, found], dim=1) if one else found).numpy())
    wide = torch.cat([torch.zeros_like(found), found], dim=1) if one else found  # one logit: that of the second class
    return np.asarray(wide.softmax(dim=1).numpy())


def _like_probabilities(found: Tensor) -> str:
    """Return why outputs seem to be probabilities already, and what to do; nothing if they do not."""
    if not found.any() or not bool(((found >= 0) & (found <= 1)).all()):  # all 0: a model before its first step
        return ""
    one, said = found.shape[1] == 1, "its outputs lie between 0 and 1"
    if one or bool(((found.sum(dim=1) - 1).abs() < ROUNDED).all()):
        return f'{said}{"" if one else " and sum to 1"}, as probabilities do: say outputs="probabilities"'
    if float(found.mean()) > SIGMOIDS:
        return f"{said}, as those of one sigmoid per class do: return what comes before it (forward= can)"
    return ""
