"""``fedrela compare CONFIG``, ``sweep CONFIG`` and ``demo``: several runs, and their joint results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fedrela.arguments import check_choice
from fedrela.cli.check import ConfigFile
from fedrela.cli.grid_runs import DryRun, Out, Seeds, execute
from fedrela.cli.progress import progress_bar
from fedrela.cli.run import RUNS, Workers, read_workers
from fedrela.cli.terminal import console, print_error, print_line, print_report_table
from fedrela.errors import ArgumentError
from fedrela.options import MOST_SEEDS
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.experiment.comparison import Comparison
    from fedrela.experiment.schema import Config
    from fedrela.experiment.sweeps import Sweep
    from fedrela.report.page import Table

Arms = Annotated[str | None, typer.Option(metavar="ARM,ARM", help="Arms to run.", show_default="CONFIG's, or four")]
Against = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="Also compare the other baselines with this one.", show_default=False),
]
DemoOut = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of all runs.")]
DemoSeeds = Annotated[
    int, typer.Option("--seeds", metavar="NUMBER", help="Use the seeds 1 to NUMBER.", min=1, max=MOST_SEEDS)
]
NEXT = (  # the last lines that `demo` prints
    "open the report in a browser: which labels moved, and what that did to each class",
    "fedrela init; fedrela run digits.toml    one of these runs, from a configuration that you can edit",
    "fedrela init --kind tables               the same for a table of your own; --kind images: for images of your own",
)


def compare(
    config: ConfigFile,
    out: Out = None,
    seeds: Seeds = None,
    arms: Arms = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    against: Against = None,
) -> None:
    r"""Compare baselines with and without FedReLa over several seeds; all arms share the rounds before re-labelling.

    [bold]Example[/]: fedrela init --kind compare; fedrela compare compare.toml --seeds 5 --arms baseline,fedrela

    The table \[compare] of CONFIG names seeds, baselines, arms and pairs of arms; without it the algorithm of CONFIG is
    compared in four arms with three seeds. Ctrl-C loses nothing: run the same command to continue, also with more
    seeds, baselines or arms. It ends with a table, a sentence per comparison that says whether the difference is within
    noise, and report.html. A baseline that cannot be run is named (exit code 1).
    """
    from fedrela.experiment import start_early
    from fedrela.experiment.load import load_config

    screen, number = console(), read_workers(workers)
    with progress_bar(f"reading {config}"):
        loaded = _with_options(load_config(config), seeds, arms)
        if not dry_run:
            start_early(number)
        from fedrela.experiment.comparison import Compare

        plan = Compare(loaded, out or RUNS / "compare" / config.stem)
    labels, table = [baseline.label for baseline in plan.baselines], plan.table
    if against is not None:
        check_choice("--against", against, labels)
    heading = f"{config}: {', '.join(labels)}; arms {', '.join(table.arms)}; seeds {', '.join(map(str, table.seeds))}"
    print_line(screen, printable(heading), "bold")
    execute(screen, plan.grid, lambda: _show_comparison(screen, plan.conclude(), against), number, dry_run)


def _with_options(config: Config, seeds: int | None, arms: str | None = None) -> Config:
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


def _show_comparison(screen: Console, comparison: Comparison, against: str | None = None) -> dict[str, Any]:
    """Print the paper's table, the table of arms, and whether each difference is within noise; return the summary."""
    from fedrela.arms import arm_label
    from fedrela.report.compare_page import arms_table, compare_table

    changes = list(comparison.changes())
    if changes:
        print_report_table(screen, compare_table(comparison.record))
    print_report_table(screen, arms_table(comparison.record))
    for baseline, base, treated, words in changes:
        print_line(screen, printable(f"{baseline}: {arm_label(treated)} against {arm_label(base)}: {words}."))
    for baseline, arm, words in comparison.against(against) if against else ():
        print_line(screen, printable(f"{baseline} against {against}, {arm}: {words}."))
    for words in comparison.lost():
        print_line(screen, printable(words), "yellow")
    for baseline, why in comparison.failures.items():
        print_error(f"{baseline}: left out because one of its runs failed: {why}")
    return comparison.record


def demo(out: DemoOut = Path("runs/demo"), seeds: DemoSeeds = 3) -> None:
    """Show what FedReLa does in federated training, on scikit-learn's digits, within a minute or two.

    [bold]Example[/]: fedrela demo; fedrela demo --seeds 1 --out quick-look

    Digits 0, 1 and 2 are rare in training (imbalance ratio 20), and ten clients hold different shares of each class.
    FedAvg trains for 60 rounds; with FedReLa, clients re-label in round 48. Four arms share the first 47 rounds of each
    seed, so that the effects of re-labelling and of the official code's learning-rate drop can be told apart. Finished
    runs in the folder are not repeated. The demo is a fedrela compare; fedrela init --kind compare has more baselines.
    """
    from fedrela.experiment import start_early

    screen = console()
    heading = "Digits 0, 1 and 2 are rare (imbalance ratio 20) in the data of ten clients; the test set is balanced."
    print_line(screen, heading, "bold")
    with progress_bar("preparing"):
        if not out.exists():  # otherwise everything may be done already
            start_early()
        from fedrela.experiment.comparison import DEMO, Compare
        from fedrela.experiment.load import parse_config

        plan = Compare(_with_options(parse_config(DEMO, name="demo"), seeds), out, "demo")
    execute(screen, plan.grid, lambda: _show_comparison(screen, plan.conclude()))
    print_line(screen)
    for words in NEXT:
        print_line(screen, f"next    {words}")


def sweep(config: ConfigFile, out: Out = None, workers: Workers = None, dry_run: DryRun = False) -> None:
    r"""Run every combination of values for keys of a configuration, and say which values validation would choose.

    [bold]Example[/]: fedrela init --kind sweep; fedrela sweep sweep.toml --out runs/tau --dry-run

    The table \[sweep] of CONFIG lists values for keys of other tables, such as "relabel.tau" = \[0.01, 0.03, 0.05];
    \[compare] may name several seeds, baselines and arms. No run is repeated: run the same command to continue after
    Ctrl-C, also with more values, keys or seeds. It ends with a table, the values that validation would choose
    (data.validation must be above 0), their test accuracy, and report.html. A failed run is named (exit code 1).
    """
    from fedrela.experiment import start_early
    from fedrela.experiment.load import load_config

    screen, number = console(), read_workers(workers)
    with progress_bar(f"reading {config}"):
        loaded = load_config(config)
        if not dry_run:
            start_early(number)
        from fedrela.experiment.sweeps import SweepPlan
        from fedrela.experiment.toml.writer import toml_value

        plan = SweepPlan(loaded, out or RUNS / "sweep" / config.stem)
    values = "; ".join(f"{key} = {toml_value(value)}" for key, value in plan.values.items())
    seeds = ", ".join(dict.fromkeys(str(cell.seed) for cell in plan.grid.cells))
    print_line(screen, printable(f"{config}: {values}; seeds {seeds}"), "bold")
    execute(screen, plan.grid, lambda: _show_sweep(screen, plan.conclude()), number, dry_run)


def _show_sweep(screen: Console, result: Sweep) -> dict[str, Any]:
    """Print one row per combination, and the values that validation would choose; return the summary."""
    from fedrela.report.sweep_page import choice_sentence, sweep_table

    print_report_table(screen, _narrow(sweep_table(result.record)))
    for choice in result.choice:
        print_line(screen, printable(choice_sentence(result.record, choice)))
    if not result.choice:
        print_line(screen, printable(result.record["why_no_choice"]))
    return result.record


def _narrow(table: Table) -> Table:
    """Leave out the columns of baseline and arm if there is only one of them, to save width."""
    kept = [i for i in range(len(table.columns)) if i > 1 or len({row[i] for row in table.rows}) > 1]
    return replace(table, columns=[table.columns[i] for i in kept], rows=[[row[i] for i in kept] for row in table.rows])
