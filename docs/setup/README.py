"""What the snippets of README.md take as given."""

import numpy as np
import torch

rng = np.random.default_rng(0)
labels = np.repeat([0, 1, 2], [300, 80, 20])
posterior = rng.dirichlet([1, 1, 1], 400) * 0.4
posterior[np.arange(400), labels] += 0.6
posterior /= posterior.sum(axis=1, keepdims=True)

train_data = torch.utils.data.TensorDataset(torch.randn(60, 4), torch.arange(60) % 10 // 9)
model = torch.nn.Linear(4, 2)
receive = model.state_dict


def train(model, dataset):
    """Read a client's data once."""
    return [label for _, label in dataset]
