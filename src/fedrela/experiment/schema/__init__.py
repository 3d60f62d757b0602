"""The whole configuration: one closed schema for one TOML file.

A new table is a model of its own in ``schema/<name>.py`` and a field here; loading, places of errors, messages, the
TOML text and the digest follow from the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from fedrela.engine.options import OTHERS, RelabelPlan, TrainOptions
from fedrela.experiment.schema.compare import LARGEST_SEED, CompareConfig, compare_faults
from fedrela.experiment.schema.data import DataConfig
from fedrela.experiment.schema.engine import EngineConfig, ReportConfig
from fedrela.experiment.schema.named_tables import AlgorithmConfig, ModelConfig
from fedrela.experiment.schema.problems import Problem, WrongConfigError
from fedrela.experiment.schema.sweep import check_sweep, sweep_faults
from fedrela.experiment.schema.table import CHANGED, BrokenRuleError, ConfigTable, Fault, options_table
from fedrela.experiment.toml.positions import Origin


class Config(ConfigTable):
    """A configuration, checked and complete."""

    seed: int = Field(default=1, ge=0, le=LARGEST_SEED, description="seed of everything that is drawn")
    data: DataConfig = Field(default=DataConfig(), description="source, imbalance and partition")
    model: ModelConfig = Field(default=ModelConfig(), description="the network")
    algorithm: AlgorithmConfig = Field(
        default=AlgorithmConfig(), description="the federated algorithm and its parameters"
    )
    train: Annotated[TrainOptions, options_table(TrainOptions), CHANGED] = Field(
        default=TrainOptions(), description="rounds and local training"
    )
    relabel: Annotated[RelabelPlan, options_table(RelabelPlan), CHANGED] = Field(
        default=RelabelPlan(), description="FedReLa: when and how clients re-label"
    )
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


def check_fits(config: Config, *, clients: int, classes: int) -> None:
    """Raise where a configuration does not go with the data that it describes, now that their sizes are known.

    Raises
    ------
    ArgumentError
        In one line, ``file:line:column: key: what is wrong``.
    """
    faults = [*client_faults(config, clients), *class_faults(config, classes)]
    if faults:
        problems = [Problem(fault.path, fault.at, fault.what.__str__) for fault in faults]
        raise WrongConfigError(problems, config.origin.name, config.origin.places)


def faults_across(config: Config) -> Iterator[Fault]:
    """Yield what is wrong between tables, as far as the configuration alone shows it."""
    rounds, start = config.train.rounds, config.relabel.start
    if start > rounds:
        yield Fault(("relabel", "start"), "value", f"expected a round up to the last one, {rounds}, got {start}")
    if config.train.loss != TrainOptions().loss and config.algorithm.kind().own_loss:
        what = f"algorithm {config.algorithm.name!r} has a loss of its own; leave it out"
        yield Fault(("train", "loss"), "value", what)
    if config.data.partition.clients is not None:
        yield from client_faults(config, config.data.partition.clients)


def client_faults(config: Config, clients: int) -> Iterator[Fault]:
    """Yield what does not go with a number of clients."""
    least, chosen = config.train.min_clients, config.train.clients_per_round(clients)
    if least > chosen:
        what = f"expected at most {chosen}, the number of clients in a round, got {least}"
        yield Fault(("train", "min_clients"), "value", what)
    tau = config.relabel.tau
    for client in tau if isinstance(tau, Mapping) else ():
        if client != OTHERS and int(client) >= clients:
            yield Fault(("relabel", "tau", client), "key", f"expected a client id from 0 to {clients - 1}")


def class_faults(config: Config, classes: int) -> Iterator[Fault]:
    """Yield what does not go with a number of classes."""
    for i, pair in enumerate(config.relabel.forbidden):
        for j, c in enumerate(pair):
            if c >= classes:
                what = f"expected a class id from 0 to {classes - 1}, got {c}"
                yield Fault(("relabel", "forbidden", i, j), "value", what)
    threshold = config.relabel.threshold
    if isinstance(threshold, tuple) and len(threshold) != classes:
        what = f"expected {classes} z values, one per class, got {len(threshold)}"
        yield Fault(("relabel", "threshold"), "value", what)
