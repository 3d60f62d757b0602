"""``fedrela resume FOLDER``: go on with a run that was interrupted."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrela.cli.check import in_words
from fedrela.cli.ending import show_result
from fedrela.cli.progress import Bar, progress_bar
from fedrela.cli.run import Workers, carry_out, read_workers, simulate_run
from fedrela.cli.show import console, inert, say
from fedrela.errors import ArgumentError, BusyError
from fedrela.runfolder import RunFolder

if TYPE_CHECKING:
    from fedrela.experiment.recorded_run import Execution

HELP = """
Go on with a run that was interrupted, from its newest checkpoint.

[bold]Example[/]: fedrela resume runs/digits

It ends with the same bytes as a run that was never interrupted. A run that is done is only shown; one that another
process works on is left alone (exit code 5).
"""

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="A run folder.", show_default=False)]


def resume(folder: Folder, workers: Workers = None) -> None:
    """Resume a run; see `HELP`."""
    there, number = RunFolder.open(folder), read_workers(workers)
    status = there.status
    if status == "done":
        _show_done(there)
        return
    if status.startswith("running"):
        raise BusyError(f"{folder}: {status} in another process; wait until that has ended")
    if there.read_json("machine.json").get("elsewhere"):
        _go_on_elsewhere(there, number)
        return
    from fedrela.experiment.load import load_config
    from fedrela.experiment.workers import start_early

    start_early(number)
    with progress_bar(f"reading {folder}"):
        heading = f"{folder}: {in_words(load_config(folder / 'config.toml'))}"

    def go_on(_: Bar) -> AbstractContextManager[Execution]:
        from fedrela.experiment import resume

        return resume(folder, workers=number)

    carry_out(heading, folder, go_on)


def _go_on_elsewhere(there: RunFolder, workers: int | str | None) -> None:
    """Go on with a run of Flower's simulator; one with real nodes is for Flower to go on with."""
    from fedrela.experiment.runner import config_of

    if not (there.path / "clients").is_dir():
        raise ArgumentError(f"{there.path}: its clients are Flower nodes; the same `flwr run` goes on with it")
    config = config_of(there)
    simulate_run(f"{there.path}: {in_words(config)}", config, there.path, workers)


def _show_done(there: RunFolder) -> None:
    from fedrela.experiment.result import Result

    there.check()
    screen = console()
    say(screen, f"{inert(there.path)}: is done already", "bold")
    say(screen)
    show_result(screen, Result.load(there.path))
