"""One step on the rows of the identity, at the rate 1: what a weight moves by is the gradient of the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from fedrela.algorithms.context import ClientContext
from fedrela.models import Classifier
from helpers.contexts import client_context


def whose_features_are(features: np.ndarray, classes: int) -> Classifier:
    """A model whose features of the identity's rows are the ones given."""
    n, width = features.shape
    model = Classifier(nn.Linear(n, width, bias=False), width, classes).to(torch.from_numpy(features).dtype)
    with torch.no_grad():
        model.body.weight.copy_(torch.from_numpy(features.T))
    return model


def whose_logits_are(logits: np.ndarray) -> Classifier:
    """A model whose features are its inputs and whose logits of the identity's rows are the ones given."""
    model = Classifier(nn.Identity(), *logits.shape).to(torch.from_numpy(logits).dtype)
    with torch.no_grad():
        model.head.weight.copy_(torch.from_numpy(logits.T))
        model.head.bias.zero_()
    return model


def one_step(
    algorithm: Any, module: nn.Module, y: np.ndarray, counts: np.ndarray
) -> tuple[dict[str, np.ndarray], ClientContext]:
    """Return what every array moved by, and the context afterwards."""
    dtype = next(module.parameters()).detach().numpy().dtype
    context = client_context(module, np.eye(len(y), dtype=dtype), y, stored=True, batch_size=len(y), lr=1.0)
    context.counts = counts
    before = context.model.read()
    assert not algorithm.client(context)
    assert context.steps == 1
    return {name: before[name] - after for name, after in context.model.read().items()}, context
