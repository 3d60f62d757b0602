"""The numbers that the paper printed: one CSV file a table, one row an entry, in per cent."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ARMS = ("baseline", "+FedReLa")


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Attributes
    ----------
    at
        Where it stands: the value of every axis, as the paper writes it.
    arm
        ``baseline`` or ``+FedReLa``.
    published
        Figures that the paper has there, by name: accuracies and gains in per cent, labels as a number.
    doubtful
        Why it is doubtful, or nothing.
    """

    at: Mapping[str, str]
    arm: str
    published: Mapping[str, float]
    doubtful: str


def read_entries(text: str, figures: Sequence[str]) -> list[Entry]:
    r"""Read the entries of a table.

    Parameters
    ----------
    text
        CSV with a header: axes, ``arm``, figures, ``doubtful``. An empty figure was not published.
    figures
        Names of the figures.

    Examples
    --------
    >>> read_entries("method,arm,overall,doubtful\nFedAvg,baseline,84.84,\n", ["overall"])
    [Entry(at={'method': 'FedAvg'}, arm='baseline', published={'overall': 84.84}, doubtful='')]
    """
    rows = csv.DictReader(text.splitlines(), strict=True)
    axes = [name for name in rows.fieldnames or () if name not in (*figures, "arm", "doubtful")]
    return [
        Entry(
            at={axis: row[axis] for axis in axes},
            arm=row["arm"],
            published={name: float(row[name]) for name in figures if row[name]},
            doubtful=row["doubtful"],
        )
        for row in rows
    ]
