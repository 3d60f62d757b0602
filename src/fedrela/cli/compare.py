"""``fedrela compare CONFIG``: baselines with and without re-labelling, matched arms, several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.check import ConfigFile
from fedrela.cli.progress import progress_bar, run_grid
from fedrela.cli.run import RUNS, Workers, read_workers
from fedrela.cli.terminal import (
    console,
    print_error,
    print_grid_runs,
    print_grid_size,
    print_line,
    print_report_table,
    write_documents,
)
from fedrela.errors import ArgumentError
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.experiment.comparison import Compare, Comparison
    from fedrela.experiment.schema import Config

HELP = """
Compare baselines with and without FedReLa over several seeds. The rounds before re-labelling are trained once and
shared by all arms.

[bold]Example[/]: fedrela compare examples/compare.toml; fedrela compare clinic.toml --seeds 5 --arms baseline,fedrela

The table \\[compare] of CONFIG names seeds, baselines and arms; without it the algorithm of CONFIG is compared in four
arms with three seeds. Ctrl-C loses nothing: run the same command to continue, also with more seeds, baselines or arms.
It ends with a table, a sentence per comparison that says whether the difference is within noise, and report.html. A
baseline that cannot be run is named (exit code 1).
"""

Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder of all runs.", show_default="runs/compare/ and CONFIG's name"),
]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="Use the seeds 1 to NUMBER.", min=1, max=1000, show_default="as configured"),
]
Arms = Annotated[str | None, typer.Option(metavar="ARM,ARM", help="Arms to run.", show_default="CONFIG's, or four")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the runs, and run nothing.")]


def compare(
    config: ConfigFile,
    out: Out = None,
    seeds: Seeds = None,
    arms: Arms = None,
    workers: Workers = None,
    dry_run: DryRun = False,
) -> None:
    """Compare; see `HELP`."""
    from fedrela.experiment import start_early
    from fedrela.experiment.load import load_config

    screen, number = console(), read_workers(workers)
    with progress_bar(f"reading {config}"):
        loaded = with_options(load_config(config), seeds, arms)
        if not dry_run:
            start_early(number)
        from fedrela.experiment.comparison import Compare

        plan = Compare(loaded, out or RUNS / "compare" / config.stem)
    print_line(screen, printable(f"{config}: {_describe(plan)}"), "bold")
    if dry_run:
        print_grid_size(screen, plan.grid)
        print_grid_runs(screen, plan.grid)
    else:
        execute(screen, plan, number)


def with_options(config: Config, seeds: int | None, arms: str | None) -> Config:
    """Return a configuration with the seeds and arms of the command line in place of its own."""
    from fedrela.experiment.schema.compare import CompareConfig, check_arms

    chosen: dict[str, object] = {} if seeds is None else {"seeds": tuple(range(1, seeds + 1))}
    if arms is not None:
        try:
            chosen["arms"] = check_arms([arm.strip() for arm in arms.split(",")])
        except ArgumentError as error:
            raise ArgumentError(f"--arms: {error}") from None
    table = config.compare or CompareConfig()
    return config.model_copy(update={"compare": table.model_copy(update=chosen)})


def execute(screen: Console, plan: Compare, workers: int | str | None) -> None:
    """Carry out what is left of a comparison and show the result; a failed baseline gives exit code 1."""
    print_grid_size(screen, plan.grid)
    run_grid(screen, plan.grid, workers)
    comparison = plan.conclude()
    print_line(screen)
    _show(screen, comparison)
    write_documents(screen, plan.grid.begin(), comparison.record)
    for baseline, why in comparison.failures.items():
        print_error(f"{baseline}: left out because one of its runs failed: {why}")
    if comparison.failures:
        raise typer.Exit(1)


def _show(screen: Console, comparison: Comparison) -> None:
    """Print the paper's table, the table of arms, and whether each difference is within noise."""
    from fedrela.plots.arms import arm_words
    from fedrela.report.compare import arms_table, compare_table

    changes = list(comparison.changes())
    if changes:
        print_report_table(screen, compare_table(comparison.record))
    print_report_table(screen, arms_table(comparison.record))
    for baseline, base, treated, words in changes:
        print_line(screen, printable(f"{baseline}: {arm_words(treated)} against {arm_words(base)}: {words}."))
    print_line(screen)


def _describe(plan: Compare) -> str:
    baselines, arms = ", ".join(baseline.label for baseline in plan.baselines), ", ".join(plan.table.arms)
    return f"{baselines}; arms {arms}; seeds {', '.join(map(str, plan.table.seeds))}"
