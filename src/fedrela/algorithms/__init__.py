"""Federated algorithms: one contract (`fedrela.algorithms.base`), one file each, one explicit table."""

from __future__ import annotations

from importlib import import_module

from fedrela.algorithms.base import Algorithm, ArraySpec, Exchange, Sizes
from fedrela.components import check_component, find_component

__all__ = ["ALGORITHMS", "Algorithm", "ArraySpec", "Exchange", "Sizes", "find_algorithm"]

# name of the algorithm and of its file -> its class
CLASSES = {
    "climb": "Climb",
    "creff": "Creff",
    "fedavg": "FedAvg",
    "feddyn": "FedDyn",
    "fedetf": "FedEtf",
    "fedetf_original": "FedEtfOriginal",
    "fedgrab": "FedGrab",
    "fedlc": "FedLC",
    "fedloge": "FedLoge",
    "fedmix": "FedMix",
    "fednova": "FedNova",
    "fedprox": "FedProx",
    "fedrod": "FedRod",
    "fedyoyo": "FedYoyo",
    "moon": "Moon",
    "oversample": "Oversample",
    "ratioloss": "RatioLoss",
    "reweight": "Reweight",
    "scaffold": "Scaffold",
    "smote": "Smote",
}
ALGORITHMS: dict[str, type[Algorithm]] = {
    name: getattr(import_module(f"{__name__}.{name}"), kind) for name, kind in CLASSES.items()
}


def find_algorithm(name: object) -> type[Algorithm]:
    """Return the class of an algorithm: one of `ALGORITHMS`, ``"package.module:Name"``, or of an installed package.

    Parameters
    ----------
    name
        Its name.

    Examples
    --------
    >>> find_algorithm("fedprox").label, find_algorithm("fedrela.algorithms.moon:Moon").needs_split
    ('FedProx', True)
    """
    algorithm: type[Algorithm] = find_component("algorithms", name, ALGORITHMS)
    is_algorithm = isinstance(algorithm, type) and issubclass(algorithm, Algorithm)
    check_component(name, algorithm, is_algorithm, "a class derived from fedrela.algorithms.Algorithm")
    return algorithm
