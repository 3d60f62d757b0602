"""The class probabilities of a user's own model on a user's own data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.errors import ArgumentError
from fedrela.plugin.rows import Place, as_rows, class_of, fetch, place_of

BATCH = 256  # samples of one forward pass; fixed, since the last bits depend on it
Forward = Callable[[nn.Module, Any], Any]


def posterior(
    model: nn.Module, data: Any, *, forward: Forward | None = None, label: Place | None = None, batch_size: int = BATCH
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the posterior ``(n, C)`` of all rows, and their labels, in one pass in evaluation mode.

    The model is the same afterwards: modes, buffers and gradients; and so is torch's random generator. What `data`
    gives is taken as it is: give data without augmentation.

    Parameters
    ----------
    model
        Gives logits ``(B, C)``, or one logit a sample for two classes, or an object with ``logits``.
    data
        A map-style data set, a `DataLoader` of one (its order is not used), or tensors ``(X, y)``.
    forward
        Function of model and batch, where ``model(batch[0])``, or of a mapping ``model(...)`` of all but the label,
        will not do.
    label
        Where a row has its label; see `RelabeledDataset`.
    batch_size
        Samples of one forward pass.
    """
    rows, collate = as_rows(data)
    if len(rows) == 0:
        raise ArgumentError("data: expected at least one row, got none")
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    scores, labels = [], np.empty(len(rows), np.int64)
    with _as_it_was(model):
        for start in range(0, len(rows), batch_size):
            numbers = range(start, min(start + batch_size, len(rows)))
            batch = fetch(rows, list(numbers))
            labels[numbers.start : numbers.stop] = [
                class_of(row[place_of(row, label)], number) for row, number in zip(batch, numbers, strict=True)
            ]
            given = _on(device, collate(batch))
            scores.append(_probabilities(forward(model, given) if forward else _answer(model, given, label)))
    return np.concatenate(scores), labels


@contextlib.contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Evaluate without gradients inside; every mode and buffer is given back."""
    modes = [(part, part.training) for part in model.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for part, training in modes:
            part.training = training
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)


def _on(device: torch.device, batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: _on(device, value) for key, value in batch.items()}
    return [_on(device, value) for value in batch] if isinstance(batch, tuple | list) else batch


def _answer(model: nn.Module, batch: Any, label: Place | None) -> Any:
    if not isinstance(batch, Mapping):
        return model(batch[0])
    key = place_of(batch, label)
    inputs = {name: value for name, value in batch.items() if name != key}
    return model(*inputs.values()) if len(inputs) == 1 else model(**inputs)


def _probabilities(answer: Any) -> NDArray[np.float64]:
    logits = getattr(answer, "logits", answer)
    if not isinstance(logits, Tensor) or logits.ndim not in (1, 2):
        kind = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise ArgumentError(f"model: expected logits of shape (batch, classes), got {kind}; see forward=")
    wide = logits.detach().cpu().double()
    if wide.ndim == 1 or wide.shape[1] == 1:  # one logit, of the second of two classes
        wide = torch.stack([torch.zeros(len(wide), dtype=wide.dtype), wide.reshape(-1)], dim=1)
    return np.asarray(wide.softmax(dim=1).numpy())
