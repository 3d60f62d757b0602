"""``fedrela demo``: see the method work on real data, within a minute or two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli.compare import carry_out, with_choices
from fedrela.cli.progress import progress_bar
from fedrela.cli.show import console, inert, say

HELP = """
Show what FedReLa does in federated training, on scikit-learn's digits, within a minute or two.

[bold]Example[/]: fedrela demo; fedrela demo --seeds 1 --out quick-look

Digits 0, 1 and 2 are rare in training (imbalance ratio 20), and ten clients hold different shares of each. FedAvg
trains for 60 rounds; with FedReLa clients re-label from round 48 on. Four arms share the first 47 rounds of each seed,
so that re-labelling and the learning-rate drop of the official code can be told apart. What is finished in the folder
is not done again. It is a fedrela compare; examples/compare.toml is the same with more baselines.
"""

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where the runs go.")]
Seeds = Annotated[int, typer.Option(metavar="NUMBER", help="How many seeds, from 1 on.", min=1, max=1000)]


def demo(out: Out = Path("runs/demo"), seeds: Seeds = 3) -> None:
    """Run the demonstration; see `HELP`."""
    from fedrela.experiment.workers import start_early

    screen = console()
    say(screen, "Digits 0, 1 and 2 are rare (imbalance ratio 20) at ten clients; the test set is balanced.", "bold")
    with progress_bar("preparing"):
        if not out.exists():  # else all may be there already
            start_early()
        from fedrela.experiment.comparison import Compare
        from fedrela.experiment.demo import CONFIG
        from fedrela.experiment.load import parse_config

        plan = Compare(with_choices(parse_config(CONFIG, name="demo"), seeds, None), out, "demo")
    carry_out(screen, plan, None)
    run = plan.grid.place(next(cell for cell in plan.grid.cells if cell.arm == "fedrela"))
    say(screen, f"next    fedrela run {inert(run / 'config.toml')}, changed to your liking")
