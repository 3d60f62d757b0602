"""What the snippets of how-to/plugin.md take as given: an app with a NumPyClient, a loop, a table."""
# ruff: noqa: F401 (the page uses what is imported here)

import runpy
from pathlib import Path

import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

from fedrela.plugin import OneShot

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-plugin" / "numpy_client.py"
app = runpy.run_path(str(EXAMPLE))
Client, ClientApp, Net, ROUNDS, load_data = (app[n] for n in ("Client", "ClientApp", "Net", "ROUNDS", "load_data"))

train_set = TensorDataset(torch.randn(60, 4), torch.arange(60) % 10 // 9)
model = torch.nn.Linear(4, 2)
receive = model.state_dict
OneShot(train_set, experiment="icu", client="3", rounds=5, start=2, store="labels").before_round(2, model)


def train(model, loader):
    """Read a client's data once."""
    return [label for _, labels in loader for label in labels]


X, classes = make_classification(300, weights=[0.9], random_state=0)
y = ["ill" if each else "healthy" for each in classes]
