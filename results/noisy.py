"""Fashion-MNIST with wrong labels, for the study harm-noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrela.data.sources import Source, load
from fedrela.streams import stream


def fashion_mnist(root: str | None = None, *, noise: float = 0.1) -> Source:
    """Return Fashion-MNIST whose training labels are wrong at the rate `noise`, each another class drawn at random."""
    source = load("fashion_mnist", root)
    rng = stream(0, "label noise")
    wrong = rng.random(len(source.y_train)) < noise
    steps = rng.integers(1, source.num_classes, len(source.y_train))
    return replace(source, y_train=np.where(wrong, (source.y_train + steps) % source.num_classes, source.y_train))
