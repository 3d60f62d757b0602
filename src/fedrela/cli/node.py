"""``fedrela node check NODE CONFIG``: what the owner of a node's data wants to see before joining a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli.check import ConfigFile
from fedrela.cli.progress import progress_bar
from fedrela.cli.relabel import show_preview
from fedrela.cli.terminal import LONGEST_NAME, command_group, console, print_line, print_table
from fedrela.errors import DataError
from fedrela.text import plural, printable

HELP = """
Check a private node before it joins a federation; no connection is made.

[bold]Example[/]: fedrela node check node.toml app/fedrela_app/config.toml
"""

NodeFile = Annotated[Path, typer.Argument(metavar="NODE", help="The node's own file, node.toml.", show_default=False)]
Name = Annotated[str, typer.Option(metavar="NAME", help="The node's name.", show_default="as in NODE")]
Model = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="A run folder: preview re-labelling with its newest model.")
]


def group() -> None:
    """Keep `check` a subcommand, although it is the only one."""


def check(node: NodeFile, config: ConfigFile, name: Name = "", model: Model = None) -> None:
    """Show whether a node's data fit, how many samples each class has, what would be sent, and what would move.

    [bold]Example[/]: fedrela node check node.toml config.toml --model runs/clinic

    No connection is made. Nothing is written but a decoded copy of images, which only you can read, in the cache:
    ~/.cache/fedrela, or fedrela in XDG_CACHE_HOME. Data that do not fit are a one-line error (exit code 3), and so is a
    policy that keeps the node out. With --model, FedReLa's expected moves with that model are shown for several tau.
    """
    from fedrela.experiment.disclosure import disclosures, preview_at_node
    from fedrela.experiment.flower_app import check_key, node_number
    from fedrela.experiment.load import load_config, load_node
    from fedrela.experiment.node_samples import class_table, load_samples
    from fedrela.experiment.private import check_trainable, federation_of, refusal, within_policy

    loaded, own = load_config(config), load_node(node)
    federation, number = federation_of(loaded), node_number(loaded, name or own.name or "")
    with progress_bar(f"reading {node}"):
        samples = load_samples(own, loaded)
    check_trainable(own, samples)
    within_policy(loaded, own, number, samples.ids_train)
    check_key(loaded, own, number)
    screen, who = console(), federation.nodes[number]
    print_line(screen, f"{printable(who)}: client {number} of {len(federation.nodes)}; its data fit", "bold")
    print_line(screen)
    rows = [(printable(c, LONGEST_NAME), f"{a:,}", f"{b:,}") for c, a, b in class_table(federation.classes, samples)]
    rows.append(("all", f"{len(samples.y_train):,}", f"{len(samples.y_test):,}"))
    print_table(screen, ("class", "to train on", "to test on"), rows, left=("class",))
    print_line(screen)
    print_table(screen, ("what leaves this node", "when"), disclosures(loaded, own.policy), left=("when",))
    print_line(screen)
    print_line(screen, "Samples, labels, changed labels and the ledger stay here.")
    if federation.evaluate != "server" and not len(samples.y_test):
        print_line(screen, "note: nodes score the model, and this one has no test samples; see test_share", "yellow")
    if reason := refusal(loaded, own.policy):
        raise DataError(f"{node}: {reason}; it cannot take part")
    if model is not None:
        found = preview_at_node(loaded, own, samples, number, model)
        print_line(screen)
        show_preview(
            f"{who} with the model in {model}", [printable(c, LONGEST_NAME) for c in federation.classes], found
        )
    elif loaded.relabel.enabled:
        print_line(screen, f"{plural(loaded.train.rounds, 'round')}; --model FOLDER shows what FedReLa would move.")


app = command_group(HELP, check=check)
app.callback()(group)
