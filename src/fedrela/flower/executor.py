"""The clients of a Flower grid as the executor of the engine: orders go out as messages, replies come back as uploads.

Scoring stays here. A client that is not connected, does not reply in time or fails is a lost turn and no more: nothing
waits for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flwr.app import Array, Message
from flwr.serverapp import Grid

from fedrela.engine.blocks import Handle
from fedrela.engine.loop import AWAY
from fedrela.engine.messages import Done, one_line
from fedrela.engine.orders import Answer, Order
from fedrela.engine.runner import ClientRunner
from fedrela.flower.codec import Task, as_arrays, as_content, read_reply
from fedrela.flower.roster import Roster
from fedrela.models.repeatable import one_thread

SHORTEST, LONGEST = 0.02, 1.0  # seconds between two looks for replies,
PATIENT = 0.02  # and between them this part of the time waited so far
TYPES = {"train": "train", "ask": "query.ask"}


class FlowerExecutor:
    """Clients elsewhere.

    Parameters
    ----------
    grid
        Flower's way to them.
    experiment
        The name that clients keep their states under; the same after a restart.
    fingerprint
        Of the configuration; clients of another one are left alone.
    patience
        Seconds to wait for clients to connect, and for replies where the configuration has no deadline.

    Attributes
    ----------
    admitted
        The round of each client's last turn that counted.
    durable
        The last round that this server cannot lose.
    """

    remote_clients = True

    def __init__(self, grid: Grid, *, experiment: str, fingerprint: str, patience: float = 600.0) -> None:
        self._grid, self._experiment, self._patience = grid, experiment, patience
        self._roster = Roster(grid, fingerprint, patience)
        self._station: ClientRunner | None = None
        self.admitted: dict[int, int] = {}
        self.durable = 0

    @property
    def size(self) -> int:
        """How many clients are connected, as far as is known."""
        return len(self._roster.nodes)

    def load(self, make: Callable[[Any], ClientRunner], setup: Any, /) -> None:
        """Take the server's own station, which scores."""
        self._station = make(setup)

    def run(self, orders: Sequence[Order], /, deadline: float | None = None) -> Iterator[Done]:
        """Have orders carried out; answers come as they are ready."""
        away = {position: order for position, order in enumerate(orders) if order.kind in TYPES}
        for position, order in enumerate(orders):
            if position not in away:
                yield self._here(position, order)
        if away:
            yield from self._elsewhere(away, deadline or self._patience)

    def _here(self, position: int, order: Order) -> Done:
        assert self._station is not None  # a run loads its station before it gives an order
        if order.kind == "score_local":
            return Done(position, error="train.local_test: clients elsewhere do not score for themselves; leave it out")
        try:
            with one_thread():
                return Done(position, self._station(order))
        except Exception as error:
            return Done(position, error=one_line(error))

    def _elsewhere(self, orders: dict[int, Order], seconds: float) -> Iterator[Done]:
        nodes = self._roster.find({order.client for order in orders.values()})
        sent: dict[int, Message] = {}
        down: dict[Handle, dict[str, Array]] = {}  # one for all that are sent the same
        for position, order in orders.items():
            if order.client in nodes:
                task = self._task(order)
                if order.down.block not in down:
                    down[order.down.block] = as_arrays(task.down)
                content = as_content(task, down[order.down.block])
                sent[position] = Message(
                    content, nodes[order.client], TYPES[order.kind], group_id=str(order.round), ttl=seconds + 60
                )
            else:
                yield Done(position, error=AWAY)
        ids = dict(zip(self._grid.push_messages(list(sent.values())), sent, strict=True))
        yield from self._replies(ids, orders, time.monotonic() + seconds)

    def _replies(self, positions: dict[str, int], orders: dict[int, Order], end: float) -> Iterator[Done]:
        left, began = dict(positions), time.monotonic()
        while left and (now := time.monotonic()) < end:
            came = list(self._grid.pull_messages(list(left)))
            for reply in came:
                position = left.pop(reply.metadata.reply_to_message_id, None)
                if position is not None:
                    yield self._done(position, orders[position], reply)
            if not came:
                pause = min(max(PATIENT * (now - began), SHORTEST), LONGEST)
                time.sleep(min(pause, end - now))
        for position in left.values():
            self._roster.doubt(orders[position].client)
            yield Done(position, error="deadline")

    def _done(self, position: int, order: Order, reply: Message) -> Done:
        said = read_reply(reply)
        if isinstance(said, str):
            self._roster.doubt(order.client)
            return Done(position, error=said)
        if said.client != order.client:  # whoever answers answers for itself
            return Done(position, error="answers for another client")
        return Done(position, Answer(said.samples, upload=said))

    def _task(self, order: Order) -> Task:
        assert self._station is not None
        return Task(
            order.kind, order.round, order.client, order.subject, self._experiment,
            self.admitted.get(order.client, 0), self.durable,
            down=self._station.area(order.down).views(), message=order.message,
        )  # fmt: skip
