"""Federated algorithms: one contract (`fedrela.algorithms.base`), one file each, one explicit table."""

from __future__ import annotations

from fedrela.algorithms.base import Algorithm, ArraySpec, Exchange, Sizes
from fedrela.components import find_component, import_table

__all__ = ["ALGORITHMS", "Algorithm", "ArraySpec", "Exchange", "Sizes", "find_algorithm"]

ALGORITHMS: dict[str, type[Algorithm]] = import_table(
    __name__,
    {
        "climb": "climb:Climb",
        "creff": "creff:Creff",
        "fedavg": "fedavg:FedAvg",
        "feddyn": "feddyn:FedDyn",
        "fedetf": "fedetf:FedEtf",
        "fedetf_original": "fedetf_original:FedEtfOriginal",
        "fedgrab": "fedgrab:FedGrab",
        "fedlc": "fedlc:FedLC",
        "fedloge": "fedloge:FedLoge",
        "fedmix": "fedmix:FedMix",
        "fednova": "fednova:FedNova",
        "fedprox": "fedprox:FedProx",
        "fedrod": "fedrod:FedRod",
        "fedyoyo": "fedyoyo:FedYoyo",
        "moon": "moon:Moon",
        "oversample": "oversample:Oversample",
        "ratioloss": "ratioloss:RatioLoss",
        "reweight": "reweight:Reweight",
        "scaffold": "scaffold:Scaffold",
        "smote": "smote:Smote",
    },
)


def find_algorithm(name: object) -> type[Algorithm]:
    """Return the class of an algorithm: from `ALGORITHMS`, ``"package.module:Name"`` or an installed package.

    Parameters
    ----------
    name
        Its name.

    Examples
    --------
    >>> find_algorithm("fedprox").label, find_algorithm("fedrela.algorithms.moon:Moon").needs_split
    ('FedProx', True)
    """
    expected = "a class derived from fedrela.algorithms.Algorithm"
    algorithm: type[Algorithm] = find_component("algorithms", name, ALGORITHMS, _is_algorithm, expected)
    return algorithm


def _is_algorithm(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Algorithm)
