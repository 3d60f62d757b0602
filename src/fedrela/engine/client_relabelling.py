"""FedReLa at a client: the posterior of the model it just received, then `fedrela.relabel`.

None of this leaves the client, and no algorithm knows about it: afterwards some labels have changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.context import ClientContext
from fedrela.core import Relabelling, relabel
from fedrela.core.draws import expected_flow, random_moves
from fedrela.core.equations import ClassGroups, agreement, z_scores
from fedrela.core.limits import eligible_by_agreement
from fedrela.engine.run_options import RelabelPlan
from fedrela.engine.tasks import ClientRelabelling
from fedrela.metrics import Z_EDGES, z_histogram
from fedrela.models.augment import crop_and_flip
from fedrela.models.inputs import FORWARD_BATCH
from fedrela.models.runtime import torch_stream


def relabel_client(
    context: ClientContext, algorithm: Algorithm, plan: RelabelPlan, scores: NDArray[np.float32] | None
) -> ClientRelabelling:
    """Re-label a client's samples, starting from their original labels, with the model as it was received.

    `scores` are the logits of the client's last training epoch, (n, C), if they were collected.
    """
    start = time.perf_counter()
    original, classes = context.samples.labels, context.counts.size
    Q = posterior(context, algorithm, plan, scores)
    confirmed = agreement(Q, original)
    done = relabel(
        Q,
        original,
        num_classes=classes,
        eligible=eligible_by_agreement(confirmed, plan.min_agreement, len(original)),
        seed=context.stream("relabel"),
        **plan.keywords(context.client) | {"keep": np.isin(context.samples.index, np.array(plan.keep, np.int64))},
    )
    ledger = done.ledger
    if plan.moves == "random":
        ledger = random_moves(ledger, Q, context.stream("random moves"))
    histogram, expected = _histogram_and_flow(Q, done)
    return ClientRelabelling(ledger, done.threshold, expected, histogram, confirmed, time.perf_counter() - start)


def posterior(
    context: ClientContext, algorithm: Algorithm, plan: RelabelPlan, scores: NDArray[np.float32] | None
) -> NDArray[np.float64]:
    """Return the class probabilities of a client's samples, (n, C)."""
    if plan.collected and scores is not None and not np.isnan(scores).any():
        return _softmax(scores)
    mean = np.zeros((len(context.samples), context.counts.size))
    rng, module = context.stream("posterior"), context.model.module
    before = context.model.vector.clone() if plan.train_mode else None
    module.train(plan.train_mode and len(context.samples) > 1)
    device = context.samples.device
    with torch_stream(device, context.seed, "posterior", context.round, context.client), torch.no_grad():
        for _ in range(plan.passes):
            for at, x in _batches(context, plan, rng):
                logits = algorithm.logits(module, x, context.received)
                mean[at] += _softmax(logits.cpu().numpy()) / plan.passes
    if before is not None:
        context.model.load(before)  # running statistics that moved in training mode are restored
    module.train()
    return mean


def _batches(
    context: ClientContext, plan: RelabelPlan, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
    """Yield samples in order and as they are, or as the official collection does: shuffled, small, augmented."""
    samples = context.samples
    order = rng.permutation(len(samples)) if plan.train_mode else np.arange(len(samples))
    size = context.local.batch_size if plan.train_mode else FORWARD_BATCH
    starts = list(range(0, len(order), size))
    if plan.train_mode and len(order) > 1 and len(order) - starts[-1] == 1:
        starts[-1:] = []  # BatchNorm cannot take one sample alone in training mode, so it joins those before it
    for start, stop in pairwise([*starts, len(order)]):
        at = order[start:stop]
        raw = samples.raw(at)
        yield at, samples.as_input(crop_and_flip(raw, rng) if plan.augment and raw.dtype == torch.uint8 else raw)


def _softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    wide = logits.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _histogram_and_flow(Q: NDArray[np.float64], done: Relabelling) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the histograms of the scores for each class, and the expected moves into each class."""
    classes, ledger = Q.shape[1], done.ledger
    if done.refusal is not None or not len(Q):
        return np.zeros((classes, len(Z_EDGES) + 1), np.int64), np.zeros(classes)
    y = ledger.original
    groups = ClassGroups.of(y, np.bincount(y, minlength=classes))
    z, _ = z_scores(np.ascontiguousarray(Q[groups.order].T), groups, str(ledger.options["spread"]))
    expected = expected_flow(done.candidates, y, str(ledger.options["target"])).sum(axis=0)
    return z_histogram(z, by_row=True), expected
