"""Federated algorithms: one contract (`fedrela.algorithms.base`), one file each, one explicit table."""

from __future__ import annotations

from fedrela.algorithms.base import Algorithm, Exchange, Field, Sizes
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedprox import FedProx

__all__ = ["ALGORITHMS", "Algorithm", "Exchange", "Field", "Sizes"]

ALGORITHMS: dict[str, type[Algorithm]] = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
}
