"""`PartitionPlan`: how a configuration states which client gets which samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from fedrela.data.checks import Kinds, check_kind, unused_by_kind
from fedrela.data.partition.basic import Partition, iid, natural, shards
from fedrela.data.partition.by_dirichlet import LARGEST_NUMPY_SEED, SCHEMES, dirichlet
from fedrela.errors import ArgumentError, DataError
from fedrela.options import MOST_CLIENTS, MOST_SAMPLES, Options, option

KINDS: Kinds = {
    "dirichlet": (("clients", "alpha"), ("scheme", "min_size", "numpy_seed")),
    "iid": (("clients",), ("min_size",)),
    "natural": ((), ("clients",)),
    "shards": (("clients", "classes_per_client"), ()),
}
DEFAULTS: dict[str, dict[str, Any]] = {"dirichlet": {"scheme": "proportional", "min_size": 10}, "iid": {"min_size": 1}}
OFFICIAL = {"scheme": "multinomial", "min_size": 0}  # what numpy_seed implies


@dataclass(frozen=True)
class PartitionPlan(Options):
    """Which client gets which samples; each kind has its own options: see the function of that name.

    Parameters
    ----------
    kind
        ``dirichlet``: proportions drawn for every class; ``iid``: an even split; ``natural``: the source's own client
        ids; ``shards``: a few classes per client.
    clients
        K; with ``natural`` it may be left out.
    alpha, scheme, numpy_seed
        Of ``dirichlet``.
    min_size
        Of ``dirichlet`` and ``iid``: samples of the smallest client. Its default, like that of `scheme`, depends on the
        kind.
    classes_per_client
        Of ``shards``.

    Examples
    --------
    >>> plan = PartitionPlan("shards", clients=3, classes_per_client=2)
    >>> [part.size for part in plan.apply([0] * 4 + [1] * 4 + [2] * 4, seed=1)]
    [4, 4, 4]
    """

    kind: str = option(
        "dirichlet",
        "dirichlet: proportions drawn for every class; iid: an even split; natural: the source's own "
        "client ids; shards: a few classes per client",
        choices=tuple(KINDS),
    )
    clients: int | None = option(
        None, "number of clients; natural: left out, one client per id of the source", ge=1, le=MOST_CLIENTS
    )
    alpha: float | None = option(None, "dirichlet: small values give each client few classes", ge=0.01, le=1e6)
    scheme: str | None = option(
        None, "dirichlet: how proportions become samples; proportional unless numpy_seed is given", choices=SCHEMES
    )
    min_size: int | None = option(
        None, "dirichlet, iid: samples of the smallest client; 0 allows empty clients", ge=0, le=MOST_SAMPLES
    )
    numpy_seed: int | None = option(
        None, "dirichlet: follow the official code's stream with this seed", ge=0, le=LARGEST_NUMPY_SEED
    )
    classes_per_client: int | None = option(None, "shards: classes that each client sees", ge=1, le=MOST_SAMPLES)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind(self, KINDS)
        official = self.numpy_seed is not None
        for name, value in (OFFICIAL if official else DEFAULTS.get(self.kind, {})).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
            elif official and getattr(self, name) != value:
                what = f"numpy_seed follows the official code, which uses {value!r}; leave it out"
                raise ArgumentError(what, argument=name)

    def unused(self) -> dict[str, str]:
        """Return the options of other kinds."""
        return unused_by_kind(self, KINDS)

    def apply(self, labels: ArrayLike, client_ids: ArrayLike | None = None, *, seed: int) -> Partition:
        """Split samples with these labels over the clients.

        >>> [part.size for part in PartitionPlan("iid", clients=2).apply([0, 1, 0, 1], seed=1)]
        [2, 2]
        """
        if self.kind == "natural":
            if client_ids is None:
                raise DataError("this source has no client ids, which kind 'natural' needs", argument="partition")
            return Partition(natural(client_ids, self.clients, seed=seed))
        clients, min_size = self.clients or 0, self.min_size or 0
        if self.kind == "iid":
            return Partition(iid(labels, clients, seed=seed, min_size=min_size))
        if self.kind == "shards":
            return Partition(shards(labels, clients, self.classes_per_client or 0, seed=seed))
        scheme, alpha = self.scheme or "", self.alpha or 0.0
        return dirichlet(
            labels, clients, alpha, seed=seed, scheme=scheme, min_size=min_size, numpy_seed=self.numpy_seed
        )
