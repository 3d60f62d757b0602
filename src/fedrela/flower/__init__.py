"""Flower (extra ``flower``): a plug-in for anyone's app (`relabel_mod`), and every algorithm on a real federation.

Nothing outside this package imports flwr.
"""

try:
    import flwr as _  # noqa: F401
except ModuleNotFoundError:
    raise ImportError("fedrela.flower needs Flower, the extra `flower`: pip install 'fedrela[flower]'") from None

from fedrela.flower.current_labels import labels_for, relabeled_dataset, relabeled_loader
from fedrela.flower.mod import relabel_mod

__all__ = ["labels_for", "relabel_mod", "relabeled_dataset", "relabeled_loader"]
