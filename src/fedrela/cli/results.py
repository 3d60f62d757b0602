"""``fedrela results run | list | verify``: studies whose results are kept with the code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.grid_runs import show_grid
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, Workers, read_workers
from fedrela.cli.terminal import command_group, console, print_error, print_line, print_table
from fedrela.errors import ArgumentError, DataError, FedrelaError, IntegrityError
from fedrela.files.scratch import scratch
from fedrela.text import plural, printable

if TYPE_CHECKING:
    from fedrela.experiment.grid import Cell
    from fedrela.reproduction.studies import Queued, Study

HELP = """
Run studies whose results are kept with the code, and repeat recorded runs.

[bold]Example[/]: fedrela results list; fedrela results run; fedrela results verify results/mammography --cells 2
"""

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="A study, or the folder of all studies.")]
OneStudy = Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study.", show_default=False)]
Store = Annotated[Path, typer.Option(metavar="DIR", help="The folder of all runs.")]
Cells = Annotated[int, typer.Option(metavar="NUMBER", help="Number of runs to repeat.", min=1)]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Seed of the choice of runs.", min=0)]
MostSeeds = Annotated[
    int | None, typer.Option("--seeds", metavar="NUMBER", help="Only the first seeds of each study.", min=1)
]
Only = Annotated[
    str,
    typer.Option(metavar="VALUE,VALUE", help="Only the runs with these values, such as FedAvg,seed=2,factor=100."),
]
Drop = Annotated[bool, typer.Option("--drop", help="Drop records of runs that study.toml no longer has.")]


def run(
    folder: Folder = Path("results"), store: Store = RUNS / "results", seeds: MostSeeds = None,
    workers: Workers = None, drop: Drop = False, only: Only = "",
) -> None:  # fmt: skip
    """Run what is left of a study, or of all studies in the order of their queue.

    [bold]Example[/]: fedrela results run; fedrela results run results/mammography --workers 1;
    fedrela results run results/cifar10-lt --only FedAvg,FedLoGe,factor=100,alpha=0.3

    FOLDER has study.toml (a configuration as for compare or sweep, or the name of a table of the paper), or queue.toml,
    which lists such folders. When a run ends, its record is written to summary.json there: accuracies, digests of
    configuration and weights, versions. A recorded run is never repeated, even if its run folder is gone. Ctrl-C
    loses nothing. Data sets are looked for in the folder data in the working directory.
    """
    from fedrela.reproduction.studies import STUDY, Study

    screen, number = console(), read_workers(workers)
    codes: set[int] = set()
    alone = (folder / STUDY).is_file()
    tried: set[Queued] = set()
    if only and not alone:
        raise ArgumentError("expected the folder of one study with it", argument="only")
    while queued := next((each for each in _studies(folder) if each not in tried), None):  # studies may be added
        tried.add(queued)
        try:
            codes |= _run_study(screen, Study(queued.folder, store), seeds or queued.seeds, only, number, drop)
        except FedrelaError as error:  # such as missing data: the other studies can be run
            if alone:
                raise
            print_error(f"{queued.folder}: {error}")
            codes.add(error.exit_code)
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else 1)


def _studies(folder: Path) -> list[Queued]:
    from fedrela.reproduction.studies import STUDY, Queued, read_queue

    return [Queued(folder)] if (folder / STUDY).is_file() else read_queue(folder)


def _run_study(
    screen: Console, study: Study, seeds: int | None, only: str, workers: int | str | None, drop: bool
) -> set[int]:
    """Run what is left of one study, and return the exit codes of the runs that failed."""
    codes: set[int] = set()
    if study.strays and not drop:
        what = f"{plural(study.strays, 'record')} in summary.json: study.toml no longer has such runs"
        raise ArgumentError(f"{study.folder}: {what}; restore study.toml, or --drop removes the records")
    grids = list(study.grids(seeds, only))
    study.write()
    print_line(screen, printable(f"{study.name}: {_status(study)}"), "bold")
    for grid in grids:
        with grid.executor(workers) as (executor, note), show_grid(screen, grid, note) as show:
            for progress in study.run(grid, executor):
                show(progress)
        if all(cell.name in grid.failures for cell in grid.cells):
            raise grid.failure("no run succeeded")
        codes |= {cause.exit_code for cause in grid.failures.values()}
    print_line(screen, printable(f"{study.name}: {_status(study)}"))
    return codes


def _status(study: Study) -> str:
    done = len(study.cells) - len(study.remaining())
    return f"{done} of {plural(len(study.cells), 'run')} recorded"


def list_studies(folder: Folder = Path("results")) -> None:
    """List the studies of a queue: how many runs are recorded, and about how long all of them take.

    [bold]Example[/]: fedrela results list
    """
    from fedrela.reproduction.studies import Study

    rows = []
    with progress_bar("reading studies"):
        for queued in {each.folder: each for each in _studies(folder)}.values():
            study = Study(queued.folder)
            try:
                runs = f"{len(study.cells) - len(study.remaining())} / {len(study.cells)}"
            except DataError:  # it waits for another study, which selects its values
                runs = "waits"
            rows.append((study.name, runs, f"{queued.minutes:g}", queued.title))
    print_table(console(), ("study", "runs", "core minutes", "what"), rows, left=("study", "what"))


def verify(study: OneStudy, cells: Cells = 2, seed: Seed = 0, workers: Workers = None) -> None:
    """Repeat some recorded runs, alone and from their first round, and compare them with their records.

    [bold]Example[/]: fedrela results verify results/mammography --cells 2 --seed 7

    On the same machine with the same versions the weights must be the same, bit by bit, and all else that is recorded
    but seconds; elsewhere accuracies must agree within two points, those of groups of classes within ten. A difference
    gives exit code 4.
    """
    from fedrela.reproduction import verification
    from fedrela.reproduction.studies import Study

    screen, recorded, wrong, number = console(), Study(study), 0, read_workers(workers)

    def on_start(cell: Cell) -> None:
        values = "".join(f", {key} = {value}" for key, value in cell.values.items())
        print_line(screen, printable(f"{cell.baseline}, {cell.arm}, seed {cell.seed}{values}", 160), "bold")

    with scratch() as folder:
        for check in verification.verify(recorded, cells, seed, folder, on_start, number):
            wrong += not check.same
            print_line(screen, f"  {'as recorded' if check.same else 'NOT as recorded'}: {check.words}")
    if wrong:
        raise IntegrityError(f"{study}: {wrong} of {plural(cells, 'run')} are not as recorded")


app = command_group(HELP, run=run, list=list_studies, verify=verify)
