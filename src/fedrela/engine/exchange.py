"""Extra questions to clients before training, as an algorithm asks them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fedrela.algorithms.base import Exchange
from fedrela.engine.admit import admit
from fedrela.engine.run import Run
from fedrela.engine.server import serve
from fedrela.records import Upload

PREFIX = "exchange "  # of the reason why an exchange lost a client


def hold_exchanges(
    run: Run, round: int, chosen: list[int], missing: Mapping[int, str], deadline: float
) -> dict[int, str]:
    """Hold every exchange that comes before the training of this round, in the algorithm's order.

    Returns
    -------
    dict
        Clients that an exchange lost, and why: they sit out the rest of the round. Those of `missing` that were lost
        so before are not asked again.
    """
    lost = {client: reason for client, reason in missing.items() if reason.startswith(PREFIX)}
    for exchange in run.plan.algorithm.exchanges():
        if exchange.due(round):
            everybody = range(run.clients) if exchange.who == "all" else chosen
            asked = [client for client in everybody if client not in lost and len(run.problem.shards[client].train)]
            lost |= _hold(run, round, exchange, asked, deadline)
    return lost


def _hold(run: Run, round: int, exchange: Exchange, asked: list[int], deadline: float) -> dict[int, str]:
    algorithm = run.plan.algorithm
    fields = dict(algorithm.answers(exchange.name, run.sizes))
    down, up = run.lay_down(), run.area(f"exchange {exchange.name}", fields, len(asked))
    orders = [run.order("ask", round, client, down, up, row, subject=exchange.name) for row, client in enumerate(asked)]
    answers, reasons = list[Upload](), dict[int, str]()
    for done in run.work(orders, deadline):
        client = asked[done.position]
        if done.error is None:
            reply = done.reply
            answers.append(reply.upload or Upload(client, round, reply.samples, up.views(done.position)))
        else:
            reasons[client] = done.error
    expected = {client: len(run.problem.shards[client].train) for client in asked}
    verdict = admit(answers, round=round, expected=expected, fields=fields, reference=None, norm_limit=0.0)
    if verdict.admitted:
        serve(run, round, verdict.admitted, exchange.name, partial(algorithm.absorb, exchange.name))
    reasons |= {client: reason for client, reason in verdict.excluded if client is not None}
    return {client: f"{PREFIX}{exchange.name}: {reason}" for client, reason in reasons.items()}
