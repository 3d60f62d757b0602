"""Rules across tables, and those that need to know how many clients and classes the data have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedrela.experiment.schema.base import Fault
from fedrela.experiment.schema.problems import Problem, WrongConfigError
from fedrela.experiment.schema.train import LOSS

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config


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
    if config.train.loss != LOSS and config.algorithm.kind().own_loss:
        what = f"algorithm {config.algorithm.name!r} has a loss of its own; leave it out"
        yield Fault(("train", "loss"), "value", what)
    if config.data.partition.clients is not None:
        yield from client_faults(config, config.data.partition.clients)


def client_faults(config: Config, clients: int) -> Iterator[Fault]:
    """Yield what does not go with a number of clients."""
    least, chosen = config.train.min_clients, config.train.chosen(clients)
    if least > chosen:
        what = f"at most {chosen} is needed, the number of clients in a round, got {least}"
        yield Fault(("train", "min_clients"), "value", what)
    for client in config.relabel.taus:
        if client >= clients:
            yield Fault(("relabel", "tau", str(client)), "key", f"a client id from 0 to {clients - 1} is needed")


def class_faults(config: Config, classes: int) -> Iterator[Fault]:
    """Yield what does not go with a number of classes."""
    for i, pair in enumerate(config.relabel.forbidden):
        for j, c in enumerate(pair):
            if c >= classes:
                what = f"expected a class id from 0 to {classes - 1}, got {c}"
                yield Fault(("relabel", "forbidden", i, j), "value", what)
    threshold = config.relabel.threshold
    if isinstance(threshold, tuple) and len(threshold) != classes:
        what = f"{classes} z values are needed, one a class, got {len(threshold)}"
        yield Fault(("relabel", "threshold"), "value", what)
