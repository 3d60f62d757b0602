"""Model, data and training."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RARE, KEPT = (0, 1, 2), 6  # of these digits only six images are left in all


class Net(nn.Module):
    """A small perceptron for images of 8x8 pixels."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        """Return the logits of a batch."""
        return self.layers(x)


@cache
def load_digits_split():
    """Return training and test data; the training data are imbalanced, the test data are not."""
    images, labels = load_digits(return_X_y=True)
    images = ((images / 16 - 0.3) / 0.4).astype(np.float32)  # mean 0, deviation 1
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    test, train = order[:360], order[360:]
    kept = [train[labels[train] == digit][: KEPT if digit in RARE else None] for digit in range(10)]
    train = rng.permutation(np.concatenate(kept))
    return (images[train], labels[train]), (images[test], labels[test])


def load_data(partition_id, num_partitions, batch_size):
    """Return a client's training loader and a loader of the test data; clients differ in the digits they have."""
    (images, labels), test = load_digits_split()
    rng = np.random.default_rng(1)
    owner = np.empty(len(labels), int)
    for digit in range(10):
        share = rng.dirichlet(np.full(num_partitions, 0.3))
        owner[labels == digit] = rng.choice(num_partitions, (labels == digit).sum(), p=share)
    mine = owner == partition_id
    trainset = TensorDataset(torch.tensor(images[mine]), torch.tensor(labels[mine]))
    testset = TensorDataset(*map(torch.tensor, test))
    return DataLoader(trainset, batch_size=batch_size, shuffle=True), DataLoader(testset, batch_size=256)


def train(net, trainloader, epochs, lr, device):
    """Train the model on the training set; return the mean loss of the last epoch."""
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    for _ in range(epochs):
        total = 0.0
        for images, labels in trainloader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / len(trainloader)


def test(net, testloader, device):
    """Return the accuracy on each digit."""
    net.to(device)
    net.eval()
    right, seen = np.zeros(10), np.zeros(10)
    with torch.no_grad():
        for images, labels in testloader:
            guess = net(images.to(device)).argmax(dim=1).cpu()
            right += np.bincount(labels[guess == labels], minlength=10)
            seen += np.bincount(labels, minlength=10)
    return right / seen
