"""`PartitionPlan`: how a configuration states which client gets which samples."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from fedrela.arguments import check_choice, check_integer
from fedrela.data.checks import check_alpha
from fedrela.data.partition.base import Partition
from fedrela.data.partition.basic import iid, natural, shards
from fedrela.data.partition.by_dirichlet import SCHEMES, dirichlet_partition
from fedrela.errors import ArgumentError, DataError

# kind -> what it needs, what it may have beside that
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dirichlet": (("clients", "alpha"), ("scheme", "min_size", "numpy_seed")),
    "iid": (("clients",), ("min_size",)),
    "natural": ((), ("clients",)),
    "shards": (("clients", "classes_per_client"), ()),
}
LEAST = {"clients": 1, "min_size": 0, "numpy_seed": 0, "classes_per_client": 1}


@dataclass(frozen=True)
class PartitionPlan:
    """How samples go to clients; what a kind does not use must be left out.

    Attributes
    ----------
    kind
        ``"dirichlet"``, ``"iid"``, ``"natural"`` (the client ids of the source) or ``"shards"``.
    clients
        K; for ``"natural"`` None means one client per id.
    alpha, scheme, min_size, numpy_seed
        See `fedrela.data.dirichlet`; `min_size` also for ``"iid"``.
    classes_per_client
        See `fedrela.data.shards`.
    """

    kind: str = "dirichlet"
    clients: int | None = None
    alpha: float | None = None
    scheme: str | None = None
    min_size: int | None = None
    numpy_seed: int | None = None
    classes_per_client: int | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, tuple(KINDS))
        needed, possible = KINDS[self.kind]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value is None and field.name in needed:
                raise ArgumentError(f"kind {self.kind!r} needs it", argument=field.name)
            if value is not None and field.name not in needed + possible:
                raise ArgumentError(f"kind {self.kind!r} does not use it; leave it out", argument=field.name)
            if value is not None and field.name in LEAST:
                check_integer(field.name, value, LEAST[field.name])
        if self.alpha is not None:
            check_alpha(self.alpha)
        if self.scheme is not None:
            check_choice("scheme", self.scheme, tuple(SCHEMES))
        if self.numpy_seed is not None and self.min_size:
            what = "numpy_seed follows the official code, which has none"
            raise ArgumentError(f"{what}; leave it out", argument="min_size")
        if self.numpy_seed is not None and self.scheme not in (None, "multinomial"):
            what = "numpy_seed follows the official code, which is multinomial"
            raise ArgumentError(f"{what}; leave it out", argument="scheme")

    def apply(self, labels: ArrayLike, client_ids: ArrayLike | None = None, *, seed: int) -> Partition:
        """Split samples with these labels over the clients.

        >>> [part.size for part in PartitionPlan("iid", clients=2).apply([0, 1, 0, 1], seed=1).parts]
        [2, 2]
        """
        if self.kind == "natural":
            if client_ids is None:
                raise DataError("this source has no client ids, which kind 'natural' needs", argument="partition")
            return Partition(natural(client_ids, self.clients, seed=seed))
        clients = self.clients or 0
        if self.kind == "iid":
            return Partition(iid(labels, clients, seed=seed, min_size=1 if self.min_size is None else self.min_size))
        if self.kind == "shards":
            return Partition(shards(labels, clients, self.classes_per_client or 0, seed=seed))
        scheme, alpha = self.scheme or "proportional", float(self.alpha or np.nan)
        options = {"seed": seed, "min_size": 10 if self.min_size is None else self.min_size}
        return dirichlet_partition(labels, clients, alpha, scheme=scheme, numpy_seed=self.numpy_seed, **options)
