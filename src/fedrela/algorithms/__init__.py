"""Federated algorithms: one contract (`fedrela.algorithms.base`), one file each, one explicit table."""

from __future__ import annotations

from fedrela.algorithms.base import Algorithm, ArraySpec, Exchange, Sizes
from fedrela.algorithms.climb import Climb
from fedrela.algorithms.creff import Creff
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.feddyn import FedDyn
from fedrela.algorithms.fedetf import FedEtf
from fedrela.algorithms.fedetf_original import FedEtfOriginal
from fedrela.algorithms.fedgrab import FedGrab
from fedrela.algorithms.fedlc import FedLC
from fedrela.algorithms.fedloge import FedLoge
from fedrela.algorithms.fedmix import FedMix
from fedrela.algorithms.fednova import FedNova
from fedrela.algorithms.fedprox import FedProx
from fedrela.algorithms.fedrod import FedRod
from fedrela.algorithms.fedyoyo import FedYoyo
from fedrela.algorithms.moon import Moon
from fedrela.algorithms.oversample import Oversample
from fedrela.algorithms.ratioloss import RatioLoss
from fedrela.algorithms.reweight import Reweight
from fedrela.algorithms.scaffold import Scaffold
from fedrela.algorithms.smote import Smote

__all__ = ["ALGORITHMS", "Algorithm", "ArraySpec", "Exchange", "Sizes"]

ALGORITHMS: dict[str, type[Algorithm]] = {
    "climb": Climb,
    "creff": Creff,
    "fedavg": FedAvg,
    "feddyn": FedDyn,
    "fedetf": FedEtf,
    "fedetf_original": FedEtfOriginal,
    "fedgrab": FedGrab,
    "fedlc": FedLC,
    "fedloge": FedLoge,
    "fedmix": FedMix,
    "fednova": FedNova,
    "fedprox": FedProx,
    "fedrod": FedRod,
    "fedyoyo": FedYoyo,
    "moon": Moon,
    "oversample": Oversample,
    "ratioloss": RatioLoss,
    "reweight": Reweight,
    "scaffold": Scaffold,
    "smote": Smote,
}
