# mypy: ignore-errors
"""Rounds of Flower's FedAvg in its simulator with two actors, on clients that `engine_sides.py` wrote.

usage: python benchmarks/flwr_side.py FILE HIDDEN      (one round at once, then one for each line read)
"""

from __future__ import annotations

import os
import sys
from functools import cache

os.environ |= {"OMP_NUM_THREADS": "1", "RAY_DEDUP_LOGS": "0"}  # read when torch and Ray are loaded

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn
from torch.nn.functional import cross_entropy

BATCH, LR, MOMENTUM, WEIGHT_DECAY = 32, 0.01, 0.9, 1e-5
client, server = ClientApp(), ServerApp()


@cache
def samples(path: str) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Return inputs, labels and the clients' samples, read once per process."""
    torch.set_num_threads(1)
    file = np.load(path)
    lots = torch.from_numpy(file["ids"]).split(file["sizes"].tolist())
    return torch.from_numpy(file["x"]), torch.from_numpy(file["y"]), list(lots)


def network(inputs: int, hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 10))


@client.train()
def train(message: Message, context: Context) -> Message:
    config = message.content.config_records["config"]
    x, y, lots = samples(str(config["file"]))
    lot = lots[int(context.node_config["partition-id"])]
    model = network(x.shape[1], int(str(config["hidden"])))
    model.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    for at in lot[torch.randperm(len(lot))].split(BATCH):
        optimiser.zero_grad()
        torch.autograd.backward(cross_entropy(model(x[at]), y[at]))
        optimiser.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(lot)})}
    return Message(RecordDict(content), reply_to=message)


@server.main()
def serve(grid: Grid, context: Context) -> None:
    config = ConfigRecord({"file": sys.argv[1], "hidden": int(sys.argv[2])})
    x, _, lots = samples(sys.argv[1])
    arrays = ArrayRecord(network(x.shape[1], int(sys.argv[2])).state_dict())
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=len(lots), min_available_nodes=len(lots))
    turn = 0
    while turn == 0 or sys.stdin.readline():
        turn += 1
        messages = strategy.configure_train(turn, arrays, config, grid)
        found, _ = strategy.aggregate_train(turn, list(grid.send_and_receive(messages, timeout=600)))
        assert found is not None
        arrays = found
        print("done", flush=True)


if __name__ == "__main__":
    import flwr_side  # by this name Ray's processes find it, and read the samples once

    resources = {
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        "init_args": {"num_cpus": 2, "log_to_driver": False},
    }
    clients = len(samples(sys.argv[1])[2])
    run_simulation(flwr_side.server, flwr_side.client, clients, backend_config=resources)
