"""``fedrela reproduce NAME``: a table of the paper, published and measured values side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fedrela.arguments import check_choice
from fedrela.cli.grid_runs import DryRun, Out, Seeds, execute
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, Workers, read_workers
from fedrela.cli.terminal import console, print_line, print_report_table, print_table
from fedrela.errors import ArgumentError
from fedrela.text import duration, plural, printable

if TYPE_CHECKING:
    from fedrela.reproduction.measurement import Reproduction
    from fedrela.reproduction.paper_table import PaperTable


Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Such as tab:step; or all.", show_default="list the tables")
]
ScaleName = Annotated[str, typer.Option("--scale", metavar="paper|cpu|smoke", help="How large the experiment is.")]
ProtocolName = Annotated[
    str,
    typer.Option("--protocol", metavar="matched|published|both", help="Both arms alike, or as in the official code."),
]
Every = Annotated[bool, typer.Option("--all", help="Run every entry, not only the scale's selection.")]
Only = Annotated[
    str,
    typer.Option(
        metavar="VALUE,VALUE",
        help="Only the entries with these values, such as FedETF,IF=100.",
        show_default="the scale's selection",
    ),
]
Data = Annotated[Path | None, typer.Option(metavar="DIR", help="The folder that holds data sets.", show_default="data")]
Baselines = Annotated[
    str, typer.Option(metavar="NAME,NAME", help="Further baselines, also your own as module:Name.", show_default="none")
]
Changes = Annotated[
    Path | None,
    typer.Option("--with", metavar="FILE", help="TOML tables that override those of every run.", show_default="none"),
]
Toml = Annotated[bool, typer.Option("--toml", help="With --dry-run: print the configuration of a run.")]
RunName = Annotated[
    str, typer.Option("--run", metavar="NAME", help="For --toml: start of the folder's name.", show_default="the first")
]


def reproduce(
    name: Name = None,
    scale: ScaleName = "smoke",
    protocol: ProtocolName = "matched",
    every: Every = False,
    only: Only = "",
    out: Out = None,
    data: Data = None,
    seeds: Seeds = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    baselines: Baselines = "",
    changes: Changes = None,
    toml: Toml = False,
    run: RunName = "",
) -> None:
    """Re-run a table of the paper, and show published and measured values side by side in the paper's layout.

    [bold]Example[/]: fedrela reproduce; fedrela reproduce tab:step; fedrela reproduce tab:lt --scale cpu --data data;
    fedrela reproduce tab:lt --protocol both; fedrela reproduce tab:lt --dry-run --toml > run.toml;
    fedrela reproduce tab:lt --scale cpu --only FedETF,CIFAR-10,IF=100,alpha=0.3;
    fedrela reproduce tab:step --baselines scaffold,mypackage.methods:Mine

    The scale smoke takes a minute or two on scikit-learn's digits and shows that everything works; cpu is a documented
    reduction on the real data, up to two and a half hours on two idle cores unless --all asks for every entry; paper is
    the published setting, for a GPU. The protocol matched gives both arms the same learning rate and scores the last
    round; published does what the official code does, and lists every setting that differs; both shows the gains of the
    two side by side. The output says which settings are ours because the paper does not state them, and marks entries
    that contradict others. --baselines adds algorithms to the table, without published values; --with replaces the
    paper's model, source or re-allocator by your own. Without NAME the tables are listed;
    all runs every table, and tables share runs. Ctrl-C loses nothing: run the same command to continue.
    """
    from fedrela.reproduction.baselines import with_baselines, with_changes
    from fedrela.reproduction.paper_table import NAMES, SCALES, paper_table

    screen, number = console(), read_workers(workers)
    check_choice("--scale", scale, SCALES)
    check_choice("--protocol", protocol, ("matched", "published", "both"))
    if (toml and not dry_run) or (run and not toml):
        raise ArgumentError("--toml goes with --dry-run, and --run with --toml")
    if only and (name in (None, "all") or every):
        raise ArgumentError("--only goes with one table, and without --all")
    if name is None:
        _list_tables(screen)
        return
    added = [each.strip() for each in baselines.split(",")] if baselines else []
    over = _read_changes(changes) if changes else {}
    names = NAMES if name == "all" else [name]
    tables = [with_changes(with_baselines(paper_table(each), added), over) for each in names]
    planned: set[Path] = set()  # runs of the tables above
    root, failed = out or RUNS / "reproduce" / f"{stem(tables[0]) if name != 'all' else name}-{scale}", False
    for table in tables:
        with progress_bar("preparing") as bar:
            from fedrela.reproduction.measurement import Reproduction

            plan = Reproduction(
                table, scale, root / stem(table) if name == "all" else root, protocol=protocol, every=every,
                seeds=seeds, root=data and data.absolute(), shared=name == "all", only=only,
            )  # fmt: skip
            if not dry_run:
                plan.check_data(bar.count)
        if toml:
            _print_toml(plan, run)
            return
        _print_plan(screen, plan, number, planned)
        try:
            execute(screen, plan.grid, partial(_conclude, screen, plan), number, dry_run)
        except typer.Exit:
            failed = True
    if failed:
        raise typer.Exit(1)


def _read_changes(path: Path) -> dict[str, Any]:
    """Read tables of a configuration; a data folder is relative to the folder of the file."""
    from fedrela.experiment.toml.reader import parse_toml, read_text

    tables, _ = parse_toml(read_text(path), str(path))
    data = tables.get("data")
    if isinstance(data, dict) and isinstance(data.get("root"), str):
        data["root"] = str(path.parent / data["root"])
    return tables


def stem(table: PaperTable) -> str:
    """Return the label of a table without ``tab:``."""
    return table.label.partition(":")[2]


def _print_toml(plan: Reproduction, run: str) -> None:
    """Print the configuration of the first run whose folder name starts with `run`."""
    from fedrela.experiment.load import config_toml

    cell = next((cell for cell in plan.grid.cells if cell.name.startswith(run)), None)
    if cell is None:
        raise ArgumentError(f"--run: expected the start of a folder name that --dry-run lists, got {run!r}")
    about = [plan.table.label, f"scale {plan.scale}", cell.baseline, cell.arm, *map(" ".join, cell.values.items())]
    print(f"# {', '.join(about)}; {cell.name}\n{config_toml(cell.config)}", end="")


def _list_tables(screen: Console) -> None:
    """Print every table with the runs and the time that each scale takes."""
    from fedrela.reproduction.estimate import GPU_ASSUMPTION, expected_seconds, gpu_hours
    from fedrela.reproduction.measurement import Reproduction
    from fedrela.reproduction.paper_table import SCALES, paper_tables

    rows = []
    with progress_bar("counting runs"):
        for table in paper_tables():
            row = [table.label, str(len(table.cells))]
            for scale in reversed(SCALES):
                plan, seeds = Reproduction(table, scale, RUNS, seeds=1), len(table.scales[scale].seeds)
                tasks, runs = plan.grid.tasks, seeds * len({cell.name for cell in plan.grid.cells})
                paper = f"{seeds * gpu_hours(tasks):,.0f} h" if scale == "paper" else ""
                row += [str(runs), paper or duration(seeds * expected_seconds(tasks))]
            rows.append(row)
    columns = [name for scale in reversed(SCALES) for name in (scale, "GPU" if scale == "paper" else "time")]
    print_table(screen, ("table", "entries", *columns), rows, left=("table",))
    print_line(screen)
    print_line(screen, "Runs of each scale's selection of entries; --all takes every entry. Times are estimated from a")
    print_line(screen, f"short trial of this processor; GPU: hours of one, {GPU_ASSUMPTION}.")
    print_line(screen, "See also fedrela list tables.")


def _print_plan(screen: Console, plan: Reproduction, workers: int | str | None, planned: set[Path]) -> None:
    """Print the runs, what is reduced in them, and the estimated time of those not yet in `planned`."""
    from fedrela.reproduction.estimate import GPU_ASSUMPTION, expected_seconds, gpu_hours

    table, seeds = plan.table, ", ".join(map(str, plan.seeds))
    protocol = "" if plan.protocol == "matched" else f", protocol {plan.protocol}"
    print_line(screen, f"{table.label}: {table.title}; scale {plan.scale}{protocol}, seeds {seeds}", "bold")
    print_line(screen, table.caption)
    for line in table.scales[plan.scale].reduction:
        print_line(screen, f"reduced: {line}", "dim")
    left = plan.grid.remaining()
    if shared := sum(task.out in planned for task in left if task.cell):
        print_line(screen, f"shared with tables above: {plural(shared, 'run')}")
    tasks = [task for task in left if task.out not in planned]
    planned.update(task.out for task in tasks)
    if plan.scale == "paper":
        print_line(screen, f"estimated time {gpu_hours(tasks):,.0f} hours of one GPU, {GPU_ASSUMPTION}")
    else:
        expected = duration(expected_seconds(tasks, workers))
        print_line(screen, f"estimated time {expected}, from a short trial of this processor")


def _conclude(screen: Console, plan: Reproduction) -> dict[str, Any]:
    """Write the summary, print the paper's table with the measured values and remarks on it, return the summary."""
    from fedrela.report.reproduction_page import remarks, reproduce_tables

    summary = plan.conclude()
    for table in reproduce_tables(summary):
        print_report_table(screen, table)
    for title, lines in remarks({**summary, "reduction": []}).items():  # the reduction was printed at the start
        print_line(screen, title)
        for line in lines:
            print_line(screen, f"  {printable(line)}", "dim")
    return summary
