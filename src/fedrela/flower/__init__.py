"""Flower (extra ``flower``): a plug-in for anyone's app (`relabel_mod`), and every algorithm on a real federation.

Nothing outside this package imports flwr.
"""

from fedrela.flower.labels import labels_for, relabeled_dataset, relabeled_loader
from fedrela.flower.mod import relabel_mod

__all__ = ["labels_for", "relabel_mod", "relabeled_dataset", "relabeled_loader"]
