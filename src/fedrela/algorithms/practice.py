"""Training at the server, on samples of its own: the same loop, without a client."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedrela.algorithms.context import ClientContext, Local, ServerContext
from fedrela.algorithms.local import train
from fedrela.algorithms.samples import Samples
from fedrela.models.arrays import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.share import ParameterSplit


def train_on_server(
    context: ServerContext, model: FlatModel, x: Tensor, y: Tensor, local: Local, subject: int = 0
) -> None:
    """Train a model on inputs and labels at hand.

    Parameters
    ----------
    turn
        Gives the random numbers.
    model
        What is trained.
    x, y
        Inputs as the model takes them, and their labels.
    local
        How.
    subject
        Tells several trainings in one round apart.
    """
    labels = y.cpu().numpy()
    samples = Samples(x, np.arange(len(labels)), labels, Scaling(), model.vector.device, dtype=x.dtype)
    seed = int(context.stream("practice").integers(2**62))
    with torch.enable_grad():
        train(
            ClientContext(
                seed=seed,
                round=context.round,
                rounds=context.rounds,
                client=subject,
                model=model,
                share=ParameterSplit.of(model.layout),
                samples=samples,
                counts=np.bincount(labels),
                local=local,
            )
        )
