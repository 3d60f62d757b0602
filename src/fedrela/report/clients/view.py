"""What a client-by-class picture shows of a count matrix, whatever it is drawn with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import Groups
from fedrela.report.figures.text import limited, printable

MOST_CLIENTS = 60
MOST_NAMED_CLASSES = 60
MOST_ROWS = 120
LONGEST_NAME, LONGEST_TITLE = 40, 160  # characters
DEFAULT_TITLE = "Training samples by client and class"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """A class, or a band of classes of similar size."""

    classes: tuple[int, ...]
    label: str
    group: int


@dataclass(frozen=True, eq=False)
class View:
    """Rows of classes, columns of clients.

    Attributes
    ----------
    clients, client_sizes
        The clients that are shown, from left to right, and how many samples each has.
    rows
        The classes, from top to bottom.
    cells
        Samples of each row at each client, ``(rows, clients)``; in a band the mean over its classes.
    totals
        The same over all clients, shown or not, ``(rows,)``.
    groups
        Names of the groups with their numbers of classes; empty where there are none.
    named
        Whether each row is a class with a name, to be drawn in dots; else cells are coloured.
    caption
        Sentences that a reader of the picture needs.
    description
        The picture in words.
    """

    title: str
    clients: Ints
    client_sizes: Ints
    rows: tuple[Row, ...]
    cells: NDArray[np.float64]
    totals: NDArray[np.float64]
    groups: dict[str, int]
    named: bool
    caption: tuple[str, ...]
    description: str


def view(counts: ArrayLike, class_names: Sequence[str], *, groups: Groups | None = None, title: str = "") -> View:
    """Choose clients and rows for a picture of ``counts``, (clients, classes)."""
    n, names = _checked(counts, class_names, groups)
    sizes, totals = n.sum(axis=1), n.sum(axis=0)
    shown = _spread_over_sizes(sizes)
    named = len(names) <= MOST_NAMED_CLASSES
    group = np.zeros(len(names), np.int64) if groups is None else groups.of_class
    bands = [(c,) for c in range(len(names))] if named else _bands(totals, group)
    rows = tuple(Row(band, _label(band, names), int(group[band[0]])) for band in bands)
    return View(
        title=limited(printable(title), LONGEST_TITLE) or DEFAULT_TITLE,
        clients=shown,
        client_sizes=sizes[shown],
        rows=rows,
        cells=np.stack([n[shown][:, list(band)].mean(axis=1) for band in bands]),
        totals=np.array([totals[list(band)].mean() for band in bands]),
        groups=_group_sizes(groups),
        named=named,
        caption=_caption(n, shown, rows, named),
        description=_description(n, totals, names, groups),
    )


def _checked(counts: ArrayLike, class_names: Sequence[str], groups: Groups | None) -> tuple[Ints, list[str]]:
    n = np.asarray(counts)
    if n.ndim != 2 or n.dtype.kind not in "iu" or n.size == 0 or n.min() < 0:
        form = "integers >= 0, (clients, classes), are needed"
        raise ArgumentError(f"counts: {form}, got {n.dtype} {n.shape}")
    if len(class_names) != n.shape[1]:
        raise ArgumentError(f"class_names: {n.shape[1]} names are needed, one a class, got {len(class_names)}")
    if groups is not None and groups.of_class.shape != n.shape[1:]:
        raise ArgumentError(f"groups: expected {n.shape[1]} classes, got {groups.of_class.size}")
    return n.astype(np.int64, copy=False), [limited(printable(name), LONGEST_NAME) for name in class_names]


def _spread_over_sizes(sizes: Ints) -> Ints:
    """Return all clients by number, or so many spread evenly over their ranking by size, the largest first."""
    if sizes.size <= MOST_CLIENTS:
        return np.arange(sizes.size)
    ranking = np.argsort(-sizes, kind="stable")
    return ranking[np.linspace(0, sizes.size - 1, MOST_CLIENTS).round().astype(np.int64)]


def _bands(totals: Ints, group: Ints) -> list[tuple[int, ...]]:
    """Cut the classes, by group and then by decreasing count, into rows of neighbours within one group."""
    order = np.lexsort((-totals, group))
    height = -(-totals.size // MOST_ROWS)
    bands: list[tuple[int, ...]] = []
    for g in np.unique(group):
        members = order[group[order] == g]
        parts = np.array_split(members, -(-members.size // height))
        bands += [tuple(part.tolist()) for part in parts]
    return bands


def _label(band: tuple[int, ...], names: list[str]) -> str:
    few = ", ".join(names[c] for c in band[:3])
    return few if len(band) <= 3 else f"{few} and {len(band) - 3} more"


def _caption(n: Ints, shown: Ints, rows: tuple[Row, ...], named: bool) -> tuple[str, ...]:
    said = [f"{_many(n.shape[0], 'client')}, {_many(n.shape[1], 'class')}, {_many(int(n.sum()), 'training sample')}."]
    if shown.size < n.shape[0]:
        how = "spread evenly over the ranking by size, the largest first"
        said.append(f"{shown.size} of the {n.shape[0]:,} clients are shown, {how}; class totals are of all clients.")
    if not named:
        tallest = max(len(row.classes) for row in rows)
        what = "Each row is a class" if tallest == 1 else f"Each row is the mean of up to {tallest} classes"
        said.append(f"{what}, from the most frequent to the rarest in its group.")
    return tuple(said)


def _description(n: Ints, totals: Ints, names: list[str], groups: Groups | None) -> str:
    sizes = n.sum(axis=1)
    most, least = int(totals.argmax()), int(totals.argmin())
    said = [
        f"{_many(int(n.sum()), 'training sample')} of {_many(n.shape[1], 'class')} at {_many(n.shape[0], 'client')}.",
        f"Clients have from {sizes.min():,} to {sizes.max():,} samples, half of them at most {np.median(sizes):,.0f}.",
        f"The most frequent class is {names[most]} with {totals[most]:,} samples,",
        f"the rarest {names[least]} with {totals[least]:,}.",
        f"Of all pairs of a client and a class, {(n == 0).mean():.0%} have no sample.",
    ]
    parts = [f"{name} {_many(size, 'class')}" for name, size in _group_sizes(groups).items()]
    if parts:
        said.append(f"Groups: {', '.join(parts)}.")
    return " ".join(said)


def _group_sizes(groups: Groups | None) -> dict[str, int]:
    sizes = {} if groups is None else groups.sizes
    return {limited(printable(name), LONGEST_NAME): size for name, size in sizes.items()}


def _many(number: int, thing: str) -> str:
    """Return a number with its noun.

    >>> _many(1, "class"), _many(10_000, "client")
    ('1 class', '10,000 clients')
    """
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith('s') else 's'}"
