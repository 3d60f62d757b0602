"""What the paper's tables, partitions and arithmetic say of its claims, for claims.md: python docs/claims.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import fedrela
from fedrela.data import dirichlet, long_tail_counts
from fedrela.metrics import shot_groups
from fedrela.reproduction.paper_table import PaperCell, paper_table
from fedrela.text import points

sys.path.insert(0, str(Path(__file__).parent))
from result_records import difference, headline, queue, rare

PAGE = Path(__file__).with_name("explanation") / "claims.md"
BEGIN, END = "<!-- numbers: begin -->\n```text\n", "```\n<!-- numbers: end -->\n"

Gain = dict[str, float]


def gains(name: str, wanted: Callable[[dict[str, str]], bool] = lambda at: True) -> list[tuple[dict[str, str], Gain]]:
    """Return what FedReLa adds in each cell of a table that was printed with both arms."""
    found: dict[tuple[tuple[str, str], ...], dict[str, PaperCell]] = {}
    for cell in paper_table(name).cells:
        found.setdefault(tuple(cell.at.items()), {})[cell.arm] = cell
    pairs = [(dict(at), arms) for at, arms in found.items() if {"baseline", "+FedReLa"} <= arms.keys()]
    both = [(at, arms["baseline"].published, arms["+FedReLa"].published) for at, arms in pairs if wanted(at)]
    return [(at, {key: after[key] - before[key] for key in before.keys() & after.keys()}) for at, before, after in both]


def largest(name: str, metric: str) -> str:
    at, gain = max((each for each in gains(name) if metric in each[1]), key=lambda each: each[1][metric])
    return f"{gain[metric]:+.2f} ({', '.join(at.values())})"


def fallen(name: str, metric: str, wanted: Callable[[dict[str, str]], bool] = lambda at: True) -> str:
    found = [gain[metric] for _, gain in gains(name, wanted) if metric in gain]
    return f"falls in {sum(value < 0 for value in found)} of {len(found)}, at worst {min(found):+.2f}"


def mean_by(name: str, axis: str, metric: str) -> str:
    found: dict[str, list[float]] = {}
    for at, gain in gains(name):
        found.setdefault(at[axis], []).append(gain[metric])
    return ", ".join(f"{value} {np.mean(each):+.2f}" for value, each in found.items())


def absent_tail(clients: int) -> float:
    """Return the share of (client, tail class) pairs without a sample: CIFAR-100-LT, IF 100, alpha 0.1."""
    counts = long_tail_counts(100, 500, 100)
    labels, tail = np.repeat(np.arange(100), counts), shot_groups(counts) == 2
    shards = dirichlet(labels, clients, 0.1, seed=1, min_size=0)
    held = np.array([np.bincount(labels[shard], minlength=100)[tail] for shard in shards])
    return float((held == 0).mean())


def moved(classes: int, samples: int = 1200, tau: float = 0.01) -> float:
    """Return the share of labels that FedReLa moves on a client with a long tail and posteriors without structure."""
    rng = np.random.default_rng(0)
    labels = rng.choice(classes, samples, p=(weights := 0.95 ** np.arange(classes)) / weights.sum())
    return fedrela.relabel(rng.dirichlet(np.ones(classes), samples), labels, tau=tau, seed=0).share


CLAIMED = {  # by study of results/: which claim it speaks of
    "fmnist-fedavg": "tab:step, FedAvg", "fmnist-baselines": "tab:step, other baselines", "fmnist-alpha": "alpha",
    "fmnist-published": "tab:step at the published size", "cifar10-lt": "tab:lt", "sensitivity-tau": "tau",
    "sensitivity-start": "T", "sensitivity-normalize": "normalisation", "sensitivity-period": "period",
}  # fmt: skip


def measured() -> Iterator[str]:
    """Yield what the records in results/ say of the claims: paired gains of the rare classes and of the headline."""
    for study in (study for study in queue() if study.name in CLAIMED and study.cells):
        found = []
        for (baseline, values), arms in study.rows.items():
            if {"baseline", "fedrela"} <= arms.keys():
                gain = [difference(arms, "baseline", "fedrela", of(study)).mean for of in (rare, headline)]
                found.append(f"{baseline}, {values} {' and '.join(map(points, gain))} (seeds: {len(arms['fedrela'])})")
        if found:
            yield f"measured, {CLAIMED[study.name]}, gains of the rare classes and overall: {'; '.join(found)}"


def lines() -> Iterator[str]:
    def loge(at: dict[str, str]) -> bool:
        return at["method"] in ("FedLOGE", "FedLoGe")

    yield f"tab:step, largest minority gain: {largest('step', 'minority')}"
    yield f"tab:lt, largest tail gain: {largest('lt', 'tail')}"
    yield f"tab:step, overall accuracy: {fallen('step', 'overall')}; majority: {fallen('step', 'majority')}"
    yield f"tab:lt, overall accuracy: {fallen('lt', 'overall')}; head: {fallen('lt', 'head')}"
    yield f"tab:lt, FedLoGe: tail {fallen('lt', 'tail', loge)}; overall {fallen('lt', 'overall', loge)}"
    yield f"tab:ablation, mean minority gain by alpha: {mean_by('ablation', 'alpha', 'minority')}"
    yield f"tab:ablation, mean overall gain by alpha: {mean_by('ablation', 'alpha', 'overall')}"
    yield f"tab:lr_step, overall accuracy: {fallen('lr_step', 'overall')}"
    yield f"tab:lt, mean tail gain by alpha: {mean_by('lt', 'alpha', 'tail')}"
    yield f"tab:lt, mean tail gain by IF: {mean_by('lt', 'IF', 'tail')}"
    shares = ", ".join(f"{clients} clients {absent_tail(clients):.0%}" for clients in (10, 50, 100))
    yield f"tail classes that a client lacks, CIFAR-100-LT, IF 100, alpha 0.1: {shares}"
    yield f"labels moved at tau = 1 %, made posteriors: 10 classes {moved(10):.1%}, 100 classes {moved(100):.1%}"
    one, five = (passes / 3 * 72.36 / 200 for passes in (1, 5))
    yield f"seconds per round that a third of a round adds, over 200 rounds: one pass {one:.2f}, five passes {five:.2f}"
    yield from measured()


def page() -> str:
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + "".join(f"{line}\n" for line in lines()) + END + rest.split(END)[1]


if __name__ == "__main__":
    if PAGE.exists():
        PAGE.write_text(page())
    sys.stdout.write("".join(f"{line}\n" for line in lines()))
