"""What the plug-in gains: both apps as they are, on a grid in this process, over several seeds.

    python examples/flower-plugin/measure.py [--seeds 5] [--rounds 60] [--clients 10]

Flower's own strategy, messages, contexts and apps; only the network is left out. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import logging
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity  # internal: Flower's own processes set it

HERE = Path(__file__).parent
RARE = (0, 1, 2)


class GridHere(Grid):
    """Nodes in this process, in the order of their ids."""

    def __init__(self, client_app: Any, contexts: dict[int, Context]) -> None:
        self.app, self.contexts, self.replies = client_app, contexts, {}
        self.numbers = itertools.count(1)

    def get_node_ids(self) -> list[int]:
        """Return the ids of all nodes."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Deliver every message, in the order of nodes."""
        names = []
        for message in sorted(messages, key=lambda each: each.metadata.dst_node_id):
            names.append(str(next(self.numbers)))
            self.replies[names[-1]] = self.app(message, self.contexts[message.metadata.dst_node_id])
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies to messages."""
        return [self.replies.pop(name) for name in message_ids]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Deliver messages and return the replies."""
        return self.pull_messages(self.push_messages(messages))

    def create_message(self, *arguments: Any, **more: Any) -> Message:
        """Return a new message."""
        return Message(*arguments, **more)

    run = None

    def set_run(self, run: Any) -> None:
        """Do nothing: Flower sets the run here."""


def load(app: str) -> tuple[ModuleType, ModuleType, ModuleType]:
    """Import an app of this folder afresh: both have the same name."""
    for name in [each for each in sys.modules if each.split(".")[0] == "quickstart"]:
        del sys.modules[name]
    sys.path.insert(0, str(HERE / app))
    try:
        client, server, task = (
            importlib.import_module(f"quickstart.{part}") for part in ("client_app", "server_app", "task")
        )
    finally:
        sys.path.pop(0)
    return client, server, task


def accuracy(app: str, seed: int, clients: int, folder: Path, **config: Any) -> np.ndarray:
    """Run an app and return the accuracy of its final model on each digit."""
    client, server, task = load(app)
    project = tomllib.loads((HERE / app / "pyproject.toml").read_text())
    run = project["tool"]["flwr"]["app"]["config"] | {"model-file": str(folder / f"{app}-{seed}.pt")} | config
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = seed + 1, 1, 1
    contexts = {}
    for number in range(clients):
        node = {"partition-id": number, "num-partitions": clients, "state-dir": str(folder / "labels")}
        contexts[10 + number] = Context(seed + 1, 10 + number, node, RecordDict(), run)
    torch.manual_seed(seed)
    server.app(GridHere(client.app, contexts), Context(seed + 1, 1, {}, RecordDict(), run))
    net = task.Net()
    net.load_state_dict(torch.load(run["model-file"], weights_only=True))
    _, testloader = task.load_data(0, clients, 256)
    return task.test(net, testloader, "cpu")


def main() -> None:
    """Print accuracy with and without the plug-in."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("seeds", 5), ("rounds", 60), ("clients", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    rare, started = np.isin(np.arange(10), RARE), time.perf_counter()
    print("| app | rare digits | other digits | all |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for app in ("before", "after"):
            found = [
                accuracy(app, seed, args.clients, Path(folder), **{"num-server-rounds": args.rounds})
                for seed in range(args.seeds)
            ]
            parts = [100 * np.array([each[which].mean() for each in found]) for which in (rare, ~rare, slice(None))]
            print(f"| {app} | " + " | ".join(f"{p.mean():.1f} ({p.std(ddof=1):.1f})" for p in parts) + " |")
    print(f"\n{args.seeds} seeds, {args.rounds} rounds, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
