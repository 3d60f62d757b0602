"""Which node is which client, proven by keys where the federation names them; and why a client is not there."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedrela.flower.client_app import challenge
from fedrela.flower.codec import CONFIG, LONGEST_REASON
from fedrela.flower.keys import verified
from fedrela.records import Failure, FailureKind
from fedrela.text import printable

LOGGER = logging.getLogger("flwr")  # the server's log
LOOK_PAUSE = 0.2  # seconds between two polls for connecting clients


class Roster:
    """The nodes of clients. Nodes are asked who they are, since their ids are random and change with every restart.

    A client of `keys` is who it says if it signs the server's random text with the key of its name. Where
    `data_sha256` is set, a client that holds other data than the server expects is refused. Two nodes that say they are
    one client, and nodes with the number of none of the `clients`, are logged.
    """

    def __init__(self, grid: Grid, fingerprint: str, patience: float, keys: Mapping[int, str]) -> None:
        self._grid, self._fingerprint, self._patience, self._keys = grid, fingerprint, patience, keys
        self.data_sha256 = ""
        self.clients: range | None = None
        self.nodes: dict[int, int] = {}
        self.refused: dict[int, str] = {}  # why clients that are connected take no part
        self._claimed: dict[int, str] = {}  # what is wrong with nodes that asked for the place of a client
        self._strangers: set[int] = set()
        self._waited: set[int] = set()

    def doubt(self, client: int) -> None:
        """Ask again before the next task whether this client is still at its node."""
        self.nodes.pop(client, None)

    def absence(self, client: int) -> Failure:
        """Return why a client cannot be given a task."""
        if client in self.refused:
            return Failure(FailureKind.REFUSED, self.refused[client])
        return Failure(FailureKind.NOT_CONNECTED, self._claimed.get(client, ""))

    def find(self, clients: set[int]) -> dict[int, int]:
        """Return the nodes of those clients that are connected; each client is waited for once."""
        end = time.monotonic() + (self._patience if clients - self._waited else 0.0)
        self._waited |= clients
        while True:
            self._look(end)
            if clients <= {*self.nodes, *self.refused} or time.monotonic() >= end:
                return {client: node for client, node in self.nodes.items() if client in clients}
            time.sleep(LOOK_PAUSE)

    def _look(self, end: float) -> None:
        """Drop clients whose node has gone, and ask unknown nodes."""
        there = set(self._grid.get_node_ids())
        self.nodes = {client: node for client, node in self.nodes.items() if node in there}
        self._strangers &= there  # one that went and comes back is asked again
        unknown = sorted(there - set(self.nodes.values()) - self._strangers)
        if not unknown:
            return
        seconds, nonce = max(end - time.monotonic(), self._patience / 10), secrets.token_hex(16)
        question = RecordDict({CONFIG: ConfigRecord({"nonce": nonce})})
        asked = [Message(question, node, "query.hello", ttl=seconds + 60) for node in unknown]
        for reply in self._grid.send_and_receive(asked, timeout=seconds):
            if not reply.has_error():
                said: Mapping[str, Any] = reply.content.config_records.get(CONFIG, {})
                self._note(said, reply.metadata.src_node_id, nonce)

    def _note(self, said: Mapping[str, Any], node: int, nonce: str) -> None:
        """Take a node that said hello as its client, or note why not."""
        client, key = said.get("client"), self._keys.get(said.get("client", -1))
        if type(client) is not int or (self.clients is not None and client not in self.clients):
            said_to_be = printable(repr(client), LONGEST_REASON)
            LOGGER.warning("node %d: says it is client %s, and no client has that number", node, said_to_be)
            self._strangers.add(node)
            return
        proof = challenge(nonce, client, self._fingerprint, node)
        if said.get("fingerprint") != self._fingerprint:
            self._claimed[client] = "a node with another configuration asked for its place"
        elif key is not None and not verified(key, said.get("signature"), proof):
            self._claimed[client] = "a node without its key asked for its place"
        else:
            self._claimed.pop(client, None)
            self.refused.pop(client, None)
            if reason := self._refusal(said):
                self.refused[client] = reason
                self.nodes.pop(client, None)
            else:
                if (other := self.nodes.get(client, node)) != node:
                    what = "client %d: two nodes say they are it, %d and %d; the first is left out"
                    LOGGER.warning(what, client, other, node)
                    self._strangers.add(other)
                self.nodes[client] = node
                return
        self._strangers.add(node)

    def _refusal(self, said: Mapping[str, Any]) -> str:
        data = str(said.get("data", ""))
        if self.data_sha256 and data != self.data_sha256:
            found = printable(data[:8], LONGEST_REASON) or "none"
            return f"holds other data than the configuration's: digest {found}, expected {self.data_sha256[:8]}"
        return printable(str(said.get("refused", "")), LONGEST_REASON)
