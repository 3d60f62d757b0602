"""Three algorithms that exist to show what the contract carries. Workers import this module."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.average import shares, total
from fedrela.algorithms.base import Algorithm, Exchange, Field
from fedrela.algorithms.local import Group, train


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
        return {"turns": Field((), "int64")}

    def client(self, turn):
        module = turn.model.module

        def loss(batch):
            features = module.features(batch.x)
            batch.scores = module.head(features)
            return cross_entropy(batch.scores, batch.y) + cross_entropy(module.own(features.detach()), batch.y)

        train(turn, loss=loss, groups=[self.OWN])
        turn.state["turns"] = turn.state.get("turns", np.array(100)) + 1
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
        return {"hello": {"counts": Field((sizes.classes,))}, "loss": {"F": Field((), "float64")}}.get(
            exchange, {"w": Field((1,), "float64")}
        )

    def answer(self, exchange, turn):
        assert turn.model.module.training  # whatever the process did before
        assert not turn.model.gradient.any()
        assert np.abs(turn.received["lam"]).max() < 1e5  # whatever other clients did to theirs
        if exchange == "hello":
            return {"counts": turn.counts.astype("f4")}
        if exchange == "thanks":
            return {"w": turn.received["w"]}
        turn.received["lam"] += 1e6  # one's own copy
        turn.model.module.eval()
        with torch.no_grad():
            logits = turn.model.module(turn.samples.scaled(slice(None)))
            mean = cross_entropy(logits, torch.from_numpy(turn.samples.labels))
        turn.model.vector.zero_()  # nothing of it is kept
        return {"F": np.array(mean.item())}

    def absorb(self, exchange, turn):
        clients = [upload.client for upload in turn.uploads]
        if exchange == "hello":
            turn.state["counts"] = total(turn.uploads, "counts", np.ones(len(clients)))
        elif exchange == "thanks":
            turn.state["seen"][clients] += 1
        else:
            F = np.array([upload.arrays["F"] for upload in turn.uploads])
            turn.state["lam"][clients] += F - F.mean()

    def broadcast(self, state):
        return {"lam": state["lam"]}

    def message(self, state, client):
        return {"w": self.weights(state)[client : client + 1]}

    @staticmethod
    def weights(state):
        return 1 + state["lam"] - state["lam"].mean()

    def client(self, turn):
        w = float(turn.received["w"][0])
        train(turn, loss=lambda batch: w * cross_entropy(batch.forward(), batch.y))
        return {}

    def server(self, turn):
        w = self.weights(turn.state)[[upload.client for upload in turn.uploads]] / len(turn.uploads)
        return total(turn.uploads, "weights", w) + (1 - w.sum()) * turn.weights


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
        return {"means": Field((sizes.classes, sizes.features)), "present": Field((sizes.classes,), "bool")}

    def start(self, model, sizes, seed):
        return {"head": model.head.weight.detach().numpy(), "bias": model.head.bias.detach().numpy()}  # views

    def broadcast(self, state):
        return dict(state)

    def client(self, turn):
        train(turn)
        turn.model.module.eval()
        with torch.no_grad():
            features = turn.model.module.features(turn.samples.scaled(slice(None))).numpy()
        onto = np.eye(turn.counts.size)[turn.samples.labels]
        means = (onto.T @ features) / np.maximum(turn.counts, 1)[:, None]
        return {"means": means.astype("f4"), "present": turn.counts > 0}

    def server(self, turn):
        y, x = np.nonzero(np.stack([u.arrays["present"] for u in turn.uploads]))[::-1], turn.auxiliary
        means = np.stack([u.arrays["means"] for u in turn.uploads])[y[1], y[0]]
        new = total(turn.uploads, "weights", shares(turn.uploads))
        turn.model.load(new.astype("f4"))
        turn.model.module.eval()
        head = turn.model.module.head
        with torch.no_grad():
            known = turn.model.module.features(x[0])
            head.weight.copy_(torch.tensor(turn.state["head"]))
            head.bias.copy_(torch.tensor(turn.state["bias"]))
        inputs, labels = torch.cat([torch.from_numpy(means), known]), torch.cat([torch.from_numpy(y[0]), x[1]])
        for _ in range(self.STEPS):
            turn.model.zero_grad()
            cross_entropy(head(inputs), labels).backward()
            with torch.no_grad():
                turn.model.weights.sub_(turn.model.gradient, alpha=self.RATE)
        turn.state |= {"head": head.weight.detach().numpy(), "bias": head.bias.detach().numpy()}  # views again
        return new

    def logits(self, module, x, received):
        head, bias = (torch.from_numpy(received[name]) for name in ("head", "bias"))
        return module.features(x) @ head.T + bias


class DrawingServer(TwoHeads):
    """A server that draws from torch's own generator and looks at its model, which must not remember any client."""

    name = "drawing_server"

    def server(self, turn):
        assert turn.model.module.training
        own = turn.model.module.own.weight.detach().numpy()
        turn.state["noise"] = torch.rand(own.shape).numpy() + own
        return super().server(turn) + 0.01 * turn.state["noise"][0, 0]


class OwnNorm(Algorithm):
    """Shares all but the normalisation; what a client would use for itself is scored as the rest, with its own."""

    name, paper = "own_norm", "nobody"
    private = ("body.2",)


THROWAWAY = {each.name: each for each in (TwoHeads, Weighted, ServerHead)}
