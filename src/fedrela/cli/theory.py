"""``fedrela theory``: the paper's boundaries in numbers and figures, as printed and corrected."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from fedrela import theory as lemmas
from fedrela.cli.run import RUNS
from fedrela.cli.terminal import console, print_line, print_table, refuse_existing
from fedrela.errors import ArgumentError
from fedrela.text import percent, plural, printable
from fedrela.theory import Clients, TwoGaussians

ALPHAS = (100.0, 1.0, 0.3, 0.1)

NumClients = Annotated[int, typer.Option("--clients", metavar="NUMBER", min=1, max=10_000, help="Number of clients.")]
Alpha = Annotated[
    float, typer.Option(metavar="NUMBER", min=0.001, max=1e6, help="Concentration of each class's Dirichlet.")
]
Minority = Annotated[float, typer.Option(metavar="SHARE", help="Share of the rare class in all samples.")]
Samples = Annotated[int, typer.Option(metavar="NUMBER", min=2, max=10**9, help="Samples of all clients together.")]
Rho = Annotated[float, typer.Option(metavar="SHARE", min=0, max=0.49, help="Probability of re-labelling l to j.")]
Distance = Annotated[float, typer.Option(metavar="NUMBER", min=0.01, max=10, help="Distance of the class means.")]
Seed = Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Seed of the clients.")]
Draws = Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Federations per median in the second table.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the figures.")]
Format = Annotated[str, typer.Option(metavar="svg|png|pdf", help="Format of the figures.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the figures of an earlier call.")]


def theory(
    clients: NumClients = 20,
    alpha: Alpha = 0.3,
    minority: Minority = 0.0625,
    samples: Samples = 3200,
    rho: Rho = 0.3,
    distance: Distance = 2.0,
    seed: Seed = 0,
    draws: Draws = 1000,
    out: Out = RUNS / "theory",
    format: Format = "svg",
    force: Force = False,
) -> None:
    """Show the paper's theory on two Gaussians: clients' boundaries and their aggregate, with and without re-labelling.

    [bold]Example[/]: fedrela theory; fedrela theory --alpha 1 --rho 0.2 --out theory --format pdf

    A boundary is a threshold on P_j / P_l, the likelihood ratio of the rare class j and the frequent class l: above it
    a model says j. The threshold is 1 for equal classes; a higher one gives the rare class less room. The tables have
    the formulas as printed and corrected, with the recall of both classes. Two figures, boundaries and posteriors, are
    written to DIR.
    """
    from fedrela.plots import boundaries, posteriors
    from fedrela.report.writing import check_formats, write_plot

    check_formats([format])
    for name, value in (("--alpha", alpha), ("--rho", rho), ("--distance", distance)):
        if math.isnan(value):
            raise ArgumentError("expected a number, got nan", argument=name)
    if not 1 / samples <= minority <= 0.5:
        raise ArgumentError(f"expected a share from one sample to 0.5, got {minority:g}", argument="--minority")
    figures = {out / f"{draw.__name__}.{format}": draw for draw in (boundaries, posteriors)}
    refuse_existing(figures, force, ", --out chooses another folder")
    made = lemmas.dirichlet_clients(clients, alpha, minority=minority, samples=samples, seed=seed)
    for path, draw in figures.items():
        write_plot(path, partial(draw, made, rho, distance=distance), overwrite=force)
    screen = console()
    print_line(screen, f"{plural(len(made.weights), 'client')}, {samples:,} samples, {minority:.4g} of class j", "bold")
    print_line(screen, f"Dirichlet {alpha:g}; classes {distance:g} apart; rho {rho:g}; seed {seed}")
    _show_boundaries(screen, made, rho, TwoGaussians(distance))
    _show_errors(
        screen, partial(lemmas.printed_error, clients, minority=minority, samples=samples, rho=rho, draws=draws)
    )
    _show_example(screen)
    for path in figures:
        print_line(screen, f"figure  {printable(path)}")


def _show_boundaries(screen: Console, clients: Clients, rho: float, gaussians: TwoGaussians) -> None:
    priors, true = clients.aggregated, lemmas.aggregated_threshold
    alone = {
        "median of the clients (Lemma 2)": float(np.quantile(clients.thresholds, 0.5, method="nearest")),
        "all data together (Lemma 1)": lemmas.bayes_threshold(*priors),
    }
    together: dict[str, Callable[[float], float]] = {
        "aggregated, as printed (Lemma 3)": partial(lemmas.printed_threshold, clients),
        "aggregated, corrected": partial(true, clients),
        "local direction, as printed": partial(lemmas.printed_directed_threshold, clients),
        "local direction, corrected": lambda rho: true(clients, *lemmas.directed(clients, rho)),
    }
    rows = {words: [threshold, (1 - 2 * rho) * threshold] for words, threshold in alone.items()}
    rows |= {words: [threshold(0.0), threshold(rho)] for words, threshold in together.items()}
    print_line(screen)
    columns = ("boundary", "before", "after", "recall of j", "after", "recall of l", "after")
    shown = []
    for words, found in rows.items():
        recalls = [gaussians.recalls(each) for each in found]
        shares = [percent(side[c]) for c in (0, 1) for side in recalls]
        shown.append((words, *(f"{each:.4g}" for each in found), *shares))
    print_table(screen, columns, shown, left=("boundary",))
    print_line(screen)
    print_line(
        screen,
        f"condition (1): {lemmas.printed_condition(clients, *priors, rho):.3g} as printed, "
        f"{lemmas.balance_condition(clients, *priors, rho):.3g} corrected (below 1: balanced); "
        f"it needs rho = {lemmas.needed_rho(clients, *priors):.3g}",
    )
    print_line(
        screen, f"clients on which class j is not the rarer one have {percent(clients.contradicting)} of the weight"
    )


def _show_errors(screen: Console, error: partial[float]) -> None:
    print_line(screen)
    rows = [(f"{alpha:g}", f"{error(alpha):.3g}") for alpha in ALPHAS]
    print_table(screen, ("Dirichlet", "corrected / printed, median"), rows)


def _show_example(screen: Console) -> None:
    print_line(screen)
    rows = []
    for words, by_size in (("by size", True), ("uniform", False)):
        found = lemmas.example_1(10, 1000, by_size=by_size)
        numbers = (*found.local, found.bayes, found.printed, found.corrected, found.true, found.parameters)
        rows.append((words, *(f"{each:.4g}" for each in numbers)))
    columns = ("Example 1", "client 1", "client 2", "all data", "printed", "exchanged", "true", "parameters")
    print_table(screen, columns, rows, left=("Example 1",))
    print_line(screen)
