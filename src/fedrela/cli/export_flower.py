"""``fedrela export-flower DIR CONFIG``: a configuration as an app for Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli.check import ConfigFile
from fedrela.cli.progress import progress_bar
from fedrela.cli.terminal import console, print_line
from fedrela.text import printable

HELP = """
Write a configuration as a Flower app: a folder for flwr run, with scripts that start a SuperLink and its SuperNodes.

[bold]Example[/]: fedrela export-flower clinic-app clinic.toml; then see clinic-app/README.md

Every client is a SuperNode; the run gives the same weights and accuracies as fedrela run. The scripts use TLS and node
keys; beyond the loopback interface they refuse to start without them unless you type --insecure. Each machine needs
pip install fedrela\\[flower] and the data that CONFIG names.
"""

Target = Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)]


def export_flower(target: Target, config: ConfigFile) -> None:
    """Write an app; see `HELP`."""
    from fedrela.experiment.flower_app import export_flower
    from fedrela.experiment.load import load_config

    with progress_bar(f"reading {config}"):
        place = export_flower(load_config(config), target)
    screen = console()
    print_line(screen, f"app   {printable(place)}")
    print_line(screen, f"next  {printable(place / 'README.md')} says how to start it")
