"""FedReLa in clients that train with Hugging Face's Trainer: made-up sentences, a transformer made on the spot.

Needs `pip install fedrela transformers accelerate`. Run: python examples/trainer_plugin.py [ROUNDS]
"""

import sys
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

from fedrela.plugin import OneShot

ROUNDS, CLIENTS, WORDS, LENGTH = int(sys.argv[1]) if len(sys.argv) > 1 else 8, 3, 50, 12
rng = np.random.default_rng(0)


def sentences(counts):
    """Make sentences of two overlapping vocabularies: class 1 is rare."""
    labels = np.repeat([0, 1], counts)
    ids = np.where(rng.random((len(labels), LENGTH)) < 0.5, rng.integers(1, WORDS, (len(labels), LENGTH)), 0)
    ids = np.where(ids == 0, labels[:, None] * 15 + rng.integers(1, 25, ids.shape), ids)
    return ids, labels


class Rows(Dataset):
    """Rows as Hugging Face has them: dictionaries."""

    def __init__(self, ids, labels):
        self.ids, self.labels = ids, labels

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.ids[i]), "labels": int(self.labels[i])}


shards = [Rows(*sentences(counts)) for counts in ((120, 20), (100, 12), (80, 24))]
test = Rows(*sentences((100, 100)))
config = DistilBertConfig(
    vocab_size=WORDS + 1, max_position_embeddings=LENGTH, dim=32, hidden_dim=64, n_layers=1, n_heads=2, num_labels=2
)


def federate(mine, scratch):
    """Average the weights of all clients after each round; `mine` has a `OneShot` per client, or is None."""
    torch.manual_seed(0)
    model = DistilBertForSequenceClassification(config)
    options = {"num_train_epochs": 1, "learning_rate": 2e-3, "report_to": [], "save_strategy": "no", "use_cpu": True}
    options |= {"per_device_train_batch_size": 16, "disable_tqdm": True, "logging_strategy": "no"}
    arguments = TrainingArguments(scratch, **options)
    for number in range(1, ROUNDS + 1):
        start = {name: value.clone() for name, value in model.state_dict().items()}
        total = {name: torch.zeros_like(value) for name, value in start.items()}
        for k, shard in enumerate(shards):
            model.load_state_dict(start)
            if mine:
                mine[k].before_round(number, model)
            Trainer(model, arguments, train_dataset=mine[k].dataset if mine else shard).train()
            for name, value in model.state_dict().items():
                total[name] += value * (len(shard) / sum(map(len, shards)))
        model.load_state_dict(total)
    model.eval()
    with torch.no_grad():
        right = model(torch.tensor(test.ids)).logits.argmax(1).numpy() == test.labels
    return right[test.labels == 0].mean(), right[test.labels == 1].mean()


def logits(model, batch):
    """Tell FedReLa how to call the model: batch and output are dictionaries."""
    return model(batch["input_ids"]).logits


with tempfile.TemporaryDirectory() as scratch:
    options = {"experiment": "trainer", "rounds": ROUNDS, "start": 0.5, "tau": 0.2, "store": scratch}
    mine = [OneShot(rows, client=k, forward=logits, label="labels", **options) for k, rows in enumerate(shards)]
    for name, clients in (("without", None), ("with", mine)):
        print("{}: frequent class {:.1%}, rare class {:.1%}".format(name, *federate(clients, scratch)))
    print(sum(len(each.ledger) for each in mine if each.ledger), "labels moved")
