"""The demonstration: FedReLa on imbalanced digits, four matched arms over three seeds.

Three of the ten digits are rare in training (imbalance ratio 20), and ten clients hold different shares of each; the
test set is balanced. ``examples/digits.toml`` is one run of it, ``examples/compare.toml`` has more baselines.
"""

from __future__ import annotations

from typing import Any

CONFIG: dict[str, Any] = {
    "seed": 1,
    "data": {
        "source": "digits",
        "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]},
        "partition": {"kind": "dirichlet", "clients": 10, "alpha": 0.3, "min_size": 5},
    },
    "model": {"name": "mlp", "hidden": [64]},
    "algorithm": {"name": "fedavg"},
    "train": {
        "rounds": 60, "epochs": 2, "batch_size": 16, "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-5,
    },
    "relabel": {"enabled": True, "start": 0.8, "tau": 0.05, "lr_scale": 1.0},
    "compare": {"seeds": 3},
}  # fmt: skip
