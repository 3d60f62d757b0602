"""Class probabilities of a user's model on the user's data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.errors import ArgumentError
from fedrela.models.contract import evaluation_mode
from fedrela.plugin.dataset import LabelKey, as_rows, label_key, own_label, rows_at

BATCH = 256  # samples of one forward pass; fixed, since the last bits depend on it
Forward = Callable[[nn.Module, Any], Any]


def posterior(
    model: nn.Module,
    data: Any,
    *,
    forward: Forward | None = None,
    label: LabelKey | None = None,
    batch_size: int = BATCH,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the posterior ``(n, C)`` of all rows, and their labels, in one pass in evaluation mode.

    The model is unchanged afterwards (modes, buffers, gradients), and so is torch's random generator. Give data without
    augmentation.

    Parameters
    ----------
    model
        Returns logits ``(B, C)``, one logit per sample for two classes, or an object with ``logits``.
    data
        A map-style data set, a `DataLoader` of one (its order is not used), or tensors ``(X, y)``.
    forward
        Function of model and batch, in place of ``model(batch[0])``, or for mappings of ``model(...)`` with all values
        but the label.
    label
        Key or position of the label; see `RelabeledDataset`.
    batch_size
        Samples of one forward pass.
    """
    rows, collate = as_rows(data)
    if len(rows) == 0:
        raise ArgumentError("expected at least one row, got none", argument="data")
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    scores, labels = [], np.empty(len(rows), np.int64)
    with _unchanged(model):
        for start in range(0, len(rows), batch_size):
            numbers = range(start, min(start + batch_size, len(rows)))
            batch = rows_at(rows, list(numbers))
            labels[numbers] = [own_label(row, number, label) for row, number in zip(batch, numbers, strict=True)]
            given = _to_device(device, collate(batch))
            scores.append(_probabilities(forward(model, given) if forward else _outputs(model, given, label)))
    return np.concatenate(scores), labels


@contextlib.contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Evaluate without gradients inside, then restore every mode and buffer, and torch's generator."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        with evaluation_mode(model), torch.random.fork_rng(devices=[]):
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


def _outputs(model: nn.Module, batch: Any, label: LabelKey | None) -> Any:
    if not isinstance(batch, Mapping):
        return model(batch[0])
    key = label_key(batch, label)
    inputs = {name: value for name, value in batch.items() if name != key}
    return model(*inputs.values()) if len(inputs) == 1 else model(**inputs)


def _probabilities(outputs: Any) -> NDArray[np.float64]:
    logits = getattr(outputs, "logits", outputs)
    if not isinstance(logits, Tensor) or logits.ndim not in (1, 2):
        kind = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ArgumentError(f"expected logits of shape (batch, classes), got {kind}; see forward=", argument="model")
    wide = logits.detach().cpu().double()
    if wide.ndim == 1 or wide.shape[1] == 1:  # one logit: that of the second of two classes
        wide = torch.stack([torch.zeros(len(wide), dtype=wide.dtype), wide.reshape(-1)], dim=1)
    return np.asarray(wide.softmax(dim=1).numpy())
