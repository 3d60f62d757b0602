"""Extra questions to clients before training, as an algorithm asks them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import Exchange
from fedrela.algorithms.turns import ServerTurn
from fedrela.engine.admit import admit
from fedrela.engine.orders import Order
from fedrela.engine.run import Run
from fedrela.engine.server import server_turn
from fedrela.records import Upload


def hold_exchanges(run: Run, round: int, chosen: NDArray[np.int64]) -> None:
    """Hold every exchange that comes before the training of this round, in the algorithm's order."""
    for exchange in run.plan.algorithm.exchanges():
        if exchange.due(round):
            asked = np.arange(run.clients) if exchange.who == "all" else chosen
            _hold(run, round, exchange, asked)


def _hold(run: Run, round: int, exchange: Exchange, asked: NDArray[np.int64]) -> None:
    algorithm, state = run.plan.algorithm, run.state
    fields = dict(algorithm.answers(exchange.name, run.sizes))
    down, up = run.lay_down(), run.area(f"exchange {exchange.name}", fields, asked.size)
    orders = [
        Order(
            kind="ask",
            round=round,
            client=client,
            down=down.handle,
            up=up.handle,
            row=row,
            message=algorithm.message(state.server, client),
            known=bool(state.known[client]),
            subject=exchange.name,
        )
        for row, client in enumerate(asked.tolist())
        if len(run.problem.shards[client].train)
    ]
    answers = [
        Upload(orders[done.position].client, round, done.reply.samples, up.views(orders[done.position].row))
        for done in run.work(orders, run.plan.train.deadline)
        if done.error is None
    ]
    expected = {order.client: len(run.problem.shards[order.client].train) for order in orders}
    verdict = admit(answers, round=round, expected=expected, fields=fields, reference=None, norm_limit=0.0)
    turn: ServerTurn = server_turn(run, round, verdict.admitted)
    algorithm.absorb(exchange.name, turn)
