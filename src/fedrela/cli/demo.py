"""``fedrela demo``: see the method work on real data, within a minute or two."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from fedrela.cli.live import ALL_ROUNDS, is_live, many
from fedrela.cli.progress import progress_bar
from fedrela.cli.show import complain, console, draw, inert, say

if TYPE_CHECKING:
    from fedrela.experiment import arms
    from fedrela.experiment.demo import Demo
    from fedrela.experiment.summary import Comparison, Spread

HELP = """
Show what FedReLa does in federated training, on scikit-learn's digits, within a minute or two.

[bold]Example[/]: fedrela demo; fedrela demo --seeds 1 --out quick-look

Digits 0, 1 and 2 are rare in training (imbalance ratio 20), and ten clients hold different shares of each. FedAvg
trains for 60 rounds; with FedReLa clients re-label from round 48 on. Four arms share the first 47 rounds of each seed,
so that re-labelling and the learning-rate drop of the official code can be told apart. What is finished in the folder
is not done again.
"""

ARMS = {
    "host": "FedAvg",
    "host-drop": "FedAvg, learning rate / 10",
    "fedrela": "FedReLa",
    "fedrela-drop": "FedReLa, learning rate / 10",
}
FIGURES = ("minority", "majority", "overall")

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where the run folders go.")]
Seeds = Annotated[int, typer.Option(metavar="NUMBER", help="How many seeds, from 1 on.", min=1, max=1000)]


def demo(out: Out = Path("runs/demo"), seeds: Seeds = 3) -> None:
    """Run the demonstration; see `HELP`."""
    screen = console()
    say(screen, "Digits 0, 1 and 2 are rare (imbalance ratio 20) at ten clients; the test set is balanced.", "bold")
    with progress_bar("preparing"):
        plan, finished = _prepare(out, seeds)
    runs = len(plan.seeds) * len(ARMS)
    if finished:
        say(screen, f"{finished} of {many(runs, 'run')} are finished in {inert(out)} and not done again")
    if finished < runs:
        _run(screen, plan)
    _show_table(screen, plan.comparison())
    say(screen, f"run folders  {inert(out)}, one a seed and arm")
    say(screen, f"next         fedrela run {inert(plan.folder(1) / 'fedrela' / 'config.toml')}, changed to your liking")


def _prepare(out: Path, seeds: int) -> tuple[Demo, int]:
    """Return what is to be run, and how many of its runs are finished."""
    from fedrela.experiment.crew import start_early

    if not out.exists():  # else all may be there already
        start_early()
    from fedrela.experiment.demo import Demo

    plan = Demo(out, seeds)
    return plan, plan.finished()


def _run(screen: Console, plan: Demo) -> None:
    from fedrela.experiment.crew import hired

    try:
        with hired("auto") as (crew, note), _progress(screen, plan) as show:
            if note:
                say(screen, f"note: {inert(note)}", "yellow")
            for progress in plan.run(crew):
                show(progress)
    except KeyboardInterrupt:
        complain(f"{plan.out}: what is finished stays; the same command goes on where this one stopped")
        raise


@contextlib.contextmanager
def _progress(screen: Console, plan: Demo) -> Iterator[Callable[[arms.Progress], None]]:
    """Give what to call with each round: a bar over all of them on a terminal, elsewhere a line for each arm."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left"),
        console=screen, transient=True, refresh_per_second=4, speed_estimate_period=ALL_ROUNDS,
        disable=not is_live(screen),
    )  # fmt: skip
    task = bar.add_task("preparing", total=plan.rounds)
    last = {"prefix": plan.shared}

    def show(progress: arms.Progress) -> None:
        arm, round = progress.arm, progress.done.record.round
        words = f"seed {progress.seed} of {len(plan.seeds)}: {ARMS.get(arm, 'rounds that all arms share')}"
        bar.update(task, completed=plan.position(progress), description=f"{words:<40}")
        if bar.disable and round == last.get(arm, plan.config.train.rounds):
            say(screen, f"{words}, done to round {round}")

    with bar:
        yield show


def _show_table(screen: Console, found: Comparison) -> None:
    """Write the accuracies of all arms, and what they mean."""
    rows = [
        (words, *(_cell(found.spread(arm, figure)) for figure in FIGURES), f"{found.spread(arm, 'moved').mean:,.0f}")
        for arm, words in ARMS.items()
    ]
    say(screen)
    draw(screen, ("", *FIGURES, "labels moved"), rows, words=("",))
    seeds = len(found.results)
    spread = " (standard deviation)" if seeds > 1 else ""
    say(screen, f"test accuracy after the last round in per cent, mean over {many(seeds, 'seed')}{spread}", "dim")
    say(screen)
    say(screen, _meaning(found))
    say(screen)


def _cell(figure: Spread) -> str:
    spread = "" if figure.deviation is None else f" ({100 * figure.deviation:.1f})"
    return f"{100 * figure.mean:.1f}{spread}"


def _meaning(found: Comparison) -> str:
    """Say what the table means, whatever it says."""

    def points(arm: str, figure: str) -> str:
        return f"{100 * found.difference(arm, 'host', figure).mean:+.1f}"

    return (
        f"Against FedAvg, seed by seed, FedReLa changes the rare digits by {points('fedrela', 'minority')} points and "
        f"the frequent ones by {points('fedrela', 'majority')}; with the learning-rate drop of the official code by "
        f"{points('fedrela-drop', 'minority')} and {points('fedrela-drop', 'majority')}. The drop without FedReLa "
        f"changes the rare digits by {points('host-drop', 'minority')}."
    )
