"""The official collection of posteriors: the mean of several passes in training mode, in stored batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from fedrela.models import Classifier

BATCH = 8


def official_model(golden: dict[str, np.ndarray]) -> Classifier:
    """The model of the golden, with a head that is to be replaced."""
    width, inputs = golden["fc_w"].shape
    model = Classifier(nn.Sequential(nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()), width, 4)
    with torch.no_grad():
        model.body[0].weight.copy_(torch.from_numpy(golden["fc_w"]))
        model.body[0].bias.copy_(torch.from_numpy(golden["fc_b"]))
    return model


@torch.no_grad()
def posteriors(algorithm: Any, module: nn.Module, golden: dict[str, np.ndarray]) -> np.ndarray:
    """Return the mean softmax of an algorithm's logits by sample."""
    module.train()
    mean = torch.zeros(len(golden["y"]), 4)
    for noise, order in zip(golden["noise"], golden["perms"].astype(int), strict=True):
        for start in range(0, len(order), BATCH):
            at = order[start : start + BATCH]
            x = torch.from_numpy(golden["base"][at] + noise[at])
            mean[at] += algorithm.logits(module, x, {}).softmax(dim=1) / len(golden["noise"])
    return mean.numpy()
