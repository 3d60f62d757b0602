"""``fedrela compare CONFIG``: baselines with and without re-labelling, matched arms, several seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.grids import draw_table, run_grid, say_plan, write_documents
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, ConfigFile, Workers, read_workers
from fedrela.cli.show import complain, console, draw, inert, say
from fedrela.errors import ArgumentError

if TYPE_CHECKING:
    from fedrela.experiment.comparison import Compare, Comparison
    from fedrela.experiment.schema import Config

HELP = """
Compare baselines with and without FedReLa: matched arms, several seeds, and every round before re-labelling trained once.

[bold]Example[/]: fedrela compare examples/compare.toml; fedrela compare clinic.toml --seeds 5 --arms baseline,fedrela

The table \\[compare] of CONFIG names seeds, baselines and arms; without one the algorithm of CONFIG is compared in four
arms with three seeds. Ctrl-C loses nothing: the same command goes on, also with more seeds, baselines or arms. It ends with
a table, with what is within noise in words, and with report.html. A baseline that cannot be run is named (exit code 1).
"""

Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the runs go, or lie.", show_default="runs/compare/ and CONFIG's name"),
]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="How many seeds, from 1 on.", min=1, max=1000, show_default="CONFIG's"),
]
Arms = Annotated[
    str | None, typer.Option(metavar="ARM,ARM", help="Arms, in place of CONFIG's.", show_default="CONFIG's, or four")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")]


def compare(
    config: ConfigFile,
    out: Out = None,
    seeds: Seeds = None,
    arms: Arms = None,
    workers: Workers = None,
    dry_run: DryRun = False,
) -> None:
    """Compare; see `HELP`."""
    from fedrela.experiment.load import load_config
    from fedrela.experiment.workers import start_early

    screen, number = console(), read_workers(workers)
    with progress_bar(f"reading {config}"):
        loaded = with_choices(load_config(config), seeds, arms)
        if not dry_run:
            start_early(number)
        from fedrela.experiment.comparison import Compare

        plan = Compare(loaded, out or RUNS / "compare" / config.stem)
    say(screen, inert(f"{config}: {_in_words(plan)}"), "bold")
    if dry_run:
        say_plan(screen, plan.grid)
        _list_runs(screen, plan)
    else:
        carry_out(screen, plan, number)


def with_choices(config: Config, seeds: int | None, arms: str | None) -> Config:
    """Return a configuration with what the options say in place of its own choice."""
    from fedrela.experiment.schema.compare import CompareConfig, check_arms
    from fedrela.experiment.schema.table import BrokenRuleError

    chosen: dict[str, object] = {} if seeds is None else {"seeds": tuple(range(1, seeds + 1))}
    if arms is not None:
        try:
            chosen["arms"] = check_arms([arm.strip() for arm in arms.split(",")])
        except BrokenRuleError as error:
            raise ArgumentError(f"--arms: {error}") from None
    table = config.compare or CompareConfig()
    return config.model_copy(update={"compare": table.model_copy(update=chosen)})


def carry_out(screen: Console, plan: Compare, workers: int | str | None) -> None:
    """Carry out what is left of a comparison and show what it found; with a failed baseline it ends with exit code 1."""
    say_plan(screen, plan.grid)
    run_grid(screen, plan.grid, workers)
    found = plan.conclude()
    say(screen)
    _show(screen, found)
    write_documents(screen, plan.grid.begin(), found.record)
    for baseline, why in found.failures.items():
        complain(f"{baseline}: left out, since a run of it failed: {why}")
    if found.failures:
        raise typer.Exit(1)


def _show(screen: Console, found: Comparison) -> None:
    """Write the paper's table, every arm by itself, and what is within noise."""
    from fedrela.report.tables import arms_table, compare_table
    from fedrela.report.tables.arms import arm_words

    changes = list(found.changes())
    if changes:
        draw_table(screen, compare_table(found.record))
    draw_table(screen, arms_table(found.record))
    for baseline, base, treated, words in changes:
        say(screen, inert(f"{baseline}: {arm_words(treated)} against {arm_words(base)}: {words}."))
    say(screen)


def _in_words(plan: Compare) -> str:
    baselines, arms = ", ".join(baseline.label for baseline in plan.baselines), ", ".join(plan.table.arms)
    return f"{baselines}; arms {arms}; seeds {', '.join(map(str, plan.table.seeds))}"


def _list_runs(screen: Console, plan: Compare) -> None:
    rows = []
    for cell in plan.grid.cells:
        status = "done" if plan.grid.is_done(cell) else "to do"
        rows.append((inert(cell.baseline), cell.arm, str(cell.seed), status, f"runs/{cell.name}"))
    draw(screen, ("baseline", "arm", "seed", "", "folder"), rows, words=("baseline", "arm", "", "folder"))
