"""The whole configuration: one closed schema for one TOML file.

A new table is a model of its own in ``schema/<name>.py`` and a field here; loading, places of errors, messages, the
TOML text and the digest follow from the field.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, PrivateAttr

from fedrela.experiment.schema.base import Table
from fedrela.experiment.schema.data import DataConfig
from fedrela.experiment.toml.places import Origin

RawTable = dict[str, Any] | None
LARGEST_SEED = 2**63 - 1  # what TOML can hold


class Config(Table):
    """A configuration, checked and complete."""

    seed: int = Field(default=1, ge=0, le=LARGEST_SEED, description="seed of everything that is drawn")
    data: DataConfig = Field(default=DataConfig(), description="source, imbalance and partition")
    model: RawTable = Field(default=None, description="the network")
    algorithm: RawTable = Field(default=None, description="the federated algorithm and its parameters")
    train: RawTable = Field(default=None, description="rounds and local training")
    relabel: RawTable = Field(default=None, description="FedReLa")
    engine: RawTable = Field(default=None, description="how the run is carried out; never changes a result")
    compare: RawTable = Field(default=None, description="seeds, hosts and arms of a comparison")
    sweep: RawTable = Field(default=None, description="values to try for keys of the other tables")
    report: RawTable = Field(default=None, description="what the report shows")
    _origin: Origin = PrivateAttr(default=Origin())

    def model_post_init(self, context: Any, /) -> None:
        """Keep where the configuration comes from, for errors that show only when it is used."""
        self._origin = (context or {}).get("origin", Origin())

    @property
    def origin(self) -> Origin:
        """Where the configuration comes from."""
        return self._origin


# Tables that are known and may hold anything; each leaves this tuple when it gets a model of its own.
LATER_TABLES = tuple(name for name, field in Config.model_fields.items() if field.annotation == RawTable)
