"""Configurations that are right: the example of the design, and every kind of imbalance and partition."""

from __future__ import annotations

from fedrela.data import Imbalance

EXAMPLE = """
seed = 1

[data]
source = "digits"              # digits, fashion_mnist, cifar10, cifar100, image_folder, npz, csv, gaussians
# root = "data"                # where the source's files lie; relative to this file
imbalance = { kind = "step", ratio = 20, minority = [0, 1, 2] }      # minority: ids, or a share of the last classes
partition = { kind = "dirichlet", clients = 10, alpha = 0.3, min_size = 5 }   # or kind = "iid", "natural", "shards"
validation = 0.0               # share of each client's samples held out, original labels, never trained on

[model]
name = "mlp"                   # mlp, logistic, cnn, cnn_small, simple_cnn, resnet8 ... resnet50
hidden = [64]

[algorithm]
name = "fedavg"                # its own parameters follow as keys, for example mu = 0.01 for fedprox

[train]
rounds = 60                    # communication rounds
participation = 1.0
epochs = 2
batch_size = 16
lr = 0.05
momentum = 0.9
weight_decay = 1e-5
loss = "cross_entropy"         # balanced_softmax, logit_adjustment, focal, class_balanced
schedule = "constant"          # step, cosine; over rounds
clip = 0.0                     # gradient norm, 0: off
augment = false

[relabel]
enabled = true
start = 0.8
period = 0                     # 0: one shot
tau = 0.05                     # or a table client id -> number
preset = "paper"
max_fraction = 1.0
lr_scale = 1.0                 # 0.1 is what the official code does
late = true

[engine]
workers = "auto"
device = "auto"
checkpoint_every = 5

[compare]
seeds = [1, 2, 3]

[sweep]
"relabel.tau" = [0.01, 0.05]

[report]
samples = false
"""

# a table, and the plan that it means; None: the plan with the same fields
IMBALANCES = [
    ({}, Imbalance()),
    ({"kind": "natural"}, Imbalance()),
    ({"kind": "step", "ratio": 1}, Imbalance("step", ratio=1.0)),
    ({"kind": "step", "ratio": 9.5, "minority": 0.3, "side": "first", "largest": 40}, None),
    ({"kind": "step", "ratio": 9, "minority": [2, 0], "side": "last", "order": "random"}, None),
    ({"kind": "long_tail", "factor": 100}, Imbalance("long_tail", factor=100.0)),
    ({"kind": "long_tail", "factor": 100, "largest": 9, "order": [2, 0, 1]}, None),
]

# a table, and what the plan has beside it
PARTITIONS = [
    ({"clients": 5, "alpha": 1}, {"kind": "dirichlet", "alpha": 1.0, "scheme": "proportional", "min_size": 10}),
    ({"clients": 5, "alpha": 0.01, "scheme": "niid_bench", "min_size": 0}, {"kind": "dirichlet"}),
    ({"clients": 5, "alpha": 1e6, "scheme": "equal"}, {"kind": "dirichlet", "min_size": 10}),
    ({"clients": 5, "alpha": 1.0, "numpy_seed": 7}, {"kind": "dirichlet", "scheme": "multinomial", "min_size": 0}),
    ({"kind": "iid", "clients": 5}, {"min_size": 1}),
    ({"kind": "iid", "clients": 5, "min_size": 3}, {}),
    ({"kind": "natural"}, {}),
    ({"kind": "natural", "clients": 3}, {}),
    ({"kind": "shards", "clients": 3, "classes_per_client": 2}, {}),
]
