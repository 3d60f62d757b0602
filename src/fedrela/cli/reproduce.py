"""``fedrela reproduce NAME``: a table of the paper, published and measured values side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fedrela.arguments import check_choice
from fedrela.cli.grid_runs import DryRun, Out, Seeds, execute
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, Workers, read_workers
from fedrela.cli.terminal import console, duration, print_line, print_report_table, print_table
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.reproduction.measurement import Reproduction


Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Such as tab:step.", show_default="list the tables")]
ScaleName = Annotated[str, typer.Option("--scale", metavar="paper|cpu|smoke", help="How large the experiment is.")]
Every = Annotated[bool, typer.Option("--all", help="Run every entry, not only the scale's selection.")]
Data = Annotated[Path | None, typer.Option(metavar="DIR", help="The folder that holds data sets.", show_default="data")]


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
    """Run a table of the paper again, and show published and measured values side by side in the paper's layout.

    [bold]Example[/]: fedrela reproduce; fedrela reproduce tab:step; fedrela reproduce tab:lt --scale cpu --data data

    The scale smoke takes a minute or two on scikit-learn's digits and shows that everything works; cpu is a documented
    reduction on the real data, within an hour on two cores unless --all asks for every entry; paper is the published
    setting, for a GPU. The output says which settings are ours because the paper does not state them, and marks entries
    that contradict others. Without NAME the tables are listed. Ctrl-C loses nothing: run the same command to continue.
    """
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
    _print_plan(screen, plan, expected)
    execute(screen, plan.grid, lambda: _show(screen, plan.conclude()), number, dry_run)


def _list_tables(screen: Console) -> None:
    """Print every table with the runs and the time that each scale takes."""
    from fedrela.reproduction.estimate import expected_seconds
    from fedrela.reproduction.measurement import Reproduction
    from fedrela.reproduction.paper_table import SCALES, paper_tables

    rows = []
    with progress_bar("counting runs"):
        for table in paper_tables():
            row = [table.label, str(len(table.cells))]
            for scale in reversed(SCALES):
                plan, seeds = Reproduction(table, scale, RUNS, seeds=1), len(table.scales[scale].seeds)
                runs = seeds * len({cell.name for cell in plan.grid.cells})
                row += [str(runs), duration(seeds * expected_seconds(plan.grid))]
            rows.append(row)
    columns = [name for scale in reversed(SCALES) for name in (scale, "time")]
    print_table(screen, ("table", "entries", *columns), rows, words=("table",))
    print_line(screen)
    print_line(screen, "Runs of each scale's selection of entries; --all takes every entry. Times are estimated from a")
    print_line(screen, "short trial of this processor; the scale paper is for a GPU. See also fedrela list tables.")


def _print_plan(screen: Console, plan: Reproduction, expected: float) -> None:
    """Say what is run, what is reduced in it, and how long it will take."""
    table, seeds = plan.table, ", ".join(map(str, plan.seeds))
    print_line(screen, f"{table.label}: {table.title}; scale {plan.scale}, seeds {seeds}", "bold")
    print_line(screen, table.caption)
    for line in table.scales[plan.scale].reduction:
        print_line(screen, f"reduced: {line}", "dim")
    print_line(screen, f"estimated time {duration(expected)}, from a short trial of this processor")


def _show(screen: Console, summary: dict[str, Any]) -> dict[str, Any]:
    """Print the paper's table with the measured values, and remarks on it; return the summary."""
    from fedrela.report.reproduce import remarks, reproduce_tables

    for table in reproduce_tables(summary):
        print_report_table(screen, table)
    for title, lines in remarks({**summary, "reduction": []}).items():  # the reduction was printed at the start
        print_line(screen, title)
        for line in lines:
            print_line(screen, f"  {printable(line)}", "dim")
    return summary
