"""Measures of imbalance and heterogeneity, each with a sentence that says what it means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedrela.metrics.heterogeneity import measure_heterogeneity
from fedrela.plots.style import short


@dataclass(frozen=True)
class Fact:
    """A measure: what it is called, what it is here, what it means."""

    name: str
    value: str
    meaning: str


def effective_clients(client_counts: ArrayLike) -> tuple[str, ...]:
    """Return for each class over how many clients it is effectively spread, with one decimal; 0.0 where it is absent.

    >>> effective_clients([[30, 0, 0], [10, 20, 0]])
    ('1.6', '1.0', '0.0')
    """
    return tuple(f"{clients:,.1f}" for clients in measure_heterogeneity(client_counts).effective_clients)


def heterogeneity_facts(client_counts: ArrayLike) -> tuple[Fact, ...]:
    """Measure a (clients, classes) count matrix and put the numbers into words.

    Examples
    --------
    >>> [f"{fact.name} {fact.value}" for fact in heterogeneity_facts([[30, 0], [10, 20]])][:2]
    ['imbalance ratio 2', 'class absence 25.0%']
    """
    found = measure_heterogeneity(client_counts)
    spread = np.array([clients for clients in found.effective_clients if clients > 0])
    spreads = " / ".join(map(short, (spread.min(), float(np.median(spread)), spread.max())))
    return (
        Fact(
            "imbalance ratio", short(found.imbalance_ratio), "IR of the training samples: largest class over smallest"
        ),
        Fact("class absence", f"{found.absence_rate:.1%}", "pairs of a client and a class without a sample"),
        Fact("local/global mismatch", f"{found.mismatch:.1%}", "pairs of classes that a client has in reverse order"),
        Fact("effective clients", spreads, "clients a class is spread over: least, median, most"),
        Fact("total variation", f"{found.total_variation:.3f}", "mean distance from the global class mix, 0 to 1"),
    )
