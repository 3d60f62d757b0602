"""Which node is which client, proven by keys where the federation names them; and why a client is not connected."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedrela.errors import ArgumentError
from fedrela.files import read_plain
from fedrela.flower.client_app import challenge
from fedrela.flower.codec import CONFIG, LONGEST_REASON
from fedrela.records import Failure, FailureKind
from fedrela.text import printable

LOGGER = logging.getLogger("flwr")  # the server's log
POLL_SECONDS = 0.2  # seconds between two polls for connecting clients
LARGEST_KEY = 1 << 16  # bytes of a key file
KINDS = "ecdsa (P-256, P-384, P-521) or ed25519, without a pass phrase"


class Roster:
    """The nodes of clients. Nodes are asked who they are, since their ids are random and change with every restart.

    A client of `keys` must sign the server's nonce with its key. If `data_sha256` is set, a client whose data differ
    from those that the server expects is refused. Two nodes that claim to be the same client, nodes that claim a number
    outside of `clients`, and nodes that answer with an error are logged.
    """

    def __init__(self, grid: Grid, fingerprint: str, timeout: float, keys: Mapping[int, str]) -> None:
        self._grid, self._fingerprint, self._timeout, self._keys = grid, fingerprint, timeout, keys
        self.data_sha256 = ""
        self.clients: range | None = None
        self.nodes: dict[int, int] = {}
        self.refused: dict[int, str] = {}  # why clients that are connected take no part
        self._rejected: dict[int, str] = {}  # why nodes that claimed to be a client were rejected
        self._ignored: set[int] = set()
        self._refusing: set[int] = set()  # those among them that may be repaired, and are asked again
        self._failed: set[int] = set()  # nodes whose error is logged
        self._waited: set[int] = set()

    def forget(self, client: int) -> None:
        """Ask again before the next task which node this client is."""
        self.nodes.pop(client, None)

    def why_absent(self, client: int) -> Failure:
        """Return why a client cannot get a task."""
        if client in self.refused:
            return Failure(FailureKind.REFUSED, self.refused[client])
        return Failure(FailureKind.NOT_CONNECTED, self._rejected.get(client, ""))

    def find(self, clients: set[int]) -> dict[int, int]:
        """Return the nodes of those clients that are connected; wait for each client only once."""
        end = time.monotonic() + (self._timeout if clients - self._waited else 0.0)
        self._waited |= clients
        self._ignored -= self._refusing
        self._refusing.clear()
        while True:
            self._refresh(end)
            if clients <= {*self.nodes, *self.refused} or time.monotonic() >= end:
                return {client: node for client, node in self.nodes.items() if client in clients}
            time.sleep(POLL_SECONDS)

    def _refresh(self, end: float) -> None:
        """Drop clients whose node is gone, and ask unknown nodes who they are."""
        connected = set(self._grid.get_node_ids())
        self.nodes = {client: node for client, node in self.nodes.items() if node in connected}
        self._ignored &= connected  # one that disconnects and returns is asked again
        self._failed &= connected
        unknown = sorted(connected - set(self.nodes.values()) - self._ignored)
        if not unknown:
            return
        seconds, nonce = max(end - time.monotonic(), self._timeout / 10), secrets.token_hex(16)
        question = RecordDict({CONFIG: ConfigRecord({"nonce": nonce})})
        asked = [Message(question, node, "query.hello", ttl=seconds + 60) for node in unknown]
        for reply in self._grid.send_and_receive(asked, timeout=seconds):
            node = reply.metadata.src_node_id
            if reply.has_error():  # it is asked again, since the error may pass
                self._log_error(node, reply.error.reason or "no reason given")
            else:
                answer: Mapping[str, Any] = reply.content.config_records.get(CONFIG, {})
                self._register(answer, node, nonce)

    def _log_error(self, node: int, reason: str) -> None:
        """Log once per node that it cannot say which client it is."""
        if node not in self._failed:
            self._failed.add(node)
            LOGGER.warning("node %d: cannot say which client it is: %s", node, printable(reason, LONGEST_REASON))

    def _register(self, answer: Mapping[str, Any], node: int, nonce: str) -> None:
        """Register a node as the client that it claims to be, or record why not."""
        client = answer.get("client")
        if type(client) is not int or (self.clients is not None and client not in self.clients):
            claimed = printable(repr(client), LONGEST_REASON)
            LOGGER.warning("node %d: claims to be client %s, but no client has that number", node, claimed)
            self._ignored.add(node)
            return
        key, proof = self._keys.get(client), challenge(nonce, client, self._fingerprint, node)
        other, problem = self.nodes.get(client, node), ""
        if answer.get("fingerprint") != self._fingerprint:
            problem = self._rejected[client] = "a node with another configuration claimed to be it"
        elif key is not None and not verified(key, answer.get("signature"), proof):
            problem = self._rejected[client] = "a node without its key claimed to be it"
        elif problem := self._refusal(answer):
            if other != node:  # the one that takes part stays
                self._rejected[client] = problem
            else:
                self.refused[client] = problem
                self._refusing.add(node)
        else:
            self._rejected.pop(client, None)
            self.refused.pop(client, None)
            self.nodes[client] = node
        if other != node:
            which = f"the second is ignored: {problem}" if problem else "the first is ignored"
            LOGGER.warning("client %d: two nodes claim to be it, %d and %d; %s", client, other, node, which)
        if problem or other != node:
            self._ignored.add(node if problem else other)

    def _refusal(self, answer: Mapping[str, Any]) -> str:
        data = str(answer.get("data", ""))
        if self.data_sha256 and data != self.data_sha256:
            digest = printable(data[:8], LONGEST_REASON) or "none"
            return f"has other data than the configuration: digest {digest}, expected {self.data_sha256[:8]}"
        return printable(str(answer.get("refused", "")), LONGEST_REASON)


def signer(path: Path) -> Callable[[bytes], bytes]:
    """Return a function that signs with the private key in a file, as written by ``ssh-keygen``."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA384
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(read_plain(path, LARGEST_KEY), None)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}", argument="key") from None
    except Exception:  # the package raises many kinds
        raise ArgumentError(f"{path}: expected a private key, {KINDS}", argument="key") from None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return lambda data: key.sign(data, ec.ECDSA(SHA384()))
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign
    raise ArgumentError(f"{path}: expected a private key, {KINDS}", argument="key")


def verified(public: str, signature: Any, data: bytes) -> bool:
    """Whether a signature of these data belongs to a public key, given as the text of a ``.pub`` file."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA384
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    if not isinstance(signature, bytes):
        return False
    try:
        key = load_ssh_public_key(public.encode())
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(SHA384()))
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, data)
        else:
            return False
    except Exception:  # a wrong signature, or an invalid key
        return False
    return True
