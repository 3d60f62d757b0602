"""``fedrela check CONFIG``: whether a configuration is sound, and what it would run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrela.cli.show import complain, console, inert, say
from fedrela.errors import ArgumentError

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

MOST_LINES = 50  # problems of one file that are told; the rest is counted

HELP = """
Check a configuration without running it: every key, type, range and word, and what goes together.

[bold]Example[/]: fedrela check run.toml; fedrela check run.toml --show > full.toml

A sound configuration gets one line that says what it would run. Otherwise each problem gets one line,
file:line:column: key: what is wrong, what is allowed, the nearest key; the exit code is 2. No data are read: fedrela
data show CONFIG does that.
"""

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration, .toml.", show_default=False)]
Show = Annotated[
    bool, typer.Option("--show", help="Print the full configuration, defaults included, every key with its meaning.")
]


def check(config: ConfigFile, show: Show = False) -> None:
    """Check a configuration; see `HELP`."""
    from fedrela.experiment.load import commented_toml

    loaded = _load(config)
    line = inert(f"{config}: sound: {in_words(loaded)}")
    if show:
        print(f"# {line}\n\n{commented_toml(loaded)}", end="")
    else:
        say(console(), line)


def _load(path: Path) -> Config:
    from fedrela.experiment.load import load_config
    from fedrela.experiment.schema.problems import WrongConfigError

    try:
        return load_config(path)
    except WrongConfigError as error:
        *others, last = error.lines(MOST_LINES)
        for line in others:
            complain(line)
        raise ArgumentError(last) from error


def in_words(config: Config) -> str:
    """Return in one line what a configuration would run."""
    baseline = f"{config.algorithm.name} with {config.model.name}"
    rounds = _number(config.train.rounds, "round")
    return f"{config.data.source}, {_clients(config)}, {baseline}, {rounds}, {_relabelling(config)}; seed {config.seed}"


def _clients(config: Config) -> str:
    train, clients = config.train, config.data.partition.clients
    if clients is None:
        return "the source's own clients" + (f" ({train.participation:g} a round)" if train.participation < 1 else "")
    chosen = train.chosen(clients)
    return _number(clients, "client") + (f" ({chosen:,} a round)" if chosen < clients else "")


def _relabelling(config: Config) -> str:
    relabel = config.relabel
    if not relabel.enabled:
        return "no re-labelling"
    again = f" and every {_number(relabel.period, 'round')}" if relabel.period else ""
    others = f", {_number(len(relabel.taus), 'client')} with another" if relabel.taus else ""
    first = relabel.schedule().first(config.train.rounds)
    return f"re-labelling at round {first:,}{again} (tau {relabel.default_tau:g}{others})"


def _number(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
