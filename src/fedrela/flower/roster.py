"""Which node is which client. Nodes are asked, since their ids are random and change with every restart."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fedrela.flower.codec import CONFIG

PAUSE = 0.2  # seconds between two looks


class Roster:
    """The clients that are connected; the parameters are those of `FlowerExecutor`."""

    def __init__(self, grid: Grid, fingerprint: str, patience: float) -> None:
        self._grid, self._fingerprint, self._patience = grid, fingerprint, patience
        self.nodes: dict[int, int] = {}
        self._strangers: set[int] = set()
        self._waited: set[int] = set()

    def doubt(self, client: int) -> None:
        """Ask again before the next task whether this client still is at its node."""
        self.nodes.pop(client, None)

    def find(self, clients: set[int]) -> dict[int, int]:
        """Return the nodes of those clients that are connected; each client is waited for once."""
        end = time.monotonic() + (self._patience if clients - self._waited else 0.0)
        self._waited |= clients
        while True:
            self._look(end)
            if clients <= set(self.nodes) or time.monotonic() >= end:
                return {client: node for client, node in self.nodes.items() if client in clients}
            time.sleep(PAUSE)

    def _look(self, end: float) -> None:
        """Drop clients whose node has gone, and ask unknown nodes."""
        there = set(self._grid.get_node_ids())
        self.nodes = {client: node for client, node in self.nodes.items() if node in there}
        unknown = sorted(there - set(self.nodes.values()) - self._strangers)
        if not unknown:
            return
        seconds = max(end - time.monotonic(), self._patience / 10)
        asked = [Message(RecordDict(), node, "query.hello", ttl=seconds + 60) for node in unknown]
        for reply in self._grid.send_and_receive(asked, timeout=seconds):
            said: Mapping[str, Any] = {} if reply.has_error() else reply.content.config_records.get(CONFIG, {})
            client, node = said.get("client"), reply.metadata.src_node_id
            if type(client) is int and said.get("fingerprint") == self._fingerprint:
                self.nodes[client] = node
            elif not reply.has_error():
                self._strangers.add(node)
