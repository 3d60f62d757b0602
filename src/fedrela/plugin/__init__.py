"""FedReLa for any PyTorch training loop, without Flower: `OneShot` is all that most people need.

>>> from fedrela.plugin import Policy
>>> Policy(max_fraction=0.1).stricter(Policy()).max_fraction
0.1
"""

from fedrela.plugin.dataset import RelabeledDataset, relabeled_loader
from fedrela.plugin.oneshot import OneShot
from fedrela.plugin.policy import Policy, read_policy
from fedrela.plugin.posterior import posterior
from fedrela.plugin.store import LabelStore

__all__ = ["LabelStore", "OneShot", "Policy", "RelabeledDataset", "posterior", "read_policy", "relabeled_loader"]
