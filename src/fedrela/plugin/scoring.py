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

from fedrela.arguments import check_choice, check_integer
from fedrela.core.ledger import arrays_digest
from fedrela.errors import ArgumentError, FedrelaError
from fedrela.models.contract import evaluation_mode
from fedrela.models.inputs import FORWARD_BATCH
from fedrela.plugin.dataset import LabelKey, as_rows, label_key, own_label, rows_at
from fedrela.plugin.rows import InputsDigest, as_numpy, same_random_numbers
from fedrela.text import one_line

ROUNDED = 0.02  # distance from 1 of the sum of probabilities, as short floats round them
SIGMOIDS = 0.2  # outputs in [0, 1] of at least this mean are sigmoids: about 0.5 before training, logits about 0
OUTPUTS = ("logits", "probabilities", "logit")
Forward = Callable[[nn.Module, Any], Any]


@dataclass(frozen=True, eq=False)
class Scored:
    """A model's posterior of rows."""

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
    batch_size: int = FORWARD_BATCH,
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
        or ``"logit"`` (one output, the logit of the second of two classes). None for logits; outputs that look like
        probabilities are then refused.
    batch_size
        Samples of one forward pass.

    Examples
    --------
    >>> x, y = torch.tensor([[0.0, 0.0], [4.0, -4.0]]), torch.tensor([1, 0])
    >>> found, labels = posterior(nn.Identity(), (x, y))
    >>> found.round(2).tolist(), labels.tolist()
    ([[0.5, 0.5], [1.0, 0.0]], [1, 0])
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
    batch_size: int = FORWARD_BATCH,
    most: int | None = None,
) -> Scored:
    """Score all rows, or the first `most`; see `posterior`."""
    rows, collate = as_rows(data)
    number = len(rows) if most is None else min(most, len(rows))
    check_integer("batch_size", batch_size)
    if number == 0:
        raise ArgumentError("expected at least one row, got none", argument="data")
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    batches, labels, inputs = [], np.empty(number, np.int64), InputsDigest()
    with _unchanged(model):
        for start in range(0, number, batch_size):
            numbers = range(start, min(start + batch_size, number))
            batch = rows_at(rows, list(numbers))
            for row, i in zip(batch, numbers, strict=True):
                labels[i] = own_label(row, i, label)
                inputs.add(row, label)
            batches.append(_output(model, _to_device(device, collate(batch)), len(batch), forward, label))
    return Scored(_probabilities(torch.cat(batches), outputs), labels, inputs.hexdigest())


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
    if not isinstance(batch, tuple | list):
        return batch
    values = [_to_device(device, value) for value in batch]
    return batch._make(values) if hasattr(batch, "_make") else values


def _output(model: nn.Module, batch: Any, size: int, forward: Forward | None, label: LabelKey | None) -> Tensor:
    """Return the model's output for one batch, one row or one number per sample."""
    try:
        output = forward(model, batch) if forward else _call(model, batch, label)
    except FedrelaError:
        raise
    except Exception as error:  # whatever a user's model raises
        what = "failed" if forward else f"failed when called as model({_arguments(batch, label)})"
        hint = "" if forward else "; forward= takes a function of model and batch"
        reason = f"{what}: {one_line(error)}{hint}"
        raise ArgumentError(reason, argument="forward" if forward else "model") from error
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim not in (1, 2) or len(logits) != size:
        kind = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ArgumentError(f"expected logits of shape (batch, classes), got {kind}; see forward=", argument="model")
    return logits.detach().cpu().double().reshape(size, -1)


def _arguments(batch: Any, label: LabelKey | None) -> str:
    return "**batch without the label" if isinstance(batch, Mapping) else f"batch[{_inputs_at(batch, label)}]"


def _inputs_at(batch: Any, label: LabelKey | None) -> int:
    """Return the position of the inputs in a batch: the first, unless that is the label's."""
    return int(label is not None and label in (0, -len(batch)))


def _call(model: nn.Module, batch: Any, label: LabelKey | None) -> Any:
    if not isinstance(batch, Mapping):
        return model(batch[_inputs_at(batch, label)])
    key = label_key(batch, label)
    inputs = {name: value for name, value in batch.items() if name != key}
    return model(*inputs.values()) if len(inputs) == 1 else model(**inputs)


def _probabilities(values: Tensor, outputs: str | None) -> NDArray[np.float64]:
    """Return outputs of all samples as probabilities of all classes."""
    single = values.shape[1] == 1
    if outputs is None and (what := _like_probabilities(values)):
        raise ArgumentError(
            f'{what}, or outputs="{"logit" if single else "logits"}" if they are not normalised yet', argument="model"
        )
    if single and outputs == "logits":
        raise ArgumentError('it has one output per sample: use outputs="logit"', argument="model")
    if not single and outputs == "logit":
        raise ArgumentError(f'it has {values.shape[1]} outputs per sample: use outputs="logits"', argument="model")
    if outputs == "probabilities":
        return np.asarray((torch.cat([1 - values, values], dim=1) if single else values).numpy())
    # A single logit is that of the second class.
    logits = torch.cat([torch.zeros_like(values), values], dim=1) if single else values
    return np.asarray(logits.softmax(dim=1).numpy())


def _like_probabilities(values: Tensor) -> str:
    """Return why outputs seem to be probabilities already, and what to do; an empty string if they do not."""
    if not values.any() or not bool(((values >= 0) & (values <= 1)).all()):  # all 0: a model before its first step
        return ""
    single, what = values.shape[1] == 1, "its outputs are between 0 and 1"
    if single or bool(((values.sum(dim=1) - 1).abs() < ROUNDED).all()):
        return f'{what}{"" if single else " and sum to 1"}, like probabilities: use outputs="probabilities"'
    if float(values.mean()) > SIGMOIDS:
        return f"{what}, like one sigmoid per class: return the values before it (forward= can)"
    return ""
