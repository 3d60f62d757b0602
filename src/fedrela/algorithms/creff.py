"""CReFF: re-train the classifier on the server, on features whose gradients match those of the clients' real ones.

Shang et al., Federated learning on heterogeneous and long-tailed data via classifier re-training with federated
features, IJCAI 2022.

    client: trains as FedAvg; sends for each of its classes the gradient of the mean CE in the re-trained head
    server: x <- sum_i p_i y_i
            features F_c of class c:  SGD on  sum over rows of (1 - cos(real row, row of F_c's gradient)), bias alike
            trains a new random head on all features; it is scored and broadcast; x keeps its averaged head

What leaves the client: weights, number of samples, C blocks of head gradients and a vector of the classes present (the
official code sends only the blocks of those classes, which tells the server the same). What it receives besides the
weights: the re-trained head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear, one_hot

from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, ClientContext, Local, ServerContext, Sizes
from fedrela.errors import ArgumentError
from fedrela.models import heads
from fedrela.models.flat_model import FlatModel
from fedrela.options import Options, option
from fedrela.streams import stream

TINY = 1e-6


@dataclass(frozen=True)
class CreffParams(Options):
    """As in the official code."""

    features: int = option(100, "federated features per class", ge=1)
    match_steps: int = option(100, "matching steps per round", ge=0)
    match_lr: float = option(0.1, "learning rate of matching", gt=0)
    retrain_epochs: int = option(300, "epochs of re-training the head; 0: score the averaged head", ge=0)
    retrain_lr: float = option(0.01, "learning rate of re-training", gt=0)
    retrain_batch: int = option(32, "batch size of re-training", ge=1)
    repeats: int = option(10, "random draws over which a client's class gradient is averaged", ge=1)
    images: int = option(32, "largest number of samples per draw", ge=1)

    def unused(self) -> dict[str, str]:
        """Return the options of re-training, if there is none."""
        others = ("match_steps", "match_lr", "retrain_lr", "retrain_batch") if not self.retrain_epochs else ()
        return dict.fromkeys(others, "retrain_epochs 0 does not use it")


def head_gradients(features: Tensor, labels: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of the mean CE in W and b, for features (..., m, d): (softmax - one-hot)' f / m.

    >>> f, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> W, b = torch.zeros(2, 2), torch.zeros(2)
    >>> head_gradients(f, y, W, b)[1].tolist()
    [-0.5, 0.5]
    """
    error = torch.softmax(linear(features, weight, bias), dim=-1) - one_hot(labels, len(weight)).to(features)
    return error.transpose(-1, -2) @ features / features.shape[-2], error.mean(dim=-2)


def match_loss(real: tuple[Tensor, Tensor], synthetic: tuple[Tensor, Tensor]) -> Tensor:
    """Return sum over rows of (1 - cos) for weights (..., C, d), plus (1 - cos) for biases (..., C)."""
    return sum(((1 - _cosine(a, b)).sum() for a, b in zip(real, synthetic, strict=True)), real[0].new_zeros(()))


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    lengths: Tensor = a.norm(dim=-1) * b.norm(dim=-1)
    return (a * b).sum(dim=-1) / (lengths + TINY)


def match_features(
    features: Tensor, real: tuple[Tensor, Tensor], head: tuple[Tensor, Tensor], present: Tensor, steps: int, lr: float
) -> Tensor:
    """Move features (C, m, d) so that their head gradients point along the real ones, (C, C, d) and (C, C).

    Features of classes that are not present stay the same, bit for bit.
    """
    moving = features[present].clone().requires_grad_()
    if not len(moving):
        return features
    labels = torch.nonzero(present).expand(-1, features.shape[1])
    target = real[0][present], real[1][present]
    for _ in range(steps):
        loss = match_loss(target, head_gradients(moving, labels, *head))
        (slope,) = torch.autograd.grad(loss, [moving])
        moving = (moving.detach() - lr * slope).requires_grad_()
    result = features.clone()
    result[present] = moving.detach()
    return result


class Creff(Algorithm):
    """Re-trains the classifier on the server, on features that imitate the clients' gradients."""

    name = "creff"
    label = "CReFF"
    paper = "Shang et al., 2022"
    cost = 2.5
    Params = CreffParams
    discloses = (
        ("gradient_weight", "for each class the mean gradient of the head on its samples"),
        ("gradient_bias", "the same for the head's bias"),
        ("present", "which classes it has"),
    )
    uploads = ("weights", "gradient_weight", "gradient_bias", "present")
    broadcasts = ("weight", "bias")  # the re-trained head
    reduces_to = "fedavg in x always; in what is scored with retrain_epochs = 0"
    needs_split = True

    def sends(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return C blocks of head gradients, and which classes the client has."""
        C, d = sizes.classes, sizes.features
        return {"gradient_weight": ArraySpec((C, C, d)), "gradient_bias": ArraySpec((C, C)), "present": ArraySpec((C,))}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return random features and a random head."""
        if not isinstance(getattr(model, "head", None), nn.Linear):
            raise ArgumentError("creff: expected a model with a linear head, which it re-trains")
        shape = (sizes.classes, self.params.features, sizes.features)
        return {
            "features": stream(seed, "federated features").standard_normal(shape, dtype=np.float32),
            **_head(heads.linear(sizes.features, sizes.classes, seed=seed, purpose="re-trained head")),
        }

    def client(self, context: ClientContext) -> Arrays:
        """Measure the class gradients at the received model, then train."""
        sent = self._class_gradients(context)
        context.train()
        return sent

    def _class_gradients(self, context: ClientContext) -> Arrays:
        module: Any = context.model.module.eval()
        weight, bias = (context.tensor(context.received[name]) for name in ("weight", "bias"))
        C, d = weight.shape
        blocks, rows = np.zeros((C, C, d), np.float32), np.zeros((C, C), np.float32)
        rng, labels, params = context.stream("class gradients"), context.samples.labels, self.params
        for c in np.unique(labels).tolist():
            members = np.flatnonzero(labels == c)
            draws = np.stack([rng.permutation(members)[: params.images] for _ in range(params.repeats)])
            used, positions = np.unique(draws, return_inverse=True)  # the draws overlap
            with torch.no_grad():
                f = module.features(context.samples.scaled(used))[torch.from_numpy(positions.reshape(draws.shape))]
                gradients = head_gradients(f, torch.full(draws.shape[1:], c, device=f.device), weight, bias)
            blocks[c], rows[c] = (gradient.mean(dim=0).cpu().numpy() for gradient in gradients)
        present = (np.bincount(labels, minlength=C) > 0).astype(np.float32)
        return {"gradient_weight": blocks, "gradient_bias": rows, "present": present}

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Average as FedAvg; match the features to the clients' gradients and re-train a head on them."""
        state, params = context.state, self.params
        if params.retrain_epochs:
            present = np.stack([upload.arrays["present"] for upload in context.uploads])
            count = np.maximum(present.sum(axis=0), 1)
            real = [
                torch.from_numpy(sum(upload.arrays[name] for upload in context.uploads) / count.reshape(-1, *ones))
                for name, ones in (("gradient_weight", (1, 1)), ("gradient_bias", (1,)))
            ]
            head = torch.from_numpy(state["weight"]), torch.from_numpy(state["bias"])
            seen = torch.from_numpy(present.sum(axis=0) > 0)
            old = torch.from_numpy(state["features"])
            new = match_features(old, (real[0], real[1]), head, seen, params.match_steps, params.match_lr)
            state["features"] = new.numpy()
            state.update(self._retrain(context, new))
        return super().server(context)

    def _retrain(self, context: ServerContext, features: Tensor) -> dict[str, NDArray[Any]]:
        """Return a new head, trained on the features from random initial values."""
        C, m, d = features.shape
        head = heads.linear(d, C, seed=context.seed, purpose="re-trained head", round=context.round)
        local = Local(self.params.retrain_lr, self.params.retrain_epochs, self.params.retrain_batch)
        context.train(FlatModel(head), features.reshape(C * m, d), torch.arange(C).repeat_interleave(m), local)
        return _head(head)

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of the re-trained head."""
        if not self.params.retrain_epochs:
            return super().logits(module, x, received)
        split: Any = module
        f = split.features(x)
        return linear(f, *(torch.tensor(received[name]).to(f) for name in ("weight", "bias")))


def _head(head: nn.Linear) -> dict[str, NDArray[Any]]:
    return {"weight": head.weight.detach().numpy().copy(), "bias": head.bias.detach().numpy().copy()}
