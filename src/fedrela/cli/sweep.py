"""``fedrela sweep CONFIG``: several values for keys of a configuration, and which values validation would choose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.check import ConfigFile
from fedrela.cli.compare import DryRun
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
from fedrela.text import plural, printable

if TYPE_CHECKING:
    from fedrela.experiment.sweeps import Sweep, SweepPlan
    from fedrela.report.page import Table

HELP = r"""
Run every combination of values for keys of a configuration, and say which values validation would choose.

[bold]Example[/]: fedrela sweep examples/sweep.toml; fedrela sweep clinic.toml --out runs/tau --dry-run

The table \[sweep] of CONFIG lists values for keys of the other tables, such as "relabel.tau" = \[0.01, 0.03, 0.05];
\[compare] may name several seeds, baselines and arms. No run is done twice: run the same command to continue after
Ctrl-C, also with more values, keys or seeds. It ends with a table, with the values that validation would choose
(data.validation must be above 0) and their test accuracy, and with report.html. A run that fails is named (exit
code 1).
"""

Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder of all runs.", show_default="runs/sweep/ and CONFIG's name"),
]


def sweep(config: ConfigFile, out: Out = None, workers: Workers = None, dry_run: DryRun = False) -> None:
    """Sweep; see `HELP`."""
    from fedrela.experiment import start_early
    from fedrela.experiment.load import load_config

    screen, number = console(), read_workers(workers)
    with progress_bar(f"reading {config}"):
        loaded = load_config(config)
        if not dry_run:
            start_early(number)
        from fedrela.experiment.sweeps import SweepPlan

        plan = SweepPlan(loaded, out or RUNS / "sweep" / config.stem)
    print_line(screen, printable(f"{config}: {_describe(plan)}"), "bold")
    print_grid_size(screen, plan.grid)
    if dry_run:
        print_grid_runs(screen, plan.grid)
    else:
        _execute(screen, plan, number)


def _execute(screen: Console, plan: SweepPlan, workers: int | str | None) -> None:
    """Carry out what is left of a sweep and show the result; a failed run gives exit code 1."""
    run_grid(screen, plan.grid, workers)
    result = plan.conclude()
    print_line(screen)
    _show(screen, result)
    write_documents(screen, plan.grid.begin(), result.record)
    if plan.grid.failures:
        failed = {cell.name for cell in plan.grid.cells} & set(plan.grid.failures)
        print_error(f"{plan.grid.out}: {plural(len(failed), 'run')} failed; run the same command to try again")
        raise typer.Exit(1)


def _show(screen: Console, result: Sweep) -> None:
    """Print one row per combination, and the values that validation would choose."""
    from fedrela.report.sweep import choice_words, sweep_table

    print_report_table(screen, _narrow(sweep_table(result.record)))
    for choice in result.choice:
        print_line(screen, printable(choice_words(result.record, choice)))
    if not result.choice:
        print_line(screen, printable(result.record["why_no_choice"]))
    print_line(screen)


def _narrow(table: Table) -> Table:
    """Leave out the columns of baseline and arm if there is only one of them, to save width."""
    kept = [i for i in range(len(table.columns)) if i > 1 or len({row[i] for row in table.rows}) > 1]
    return replace(table, columns=[table.columns[i] for i in kept], rows=[[row[i] for i in kept] for row in table.rows])


def _describe(plan: SweepPlan) -> str:
    from fedrela.experiment.toml.writer import toml_value

    values = "; ".join(f"{key} = {toml_value(value)}" for key, value in plan.values.items())
    seeds = dict.fromkeys(str(cell.seed) for cell in plan.grid.cells)
    return f"{values}; seeds {', '.join(seeds)}"
