"""``fedrela run CONFIG``: a federated run in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.check import in_words
from fedrela.cli.ending import leave_report, show_result
from fedrela.cli.live import clock, lost_clients, many, show_rounds
from fedrela.cli.progress import Bar, progress_bar
from fedrela.cli.show import complain, console, inert, say
from fedrela.errors import ArgumentError, BusyError, DataError, FedrelaError
from fedrela.runfolder import RunFolder

if TYPE_CHECKING:
    from fedrela.experiment.execution import Execution

HELP = """
Run a configuration: data, clients, rounds, re-labelling, scores and a report, all into one run folder.

[bold]Example[/]: fedrela run examples/digits.toml; fedrela run clinic.toml --out runs/clinic-tau3 --workers 2

The same configuration gives the same bytes with any number of workers, and after any interruption: Ctrl-C leaves a
folder with which fedrela resume goes on.
"""
RUNS = Path("runs")

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration, .toml.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The run folder, new or empty.", show_default="runs/ and CONFIG's name"),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Processes that train clients, or auto: one a core.", show_default="CONFIG's"),
]
Opened = Callable[[Bar], AbstractContextManager["Execution"]]


def run(config: ConfigFile, out: Out = None, workers: Workers = None) -> None:
    """Run a configuration; see `HELP`."""
    from fedrela.experiment.crew import start_early
    from fedrela.experiment.load import load_config

    number = read_workers(workers)
    folder = _next_free(RUNS / config.stem) if out is None else _checked(out)
    start_early(number)
    with progress_bar(f"reading {config}"):
        loaded = load_config(config)

    def begin(bar: Bar) -> AbstractContextManager[Execution]:
        from fedrela.experiment import begin

        return begin(loaded, out=folder, workers=number, progress=bar.count)

    carry_out(f"{config}: {in_words(loaded)}", folder, begin)


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


def carry_out(heading: str, folder: Path, opened: Opened) -> None:
    """Open a run, show its rounds, and end with its result; an interruption says how to go on."""
    screen, began = console(), time.monotonic()
    say(screen, inert(heading), "bold")
    try:
        with contextlib.ExitStack() as held:
            with progress_bar("preparing") as bar:
                execution = held.enter_context(opened(bar))
            for line in _facts(execution):
                say(screen, inert(line))
            lost = _show_rounds(screen, execution)
            result = execution.finish()
    except KeyboardInterrupt:
        _say_how_to_go_on(folder)
        raise
    if lost:
        say(screen, lost, "yellow")
    say(screen, f"done in {clock(time.monotonic() - began)}")
    say(screen)
    leave_report(folder)
    show_result(screen, result)


def _facts(execution: Execution) -> Iterator[str]:
    """Yield where and how a run is carried out."""
    done = execution.run.state.round
    yield f"run folder {execution.folder.path}; {many(execution.run.crew.size, 'worker')}" + (
        f"; goes on after round {done}" if done else ""
    )
    if execution.run.note:
        yield f"note: {execution.run.note}"
    if note := execution.folder.manifest["data"]["note"]:
        yield f"note: partition: {note}"


def _show_rounds(screen: Console, execution: Execution) -> str:
    """Carry out all rounds that are left, and return which clients were lost, where some were."""
    from fedrela.experiment.summary import Standing

    plan = execution.run.plan
    standing = Standing.after(execution.folder.rounds(), plan.train.rounds)
    mark = plan.relabel.schedule.first(plan.train.rounds) if plan.relabel.enabled else None
    with show_rounds(screen, standing, mark) as show:
        for done in execution.rounds():
            standing.add(done.record)
            show()
    return lost_clients(standing)


def _say_how_to_go_on(folder: Path) -> None:
    try:
        status = RunFolder.open(folder).status
    except FedrelaError:
        return  # interrupted before there was a run
    complain(f"{folder}: {status}; `{_resuming(folder)}` goes on with it")


def _resuming(folder: Path) -> str:
    return f"fedrela resume {shlex.quote(str(folder))}"
