"""``fedrela reproduce NAME``: a table of the paper, published and measured side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.grids import draw_table, run_grid, say_plan, write_documents
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, read_workers
from fedrela.cli.show import complain, console, draw, inert, say
from fedrela.core.checks import check_choice

if TYPE_CHECKING:
    from fedrela.reproduction.measurement import Reproduction

HELP = """
Run a table of the paper again: the paper's layout, published and measured side by side.

[bold]Example[/]: fedrela reproduce; fedrela reproduce tab:step; fedrela reproduce tab:lt --scale cpu --data data

Scale smoke takes a minute or two on scikit-learn's digits and shows that everything works; cpu is a documented
reduction on the real data, within an hour on two cores unless --all asks for every entry; paper is the published
setting, for a GPU. Settings that the paper does not state are named as ours, and entries that contradict others are
marked. Without NAME the tables are listed. Ctrl-C loses nothing: the same command goes on.
"""

Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="The paper's label, such as tab:step.", show_default="list them")
]
ScaleName = Annotated[str, typer.Option("--scale", metavar="paper|cpu|smoke", help="How large it is run.")]
Every = Annotated[bool, typer.Option("--all", help="Every entry, not only the scale's own choice.")]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where the runs go, or lie already.", show_default="runs/reproduce/, NAME and scale"
    ),
]
Data = Annotated[Path | None, typer.Option(metavar="DIR", help="The folder that holds data sets.", show_default="data")]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="NUMBER", help="How many seeds, from 1 on.", min=1, max=1000, show_default="the scale's"),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Processes that train clients, or auto: one a core.", show_default="auto"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")]
DAY, HOUR, MINUTE = 86_400, 3_600, 60


def reproduce(
    name: Name = None,
    scale: ScaleName = "smoke",
    every: Every = False,
    out: Out = None,
    data: Data = None,
    seeds: Seeds = None,
    workers: Workers = None,
    dry_run: DryRun = False,
) -> None:
    """Reproduce a table; see `HELP`."""
    from fedrela.reproduction.paper_table import SCALES, paper_table

    screen, number = console(), read_workers(workers)
    check_choice("--scale", scale, SCALES)
    if name is None:
        _list_tables(screen)
        return
    table = paper_table(name)
    with progress_bar("preparing") as bar:
        from fedrela.reproduction.measurement import Reproduction

        place = out or RUNS / "reproduce" / f"{table.label.partition(':')[2]}-{scale}"
        plan = Reproduction(table, scale, place, every=every, seeds=seeds, root=data and data.absolute())
        if not dry_run:
            plan.check_data(bar.count)
        from fedrela.reproduction.estimate import expected_seconds

        expected = expected_seconds(plan.grid, number)
    _say_what(screen, plan, expected)
    if dry_run:
        _list_runs(screen, plan)
    else:
        _carry_out(screen, plan, number)


def _list_tables(screen: Console) -> None:
    """Write every table with the runs and the time that each scale takes."""
    from fedrela.reproduction.estimate import expected_seconds
    from fedrela.reproduction.measurement import Reproduction
    from fedrela.reproduction.paper_table import SCALES, paper_tables

    rows = []
    with progress_bar("counting runs"):
        for table in paper_tables():
            row = [table.label, str(len(table.entries))]
            for scale in reversed(SCALES):
                plan, seeds = Reproduction(table, scale, RUNS, seeds=1), len(table.scales[scale].seeds)
                runs = seeds * len({cell.name for cell in plan.grid.cells})
                row += [str(runs), duration(seeds * expected_seconds(plan.grid))]
            rows.append(row)
    columns = [name for scale in reversed(SCALES) for name in (scale, "time")]
    draw(screen, ("table", "entries", *columns), rows, words=("table",))
    say(screen)
    say(screen, "Runs of a scale's own choice of entries; --all takes every entry. Times are estimated from a short")
    say(screen, "trial of this processor; the scale paper is meant for a GPU. See also fedrela list tables.")


def _say_what(screen: Console, plan: Reproduction, expected: float) -> None:
    """Say what is run, what is reduced in it, and how long it will take."""
    table = plan.table
    say(screen, f"{table.label}: {table.title}; scale {plan.scale}, seeds {', '.join(map(str, plan.seeds))}", "bold")
    say(screen, table.caption)
    for line in table.scales[plan.scale].reduction:
        say(screen, f"reduced: {line}", "dim")
    say_plan(screen, plan.grid)
    say(screen, f"estimated {duration(expected)}, from the samples to train on and a short trial of this processor")


def _carry_out(screen: Console, plan: Reproduction, workers: int | str | None) -> None:
    """Carry out what is left, and show the table; with a failed run it ends with exit code 1."""
    from fedrela.report.tables import reproduce_tables
    from fedrela.report.tables.documents import remarks

    run_grid(screen, plan.grid, workers)
    summary = plan.conclude()
    say(screen)
    for table in reproduce_tables(summary):
        draw_table(screen, table)
    for title, lines in remarks({**summary, "reduction": []}).items():  # which was said at the beginning
        say(screen, title)
        for line in lines:
            say(screen, f"  {inert(line)}", "dim")
    say(screen)
    write_documents(screen, plan.grid.begin(), summary)
    for name, why in plan.grid.failures.items():
        complain(f"{name}: failed, and its entry has no figure: {why}")
    if plan.grid.failures:
        raise typer.Exit(1)


def _list_runs(screen: Console, plan: Reproduction) -> None:
    rows = [
        (
            ", ".join([cell.baseline, *cell.values.values()]),
            cell.arm,
            str(cell.seed),
            "done" if plan.grid.is_done(cell) else "to do",
            f"runs/{cell.name}",
        )
        for cell in plan.grid.cells
    ]
    draw(screen, ("entry", "arm", "seed", "", "folder"), rows, words=("entry", "arm", "", "folder"))


def duration(seconds: float) -> str:
    """Return about how long something takes.

    >>> duration(42), duration(400), duration(9000), duration(1e6)
    ('42 s', '7 min', '2.5 h', '12 days')
    """
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:,.0f} days"
