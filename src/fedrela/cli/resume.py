"""``fedrela resume FOLDER``: continue a run that was interrupted."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrela.cli.check import describe
from fedrela.cli.progress import StageBar, progress_bar
from fedrela.cli.run import Workers, execute, print_result, read_workers, simulate_run
from fedrela.cli.terminal import console, print_line
from fedrela.errors import ArgumentError, BusyError
from fedrela.runfolder import RunFolder
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.experiment.recorded_run import RecordedRun

HELP = """
Continue a run that was interrupted, from its newest checkpoint.

[bold]Example[/]: fedrela resume runs/digits

It ends with the same bytes as a run that was never interrupted. Of a finished run the result is shown; a run that
another process works on is left alone (exit code 5).
"""

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="A run folder.", show_default=False)]


def resume(folder: Folder, workers: Workers = None) -> None:
    """Resume a run; see `HELP`."""
    there, number = RunFolder.open(folder), read_workers(workers)
    status = there.status
    if status == "done":
        _show_finished(there)
        return
    if there.running:
        raise BusyError(f"{folder}: {status} in another process; wait until it has ended")
    if there.read_json("machine.json").get("elsewhere"):
        _resume_on_flower(there, number)
        return
    from fedrela.experiment import start_early
    from fedrela.experiment.load import load_config

    start_early(number)
    with progress_bar(f"reading {folder}"):
        heading = f"{folder}: {describe(load_config(folder / 'config.toml'))}"

    def begin(_: StageBar) -> AbstractContextManager[RecordedRun]:
        from fedrela.experiment import resume

        return resume(folder, workers=number)

    execute(heading, folder, begin)


def _resume_on_flower(there: RunFolder, workers: int | str | None) -> None:
    """Continue a run of Flower's simulator; one on real nodes is continued by Flower."""
    from fedrela.experiment.runner import config_of

    if not (there.path / "clients").is_dir():
        raise ArgumentError(f"{there.path}: its clients are Flower nodes; continue it with the same `flwr run`")
    config = config_of(there)
    simulate_run(f"{there.path}: {describe(config)}", config, there.path, workers)


def _show_finished(there: RunFolder) -> None:
    from fedrela.experiment.result import Result

    there.check()
    screen = console()
    print_line(screen, f"{printable(there.path)}: already done", "bold")
    print_line(screen)
    print_result(screen, Result.load(there.path))
