"""``fedrela check CONFIG`` and ``export-flower DIR CONFIG``: a configuration, without running it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrela.cli.progress import progress_bar
from fedrela.cli.terminal import console, print_error, print_line
from fedrela.errors import ArgumentError
from fedrela.text import plural, printable

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

MOST_LINES = 50  # problems printed per file; the others are counted

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration, .toml.", show_default=False)]
Target = Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)]
Private = Annotated[bool, typer.Option("--private", help="Each node reads its own data.")]
Show = Annotated[bool, typer.Option("--show", help="Print every key with its value or default, and what it means.")]


def check(config: ConfigFile, show: Show = False) -> None:
    """Check a configuration without running it: every key, type, range and name, and conflicts between keys.

    [bold]Example[/]: fedrela check run.toml; fedrela check run.toml --show > full.toml

    A valid configuration gets one line that says what it would run. Otherwise each problem gets one line,
    file:line:column: key: what is wrong, what is allowed, the nearest key; the exit code is 2. No data are read:
    fedrela data show CONFIG does that.
    """
    from fedrela.experiment.load import commented_toml, load_config
    from fedrela.experiment.schema.problems import WrongConfigError

    try:
        loaded = load_config(config)
    except WrongConfigError as error:
        *others, last = error.lines(MOST_LINES)
        for other in others:
            print_error(other)
        raise ArgumentError(last) from error
    if loaded.engine.device not in ("auto", "cpu") or loaded.train.precision != "float32":  # finding out loads torch
        from fedrela.experiment.runner import checked_device

        checked_device(loaded)
    line = printable(f"{config}: valid: {describe(loaded)}")
    if show:
        print(f"# {line}\n\n{commented_toml(loaded)}", end="")
        return
    print_line(console(), line)
    if note := left_out(config, loaded):
        print_line(console(), note, "yellow")
    if loaded.federation is not None:
        from fedrela.experiment.disclosure import disclosures

        nodes = plural(len(loaded.federation.nodes), "private node")
        print_line(console(), f"with --private: {nodes}; what leaves each:")
        for what, time in disclosures(loaded):
            print_line(console(), printable(f"  {what}: {time}"))
        if may := ", ".join(loaded.algorithm.make().disclosed()):
            print_line(console(), f"a node's policy may refuse {may}; the run then continues without that node")
        if not loaded.federation.keys:
            what = "any node that the SuperLink admits may take any name; for trials only"
            print_line(console(), f"note: federation.keys is empty: {what}", "yellow")


def describe(config: Config) -> str:
    """Return in one line what a configuration would run."""
    baseline = f"{config.algorithm.name} with {config.model.name}"
    rounds, data = plural(config.train.rounds, "round"), f"{config.data.source}, {_clients(config)}"
    if config.federation is not None and not config.simulates:
        data = plural(len(config.federation.nodes), "private node")
    return f"{data}, {baseline}, {rounds}, {_relabelling(config)}; seed {config.seed}"


def left_out(path: Path, config: Config) -> str:
    """Return a line that names the tables about several runs, and the commands that use them; empty without any."""
    tables = [name for name in ("compare", "sweep") if getattr(config, name) is not None]
    commands = " and ".join(f"`fedrela {name} {shlex.quote(str(path))}`" for name in tables)
    use = "use them" if len(tables) > 1 else "uses it"
    named = " and ".join(f"[{name}]" for name in tables)
    return printable(f"note: fedrela run leaves out {named}; {commands} {use}") if tables else ""


def _clients(config: Config) -> str:
    train, clients = config.train, config.data.partition.clients
    if clients is None:
        per_round = f" ({train.participation:g} of them per round)" if train.participation < 1 else ""
        return f"the source's own clients{per_round}"
    chosen = train.clients_per_round(clients)
    return plural(clients, "client") + (f" ({chosen:,} per round)" if chosen < clients else "")


def _relabelling(config: Config) -> str:
    relabel = config.relabel
    if not relabel.enabled:
        return "no re-labelling"
    again = f" and every {plural(relabel.period, 'round')}" if relabel.period else ""
    own = len(relabel.tau) - 1 if isinstance(relabel.tau, Mapping) else 0
    others = f", different for {plural(own, 'client')}" if own else ""
    first = relabel.schedule.first(config.train.rounds)
    return f"re-labelling in round {first:,}{again} (tau {relabel.tau_of():g}{others})"


def export_flower(target: Target, config: ConfigFile, private: Private = False) -> None:
    r"""Write a configuration as a Flower app: a folder for flwr run, with scripts that start its nodes.

    [bold]Example[/]: fedrela export-flower clinic-app clinic.toml; then see clinic-app/README.md

    Every client is a SuperNode; the run gives the same weights and accuracies as fedrela run. The scripts use TLS and
    node keys; beyond the loopback interface they refuse to start without them unless you type --insecure. Each machine
    needs pip install fedrela\[flower] and the data that CONFIG names.

    With --private each node reads its own data, which its own node.toml names, and the server has none or only a test
    set. CONFIG then has the table \[federation]; fedrela data split writes an example; fedrela node check checks it.
    """
    from fedrela.experiment.flower_app import export_flower
    from fedrela.experiment.load import load_config

    with progress_bar(f"reading {config}"):
        place = export_flower(load_config(config), target, private=private)
    screen = console()
    print_line(screen, f"app   {printable(place)}")
    print_line(screen, f"next  {printable(place / 'README.md')} says how to start it")
