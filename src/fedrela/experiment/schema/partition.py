"""The table ``[data.partition]``: which client gets which samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from fedrela.data.partition import dirichlet, iid
from fedrela.data.partition.official import LARGEST_SEED
from fedrela.data.partition.plan import KINDS, PartitionPlan
from fedrela.data.partition.schemes import SCHEMES
from fedrela.experiment.schema.base import MOST_CLIENTS, MOST_SAMPLES, Table, one_of


def _defaults_of(function: Callable[..., Any], *names: str) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: parameters[name].default for name in names}


DEFAULTS = {"dirichlet": _defaults_of(dirichlet, "scheme", "min_size"), "iid": _defaults_of(iid, "min_size")}
OFFICIAL = {"scheme": "multinomial", "min_size": 0}  # what numpy_seed implies


class PartitionConfig(Table):
    """Which client gets which samples; each kind has keys of its own."""

    kind: Annotated[str, one_of(KINDS)] = Field(
        default="dirichlet",
        description="dirichlet: proportions drawn for every class; iid: an even split; natural: the source's own "
        "client ids; shards: a few classes a client",
    )
    clients: int | None = Field(
        default=None,
        ge=1,
        le=MOST_CLIENTS,
        description="number of clients; natural: left out, one client an id of the source",
    )
    alpha: float | None = Field(
        default=None, ge=0.01, le=1e6, description="dirichlet: small values give each client few classes"
    )
    scheme: Annotated[str, one_of(SCHEMES)] | None = Field(
        default=None, description="dirichlet: how proportions become samples; proportional unless numpy_seed is given"
    )
    min_size: int | None = Field(
        default=None,
        ge=0,
        le=MOST_SAMPLES,
        description="dirichlet, iid: samples of the smallest client; 0 allows empty clients",
    )
    numpy_seed: int | None = Field(
        default=None, ge=0, le=LARGEST_SEED, description="dirichlet: follow the official code's stream with this seed"
    )
    classes_per_client: int | None = Field(
        default=None, ge=1, le=MOST_SAMPLES, description="shards: classes that each client sees"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """Write down what the chosen kind does by default, so that a configuration shows all of it."""
        if not isinstance(given, dict):
            return given
        kind = given.get("kind", "dirichlet")
        if kind == "dirichlet" and given.get("numpy_seed") is not None:
            return {**OFFICIAL, **given}
        return {**DEFAULTS.get(kind, {}), **given} if isinstance(kind, str) else given

    @model_validator(mode="after")
    def _check(self) -> Self:
        needed, possible = KINDS[self.kind]
        self.check_used("kind", needed + possible)
        self.check_rules(self.plan)
        return self

    def plan(self) -> PartitionPlan:
        """Return the partition to apply."""
        return PartitionPlan(**{name: getattr(self, name) for name in type(self).model_fields})
