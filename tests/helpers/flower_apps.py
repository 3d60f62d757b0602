"""A client on Flower in this process: real messages, contexts and apps, and a training function that tells what it saw.

Imported only where flwr is installed.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_to_proto
from flwr.supercore.task_identity import TaskIdentity
from torch.utils.data import DataLoader, TensorDataset

from fedrela.errors import FedrelaError
from fedrela.flower import labels_for, relabel_mod, relabeled_dataset, relabeled_loader
from helpers.plugin_toys import Scorer, points

NODE = 5


def load_data(partition_id: int, num_partitions: int) -> tuple[DataLoader, DataLoader]:
    """Give training and test data as the usual quickstart does."""
    assert num_partitions == 4
    loader = DataLoader(TensorDataset(*points(partition_id)), batch_size=50, shuffle=True)
    return loader, DataLoader(TensorDataset(*points(99)))


class Client:
    """One node with its app; `restart` loses the context's state, as a SuperNode does.

    Attributes
    ----------
    seen
        For each call the labels in the order of the data, in the three ways to have them, which agree.
    """

    def __init__(self, folder: Path, mods: list | None = None, node: dict | None = None, **run: Any) -> None:
        self.node = {"partition-id": 3, "num-partitions": 4, "state-dir": str(folder)} | (node or {})
        self.run = {"num-server-rounds": 10, "fedrela-tau": 0.2} | run
        self.app = ClientApp(mods=[relabel_mod(Scorer, load_data)] if mods is None else mods)
        self.seen: list[list[int]] = []
        self.app.train()(self.train)
        self.app.evaluate()(self.train)  # a careless user: the same function for both
        self.restart()

    def restart(self) -> None:
        self.context = Context(77, NODE, self.node, RecordDict(), self.run)

    def train(self, message: Message, context: Context) -> Message:
        loader, _ = load_data(3, 4)
        y = loader.dataset.tensors[1]
        labels = labels_for(context, y)
        rows = relabeled_dataset(loader.dataset, context)
        assert [int(label) for _, label in rows] == labels.tolist()
        assert torch.bincount(torch.cat([y for _, y in relabeled_loader(loader, context)])).tolist() == (
            torch.bincount(labels).tolist()
        )
        self.seen.append(labels.tolist())
        model = Scorer()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        with torch.no_grad():
            model.centres += labels.float().mean()
        metrics = MetricRecord({"loss": 0.5, "num-examples": len(y)})
        return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)

    def receive(self, round: int, model: torch.nn.Module | None = None, kind: str = "train", **config: Any) -> Message:
        """Handle a message of a round, and return the reply."""
        reply: Message = self.app(message(round, model or Scorer(), kind, **config), self.context)
        return reply


def message(round: int, model: torch.nn.Module, kind: str = "train", **config: Any) -> Message:
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 77, 1, 1
    settings = ConfigRecord({"server-round": round, **config})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "config": settings})
    return Message(content, dst_node_id=NODE, message_type=kind)


def sent(reply: Message) -> bytes:
    """Return what a reply puts on the wire."""
    data: bytes = recorddict_to_proto(reply.content).SerializeToString(deterministic=True)
    return data


class Heard(logging.Handler):
    """What a client's log says."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))


@contextlib.contextmanager
def refused(said: str) -> Iterator[None]:
    """Expect an error whose text is one line in the client's log, and not in what Flower sends to the server."""
    heard = Heard()
    logging.getLogger("flwr").addHandler(heard)
    to_server = r"^relabel_mod: failed in round \d+ with \w+; the client's log says why$"
    try:
        with pytest.raises(FedrelaError, match=to_server):
            yield
    finally:
        logging.getLogger("flwr").removeHandler(heard)
    lines = [line for level, line in heard.lines if level == "ERROR"]
    assert len(lines) == 1, lines
    assert re.search(said, lines[0]), lines[0]
    assert "\n" not in lines[0]
