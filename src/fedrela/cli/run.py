"""``fedrela run CONFIG``: a federated run in a folder of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrela.cli.check import in_words
from fedrela.cli.ending import leave_report, show_result
from fedrela.cli.live import clock
from fedrela.cli.progress import Bar, progress_bar
from fedrela.cli.show import complain, console, inert, say
from fedrela.cli.watching import TensorBoard, Watch, open_board
from fedrela.core.checks import check_choice
from fedrela.errors import ArgumentError, BusyError, DataError, FedrelaError
from fedrela.runfolder import RunFolder

if TYPE_CHECKING:
    from fedrela.experiment.recorded_run import Execution
    from fedrela.experiment.result import Result
    from fedrela.experiment.schema import Config
    from fedrela.report.board import Board

HELP = """
Run a configuration: data, clients, rounds, re-labelling, scores and a report, all into one run folder.

[bold]Example[/]: fedrela run examples/digits.toml; fedrela run clinic.toml --out runs/clinic-tau3 --workers 2

The same configuration gives the same bytes with any number of workers, and after any interruption: Ctrl-C leaves a
folder with which fedrela resume goes on. --engine flower runs the same in Flower's simulator, with the same weights
and accuracies: pip install fedrela\\[flower-sim].
"""
RUNS = Path("runs")
ENGINES = ("embedded", "flower")

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration, .toml.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The run folder, new or empty.", show_default="runs/ and CONFIG's name"),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Processes that train clients, or auto: one a core.", show_default="CONFIG's"),
]
EngineName = Annotated[str, typer.Option("--engine", metavar="|".join(ENGINES), help="Who carries the run out.")]
Opened = Callable[[Bar], AbstractContextManager["Execution"]]


def run(
    config: ConfigFile,
    out: Out = None,
    workers: Workers = None,
    engine: EngineName = "embedded",
    tensorboard: TensorBoard = None,
) -> None:
    """Run a configuration; see `HELP`."""
    from fedrela.experiment.load import load_config
    from fedrela.experiment.workers import start_early

    number, board = read_workers(workers), open_board(tensorboard)
    check_choice("--engine", engine, ENGINES)
    folder = _next_free(RUNS / config.stem) if out is None else _checked(out)
    if engine == "embedded":
        start_early(number)
    with progress_bar(f"reading {config}"):
        loaded = load_config(config)
    heading = f"{config}: {in_words(loaded)}"
    if engine == "flower":
        simulate_run(heading, loaded, folder, number, board)
        return

    def begin(bar: Bar) -> AbstractContextManager[Execution]:
        from fedrela.experiment import begin

        return begin(loaded, out=folder, workers=number, progress=bar.count)

    carry_out(heading, folder, begin, board)


def read_workers(text: str | None) -> int | str | None:
    """Return what ``--workers`` says: a number, ``"auto"``, or None for what the configuration says."""
    return int(text) if text is not None and text.isdecimal() else text


def _next_free(path: Path) -> Path:
    """Return `path`, or where that is taken the first free one of path-2, path-3 and so on."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def _checked(out: Path) -> Path:
    """Return a folder that a run may begin in."""
    try:
        status = RunFolder.open(out).status
    except DataError:
        return out  # no run; whether something else is there is seen when this one begins
    if status.startswith("running"):
        raise BusyError(f"--out: {out}: a run is {status} here; wait until that has ended")
    advice = "choose another folder" if status == "done" else f"`{_resuming(out)}` goes on with it"
    raise ArgumentError(f"--out: {out}: a run is here already, {status}; {advice}")


def carry_out(heading: str, folder: Path, opened: Opened, board: Board | None = None) -> None:
    """Open a run, show its rounds, and end with its result; an interruption says how to go on."""

    def work(watch: Watch) -> Result:
        with contextlib.ExitStack() as held:
            with progress_bar("preparing") as bar:
                execution = held.enter_context(opened(bar))
            watch(execution, None)
            for done in execution.rounds():
                watch(execution, done.record)
            return execution.finish()

    watched(heading, folder, work, board)


def watched(heading: str, folder: Path, work: Callable[[Watch], Result], board: Board | None) -> None:
    """Do the work of a run while somebody looks on, and end with its result."""
    screen, began = console(), time.monotonic()
    say(screen, inert(heading), "bold")
    try:
        with Watch(screen, board) as watch:
            result = work(watch)
    except KeyboardInterrupt:
        _say_how_to_go_on(folder)
        raise
    watch.finish(folder, result.rounds)
    if watch.lost:
        say(screen, watch.lost, "yellow")
    say(screen, f"done in {clock(time.monotonic() - began)}")
    say(screen)
    leave_report(folder)
    show_result(screen, result)


def simulate_run(
    heading: str, config: Config, folder: Path, workers: int | str | None, board: Board | None = None
) -> None:
    """Carry out a run in Flower's simulator, or go on with it."""
    if importlib.util.find_spec("flwr") is None or importlib.util.find_spec("ray") is None:
        raise ArgumentError("--engine: flower needs its simulator; run `pip install 'fedrela[flower-sim]'`")
    from fedrela.experiment.flower_app import simulate

    watched(heading, folder, lambda watch: simulate(config, out=folder, workers=workers, watch=watch), board)


def _say_how_to_go_on(folder: Path) -> None:
    try:
        status = RunFolder.open(folder).status
    except FedrelaError:
        return  # interrupted before there was a run
    complain(f"{folder}: {status}; `{_resuming(folder)}` goes on with it")


def _resuming(folder: Path) -> str:
    return f"fedrela resume {shlex.quote(str(folder))}"
