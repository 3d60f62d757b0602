# mypy: ignore-errors
"""Rounds of FedAvg by pfl in two processes, on clients that `engine_sides.py` wrote; runs in an environment with pfl.

usage: python benchmarks/pfl_side.py FILE HIDDEN RANK      (one round at once, then one for each line read)
"""

from __future__ import annotations

import os
import sys

os.environ |= {
    "TORCHELASTIC_RUN_ID": "benchmark", "RANK": sys.argv[3], "LOCAL_RANK": sys.argv[3], "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "PFL_PYTORCH_DEVICE": "cpu",
    "OMP_NUM_THREADS": "1",
}  # fmt: skip

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn.functional import cross_entropy

BATCH, LR, MOMENTUM, WEIGHT_DECAY, ENDLESS = 32, 0.01, 0.9, 1e-5, 10**6


class Mlp(nn.Sequential):
    """An MLP with the loss that pfl asks a model for."""

    def loss(self, x, y, is_eval=False):
        """Return the mean loss of a batch."""
        return cross_entropy(self(x), y)

    def metrics(self, x, y):
        """Return nothing: nobody scores."""
        return {}


class Turns(TrainingProcessCallback):
    """Says that a round is done, and waits to be told to do the next."""

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Return whether to stop."""
        print("done", flush=True)
        return not sys.stdin.readline(), Metrics()


def main() -> None:
    torch.set_num_threads(1)
    np.random.seed(1)  # noqa: NPY002 pfl draws from it; the same users in both processes
    file, hidden = np.load(sys.argv[1]), int(sys.argv[2])
    x, y = torch.from_numpy(file["x"]), torch.from_numpy(file["y"])
    lots = np.split(file["ids"], np.cumsum(file["sizes"])[:-1])
    users = [Dataset([x[lot], y[lot]], user_id=str(k)) for k, lot in enumerate(lots)]
    turn = iter(range(ENDLESS * len(lots)))
    data = FederatedDataset(lambda k: users[k], lambda: next(turn) % len(lots))
    network = Mlp(nn.Linear(x.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def optimiser(parameters, lr):
        return torch.optim.SGD(parameters, lr=lr, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)

    model = PyTorchModel(network, optimiser, torch.optim.SGD(network.parameters(), lr=1.0))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=ENDLESS, evaluation_frequency=ENDLESS, train_cohort_size=len(lots), val_cohort_size=0
        ),
        SimulatedBackend(data, data),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=LR, local_batch_size=BATCH),
        callbacks=[Turns()],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    main()
