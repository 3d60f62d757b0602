"""SMOTE at every client: synthesise samples of rare classes between real neighbours of the same class.

Chawla et al., SMOTE: synthetic minority over-sampling technique, JAIR 2002.

In the space of inputs (tables) whole rows are synthesised. In the space of features (images) the client computes
features with the received model, and synthesises between them: the head's loss is the mean over real and synthetic
features, and the layers below train on the real samples as with FedAvg. Each class is filled up to the size of the
client's largest class; a class of one sample has no neighbours, so the sample is repeated. imbalanced-learn finds the
neighbours (``pip install 'fedrela[imblearn]'``). The client's weight in the average stays that of its real samples.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.algorithms.base import Algorithm, Batch, ClientContext, Samples, Sizes
from fedrela.errors import ArgumentError
from fedrela.models.contract import need_split
from fedrela.options import Options, option


@dataclass(frozen=True)
class SmoteParams(Options):
    """Five neighbours, as usual."""

    neighbours: int = option(5, "neighbours among which the second parent is drawn", symbol="k", ge=1)
    ratio: float = option(1.0, "size of each class relative to the largest", gt=0, le=1)
    space: str = option("auto", "auto: inputs for tables, features for images", choices=("auto", "inputs", "features"))


class Smote(Algorithm):
    """Makes synthetic samples of rare classes between real neighbours."""

    name = "smote"
    mixes_inputs = True
    label = "SMOTE"
    paper = "Chawla et al., 2002"
    cost = 1.7
    Params = SmoteParams
    reduces_to = "fedavg if a client's classes are equally frequent"

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.mixes_inputs = self.params.space != "features"

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Refuse a model that does not separate its features, if they are needed; the server keeps nothing."""
        if self._in_features(len(sizes.inputs)):
            need_split(model, self.name)
        return {}

    def _in_features(self, dimensions: int) -> bool:
        """Whether samples with so many dimensions are made in the space of features; those of images have three."""
        return bool(self.params.space == "features" or (self.params.space == "auto" and dimensions == 3))

    def prepare(self, context: ClientContext) -> Samples:
        """Return the samples with synthetic ones, in the space of inputs."""
        samples = context.samples
        if self._in_features(samples.inputs.ndim - 1):
            return samples
        if samples.view is not None:
            raise ArgumentError("smote: synthetic images cannot be augmented; space = 'features', or no augment")
        real = samples.scaled(slice(None)).cpu().numpy()
        flat, labels = self._fill(context, real.reshape(len(real), -1))
        inputs = torch.from_numpy(flat.reshape(-1, *real.shape[1:]))
        return Samples.ready(inputs, labels, samples.device, samples.dtype)

    def client(self, context: ClientContext) -> None:
        """Train; in the space of features the head also trains on synthetic ones."""
        if not self._in_features(context.samples.inputs.ndim - 1):
            return context.train()
        synthetic, labels = self._synthetic_features(context)
        loss, rng = context.loss(), context.stream("made features")
        share = len(labels) / len(context.samples)

        def both(batch: Batch) -> Tensor:
            number = int(rng.poisson(share * len(batch.y))) if len(labels) else 0
            if not number:
                return loss(batch.forward(), batch.y)
            at = torch.from_numpy(rng.integers(len(labels), size=number))
            split: Any = batch.module
            features = batch.features()
            # A mean over more samples: the same values with a larger gradient, so that the body's stays that of FedAvg.
            features = features + number / len(batch.y) * (features - features.detach())
            logits = torch.cat([batch.head(features), split.head(synthetic[at])])
            return loss(logits, torch.cat([batch.y, labels[at]]))

        context.train(loss=both)

    def _synthetic_features(self, context: ClientContext) -> tuple[Tensor, Tensor]:
        filled, labels = self._fill(context, context.features().cpu().numpy())
        n, vector = len(context.samples), context.model.vector
        return torch.from_numpy(filled[n:]).to(vector), torch.from_numpy(labels[n:]).to(vector.device)

    def _fill(self, context: ClientContext, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the rows followed by synthetic ones, and the labels of all."""
        labels, rng = context.samples.labels, context.stream("smote")
        size = int(self.params.ratio * context.counts.max())
        missing = {c: size - n for c, n in enumerate(context.counts.tolist()) if 0 < n < size}
        all_rows, all_labels = [rows], [labels]
        for c, number in missing.items():
            all_rows.append(_synthesise(rows[labels == c], number, self.params.neighbours, rng))
            all_labels.append(np.full(number, c, np.int64))
        return np.concatenate(all_rows), np.concatenate(all_labels)


def _synthesise(rows: NDArray[Any], number: int, neighbours: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return rows between neighbours of one class, from imbalanced-learn."""
    if len(rows) == 1:
        return np.repeat(rows, number, axis=0)
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError as error:
        raise ArgumentError("smote: requires imbalanced-learn; pip install 'fedrela[imblearn]'") from error
    k, seed = min(neighbours, len(rows) - 1), int(rng.integers(2**31))
    sampler = SMOTE(sampling_strategy={1: len(rows) + number}, k_neighbors=k, random_state=seed)
    # Its interface requires a second, larger class: copies of a row that it then ignores.
    others = np.repeat(rows[:1], len(rows) + number, axis=0)
    x = np.concatenate([rows, others])
    y = np.concatenate([np.ones(len(rows), np.int64), np.zeros(len(others), np.int64)])
    filled, _ = sampler.fit_resample(x, y)
    return np.asarray(filled[len(x) :], rows.dtype)
