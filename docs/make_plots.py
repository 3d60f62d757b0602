"""Make the pictures of reference/plots.md, from runs of half the rounds of `make demo`: python docs/make_plots.py."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import fedrela
from fedrela import plots
from fedrela.experiment import compare, run, sweep
from fedrela.experiment.comparison import DEMO
from fedrela.report import write_plot
from fedrela.reproduction import reproduce

PICTURES = Path(__file__).with_name("plots")
ONE_RUN = {key: value for key, value in DEMO.items() if key != "compare"}
BASE = {**ONE_RUN, "train": {**DEMO["train"], "rounds": 30}, "relabel": {**DEMO["relabel"], "start": 0.7}}
ARMS = ["baseline", "baseline-drop", "fedrela", "fedrela-drop", "random"]
ONE_KEY = {"relabel.tau": [0.01, 0.03, 0.05, 0.1, 0.2]}
TWO_KEYS = {"relabel.tau": [0.01, 0.05, 0.1, 0.2], "relabel.start": [0.3, 0.5, 0.7]}


def make_runs(folder: Path) -> None:
    """Carry out what the pictures show; what is there already is kept."""
    short = {**BASE, "train": {**BASE["train"], "rounds": 15}}
    if not (folder / "run").exists():
        run(BASE, out=folder / "run")
    baselines = ["fedavg", {"name": "fedprox", "mu": 0.1}]
    compare({**BASE, "compare": {"seeds": 3, "baselines": baselines, "arms": ARMS}}, out=folder / "compare")
    held = {**short, "data": {**BASE["data"], "validation": 0.1}, "compare": {"seeds": 2}}
    sweep({**held, "sweep": ONE_KEY}, out=folder / "sweep")
    sweep({**short, "sweep": TWO_KEYS}, out=folder / "sweep2")
    reproduce("tab:imagenet_lt", out=folder / "reproduce", seeds=1)


def boundary() -> partial:
    """Two classes, 20 to 1: a model of the original labels, and one of the labels that FedReLa gives."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal((-0.7, 0), 1, (400, 2)), rng.normal((1.0, 0.4), 1, (20, 2))])
    labels = np.repeat([0, 1], [400, 20])
    before = LogisticRegression().fit(x, labels)
    found = fedrela.relabel(before.predict_proba(x), labels, tau=0.15)
    after = LogisticRegression().fit(x, found.labels)
    models = {"before": before.predict_proba, "after": after.predict_proba}
    return partial(plots.decision_boundary, models, x, labels, moved=found.moved, names=["majority", "minority"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, help="a folder for the runs; those in it are used again")
    with tempfile.TemporaryDirectory() as scratch:
        folder = parser.parse_args().runs or Path(scratch)
        make_runs(folder)
        one, arms = folder / "run", folder / "compare"
        drawn = {
            "accuracy_over_rounds": partial(plots.accuracy_over_rounds, one),
            "accuracy_of_arms": partial(plots.accuracy_over_rounds, arms),
            "class_changes": partial(plots.class_changes, one),
            "class_counts": partial(plots.class_counts, one, client=4),
            "client_classes": partial(plots.client_classes, one),
            "confusion": partial(plots.confusion, one, panel="difference"),
            "cost": partial(plots.cost, one),
            "decision_boundary": boundary(),
            "gains": partial(plots.gains, arms),
            "gallery": partial(plots.gallery, one),
            "label_flows": partial(plots.label_flows, one),
            "moves_into_classes": partial(plots.moves_into_classes, one),
            "published_and_measured": partial(plots.published_and_measured, folder / "reproduce"),
            "score_histogram": partial(plots.score_histogram, one, group="minority"),
            "sensitivity": partial(plots.sensitivity, folder / "sweep"),
            "sensitivity_of_two": partial(plots.sensitivity, folder / "sweep2"),
        }
        for name, draw in drawn.items():
            write_plot(PICTURES / f"{name}.svg", draw, overwrite=True)
            print(PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main()
