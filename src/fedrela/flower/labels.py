"""The labels in force, from the mod to the training function: in the state of Flower's context, which never leaves.

They are there for training alone: outside a training call that goes through the mod nothing here gives new labels, so
that evaluation sees the original ones whatever function loads its data.
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
from fedrela.plugin.dataset import InForce
from fedrela.plugin.rows import Place, classes_of, like

LOG = logging.getLogger("flwr.fedrela")  # below Flower's own logger, so that it speaks in the client's log
LABELS, MADE, TRAINING = "fedrela.labels", "fedrela.made", "fedrela.training"


@dataclass(frozen=True, eq=False)
class Remembered:
    """Labels as the state holds them."""

    labels: NDArray[Any]
    original: NDArray[Any]
    round: int


def remember(context: Context, source: InForce, round: int, experiment: str) -> None:
    """Put labels into the state of a context."""
    arrays = {"labels": np.asarray(source.labels, np.int64), "original": np.asarray(source.original, np.int64)}
    context.state[LABELS] = ArrayRecord({name: Array(array) for name, array in arrays.items()})
    context.state[MADE] = ConfigRecord({"round": round, "experiment": experiment})


def recall(context: Context, experiment: str) -> Remembered | None:
    """Return the labels that the state holds for an experiment."""
    arrays, made = context.state.array_records.get(LABELS), context.state.config_records.get(MADE)
    if arrays is None or made is None or made["experiment"] != experiment:
        return None
    return Remembered(arrays["labels"].numpy(), arrays["original"].numpy(), int(str(made["round"])))


@contextlib.contextmanager
def current_labels(context: Context, experiment: str, yes: bool) -> Iterator[None]:
    """Let the training function inside find the labels of the state; warn where it did not look."""
    if yes:
        context.state[TRAINING] = ConfigRecord({"experiment": experiment, "asked": False})
    try:
        yield
    finally:
        training = context.state.config_records.pop(TRAINING, None)
    if training is not None and not training["asked"]:
        LOG.warning(
            "FedReLa: there are new labels, and the training function does not use them; call labels_for, "
            "RelabeledDataset or relabeled_loader in it"
        )


def _source(context: Context) -> Remembered | None:
    training = context.state.config_records.get(TRAINING)
    if training is None:
        return None
    training["asked"] = True
    return recall(context, str(training["experiment"]))


def labels_for(context: Context, original: Any) -> Any:
    """Return the labels to train on in this round: new ones, or `original` itself.

    Parameters
    ----------
    context
        As the training function received it.
    original
        The labels of the client's training data, as a list, an array or a tensor: the result is of that kind. Where
        they are not those that the new labels were made for, a `DataError` is raised.
    """
    source = _source(context)
    if source is None:
        return original
    if not np.array_equal(classes_of(original), source.original):
        raise DataError("labels_for: these are not the labels that new ones were made for; is it other data?")
    return like(original, source.labels)


def RelabeledDataset(data: Any, context: Context, *, label: Place | None = None) -> dataset.RelabeledDataset:
    """Return `data` with the labels to train on in this round; see `fedrela.plugin.RelabeledDataset`."""
    return dataset.RelabeledDataset(data, _source(context), label=label)


def relabeled_loader(loader: DataLoader[Any], context: Context, *, label: Place | None = None) -> DataLoader[Any]:
    """Return a loader like `loader` that gives the labels to train on in this round."""
    return dataset.relabeled_loader(loader, _source(context), label=label)
