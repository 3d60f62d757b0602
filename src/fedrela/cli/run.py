"""``fedrela run CONFIG`` and ``resume FOLDER``: one federated run in its own folder."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import shlex
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fedrela.arguments import check_choice, check_workers
from fedrela.cli.check import ConfigFile, describe, left_out
from fedrela.cli.progress import RunProgress, StageBar, open_logs, progress_bar
from fedrela.cli.terminal import console, print_error, print_line, print_table
from fedrela.components import imported_modules
from fedrela.errors import ArgumentError, BusyError, DataError, FedrelaError
from fedrela.files import first_free
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.names import CONFIG, MACHINE, REPORT
from fedrela.text import duration, percent, plural, printable

if TYPE_CHECKING:
    from fedrela.cli.progress import Log
    from fedrela.experiment.recorded_run import RecordedRun
    from fedrela.experiment.result import Result
    from fedrela.experiment.schema import Config

RUNS = Path("runs")
ENGINES = ("embedded", "flower")

Out = Annotated[Path | None, typer.Option(metavar="DIR", help="A new or empty folder.", show_default="runs/CONFIG")]
Workers = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Processes that train; auto: one per core.", show_default="as configured"),
]
EngineName = Annotated[str, typer.Option("--engine", metavar="|".join(ENGINES), help="Which engine runs it.")]
TensorBoard = Annotated[Path | None, typer.Option(metavar="DIR", help="Write TensorBoard events.", show_default=False)]
MLflow = Annotated[str | None, typer.Option(metavar="URI", help="Log to MLflow.", show_default=False)]
Wandb = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Log to Weights & Biases, offline.", show_default=False)
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="A run folder.", show_default=False)]
Opener = Callable[[StageBar], AbstractContextManager["RecordedRun"]]


def run(
    config: ConfigFile,
    out: Out = None,
    workers: Workers = None,
    engine: EngineName = "embedded",
    tensorboard: TensorBoard = None,
    mlflow: MLflow = None,
    wandb: Wandb = None,
) -> None:
    r"""Train one federation, and write rounds, checkpoints, changed labels, result and report into one run folder.

    [bold]Example[/]: fedrela init; fedrela run digits.toml; fedrela run clinic.toml --out runs/clinic-tau3 --workers 2

    The same configuration gives the same bytes with any number of workers and after any interruption. After Ctrl-C,
    continue with fedrela resume. --engine flower runs the same in Flower's simulator, with the same weights and
    accuracies; it needs pip install fedrela\[flower-sim].
    """
    from fedrela import experiment
    from fedrela.experiment.load import load_config

    number = read_workers(workers)
    check_choice("--engine", engine, ENGINES)
    with contextlib.nullcontext(_check_out(out)) if out is not None else first_free(RUNS / config.stem) as folder:
        events = open_logs(tensorboard, mlflow, wandb, folder.name)
        if engine == "embedded":
            experiment.start_early(number)
        with progress_bar(f"reading {config}"):
            loaded = load_config(config)
        _print_notes(config, loaded, look=out is None)
        heading = f"{config}: {describe(loaded)}"
        if engine == "flower":
            _simulate(heading, loaded, folder, number, events)
            return
        begin = partial(experiment.begin, loaded, out=folder, workers=number)
        _execute(heading, folder, lambda bar: begin(progress=bar.count), events)


def resume(folder: Folder, workers: Workers = None) -> None:
    """Continue a run that was interrupted, from its newest checkpoint.

    [bold]Example[/]: fedrela resume runs/digits

    It ends with the same bytes as a run that was never interrupted. For a finished run, the result is shown; a run that
    another process is working on is left alone (exit code 5). Your own code that the run's config.toml names as
    module:name is imported, which runs it; the modules are listed first.
    """
    opened, number = RunFolder.open(folder), read_workers(workers)
    status = opened.status
    if status is RunStatus.DONE:
        from fedrela.experiment.result import Result

        opened.check()
        screen = console()
        print_line(screen, f"{printable(opened.path)}: already done", "bold")
        print_line(screen)
        _print_result(screen, Result.load(opened.path))
        opened.final_checkpoint()  # last: a lost model is an error, but the rest is shown first
        return
    if status is RunStatus.RUNNING:
        raise BusyError(f"{folder}: {opened.status_text} in another process; wait until it has ended")
    if modules := sorted({*imported_modules(tomllib.loads(opened.read(CONFIG).decode()))}):
        print_line(console(), printable(f"{folder}: imports {', '.join(modules)}, which its config.toml names"))
    from fedrela import experiment

    on_flower = opened.read_json(MACHINE).get("remote_clients")
    if on_flower and not (folder / "clients").is_dir():
        raise ArgumentError(f"{folder}: its clients are Flower nodes; continue it with the same `flwr run`")
    if not on_flower:
        experiment.start_early(number)
    with progress_bar(f"reading {folder}"):
        from fedrela.experiment.runner import config_of

        config = config_of(opened)
    heading = f"{folder}: {describe(config)}"
    if on_flower:
        _simulate(heading, config, folder, number)
    else:
        _execute(heading, folder, lambda _: experiment.resume(folder, workers=number))


def read_workers(text: str | None) -> int | str | None:
    """Return the value of ``--workers``: a number, ``"auto"``, or None for the configured value."""
    if text is None:
        return None
    return check_workers("--workers", int(text) if text.isdecimal() and len(text) < 10 else text)


def _check_out(out: Path) -> Path:
    """Return `out` if no run is there yet."""
    try:
        folder = RunFolder.open(out)
        status = folder.status
    except DataError:
        return out  # no run; any other content is refused when this one begins
    if status is RunStatus.RUNNING:
        raise BusyError(f"--out: {out}: a run is {folder.status_text} here; wait until it has ended")
    advice = "choose another folder" if status is RunStatus.DONE else f"continue it with `{_resume_command(out)}`"
    raise ArgumentError(f"--out: {out}: already holds a run, {folder.status_text}; {advice}")


def _print_notes(config: Path, loaded: Config, *, look: bool) -> None:
    """Say which tables a run leaves out, and with `look`, which run of the same configuration was interrupted."""
    screen = console()
    if note := left_out(config, loaded):
        print_line(screen, note, "yellow")
    if look and (found := _interrupted(config.stem, loaded)) is not None:
        what = f"note: {found.path}: the same run, {found.status_text}; `{_resume_command(found.path)}` continues it"
        print_line(screen, printable(f"{what}, this one begins anew"), "yellow")


def _interrupted(name: str, config: Config) -> RunFolder | None:
    """Return the interrupted run of a configuration that got furthest, of those in the default folders of a name."""
    from fedrela.experiment.load import config_sha256

    found: dict[int, RunFolder] = {}
    wanted = config_sha256(config)
    for path in sorted(RUNS.iterdir()):
        if re.fullmatch(rf"{re.escape(name)}(-\d+)?", path.name):
            with contextlib.suppress(FedrelaError):  # not a run, or a damaged one
                folder = RunFolder.open(path)
                if folder.manifest["config_sha256"] == wanted and folder.status is RunStatus.INTERRUPTED:
                    found[len(folder.rounds())] = folder
    return found[max(found)] if found else None


def _execute(heading: str, folder: Path, opener: Opener, events: Sequence[Log] = ()) -> None:
    """Open a run, show its rounds, and print its result."""

    def work(progress: RunProgress) -> Result:
        with contextlib.ExitStack() as stack:
            with progress_bar("preparing") as bar:
                recorded = stack.enter_context(opener(bar))
            progress(recorded, None)
            for done in recorded.rounds():
                progress(recorded, done.record)
            return recorded.finish()

    _show(heading, folder, work, events)


def _simulate(
    heading: str, config: Config, folder: Path, workers: int | str | None, events: Sequence[Log] = ()
) -> None:
    """Begin or continue a run in Flower's simulator."""
    if importlib.util.find_spec("flwr") is None or importlib.util.find_spec("ray") is None:
        raise ArgumentError("--engine: flower needs its simulator; run `pip install 'fedrela[flower-sim]'`")
    from fedrela.experiment.flower_app import simulate

    _show(heading, folder, lambda progress: simulate(config, out=folder, workers=workers, on_round=progress), events)


def _show(heading: str, folder: Path, work: Callable[[RunProgress], Result], events: Sequence[Log]) -> None:
    """Do the work of a run and show its progress and its result; an interruption says how to continue."""
    screen, began = console(), time.monotonic()
    print_line(screen, printable(heading), "bold")
    try:
        with RunProgress(screen, events) as progress:
            result = work(progress)
    except KeyboardInterrupt:
        with contextlib.suppress(FedrelaError):  # interrupted before there was a run
            print_error(f"{folder}: {RunFolder.open(folder).status_text}; continue with `{_resume_command(folder)}`")
        raise
    progress.finish(folder, result.rounds)
    print_line(screen, f"done in {duration(time.monotonic() - began)}")
    print_line(screen)
    _write_report(folder)
    _print_result(screen, result)


def _resume_command(folder: Path) -> str:
    return f"fedrela resume {shlex.quote(str(folder))}"


def _write_report(folder: Path) -> None:
    """Write the report of a run that has just ended; an error is printed and does not fail the run."""
    from fedrela.report.writing import write_report

    try:
        write_report(folder)
    except Exception as error:  # hours of training must not end in an error because of a page
        print_error(f"{folder}: no report was written: {error}; `fedrela --debug report` shows why")


def _print_result(out: Console, result: Result) -> None:
    """Print the accuracies of a finished run, the labels moved, where its files are, and what to do next."""
    folder, report = RunFolder.open(result.folder), result.folder / REPORT
    rows = [(name, percent(share)) for name, share in _accuracies(result).items()]
    if rows:
        print_table(out, ("accuracy", f"after round {result.rounds}"), rows, left=("accuracy",))
        print_line(out)
    else:
        print_line(out, "accuracy      unknown: there are no test samples")
    samples, clients = sum(folder.manifest["data"]["client_sizes"]), len(folder.ledgers())
    if result.moved is None:
        print_line(out, "labels moved  unknown: the clients do not report it")
    else:
        print_line(out, f"labels moved  {result.moved:,} of {samples:,}, by {plural(clients, 'client')}")
    print_line(out, f"run folder    {printable(result.folder)}")
    if report.exists():
        print_line(out, f"report        {printable(report)}")
    place = printable(json.dumps(str(result.folder), ensure_ascii=False))
    print_line(out, f"model         fedrela.experiment.Result.load({place}).weights() in Python")
    if clients:
        print_line(out, "next          run it with enabled = false in [relabel] to see what re-labelling changed")


def _accuracies(result: Result) -> dict[str, Any]:
    """Return the accuracies by name, the headline first."""
    accuracy, record = result.accuracy, result.record
    both = ("balanced", "overall") if record["headline"] == "balanced" else ("overall", "balanced")
    shares = {name: accuracy[name] for name in both if name in accuracy} | result.groups
    if "auprc" in accuracy:  # two classes
        positive = RunFolder.open(result.folder).manifest["classes"][1]
        shares |= {"AUROC": accuracy["auroc"], f"AUPRC of {printable(positive, 40)}": accuracy["auprc"]}
    if "validation" in record:
        shares["balanced, on validation data"] = record["validation"]["balanced"]
    if "at_threshold" in record:
        shares["balanced, threshold from validation"] = record["at_threshold"]["balanced"]
    if "local" in record:
        shares["mean over clients' own test data"] = record["local"]["mean"]
    return shares
