"""Data sets of Hugging Face's `datasets` from disk, and partitions of `flwr-datasets`, if those are installed.

In a configuration: ``source = "fedrela.data.sources.huggingface:load"`` and ``root`` as the folder that
``Dataset.save_to_disk`` wrote.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_choice
from fedrela.data.cache import PathOrNone
from fedrela.data.sources.arrays import refuse_rounding
from fedrela.data.sources.base import Source
from fedrela.data.sources.file_readers import root_folder
from fedrela.data.sources.image_folder import check_form, square
from fedrela.data.sources.labels import TEST_SHARE, encode_labels, stratified
from fedrela.errors import ArgumentError, DataError

PARTITIONERS = ("iid", "dirichlet", "natural_id")
ROW = "fedrela_row"


def load(
    root: PathOrNone = None,
    *,
    train: str = "train",
    test: str = "test",
    label: str = "label",
    image: str | None = None,
    size: int = 32,
    channels: int = 3,
    partitioner: str | None = None,
    partitions: int = 10,
    alpha: float = 0.3,
    partition_by: str | None = None,
    test_share: float = TEST_SHARE.default,
    seed: int = 0,
) -> Source:
    """Return a data set that ``save_to_disk`` wrote, its images or its columns of numbers.

    Parameters
    ----------
    root
        The folder of a ``DatasetDict`` with the splits `train` and `test`, or of one ``Dataset``, of which `test_share`
        of every class is held out by `seed`; with a share of 0 or 1 it is not split.
    label
        The column with the class.
    image, size, channels
        The column with images, by default the first of that kind; every image becomes ``size x size``, its centre
        square, in colour (3 `channels`) or grey (1). Without one, all columns of numbers are the features of a table.
    partitioner, partitions, alpha, partition_by
        Client ids from a partitioner of flwr-datasets: "iid", "dirichlet" (by class) or "natural_id" (by the column
        `partition_by`). For the first two, rows are shuffled by `seed`, as Flower does. Use them with
        ``partition = { kind = "natural" }``.
    """
    check_form(size, channels)
    if partitioner is not None:
        check_choice("partitioner", partitioner, PARTITIONERS)
    rows, held_out, where = _read(root, train, test)
    if label not in rows.column_names:
        raise ArgumentError(f"{where}: no column {label!r}; there are {', '.join(rows.column_names)}", argument="label")
    parts = [rows] if held_out is None else [rows, held_out]
    names = getattr(rows.features[label], "names", None)
    y, class_names = encode_labels(
        np.concatenate([np.asarray(part[label]) for part in parts]), names, f"{where}: {label}"
    )
    x, features = _samples(parts, label, image, size, channels, where)
    number = len(rows)
    chosen, others = (np.arange(number), np.arange(number, len(y)))
    if held_out is None:
        chosen, others = stratified(y, test_share, seed)
    clients = None
    if partitioner is not None:
        clients = _clients(rows, partitioner, partitions, alpha, partition_by or label, seed)[chosen]
    numeric = None if x.ndim == 4 else np.ones(x.shape[1], np.bool_)
    name = f"huggingface:{where.name}"
    return Source(name, x[chosen], y[chosen], x[others], y[others], class_names, clients, features, numeric)


def _read(root: PathOrNone, train: str, test: str) -> tuple[Any, Any, Any]:
    """Return the training rows, the test rows or None, and where they are."""
    if find_spec("datasets") is None:
        raise ArgumentError("datasets: is not installed; run `pip install datasets`")
    import datasets

    where = root_folder(root)
    try:
        found = datasets.load_from_disk(str(where))
    except (OSError, ValueError) as error:
        raise DataError(f"{where}: not a Hugging Face data set: {str(error).partition(chr(10))[0]}") from None
    if not isinstance(found, datasets.DatasetDict):
        return found, None, where
    for option, split in (("train", train), ("test", test)):
        if split not in found:
            raise ArgumentError(f"{where}: no split {split!r}; there are {', '.join(found)}", argument=option)
    return found[train], found[test], where


def _samples(
    parts: list[Any], label: str, image: str | None, size: int, channels: int, where: object
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Return the samples of all parts, and the names of the features if it is a table."""
    from datasets import Image, Value

    kinds = parts[0].features
    images = [name for name, kind in kinds.items() if isinstance(kind, Image)]
    if image is not None or images:
        column, found = image or images[0], [each for part in parts for each in part[image or images[0]]]
        pixels = np.empty((len(found), channels, size, size), np.uint8)
        for row, each in enumerate(found):
            if each is None:
                raise DataError(f"{where}: column {column!r}: image {row}: is missing")
            pixels[row] = square(each, size, channels, f"{where}: column {column!r}: image {row}")
        return pixels, ()
    numbers = [
        name
        for name, kind in kinds.items()
        if name != label and isinstance(kind, Value) and kind.dtype.startswith(("float", "int", "uint", "bool"))
    ]
    if not numbers:
        raise DataError(f"{where}: no column of images or numbers besides {label!r}")
    columns = [np.concatenate([np.asarray(part[name], np.float64) for part in parts]) for name in numbers]
    with np.errstate(over="ignore"):
        rows = np.stack(columns, axis=1).astype(np.float32)
    for j, name in enumerate(numbers):
        refuse_rounding(columns[j], rows[:, j], f"{where}: column {name!r}")
    return rows, tuple(numbers)


def _clients(rows: Any, name: str, number: int, alpha: float, by: str, seed: int) -> NDArray[np.int64]:
    """Return the client of every row by a partitioner of flwr-datasets."""
    if find_spec("flwr_datasets") is None:
        raise ArgumentError("flwr-datasets: is not installed; run `pip install flwr-datasets`", argument="partitioner")
    from flwr_datasets import partitioner as kinds

    if name == "iid":
        partitioner = kinds.IidPartitioner(number)
    elif name == "dirichlet":
        partitioner = kinds.DirichletPartitioner(number, by, alpha, seed=seed)
    else:
        partitioner = kinds.NaturalIdPartitioner(by)
    numbered = rows.add_column(ROW, np.arange(len(rows)))
    # In memory: a shuffled data set is otherwise written beside the original.
    partitioner.dataset = numbered if name == "natural_id" else numbered.shuffle(seed=seed, keep_in_memory=True)
    clients = np.zeros(len(rows), np.int64)
    for client in range(partitioner.num_partitions):
        clients[np.asarray(partitioner.load_partition(client)[ROW])] = client
    return clients
