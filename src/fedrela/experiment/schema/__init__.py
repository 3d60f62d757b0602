"""The whole configuration: one closed schema for one TOML file.

A new table is a model in ``schema/<name>.py`` and a field here; loading, error positions, messages, the TOML text and
the digest follow from the field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Self

from pydantic import AfterValidator, PlainValidator, PrivateAttr, model_validator

from fedrela.arguments import check_workers
from fedrela.core.limits import class_number
from fedrela.data.sources.labels import TEST_SHARE
from fedrela.engine.run_options import OTHERS, RelabelPlan, TrainOptions
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.compare import LARGEST_SEED, CompareConfig, compare_faults
from fedrela.experiment.schema.config_table import CHANGED, ConfigTable, Fault, options_table, raise_any, setting
from fedrela.experiment.schema.data import DataConfig
from fedrela.experiment.schema.federation import FederationConfig, statistics_faults
from fedrela.experiment.schema.named_tables import AlgorithmConfig, ModelConfig
from fedrela.experiment.schema.problems import WrongConfigError
from fedrela.experiment.schema.sweep import check_sweep, sweep_faults
from fedrela.experiment.toml.reader import Origin
from fedrela.text import nearest_hint, not_one_of, shown

MOST_COMPARED = 10_000  # ids among which the nearest to a wrong one is looked for
DEVICES = ("auto", "cpu", "cuda", "mps", "xpu")
_NUMBERED = re.compile(r"(cuda|xpu):\d{1,3}")


def _device(value: Any) -> str:
    if isinstance(value, str) and (value in DEVICES or _NUMBERED.fullmatch(value)):
        return value
    raise ArgumentError(not_one_of(value, DEVICES, ", or a numbered one such as cuda:1"))


class EngineConfig(ConfigTable):
    """How a run is executed; nothing here changes a result."""

    workers: Annotated[str | int, PlainValidator(partial(check_workers, ""))] = setting(
        "auto", "processes that train clients; auto: one per core"
    )
    device: Annotated[str, PlainValidator(_device)] = setting(
        "auto", "where models are trained; auto: a GPU if there is one"
    )
    checkpoint_every: int = setting(5, "rounds between two checkpoints", ge=1, le=1_000_000)


class ReportConfig(ConfigTable):
    """What the report shows; nothing here changes a result."""

    samples: bool = setting(True, "keep thumbnails of moved samples in the run folder and show them")
    gallery_size: int = setting(24, "how many moved samples are shown", ge=1, le=1000)


class Config(ConfigTable):
    """A configuration, checked and complete."""

    seed: int = setting(1, "seed of all random numbers", ge=0, le=LARGEST_SEED)
    data: DataConfig = setting(DataConfig(), "source, imbalance and partition")
    model: ModelConfig = setting(ModelConfig(), "the network")
    algorithm: AlgorithmConfig = setting(AlgorithmConfig(), "the federated algorithm and its parameters")
    train: Annotated[TrainOptions, options_table(TrainOptions), CHANGED] = setting(
        TrainOptions(), "rounds and local training"
    )
    relabel: Annotated[RelabelPlan, options_table(RelabelPlan), CHANGED] = setting(
        RelabelPlan(), "FedReLa: when and how clients re-label"
    )
    federation: FederationConfig | None = setting(None, "private nodes: who they are, and what all parties agree on")
    engine: EngineConfig = setting(EngineConfig(), "how the run is executed; never changes a result")
    report: ReportConfig = setting(ReportConfig(), "what the report shows")
    compare: CompareConfig | None = setting(None, "seeds, baselines and arms of a comparison")
    sweep: Annotated[dict[str, Any], AfterValidator(check_sweep)] | None = setting(
        None, "values to try for keys of the other tables"
    )
    _origin: Origin = PrivateAttr(default=Origin())

    def model_post_init(self, context: Any, /) -> None:
        """Store the origin of the configuration, for errors that appear only when it is used."""
        self._origin = (context or {}).get("origin", Origin())

    @model_validator(mode="after")
    def _check(self) -> Self:
        raise_any(list(faults_across(self)) or list(compare_faults(self)) or sweep_faults(self))
        return self

    @property
    def simulates(self) -> bool:
        """Whether it names data; a configuration for private nodes may name none."""
        return self.federation is None or "source" in self.data.model_fields_set

    @property
    def origin(self) -> Origin:
        """Where the configuration comes from."""
        return self._origin


def check_fits(
    config: Config, *, clients: int, classes: Sequence[str], rows: int | None, ids: Collection[str] = ()
) -> None:
    """Raise if a configuration does not fit its data, once their sizes are known, and the ids of their samples.

    A private node checks its rows itself, and gives None.
    """
    faults = [*client_faults(config, clients), *class_faults(config, classes)]
    if rows is not None:
        faults += row_faults(config, rows, ids)
    if config.federation is not None:
        for key, there in (("nodes", clients), ("classes", len(classes))):
            if (named := len(getattr(config.federation, key))) != there:
                faults.append(Fault(("federation", key), f"names {named}, but the data have {there}"))
    if faults:
        raise WrongConfigError(faults, config.origin)


def faults_across(config: Config) -> Iterator[Fault]:
    """Yield conflicts between tables, as far as the configuration alone shows them."""
    rounds, start = config.train.rounds, config.relabel.start
    if start > rounds:
        yield Fault(("relabel", "start"), f"expected a round up to the last one, {rounds}, got {start}")
    if config.train.loss != TrainOptions().loss and config.algorithm.kind().own_loss:
        what = f"algorithm {config.algorithm.name!r} has its own loss; leave this out"
        yield Fault(("train", "loss"), what)
    if config.federation is not None:
        yield from statistics_faults(config.data, config.federation)
        yield from client_faults(config, len(config.federation.nodes))
    elif config.data.partition.clients is not None:
        yield from client_faults(config, config.data.partition.clients)


def client_faults(config: Config, clients: int) -> Iterator[Fault]:
    """Yield the faults of a configuration for this number of clients."""
    least, chosen = config.train.min_clients, config.train.clients_per_round(clients)
    if least > chosen:
        what = f"expected at most {chosen}, the number of clients in a round, got {least}"
        yield Fault(("train", "min_clients"), what)
    tau = config.relabel.tau
    for client in tau if isinstance(tau, Mapping) else ():
        if client != OTHERS and int(client) >= clients:
            yield Fault(("relabel", "tau", client), f"expected a client id from 0 to {clients - 1}", "key")


def class_faults(config: Config, names: Sequence[str]) -> Iterator[Fault]:
    """Yield the faults of a configuration for data with these classes."""
    relabel, last = config.relabel, len(names) - 1
    named: list[tuple[tuple[str | int, ...], Any]]
    named = [(("allowed", i, j), c) for i, pair in enumerate(relabel.allowed or ()) for j, c in enumerate(pair)]
    named += [(("forbidden", i, j), c) for i, pair in enumerate(relabel.forbidden) for j, c in enumerate(pair)]
    named += [(("class_tau", c), c) for c in relabel.class_tau or ()]
    for path, c in named:
        try:
            if class_number(c, names, str(path[0])) > last:
                what = f"expected a class number from 0 to {last} or a class name, got {shown(c)}"
                yield Fault(("relabel", *path), what, "key" if path[0] == "class_tau" else "value")
        except ArgumentError as error:
            yield Fault(("relabel", *path), error.reason, "key" if path[0] == "class_tau" else "value")
    threshold = relabel.threshold
    if isinstance(threshold, tuple) and len(threshold) != len(names):
        what = f"expected {len(names)} z values, one per class, got {len(threshold)}"
        yield Fault(("relabel", "threshold"), what)


def renumbered(data: DataConfig) -> str:
    """Return why the rows of a table have other numbers than in its file, or an empty string."""
    if data.source != "csv":
        return ""
    if data.options.get("missing") == "drop":
        return 'rows have other numbers after missing = "drop" left some out; fill the cells, or use "indicate"'
    if "test_file" in data.options or not 0 < data.options.get("test_share", TEST_SHARE.default) < 1:
        return ""
    return "rows have other numbers after test samples were held out; name them by a column, the option id"


def row_faults(config: Config, rows: int, ids: Collection[str]) -> Iterator[Fault]:
    """Yield what does not fit the rows of the training data, which a configuration names by id, or else by number."""
    if ids:
        wrong = [(i, row) for i, row in enumerate(config.relabel.keep) if str(row) not in ids]
        for k, (i, row) in enumerate(wrong):
            hint = nearest_hint(str(row), ids) if k == 0 and len(ids) <= MOST_COMPARED else ""
            what = f"expected one of the ids of this data, such as {shown(min(ids))}, got {shown(row)}{hint}"
            yield Fault(("relabel", "keep", i), what)
        return
    if config.relabel.keep and (why := renumbered(config.data)):
        yield Fault(("relabel", "keep"), why)
        return
    for i, row in enumerate(config.relabel.keep):
        if isinstance(row, str) or row >= rows:
            what = f"expected a row of the training data from 0 to {rows - 1}, got {shown(row)}"
            yield Fault(("relabel", "keep", i), what)
