"""The whole configuration: one closed schema for one TOML file.

A new table is a model of its own in ``schema/<name>.py`` and a field here; loading, places of errors, messages, the
TOML text and the digest follow from the field.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from fedrela.experiment.schema.across import faults_across
from fedrela.experiment.schema.algorithm import AlgorithmConfig
from fedrela.experiment.schema.base import BrokenRuleError, Table
from fedrela.experiment.schema.compare import LARGEST_SEED, CompareConfig, compare_faults
from fedrela.experiment.schema.data import DataConfig
from fedrela.experiment.schema.engine import EngineConfig
from fedrela.experiment.schema.model import ModelConfig
from fedrela.experiment.schema.relabel import RelabelConfig
from fedrela.experiment.schema.report import ReportConfig
from fedrela.experiment.schema.sweep import check_sweep
from fedrela.experiment.schema.swept import sweep_faults
from fedrela.experiment.schema.train import TrainConfig
from fedrela.experiment.toml.places import Origin


class Config(Table):
    """A configuration, checked and complete."""

    seed: int = Field(default=1, ge=0, le=LARGEST_SEED, description="seed of everything that is drawn")
    data: DataConfig = Field(default=DataConfig(), description="source, imbalance and partition")
    model: ModelConfig = Field(default=ModelConfig(), description="the network")
    algorithm: AlgorithmConfig = Field(
        default=AlgorithmConfig(), description="the federated algorithm and its parameters"
    )
    train: TrainConfig = Field(default=TrainConfig(), description="rounds and local training")
    relabel: RelabelConfig = Field(default=RelabelConfig(), description="FedReLa: when and how clients re-label")
    engine: EngineConfig = Field(
        default=EngineConfig(), description="how the run is carried out; never changes a result"
    )
    report: ReportConfig = Field(default=ReportConfig(), description="what the report shows")
    compare: CompareConfig | None = Field(default=None, description="seeds, baselines and arms of a comparison")
    sweep: Annotated[dict[str, Any], AfterValidator(check_sweep)] | None = Field(
        default=None, description="values to try for keys of the other tables"
    )
    _origin: Origin = PrivateAttr(default=Origin())

    def model_post_init(self, context: Any, /) -> None:
        """Keep where the configuration comes from, for errors that show only when it is used."""
        self._origin = (context or {}).get("origin", Origin())

    @model_validator(mode="after")
    def _check(self) -> Self:
        if faults := list(faults_across(self)) or list(compare_faults(self)) or sweep_faults(self):
            raise BrokenRuleError(*faults)
        return self

    @property
    def origin(self) -> Origin:
        """Where the configuration comes from."""
        return self._origin
