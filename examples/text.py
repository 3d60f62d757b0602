"""Text as token ids: three topics, of which one is rare; an embedding model; FedReLa by a configuration in Python.

    python examples/text.py

`load` and `TextModel` could be in a package of your own; a TOML file would name them as ``"mypackage.text:load"``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from fedrela.data.sources import Source, from_arrays
from fedrela.experiment import run

WORDS, LENGTH = 200, 24
TOPICS = ("sport", "science", "obituaries")


def load(*, samples: int = 600) -> Source:
    """Make texts whose words are drawn from their topic's part of the vocabulary, and from all of it."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(3), [samples, samples, samples // 2])
    common = rng.integers(0, WORDS, (y.size, LENGTH))
    typical = 40 * y[:, None] + rng.integers(0, 60, (y.size, LENGTH))
    ids = np.where(rng.random((y.size, LENGTH)) < 0.3, typical, common)
    return from_arrays(ids, y, class_names=TOPICS, form="array", name="topics")


class TextModel(nn.Module):
    """The mean of the words' embeddings, and a linear head."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, width: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.head = nn.Linear(width, num_classes)

    def features(self, ids: Tensor) -> Tensor:
        """Return one vector per text."""
        return self.embedding(ids).mean(dim=1)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits."""
        return self.head(self.features(ids))


def config(rounds: int = 30) -> dict[str, dict]:
    """Return the configuration."""
    return {
        "data": {
            "source": load,
            "imbalance": {"kind": "step", "ratio": 10, "minority": [2]},
            "partition": {"kind": "dirichlet", "clients": 5, "alpha": 0.5},
        },
        "model": {"name": TextModel, "width": 16},
        "train": {"rounds": rounds, "epochs": 1, "lr": 0.5},
        "relabel": {"tau": 0.05},
    }


if __name__ == "__main__":
    result = run(config(), out=Path(sys.argv[1] if len(sys.argv) > 1 else "runs/text"), workers=1)
    print(f"accuracy {result.accuracy['overall']:.3f}, {result.moved} labels moved; {result.folder}")
