"""Three algorithms that exist to show what the contract carries. Workers import this module."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.average import sample_weights, weighted_sum
from fedrela.algorithms.base import Algorithm, ArraySpec, Exchange
from fedrela.algorithms.local import Group


class Heads(nn.Module):
    """A model with a second head."""

    def __init__(self, model, classes):
        super().__init__()
        self.body, self.head, self.num_features = model.body, model.head, model.num_features
        self.own = nn.Linear(model.num_features, classes, dtype=model.head.weight.dtype)

    def features(self, x):
        return self.body(x)

    def forward(self, x):
        return self.head(self.features(x))


class TwoHeads(Algorithm):
    """Two heads and two optimisers a batch; the second head stays with the client and sees detached features."""

    name, paper = "two_heads", "nobody"
    private = ("own",)
    needs_split = True
    OWN = Group("own", lr=0.3, momentum=0.5, weight_decay=0.0)

    def module(self, model, classes, seed):
        return Heads(model, classes)

    def keeps(self, sizes):
        return {"turns": ArraySpec((), "int64")}

    def client(self, context):
        module = context.model.module

        def loss(batch):
            features = module.features(batch.x)
            batch.scores = module.head(features)
            return cross_entropy(batch.scores, batch.y) + cross_entropy(module.own(features.detach()), batch.y)

        context.train(loss=loss, groups=[self.OWN])
        context.state["turns"] = context.state.get("turns", np.array(100)) + 1
        return {}

    def local_logits(self, module, x, received):
        features = module.features(x)
        return module.head(features) + module.own(features)


class Weighted(Algorithm):
    """All clients report their loss before training; those with a larger one count for more, at home and at the server.

    w = 1 + lam - mean(lam);  x <- x + (1 / |S|) sum_i w_i (y_i - x);  lam <- lam + (F - mean F)
    """

    name, paper = "weighted", "nobody"

    def start(self, model, sizes, seed):
        return {"lam": np.zeros(sizes.clients), "seen": np.zeros(sizes.clients, np.int64), "counts": np.zeros(4)}

    def exchanges(self):
        return (Exchange("hello", "all", every=0), Exchange("loss", "all"), Exchange("thanks", "chosen", every=2))

    def answers(self, exchange, sizes):
        return {"hello": {"counts": ArraySpec((sizes.classes,))}, "loss": {"F": ArraySpec((), "float64")}}.get(
            exchange, {"w": ArraySpec((1,), "float64")}
        )

    def answer(self, exchange, context):
        assert context.model.module.training  # whatever the process did before
        assert not context.model.gradient.any()
        assert np.abs(context.received["lam"]).max() < 1e5  # whatever other clients did to theirs
        if exchange == "hello":
            return {"counts": context.counts.astype("f4")}
        if exchange == "thanks":
            return {"w": context.received["w"]}
        context.received["lam"] += 1e6  # one's own copy
        context.model.module.eval()
        with torch.no_grad():
            logits = context.model.module(context.samples.scaled(slice(None)))
            mean = cross_entropy(logits, torch.from_numpy(context.samples.labels))
        context.model.vector.zero_()  # nothing of it is kept
        return {"F": np.array(mean.item())}

    def absorb(self, exchange, context):
        clients = [upload.client for upload in context.uploads]
        if exchange == "hello":
            context.state["counts"] = weighted_sum(context.uploads, "counts", np.ones(len(clients)))
        elif exchange == "thanks":
            context.state["seen"][clients] += 1
        else:
            F = np.array([upload.arrays["F"] for upload in context.uploads])
            context.state["lam"][clients] += F - F.mean()

    def broadcast(self, state):
        return {"lam": state["lam"]}

    def message(self, state, client):
        return {"w": self.weights(state)[client : client + 1]}

    @staticmethod
    def weights(state):
        return 1 + state["lam"] - state["lam"].mean()

    def client(self, context):
        w = float(context.received["w"][0])
        context.train(loss=lambda batch: w * cross_entropy(batch.forward(), batch.y))
        return {}

    def server(self, context):
        w = self.weights(context.state)[[upload.client for upload in context.uploads]] / len(context.uploads)
        return weighted_sum(context.uploads, "weights", w) + (1 - w.sum()) * context.weights


class ServerHead(Algorithm):
    """Clients send the mean features of each class; the server trains a head on them, and that head is scored.

    A client without a class sends zeros in its place and says so, so that what is sent has one shape.
    """

    name, paper = "server_head", "nobody"
    uploads = ("weights", "means", "present")
    needs_split = True
    STEPS, RATE = 8, 0.5
    auxiliary = 3

    def sends(self, sizes):
        return {"means": ArraySpec((sizes.classes, sizes.features)), "present": ArraySpec((sizes.classes,), "bool")}

    def start(self, model, sizes, seed):
        return {"head": model.head.weight.detach().numpy(), "bias": model.head.bias.detach().numpy()}  # views

    def broadcast(self, state):
        return dict(state)

    def client(self, context):
        context.train()
        context.model.module.eval()
        with torch.no_grad():
            features = context.model.module.features(context.samples.scaled(slice(None))).numpy()
        onto = np.eye(context.counts.size)[context.samples.labels]
        means = (onto.T @ features) / np.maximum(context.counts, 1)[:, None]
        return {"means": means.astype("f4"), "present": context.counts > 0}

    def server(self, context):
        y, x = np.nonzero(np.stack([u.arrays["present"] for u in context.uploads]))[::-1], context.auxiliary
        means = np.stack([u.arrays["means"] for u in context.uploads])[y[1], y[0]]
        new = weighted_sum(context.uploads, "weights", sample_weights(context.uploads))
        context.model.load(new.astype("f4"))
        context.model.module.eval()
        head = context.model.module.head
        with torch.no_grad():
            known = context.model.module.features(x[0])
            head.weight.copy_(torch.tensor(context.state["head"]))
            head.bias.copy_(torch.tensor(context.state["bias"]))
        inputs, labels = torch.cat([torch.from_numpy(means), known]), torch.cat([torch.from_numpy(y[0]), x[1]])
        for _ in range(self.STEPS):
            context.model.zero_grad()
            cross_entropy(head(inputs), labels).backward()
            with torch.no_grad():
                context.model.weights.sub_(context.model.gradient, alpha=self.RATE)
        context.state |= {"head": head.weight.detach().numpy(), "bias": head.bias.detach().numpy()}  # views again
        return new

    def logits(self, module, x, received):
        head, bias = (torch.from_numpy(received[name]) for name in ("head", "bias"))
        return module.features(x) @ head.T + bias


class DrawingServer(TwoHeads):
    """A server that draws from torch's own generator and looks at its model, which must not remember any client."""

    name = "drawing_server"

    def server(self, context):
        assert context.model.module.training
        own = context.model.module.own.weight.detach().numpy()
        context.state["noise"] = torch.rand(own.shape).numpy() + own
        return super().server(context) + 0.01 * context.state["noise"][0, 0]


class OwnNorm(Algorithm):
    """Shares all but the normalisation; what a client would use for itself is scored as the rest, with its own."""

    name, paper = "own_norm", "nobody"
    private = ("body.2",)


THROWAWAY = {each.name: each for each in (TwoHeads, Weighted, ServerHead)}
