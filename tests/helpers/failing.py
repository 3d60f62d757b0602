"""FedAvg whose clients fail, or take their time, when a schedule says so. Workers import this module."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

import torch

from fedrela.algorithms.fedavg import FedAvg
from helpers.bad_clients import GoingWrong

FOREVER = 600.0  # seconds: a worker that waits so long is ended
WAYS = ("before training", "after training", "amid a ruined model")


def way(round: int, client: int) -> str:
    """Return how a client fails in a round; most fail before they cost anything."""
    return WAYS[{3: 1, 5: 2}.get((client + round) % 7, 0)]


class Failing(FedAvg):
    """Some clients raise in some rounds, some wait for some seconds first.

    Parameters
    ----------
    lost
        Clients that fail, by round.
    delays
        Seconds, by round and client.
    """

    def __init__(
        self, lost: Mapping[int, frozenset[int]] | None = None, delays: Mapping[tuple[int, int], float] | None = None
    ) -> None:
        super().__init__()
        self.lost, self.delays = lost or {}, delays or {}

    def client(self, context):
        if seconds := self.delays.get((context.round, context.client)):
            time.sleep(seconds)
        if context.client not in self.lost.get(context.round, ()):
            return super().client(context)
        how = way(context.round, context.client)
        if how == "after training":
            super().client(context)
        elif how == "amid a ruined model":
            context.model.vector.fill_(torch.nan)
            context.samples.labels[...] = 0
        raise ConnectionError(f"gone {how}")


class Dying(FedAvg):
    """Every client ends its process."""

    def client(self, context):
        os._exit(3)


class SilentClient(GoingWrong):
    """The first client never answers in an exchange."""

    def answer(self, exchange, context):
        if context.client == 0:
            time.sleep(FOREVER)
        return super().answer(exchange, context)
