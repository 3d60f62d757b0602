"""`fedrela demo`: see the method work on real data within seconds."""

from __future__ import annotations

import numpy as np
from rich.progress import track

from fedrela.cli.show import console, draw, say

HELP = """
Show what re-labelling does, on scikit-learn's digits, in a few seconds.

Digits 0, 1 and 2 are made rare in training; a logistic regression then misses many of them on a balanced test set. Its
own posterior decides which samples of the other digits are re-labelled, and a second model learns from the new labels.
A control moves as many labels between the same classes, but of random samples.
"""


def demo() -> None:
    """Run the demonstration and print its tables."""
    from fedrela.experiment import demo as experiment

    out = console()
    steps = track(
        experiment.trials(), "training", total=len(experiment.SEEDS), console=out, transient=True,
        disable=not out.is_terminal,
    )  # fmt: skip
    trials = list(steps)
    first = trials[0]
    counts = np.bincount(first.ledger.original, minlength=10)
    say(out, f"Digits, imbalance ratio {experiment.RATIO}: training samples a class {counts.tolist()}.")
    say(out, f"\nPreview for seed {first.seed} (expected moves, nothing drawn):\n{first.outlook}")
    say(
        out,
        f"\nRe-labelled at tau {experiment.TAU}: {len(first.ledger)} of {counts.sum()} labels. Most frequent moves:",
    )
    flow = first.ledger.flow
    pairs = sorted(zip(*np.nonzero(flow), strict=True), key=lambda pair: (-flow[pair], pair))[:8]
    draw(out, ("from", "to", "moves"), [(str(a), str(b), str(flow[a, b])) for a, b in pairs])
    say(out, f"\nBalanced test set, mean over {len(trials)} seeds (standard deviation), in per cent:")
    recall = 100 * np.array([trial.recall for trial in trials])
    mean, spread = recall.mean(axis=0), recall.std(axis=0, ddof=1)
    rows = [
        (arm, *(f"{m:.1f} ({s:.1f})" for m, s in zip(mean[a], spread[a], strict=True)))
        for a, arm in enumerate(experiment.ARMS)
    ]
    draw(out, ("trained on", "minority recall", "majority recall", "overall"), rows, words=("trained on",))
    say(out, "\nNext: fedrela preview FILE with a posterior of your own; fedrela.undo takes every move back.")
