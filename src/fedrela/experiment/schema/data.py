"""The table ``[data]``: a source, its imbalance, its partition.

Types and ranges are stated in the schema. What a kind needs is stated once, by `fedrela.data.Imbalance` and
`fedrela.data.partition.plan.PartitionPlan`, which are built while their tables are checked; likewise which protocols go
with minority classes, by `fedrela.metrics.groups.evaluation_groups`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from fedrela.data.sources import SOURCES
from fedrela.data.standardize import MODES
from fedrela.experiment.schema.base import BrokenRuleError, Fault, Table, one_of
from fedrela.experiment.schema.imbalance import ImbalanceConfig
from fedrela.experiment.schema.options import check_options, plain_option
from fedrela.experiment.schema.partition import PartitionConfig
from fedrela.metrics.groups import PROTOCOLS, evaluation_groups
from fedrela.text import shown


def _root(value: Any, info: ValidationInfo) -> Path | None:
    """Resolve a path against the folder of the configuration; no part of it is expanded or replaced."""
    if value is None:
        return None
    if not isinstance(value, str | Path):
        raise BrokenRuleError(Fault((), "value", f"expected a path, got {shown(value)}"))
    if not str(value) or any(ord(ch) < 32 for ch in str(value)):
        what = "a path of at least one character and without control characters is needed"
        raise BrokenRuleError(Fault((), "value", f"{what}, got {shown(str(value))}"))
    folder = (info.context or {}).get("folder", Path())
    return Path(folder, value).absolute()


class DataConfig(Table):
    """Which data, how imbalanced, and how they lie with the clients."""

    source: Annotated[str, one_of(SOURCES)] = Field(default="digits", description="the data set")
    root: Annotated[Path | None, PlainValidator(_root)] = Field(
        default=None, description="where the files of the source lie, relative to the configuration file"
    )
    options: dict[str, Annotated[Any, PlainValidator(plain_option)]] = Field(
        default={}, description="what this source alone can be told"
    )
    imbalance: ImbalanceConfig = Field(default=ImbalanceConfig(), description="how many samples of each class are left")
    partition: PartitionConfig = Field(
        default=PartitionConfig(kind="dirichlet", clients=10, alpha=0.3),
        description="which client gets which samples",
    )
    validation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of each client's samples held out, original labels, never trained on",
    )
    standardize: Annotated[str, one_of(MODES)] = Field(
        default="pooled",
        description="numbers of a table: with statistics pooled over clients, each client's own, or not at all",
    )
    protocol: Annotated[str, one_of(PROTOCOLS)] = Field(
        default="counts", description="how classes are sorted into head, medium and tail for evaluation"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_options(self.source, self.options)
        self.check_rules(self._check_protocol)
        return self

    def _check_protocol(self) -> None:
        if self.imbalance.kind == "step":
            evaluation_groups([1], minority=[], protocol=self.protocol)
