"""The current labels, passed from the mod to the training function in the state of Flower's context.

The state never leaves the client. New labels are for training only: outside a training call through the mod everything
here gives the original ones, so that evaluation sees those whatever function loads its data.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from fedrela.errors import DataError
from fedrela.plugin import dataset
from fedrela.plugin.dataset import LabelKey, LabelSource, as_classes, cast_like

LOG = logging.getLogger("flwr.fedrela")  # a child of Flower's logger: shown in the client's log
LABELS, MADE, TRAINING = "fedrela.labels", "fedrela.made", "fedrela.training"


@dataclass(frozen=True, eq=False)
class StoredLabels:
    """The labels in a context's state."""

    labels: NDArray[Any]
    original: NDArray[Any]
    round: int


def store_labels(context: Context, source: LabelSource, round: int, experiment: str) -> None:
    """Put labels into a context's state."""
    arrays = {"labels": np.asarray(source.labels, np.int64), "original": np.asarray(source.original, np.int64)}
    context.state[LABELS] = ArrayRecord({name: Array(array) for name, array in arrays.items()})
    context.state[MADE] = ConfigRecord({"round": round, "experiment": experiment})


def stored_labels(context: Context, experiment: str) -> StoredLabels | None:
    """Return the labels of an experiment from a context's state."""
    arrays, made = context.state.array_records.get(LABELS), context.state.config_records.get(MADE)
    if arrays is None or made is None or made["experiment"] != experiment:
        return None
    return StoredLabels(arrays["labels"].numpy(), arrays["original"].numpy(), int(str(made["round"])))


@contextlib.contextmanager
def training_labels(context: Context, experiment: str, available: bool) -> Iterator[None]:
    """Let the training function inside find the stored labels; warn if it did not ask for them."""
    if available:
        context.state[TRAINING] = ConfigRecord({"experiment": experiment, "asked": False})
    try:
        yield
    finally:
        training = context.state.config_records.pop(TRAINING, None)
    if training is not None and not training["asked"]:
        LOG.warning(
            "FedReLa: the training function does not use the new labels; call relabeled_loader, relabeled_dataset or "
            "labels_for in it"
        )


def _current_labels(context: Context) -> StoredLabels | None:
    training = context.state.config_records.get(TRAINING)
    if training is None:
        return None
    training["asked"] = True
    return stored_labels(context, str(training["experiment"]))


def labels_for(context: Context, original: Any) -> Any:
    """Return the labels to train on in this round: new ones, or `original` itself.

    Parameters
    ----------
    context
        As the training function received it.
    original
        The labels of the client's training data, as a list, an array or a tensor; the result has the same type. Other
        labels than those that the new ones were made for raise a `DataError`.
    """
    source = _current_labels(context)
    if source is None:
        return original
    if not np.array_equal(as_classes(original), source.original):
        raise DataError("labels_for: the new labels were made for other data than these")
    return cast_like(original, source.labels)


def relabeled_dataset(data: Any, context: Context, *, label: LabelKey | None = None) -> dataset.RelabeledDataset:
    """Return `data` with the labels to train on in this round; see `fedrela.plugin.RelabeledDataset`."""
    return dataset.RelabeledDataset(data, _current_labels(context), label=label)


def relabeled_loader(loader: DataLoader[Any], context: Context, *, label: LabelKey | None = None) -> DataLoader[Any]:
    """Return a loader like `loader` with the labels to train on in this round."""
    return dataset.relabeled_loader(loader, _current_labels(context), label=label)
