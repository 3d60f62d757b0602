"""FedReLa with Flower's older interface: a `NumPyClient`, a `client_fn`, and a server that knows nothing of it.

    python examples/flower-plugin/numpy_client.py

Four clients with imbalanced digits, five rounds in Flower's simulator (`pip install fedrela[flower-sim]`).
"""

import numpy as np
import torch
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.server import ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.serverapp import ServerApp
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fedrela.flower import relabel_mod, relabeled_loader

ROUNDS, CLIENTS = 5, 4


class Net(nn.Sequential):
    """A small perceptron for images of 8x8 pixels."""

    def __init__(self):
        super().__init__(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))


def load_data(partition_id, num_partitions):
    """Return a client's training loader and test loader; the digits 0, 1 and 2 are rare."""
    images, labels = load_digits(return_X_y=True)
    kept = np.flatnonzero((labels > 2) | (np.arange(len(labels)) % 7 == 0))[partition_id::num_partitions]
    rows = TensorDataset(torch.tensor(images[kept] / 16).float(), torch.tensor(labels[kept]))
    test, train = (torch.utils.data.Subset(rows, part) for part in (range(20), range(20, len(rows))))
    return DataLoader(train, batch_size=16, shuffle=True, drop_last=True), DataLoader(test, batch_size=64)


class Client(NumPyClient):
    """An ordinary client, as most public Flower code has it."""

    def __init__(self, trainloader, testloader):
        self.net, self.trainloader, self.testloader = Net(), trainloader, testloader

    def get_parameters(self, config):
        """Return the model's arrays, without their names."""
        return [value.numpy() for value in self.net.state_dict().values()]

    def set_parameters(self, parameters):
        """Load the global model."""
        names = self.net.state_dict().keys()
        self.net.load_state_dict({name: torch.tensor(value) for name, value in zip(names, parameters, strict=True)})

    def fit(self, parameters, config):
        """Train the global model for an epoch."""
        self.set_parameters(parameters)
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        for images, labels in self.trainloader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(images), labels).backward()
            optimizer.step()
        return self.get_parameters({}), len(self.trainloader.dataset), {}

    def evaluate(self, parameters, config):
        """Score the global model on the client's test data."""
        self.set_parameters(parameters)
        images, labels = next(iter(self.testloader))
        logits = self.net.eval()(images)
        right = (logits.argmax(dim=1) == labels).float().mean()
        return nn.functional.cross_entropy(logits, labels).item(), len(labels), {"accuracy": right.item()}


def client_fn(context):
    """Return the client of a node."""
    trainloader, testloader = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    return Client(relabeled_loader(trainloader, context), testloader).to_client()


def server_fn(context):
    """Return an ordinary server: nothing here is about FedReLa."""
    strategy = FedAvg(min_fit_clients=CLIENTS, min_available_clients=CLIENTS)
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS))


app = ClientApp(client_fn=client_fn, mods=[relabel_mod(Net, load_data, rounds=ROUNDS, tau=0.1)])

if __name__ == "__main__":
    from flwr.simulation import run_simulation

    run_simulation(ServerApp(server_fn=server_fn), app, num_supernodes=CLIENTS)
