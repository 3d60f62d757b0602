"""Flower (extra ``flower``): a plug-in for anyone's app (`relabel_mod`), and every algorithm on a real federation.

Nothing outside this package imports flwr.
"""

from fedrela.flower.mod import labels_for, relabel_mod, relabeled_dataset, relabeled_loader

__all__ = ["labels_for", "relabel_mod", "relabeled_dataset", "relabeled_loader"]
