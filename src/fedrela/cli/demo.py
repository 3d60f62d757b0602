"""``fedrela demo``: see the method work on real data, within a minute or two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli.compare import execute, with_options
from fedrela.cli.progress import progress_bar
from fedrela.cli.terminal import console, print_line
from fedrela.text import printable

HELP = """
Show what FedReLa does in federated training, on scikit-learn's digits, within a minute or two.

[bold]Example[/]: fedrela demo; fedrela demo --seeds 1 --out quick-look

Digits 0, 1 and 2 are rare in training (imbalance ratio 20), and ten clients hold different shares of each class. FedAvg
trains for 60 rounds; with FedReLa, clients re-label in round 48. Four arms share the first 47 rounds of each seed, so
that the effect of re-labelling and of the official code's learning-rate drop can be told apart. Finished runs in the
folder are not run again. It is a fedrela compare; examples/compare.toml is the same with more baselines.
"""

Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder of all runs.")]
Seeds = Annotated[int, typer.Option(metavar="NUMBER", help="Use the seeds 1 to NUMBER.", min=1, max=1000)]


def demo(out: Out = Path("runs/demo"), seeds: Seeds = 3) -> None:
    """Run the demonstration; see `HELP`."""
    from fedrela.experiment import start_early

    screen = console()
    heading = "Digits 0, 1 and 2 are rare (imbalance ratio 20) in the data of ten clients; the test set is balanced."
    print_line(screen, heading, "bold")
    with progress_bar("preparing"):
        if not out.exists():  # otherwise everything may be done already
            start_early()
        from fedrela.experiment.comparison import DEMO, Compare
        from fedrela.experiment.load import parse_config

        plan = Compare(with_options(parse_config(DEMO, name="demo"), seeds, None), out, "demo")
    execute(screen, plan, None)
    run = plan.grid.place(next(cell for cell in plan.grid.cells if cell.arm == "fedrela"))
    print_line(screen, f"next    copy and change {printable(run / 'config.toml')}, then fedrela run it")
