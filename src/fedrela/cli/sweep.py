"""``fedrela sweep CONFIG``: keys of a configuration over values, and which values validation would choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fedrela.cli.compare import DryRun
from fedrela.cli.grids import draw_table, run_grid, say_plan, write_documents
from fedrela.cli.live import many
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, ConfigFile, Workers, read_workers
from fedrela.cli.show import complain, console, inert, say

if TYPE_CHECKING:
    from fedrela.experiment.sweeps import Sweep, SweepPlan
    from fedrela.report.page import Table

HELP = r"""
Try values for keys of a configuration, every one with every other, and say which values validation would choose.

[bold]Example[/]: fedrela sweep examples/sweep.toml; fedrela sweep clinic.toml --out runs/tau --dry-run

The table \[sweep] of CONFIG has keys of the other tables, such as "relabel.tau" = \[0.01, 0.03, 0.05]; \[compare] has
seeds, baselines and arms, where you want more than one. No run is done twice: the same command goes on after Ctrl-C, and
also with more values, keys or seeds. It ends with a table, with what validation would choose (data.validation must be
above 0) beside what the test set says of it, and with report.html. A run that fails is named (exit code 1).
"""

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where the runs go, or lie already.", show_default="runs/sweep/ and CONFIG's name"
    ),
]


def sweep(config: ConfigFile, out: Out = None, workers: Workers = None, dry_run: DryRun = False) -> None:
    """Sweep; see `HELP`."""
    from fedrela.experiment.load import load_config
    from fedrela.experiment.workers import start_early

    screen, number = console(), read_workers(workers)
    with progress_bar(f"reading {config}"):
        loaded = load_config(config)
        if not dry_run:
            start_early(number)
        from fedrela.experiment.sweeps import SweepPlan

        plan = SweepPlan(loaded, out or RUNS / "sweep" / config.stem)
    say(screen, inert(f"{config}: {_in_words(plan)}"), "bold")
    say_plan(screen, plan.grid)
    if dry_run:
        _list_runs(screen, plan)
    else:
        _carry_out(screen, plan, number)


def _carry_out(screen: Console, plan: SweepPlan, workers: int | str | None) -> None:
    """Carry out what is left of a sweep and show what it found; with a failed run it ends with exit code 1."""
    run_grid(screen, plan.grid, workers)
    found = plan.conclude()
    say(screen)
    _show(screen, found)
    write_documents(screen, plan.grid.begin(), found.record)
    if plan.grid.failures:
        failed = {cell.name for cell in plan.grid.cells} & set(plan.grid.failures)
        complain(f"{plan.grid.out}: {many(len(failed), 'run')} failed; the same command tries again")
        raise typer.Exit(1)


def _show(screen: Console, found: Sweep) -> None:
    """Write one row a combination, and what validation would choose."""
    from fedrela.report.grid.sweep import choice_words
    from fedrela.report.tables import sweep_table

    draw_table(screen, _narrow(sweep_table(found.record)))
    for choice in found.choice:
        say(screen, inert(choice_words(found.record, choice)))
    if not found.choice:
        say(screen, inert(found.record["why_no_choice"]))
    say(screen)


def _narrow(table: Table) -> Table:
    """Leave out baseline and arm where there is one of them only; the width of a screen is for figures."""
    kept = [i for i in range(len(table.columns)) if i > 1 or len({row[i] for row in table.rows}) > 1]
    return replace(table, columns=[table.columns[i] for i in kept], rows=[[row[i] for i in kept] for row in table.rows])


def _in_words(plan: SweepPlan) -> str:
    seeds = dict.fromkeys(str(cell.seed) for cell in plan.grid.cells)
    return f"{_pairs(plan.values)}; seeds {', '.join(seeds)}"


def _list_runs(screen: Console, plan: SweepPlan) -> None:
    """Write a line for each combination, baseline, arm and seed; some may share a run."""
    for cell in plan.grid.cells:
        state = "done " if plan.grid.is_done(cell) else "to do"
        words = f"runs/{cell.name}  {cell.baseline}, {cell.arm}, seed {cell.seed}; {_pairs(cell.values)}"
        say(screen, inert(f"{state}  {words}"))


def _pairs(values: Mapping[str, Any]) -> str:
    from fedrela.experiment.toml.writer import toml_value

    return "; ".join(f"{key} = {toml_value(value)}" for key, value in values.items())
