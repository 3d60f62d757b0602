"""FedYoYo: distil weakly augmented views into strongly augmented ones, under prior-adjusted logits.

Yan et al., You are your own best teacher: achieving centralized-level performance in federated learning under
heterogeneous and long-tailed data, 2025.

    l    = f(x) + log(q^tau + 1e-9)                          q: a mix of the global and the client's class prior
    loss = CE(l of both views, y) + lam min(round / warmup, 1) KD
    KD   = mean of KL(softmax(l_weak / T) || softmax(l_strong / T)) over samples with a correct weak view

The global prior: each client of a round sums, per class over its batches, 1 / (mean pairwise cosine of the centred
features); the server adds these up, smooths them over rounds and normalises.

What leaves the client: weights, number of samples; before training the C sums, which are 0 for classes it lacks. What
it receives besides the weights: the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax

from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, ClientContext, Exchange, ServerContext, Sizes
from fedrela.algorithms.local import Batch, Samples
from fedrela.models.augment import strong, weak
from fedrela.options import Options, option

SUSPECT, JUMP = 1e4, 100.0  # a sum, and a relative change, that only a degenerate batch can cause
BATCH = 32  # samples per batch of the prior estimation


@dataclass(frozen=True)
class FedYoyoParams(Options):
    """As in the official code; its script uses lam = 4."""

    tau: float = option(1.5, "strength of the logit adjustment", symbol="tau", ge=0)
    lam: float = option(1.5, "weight of the self-distillation", symbol="lambda", ge=0)
    warmup: int = option(50, "rounds over which lambda grows", ge=1)
    temperature: float = option(1.5, "temperature of the self-distillation", symbol="T", gt=0)
    gamma: float = option(0.1, "weight of the client's own prior in the mix", symbol="gamma", ge=0, le=1)
    inertia: float = option(0.9, "weight of the previous sums on the server", ge=0, le=1)
    prior_mix: str = option(
        "once", "once per round, or before every batch (code), which long tails need", symbol="q",
        choices=("once", "recursive"),
    )  # fmt: skip
    views: str = option("augmented", "weak and strong augmentation, or none", choices=("augmented", "none"))

    def unused(self) -> dict[str, str]:
        """Return the options of the self-distillation, if there is only one view to distil."""
        others = ("lam", "warmup", "temperature") if self.views == "none" else ()
        return dict.fromkeys(others, f"views {self.views!r} does not use it")


def effective_sums(features: Tensor, labels: Tensor, batches: list[NDArray[np.int64]], classes: int) -> NDArray[Any]:
    """Return per class the sum over batches of 1 / (mean pairwise cosine of its centred features).

    A class with one sample in a batch adds 1. The mean is at least 1e-6, as in the official code.
    """
    means = torch.stack([features[labels == c].mean(dim=0) for c in range(classes)])
    sums = np.zeros(classes)
    for batch in batches:
        f, y = features[torch.from_numpy(batch)], labels[torch.from_numpy(batch)]
        for c in torch.unique(y).tolist():
            x = f[y == c] - means[c]
            if len(x) == 1:
                sums[c] += 1.0
                continue
            norms = x.norm(dim=1)
            products = norms[:, None] * norms[None, :]
            cosines = (x @ x.T) / torch.where(products == 0, torch.full_like(products, 1e-6), products)
            sums[c] += 1.0 / max(float(cosines.mean()), 1e-6)
    return sums


def keep_where_it_jumps(before: NDArray[Any], now: NDArray[Any]) -> NDArray[Any]:
    """Return the new sums, or the old ones where the relative change is implausible.

    >>> keep_where_it_jumps(np.array([10.0, 1.0]), np.array([12.0, 500.0])).tolist()
    [12.0, 1.0]
    """
    return np.where(np.abs(now - before) / before > JUMP, before, now)


def distillation(weak_logits: Tensor, strong_logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return the mean KL from weak to strong views over samples with a correct weak view; 0 without any."""
    correct = weak_logits.argmax(dim=1) == labels
    if not bool(correct.any()):
        return strong_logits.new_zeros(())
    teacher = softmax(weak_logits[correct].detach() / temperature, dim=1)
    return kl_div(log_softmax(strong_logits[correct] / temperature, dim=1), teacher, reduction="batchmean")


class FedYoyo(Algorithm):
    """Distils weakly into strongly augmented views, under prior-adjusted logits."""

    name = "fedyoyo"
    label = "FedYoYo"
    paper = "Yan et al., 2025"
    cost = 2.6
    discloses = (("effective", "the effective number of its samples of each class, 0 for classes it lacks"),)
    Params = FedYoyoParams
    reduces_to = "fedavg to rounding at tau = lam = 0 without views"
    broadcasts = ("prior",)
    own_loss = True
    needs_split = True

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.needs_images = self.params.views == "augmented"

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return zero sums and a uniform prior."""
        return {"sums": np.zeros(sizes.classes), "prior": np.full(sizes.classes, 1 / sizes.classes)}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Ask the chosen clients for the sums, every round."""
        return (Exchange("effective", "chosen"),)

    def answers(self, exchange: str, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return one sum per class."""
        return {"sums": ArraySpec((sizes.classes,), "float64")}

    def answer(self, exchange: str, context: ClientContext) -> Arrays:
        """Compute the sums with the received model, in evaluation mode, without views."""
        order = context.stream("prior batches").permutation(len(context.samples))
        batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        labels = torch.from_numpy(context.samples.labels).to(context.samples.device)
        return {"sums": effective_sums(context.features(), labels, batches, context.counts.size)}

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Smooth the clients' sums over rounds and normalise them to a prior."""
        before = context.state["sums"]
        now = 1.0 + np.sum([upload.arrays["sums"] for upload in context.uploads], axis=0)
        if not before.any():
            plausible = now <= SUSPECT
            now = np.where(plausible, now, now[plausible].mean() if plausible.any() else 1.0)
        else:
            now = self.params.inertia * before + (1 - self.params.inertia) * now
            now = keep_where_it_jumps(before, now)
        context.state["sums"], context.state["prior"] = now, now / now.sum()

    def prepare(self, context: ClientContext) -> Samples:
        """Return the samples with two views of each batch, one after the other."""
        samples = context.samples
        if self.params.views == "augmented":
            samples.view = partial(two_views, white=samples.scaling.pixel_max)
        return samples

    def client(self, context: ClientContext) -> None:
        """Minimise adjusted cross-entropy and self-distillation."""
        params = self.params
        q, own = context.received["prior"].copy(), context.counts / context.counts.sum()
        strength = params.lam * min(context.round / params.warmup, 1.0)
        mixed = False

        def loss(batch: Batch) -> Tensor:
            nonlocal q, mixed
            if params.prior_mix == "recursive" or not mixed:
                q, mixed = (1 - params.gamma) * q + params.gamma * own, True
            logits = batch.module(batch.x)
            first, last = logits[: len(batch.y)], logits[-len(batch.y) :]
            batch.scores = first
            shift = torch.from_numpy(np.log(q**params.tau + 1e-9)).to(logits)
            labels = batch.y.repeat(len(logits) // len(batch.y))
            value = cross_entropy(logits + shift, labels)
            if strength:
                value = value + strength * distillation(first + shift, last + shift, batch.y, params.temperature)
            return value

        context.train(loss=loss)


def two_views(raw: Tensor, rng: np.random.Generator, *, white: int = 255) -> Tensor:
    """Return the weak views of a batch, then the strong ones."""
    return torch.cat([weak(raw, rng), strong(raw, rng, white=white)])
