"""Make the pictures of explanation/pictures.md and theory.md, and print their numbers: python docs/make_theory.py."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import fedrela
from fedrela import plots
from fedrela.experiment import run
from fedrela.experiment.build import build_data
from fedrela.experiment.load import parse_config
from fedrela.plots import style
from fedrela.report import write_plot
from fedrela.runfolder import RunFolder
from fedrela.text import percent
from fedrela.theory import dirichlet_clients

PICTURES = Path(__file__).with_name("pictures")
SEPARATION = 2.5
CONFIG = {
    "seed": 2,
    "data": {
        "source": "gaussians",
        "options": {"samples": 900, "test_samples": 5000, "separation": SEPARATION},
        "imbalance": {"kind": "step", "ratio": 15, "minority": [1]},
        "partition": {"kind": "dirichlet", "clients": 8, "alpha": 0.5},
        "standardize": "none",
    },
    "model": {"name": "logistic"},
    "train": {"rounds": 60, "epochs": 1, "batch_size": 16, "lr": 0.02, "momentum": 0.9, "weight_decay": 0.0},
    "relabel": {"start": 0.5, "tau": 0.05},
}
NAMES = ["frequent", "rare"]


def model_of(result):
    """Return a trained logistic regression as a function from points to posteriors."""
    weight, bias = (np.asarray(array, np.float64) for array in result.weights().values())

    def posterior(points):
        scores = np.exp(points @ weight.T + bias)
        return scores / scores.sum(axis=1, keepdims=True)

    return posterior


def nearest_mean(points):
    """The Bayes classifier of equal classes."""
    p = 1 / (1 + np.exp(-SEPARATION * points[:, 0]))
    return np.stack([1 - p, p], axis=1)


@style.plot
def clients_of(counts, *, ax=style.NEW) -> None:
    """Samples of both classes on every client."""
    below = np.zeros(len(counts))
    for c, name in enumerate(NAMES):
        bars = ax.bar(range(len(counts)), counts[:, c], bottom=below, color=style.SERIES[c], label=name, width=0.7)
        below = below + counts[:, c]
    ax.bar_label(
        bars,
        [f"{rare} of {total:.0f}" for rare, total in zip(counts[:, 1], below, strict=True)],
        padding=2,
        fontsize="small",
    )
    ax.set(xlabel="client", ylabel="samples", xticks=range(len(counts)))
    style.set_height(ax, 2.6)


def trained(folder: Path) -> dict:
    """Run FedAvg with and without FedReLa, and return the plots of both."""
    off = run({**CONFIG, "relabel": {"enabled": False}}, out=folder / "off", workers=1)
    on = run(CONFIG, out=folder / "on", workers=1)
    federation = build_data(parse_config(CONFIG))
    ledgers = {client: fedrela.Ledger.load(path) for client, path in RunFolder.open(folder / "on").ledgers()}
    moved = np.concatenate([federation.shards[client].train[ledger.index] for client, ledger in ledgers.items()])
    chosen = np.concatenate([shard.train for shard in federation.shards])
    for name, result in (("FedAvg", off), ("FedAvg with FedReLa", on)):
        shares = dict(zip(NAMES, result.accuracy["per_class"], strict=True))
        words = ", ".join(f"{key} {percent(share)}" for key, share in shares.items())
        print(f"{name}: {words}, {result.moved} labels moved")
    x, y = federation.x_train[chosen], federation.y_train[chosen]
    ring = np.flatnonzero(np.isin(chosen, moved))
    assert len(ring) == on.moved
    draw = partial(plots.decision_boundary, x=x, labels=y, names=NAMES)
    return {
        "clients": partial(clients_of, federation.client_counts),
        "learned": partial(draw, {"learned": model_of(off), "equal classes": nearest_mean}),
        "relabelled": partial(draw, {"before": model_of(off), "with FedReLa": model_of(on)}, moved=ring),
    }


BOXES = {  # name -> column, row, words, colour
    "global": (0, 0, "server sends the\nglobal model θ", "rise-0"),
    "Q": (1, 0, "posterior Q of every\nlocal sample", "fall-0"),
    "z": (2, 0, "z: Q standardised\ninside each class", "fall-0"),
    "rho": (3, 0, "ρ = tanh(z − t) · ϖ,\n0 below threshold t", "fall-0"),
    "aggregate": (0, 1, "server averages\nthe updates", "rise-0"),
    "train": (1, 1, "local training, as in\nany algorithm", "rise-0"),
    "labels": (2, 1, "re-labelled data,\nand a ledger", "fall-0"),
    "draw": (3, 1, "draw: each sample\nmoves with chance ρ", "fall-0"),
}
ARROWS = ["global Q", "Q z", "z rho", "rho draw", "draw labels", "labels train", "train aggregate", "aggregate global"]


def frame(ax) -> None:
    """The paper's figure of the framework: what a client does in round T."""
    from matplotlib.patches import FancyBboxPatch

    wide, high = 0.84, 0.5
    border = {"facecolor": "none", "edgecolor": style.MUTED, "linestyle": (0, (3, 3))}
    ax.add_patch(FancyBboxPatch((0.53, -0.36), 2.94, 1.9, "round,pad=0.02", **border))
    words = "client k; the orange steps in round T only, from its own data; nothing extra is sent"
    ax.text(0.58, 1.5, words, color=style.MUTED, va="bottom", fontsize="small")
    for column, row, words, colour in BOXES.values():
        corner = (column - wide / 2, row - high / 2)
        look = {"facecolor": style.LIGHT[colour], "edgecolor": style.INK, "linewidth": 0.9}
        ax.add_patch(FancyBboxPatch(corner, wide, high, "round,pad=0.02", **look))
        ax.text(column, row, words, ha="center", va="center", fontsize="small")
    for pair in ARROWS:
        (x0, y0, *_), (x1, y1, *_) = (BOXES[name] for name in pair.split())
        along = (np.sign(x1 - x0) * (wide / 2 + 0.03), np.sign(y1 - y0) * (high / 2 + 0.03))
        look = {"arrowstyle": "-|>", "color": style.INK, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x1 - along[0], y1 - along[1]), (x0 + along[0], y0 + along[1]), arrowprops=look)
    ax.set(xlim=(-0.5, 3.55), ylim=(1.62, -0.45))
    ax.axis("off")
    style.set_height(ax, 2.5)


def make(folder: Path) -> None:
    """Write all pictures into a folder."""
    clients = dirichlet_clients(20, 0.3, minority=0.0625, samples=3200)  # as `fedrela theory`
    with tempfile.TemporaryDirectory() as runs:
        drawn = trained(Path(runs)) | {
            "frame": frame,
            "boundaries": partial(plots.boundaries, clients, 0.3),
            "posteriors": partial(plots.posteriors, clients, 0.3),
        }
    for name, draw in drawn.items():
        write_plot(folder / f"{name}.svg", draw, overwrite=True)


if __name__ == "__main__":
    make(PICTURES)
