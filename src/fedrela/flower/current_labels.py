"""A client's current labels in the state of its Flower context, for its training function."""

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

from fedrela.core import Ledger
from fedrela.errors import ArgumentError, DataError
from fedrela.plugin import dataset
from fedrela.plugin.dataset import LabelKey, as_classes, cast_like

LOGGER = "flwr.fedrela"  # a child of Flower's logger: shown in the client's log
LABELS, MADE, TRAINING = "fedrela.labels", "fedrela.made", "fedrela.training"
WARNED = "fedrela.warned"
FIRST = {"labels_for": "labels", "relabeled_dataset": "data", "relabeled_loader": "loader"}
_APP = {"has mod": False}


@dataclass(frozen=True, eq=False)
class StoredLabels:
    """The labels in a context's state."""

    labels: NDArray[Any]
    original: NDArray[Any]
    round: int


def store_labels(context: Context, ledger: Ledger, experiment: str) -> None:
    """Put the labels of a ledger into a context's state."""
    arrays = {"labels": np.asarray(ledger.labels, np.int64), "original": np.asarray(ledger.original, np.int64)}
    context.state[LABELS] = ArrayRecord({name: Array(array) for name, array in arrays.items()})
    context.state[MADE] = ConfigRecord({"round": int(ledger.options["round"]), "experiment": experiment})


def stored_labels(context: Context, experiment: str) -> StoredLabels | None:
    """Return the labels of an experiment from a context's state."""
    arrays, made = context.state.array_records.get(LABELS), context.state.config_records.get(MADE)
    if arrays is None or made is None or made["experiment"] != experiment:
        return None
    return StoredLabels(arrays["labels"].numpy(), arrays["original"].numpy(), int(str(made["round"])))


@contextlib.contextmanager
def training_labels(context: Context, experiment: str, available: bool) -> Iterator[None]:
    """Make the stored labels available to the training function inside; warn if it did not use them."""
    if available:
        context.state[TRAINING] = ConfigRecord({"experiment": experiment, "asked": False})
    try:
        yield
    finally:
        training = context.state.config_records.pop(TRAINING, None)
    if training is not None and not training["asked"]:
        logging.getLogger(LOGGER).warning(
            "FedReLa: the training function does not use the new labels; call relabeled_loader, relabeled_dataset or "
            "labels_for in it"
        )


def note_mod() -> None:
    """Note that the app of this process has a `relabel_mod`."""
    _APP["has mod"] = True


def _current_labels(call: str, given: Any, context: Any) -> StoredLabels | None:
    if not hasattr(context, "state"):
        names, kinds = [FIRST[call], "context"], [type(given).__name__, type(context).__name__]
        if call == "labels_for":
            names, kinds = names[::-1], kinds[::-1]
        what = f"expected {call}({', '.join(names)}), got {call}({', '.join(kinds)})"
        raise ArgumentError(what, argument="context")
    training = context.state.config_records.get(TRAINING)
    if training is None:
        if not _APP["has mod"] and not any(name.startswith("fedrela.") for name in context.state):
            context.state[WARNED] = ConfigRecord({"call": call})  # once per node and run
            logging.getLogger(LOGGER).warning(
                "FedReLa: %s changes nothing, since the app has no relabel_mod: ClientApp(mods=[relabel_mod(...)])",
                call,
            )
        return None
    training["asked"] = True
    return stored_labels(context, str(training["experiment"]))


def labels_for(context: Context, original: Any) -> Any:
    """Return the labels to train on in this round: new ones, or `original` itself.

    Parameters
    ----------
    context
        The context that Flower passes to the training function.
    original
        The labels of the client's training data, as a list, an array or a tensor; the result has the same type. Labels
        of other data raise a `DataError`.

    Examples
    --------
    Outside training, and before the labels are made, nothing changes:

    >>> from flwr.app import RecordDict
    >>> context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    >>> labels_for(context, [0, 0, 1])
    [0, 0, 1]
    """
    source = _current_labels("labels_for", original, context)
    if source is None:
        return original
    try:
        same = np.array_equal(as_classes(original), source.original)
    except (TypeError, ValueError):
        same = False
    if not same:
        raise DataError("labels_for: the new labels were made for other data")
    return cast_like(original, source.labels)


def relabeled_dataset(data: Any, context: Context, *, label: LabelKey | None = None) -> dataset.RelabeledDataset:
    """Return `data` with the labels to train on in this round; see `fedrela.plugin.RelabeledDataset`.

    Parameters
    ----------
    data, label
        As for `fedrela.plugin.RelabeledDataset`.
    context
        The context that Flower passes to the training function.

    Examples
    --------
    >>> from flwr.app import RecordDict
    >>> context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    >>> list(relabeled_dataset([("a", 0), ("b", 1)], context))
    [('a', 0), ('b', 1)]
    """
    return dataset.RelabeledDataset(data, _current_labels("relabeled_dataset", data, context), label=label)


def relabeled_loader(loader: DataLoader[Any], context: Context, *, label: LabelKey | None = None) -> DataLoader[Any]:
    """Return a loader like `loader` with the labels to train on in this round.

    Parameters
    ----------
    loader, label
        As for `fedrela.plugin.relabeled_loader`.
    context
        The context that Flower passes to the training function.

    Examples
    --------
    >>> from flwr.app import RecordDict
    >>> context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    >>> loader = relabeled_loader(DataLoader([("a", 0), ("b", 1)], batch_size=2), context)
    >>> [labels.tolist() for rows, labels in loader]
    [[0, 1]]
    """
    return dataset.relabeled_loader(loader, _current_labels("relabeled_loader", loader, context), label=label)
