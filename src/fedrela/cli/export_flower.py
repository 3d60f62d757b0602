"""``fedrela export-flower DIR CONFIG``: a configuration as an app for Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli.progress import progress_bar
from fedrela.cli.run import ConfigFile
from fedrela.cli.show import console, inert, say

HELP = """
Write a configuration as a Flower app: a folder for flwr run, with scripts that start a SuperLink and its SuperNodes.

[bold]Example[/]: fedrela export-flower clinic-app clinic.toml; then see clinic-app/README.md

Every client is a SuperNode of its own; the run gives the same weights and accuracies as fedrela run. The scripts use
TLS and node keys, and refuse to start without them off loopback unless --insecure is typed. Each machine needs pip
install fedrela\\[flower], and the data that CONFIG names.
"""

Target = Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.", show_default=False)]


def export_flower(target: Target, config: ConfigFile) -> None:
    """Write an app; see `HELP`."""
    from fedrela.experiment.flower_app import export_flower
    from fedrela.experiment.load import load_config

    with progress_bar(f"reading {config}"):
        place = export_flower(load_config(config), target)
    screen = console()
    say(screen, f"app   {inert(place)}")
    say(screen, f"next  {inert(place / 'README.md')} says how to start it")
