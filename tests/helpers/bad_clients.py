"""An algorithm of which one client goes wrong in one round, in a way of one's choice. Workers import this module."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from fedrela.algorithms.base import Algorithm, ArraySpec, Exchange
from fedrela.options import Options, option

# kind -> how the reason begins that the round's record gives
KINDS = {
    "raises": "ZeroDivisionError: two lines",
    "ruins": "RuntimeError: everything",
    "nan": "not finite: weights",
    "infinite": "not finite: weights",
    "huge": "values too large: weights",
    "far": "norm too large: ",
    "nan beside": "not finite: extra",
    "undeclared": "ArgumentError: going_wrong: 'secret' is not declared",
    "missing": "ArgumentError: going_wrong: 'extra' is declared but missing",
    "shape": "ArgumentError: going_wrong: 'extra': expected float32 of shape (2,), got float32 of shape (1, 2)",
    "dtype": "ArgumentError: going_wrong: 'extra': expected float32 of shape (2,), got float64 of shape (2,)",
    "keeps more": "ArgumentError: going_wrong: state: 'label' is not declared",
    "keeps less": "ArgumentError: going_wrong: state: 'turns' is declared but missing",
    "idle": "no step",
}
ANSWERS = {
    "raises": "exchange ask: ZeroDivisionError: two lines",
    "nan beside": "exchange ask: not finite: extra",
    "undeclared": "exchange ask: ArgumentError: going_wrong: ask: 'secret' is not declared",
}
BAD, ROUND = 1, 2


@dataclass(frozen=True)
class GoingWrongParams(Options):
    kind: str = option("", "how", choices=("", "dies", *KINDS))
    asked: str = option("", "how in the exchange", choices=("", "dies", *ANSWERS))


class GoingWrong(Algorithm):
    name, paper, Params = "going_wrong", "nobody", GoingWrongParams
    uploads = ("weights", "extra")

    def module(self, model, classes, seed):
        model.head.bias.requires_grad_(False)
        return model

    def sends(self, sizes):
        return {"extra": ArraySpec((2,))}

    def keeps(self, sizes):
        return {"turns": ArraySpec((), "int64")}

    def start(self, model, sizes, seed):
        return {"answers": np.zeros(2)}

    def exchanges(self):
        return (Exchange("ask", "all"),)

    def answers(self, exchange, sizes):
        return {"extra": ArraySpec((2,))}

    def answer(self, exchange, context):
        if self._bad(context) and self.params.asked:
            return self._wrong(self.params.asked, context, {"extra": np.ones(2, "f4")})
        return {"extra": context.counts[:2].astype("f4")}

    def absorb(self, exchange, context):
        context.state["answers"] = context.state["answers"] + sum(upload.arrays["extra"] for upload in context.uploads)

    def client(self, context):
        bad = self._bad(context)
        if bad and self.params.kind == "idle":
            return {}
        context.train()
        context.state["turns"] = context.state.get("turns", np.array(0)) + 1
        sent = {"extra": np.ones(2, "f4")}
        return self._wrong(self.params.kind, context, sent) if bad else sent

    def _bad(self, context):
        return (context.client, context.round) == (BAD, ROUND)

    def _wrong(self, kind, context, sent):
        if kind in WEIGHTS:
            at, value = WEIGHTS[kind]
            context.model.weights[at] = value
        elif kind in ACTS:
            ACTS[kind](context)
        elif kind == "missing":
            return {}
        return sent | SENT.get(kind, {})


def fail(context):
    raise ZeroDivisionError("two\nlines")


def ruin(context):
    """Leave the model in a state in which nobody can use it."""
    context.model.vector.fill_(np.nan)
    context.model.gradient.fill_(np.nan)
    context.model.module.eval()
    for parameter in context.model.module.parameters():
        parameter.grad = None
        parameter.requires_grad_(False)
    raise RuntimeError("everything")


WEIGHTS = {"nan": (3, np.nan), "infinite": (0, np.inf), "huge": (5, 1e30), "far": (slice(None), 1e4)}
ACTS = {
    "raises": fail,
    "ruins": ruin,
    "dies": lambda context: os._exit(3),
    "keeps more": lambda context: context.state.update(label=np.zeros(1)),
    "keeps less": lambda context: context.state.clear(),
}
SENT = {
    "undeclared": {"secret": np.zeros(3)},
    "shape": {"extra": np.ones((1, 2), "f4")},
    "dtype": {"extra": np.ones(2)},
    "nan beside": {"extra": np.array([1, np.nan], "f4")},
}
