"""A grid whose nodes are in this process: real Flower messages, contexts and client apps, without a network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

SERVER = 1


class InProcessGrid(Grid):
    """One client app for each node; what a node does with a message can be replaced.

    Parameters
    ----------
    apps
        One app per client, by client id.
    lose
        Whether a message to a client in a round gets no reply.
    """

    def __init__(
        self, apps: dict[int, ClientApp], state: str, lose: Callable[[Message, int], bool] | None = None
    ) -> None:
        self.nodes = {1000 + 7 * client: client for client in apps}
        self.apps, self._lose = apps, lose or (lambda message, client: False)
        self.contexts = {
            node: Context(
                run_id=1, node_id=node, node_config={"partition-id": client, "state-dir": state}, state=RecordDict(),
                run_config={},
            )
            for node, client in self.nodes.items()
        }  # fmt: skip
        self._replies: dict[str, Message] = {}
        self._ids = itertools.count(1)
        self.sent: list[Message] = []
        self.replied: list[Message] = []

    def set_run(self, run: Any) -> None:
        """Not needed."""

    @property
    def run(self) -> Any:
        """Not needed."""
        return None

    def create_message(self, *args: Any, **more: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            number = str(next(self._ids))
            message.metadata._message_id = number
            ids.append(number)
            self.sent.append(message)
            node = message.metadata.dst_node_id
            if node in self.nodes and not self._lose(message, self.nodes[node]):
                _be(node)
                reply = self.apps[self.nodes[node]](message, self.contexts[node])
                _be(SERVER)
                self.replied.append(reply)
                self._replies[number] = self.mangled(reply)
        return ids

    def mangled(self, reply: Message) -> Message:
        """Return a reply as it arrives."""
        return reply

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(each) for each in message_ids if each in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(list(self.push_messages(messages)))


def _be(node: int) -> None:
    """Let messages made from now on come from a node."""
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, node


_be(SERVER)


class StoppingGrid(InProcessGrid):
    """A grid whose server is interrupted in round 3."""

    def push_messages(self, messages):
        messages = list(messages)
        if any(message.metadata.group_id == "3" for message in messages):
            raise KeyboardInterrupt
        return super().push_messages(messages)
