"""FedReLa in clients that train with PyTorch Lightning: imbalanced digits, five clients, a model made on the spot.

Needs `pip install fedrela lightning`. Run: python examples/lightning_plugin.py [ROUNDS]
"""

import logging
import sys
import tempfile
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fedrela.data import Imbalance
from fedrela.data.federation import Recipe, build_federation
from fedrela.data.partition import PartitionPlan
from fedrela.data.sources import load
from fedrela.plugin import OneShot

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
ROUNDS, RARE = int(sys.argv[1]) if len(sys.argv) > 1 else 20, (0, 1, 2)


class Net(lightning.LightningModule):
    """A perceptron; `forward` returns logits, which is all that FedReLa asks for."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        """Return the logits of a batch."""
        return self.layers(x)

    def training_step(self, batch, _):
        """Return the loss of a batch."""
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        """Return the optimiser of a round."""
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


recipe = Recipe(
    seed=1,
    imbalance=Imbalance("step", ratio=20, minority=RARE),
    partition=PartitionPlan("dirichlet", clients=5, alpha=0.3),
)
federation = build_federation(load("digits"), recipe)
mean, deviation = federation.x_train.mean(), federation.x_train.std()
x, x_test = (torch.tensor((part - mean) / deviation).float() for part in (federation.x_train, federation.x_test))
y, y_test = torch.tensor(federation.y_train), torch.tensor(federation.y_test)
shards = [TensorDataset(x[shard.train], y[shard.train]) for shard in federation.shards]


def federate(mine):
    """Average the weights of all clients after each round; `mine` has a `OneShot` per client, or is None."""
    lightning.seed_everything(0, verbose=False)
    model = Net()
    for number in range(1, ROUNDS + 1):
        start = {name: value.clone() for name, value in model.state_dict().items()}
        total = {name: torch.zeros_like(value) for name, value in start.items()}
        for k, shard in enumerate(shards):
            model.load_state_dict(start)
            if mine:
                mine[k].before_round(number, model)
            data = mine[k].dataset if mine else shard
            trainer = lightning.Trainer(
                max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                enable_progress_bar=False, enable_model_summary=False,
            )  # fmt: skip
            trainer.fit(model, DataLoader(data, batch_size=16, shuffle=True))
            for name, value in model.state_dict().items():
                total[name] += value * (len(shard) / sum(map(len, shards)))
        model.load_state_dict(total)
    model.eval()
    with torch.no_grad():
        right = model(x_test).argmax(1) == y_test
    rare = torch.isin(y_test, torch.tensor(RARE))
    return right[~rare].float().mean().item(), right[rare].float().mean().item()


with tempfile.TemporaryDirectory() as store:
    mine = [
        OneShot(shard, experiment="lightning", client=k, rounds=ROUNDS, store=store) for k, shard in enumerate(shards)
    ]
    for name, clients in (("without", None), ("with", mine)):
        print("{}: frequent digits {:.1%}, rare digits {:.1%}".format(name, *federate(clients)))
    print(sum(len(each.ledger) for each in mine if each.ledger), "labels moved")
