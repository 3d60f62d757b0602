"""What the paper's tables, partitions and arithmetic say about its claims, for claims.md: python docs/claims.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import fedrela
from fedrela.data import dirichlet, long_tail_counts
from fedrela.metrics import shot_groups
from fedrela.models import build
from fedrela.plots.comparisons import gains_of
from fedrela.reproduction.paper_table import PaperCell, paper_table
from fedrela.text import percent, points

sys.path.insert(0, str(Path(__file__).parent))
from result_records import difference, headline, queue, rare

PAGE = Path(__file__).with_name("explanation") / "claims.md"
BEGIN, END = "<!-- numbers: begin -->\n```text\n", "```\n<!-- numbers: end -->\n"

Gain = dict[str, float]
Wanted = Callable[[dict[str, str]], bool]


def everywhere(at: dict[str, str]) -> bool:
    return True


def gains(name: str, wanted: Wanted = everywhere) -> list[tuple[dict[str, str], Gain]]:
    """Return what FedReLa adds in each cell of a table that was printed with both arms."""
    found: dict[tuple[tuple[str, str], ...], dict[str, PaperCell]] = {}
    for cell in paper_table(name).cells:
        found.setdefault(tuple(cell.at.items()), {})[cell.arm] = cell
    pairs = [(dict(at), arms) for at, arms in found.items() if {"baseline", "+FedReLa"} <= arms.keys()]
    both = [(at, arms["baseline"].published, arms["+FedReLa"].published) for at, arms in pairs if wanted(at)]
    return [(at, {key: after[key] - before[key] for key in before.keys() & after.keys()}) for at, before, after in both]


def ends(name: str, metric: str, wanted: Wanted = everywhere) -> str:
    """Return the smallest and the largest gain, with their places."""
    found = sorted((gain[metric], ", ".join(at.values())) for at, gain in gains(name, wanted))
    return " to ".join(f"{value:+.2f} ({place})" for value, place in (found[0], found[-1]))


def fallen(name: str, metric: str, wanted: Wanted = everywhere) -> str:
    found = [gain[metric] for _, gain in gains(name, wanted) if metric in gain]
    return f"falls in {sum(value < 0 for value in found)} of {len(found)}, at worst {min(found):+.2f}"


def mean_by(name: str, axis: str, metric: str) -> str:
    found: dict[str, list[float]] = {}
    both = gains(name) or [(cell.at, cell.published) for cell in paper_table(name).cells]  # which may be gains
    for at, gain in both:
        found.setdefault(at[axis], []).append(gain[metric])
    return ", ".join(f"{value} {np.mean(each):+.2f}" for value, each in found.items())


def over_values(name: str, metric: str) -> str:
    """Return the gain at each value of the axis that a table varies."""
    table = paper_table(name)
    summary = {"entries": [asdict(cell) for cell in table.cells], "metrics": [asdict(each) for each in table.metrics]}
    found = [row for row in gains_of(summary, ("published",)) if row[1] == metric]
    return "; ".join(f"{place} {100 * gain:+.2f}" for place, _, gain in found)


def gap_closed(name: str, share: float, most_alpha: float) -> str:
    """Return how much of the gap between majority and minority vanishes, by overall and minority accuracy."""
    found = []
    for at, gain in gains(name, lambda at: float(at["alpha"]) <= most_alpha):
        (cell,) = (each for each in paper_table(name).cells if each.at == at and each.arm == "baseline")
        before = (cell.published["overall"] - cell.published["minority"]) / (1 - share)
        found.append((gain["minority"] - gain["overall"]) / (1 - share) / before)
    low, high, middle = (percent(share, 0) for share in (min(found), max(found), float(np.median(found))))
    return f"{low} to {high}, median {middle}"


def absent_tail(classes: int, largest: int, factor: int, clients: int) -> str:
    """Return the share of (client, tail class) pairs without a sample at alpha 0.1, over ten partitions."""
    counts = long_tail_counts(classes, largest, factor)
    labels, tail = np.repeat(np.arange(classes), counts), shot_groups(counts) == 2
    found = []
    for seed in range(1, 11):
        shards = dirichlet(labels, clients, 0.1, seed=seed, min_size=0)
        held = np.array([np.bincount(labels[shard], minlength=classes)[tail] for shard in shards])
        found.append((held == 0).mean())
    return percent(float(np.mean(found)), 0)


def forward_share(name: str) -> float:
    """Return the floating-point operations of a forward pass over those of a training step, on images of 32x32."""
    torch.set_num_threads(1)
    model, image, work = build(name, (3, 32, 32), 10, seed=0), torch.zeros(2, 3, 32, 32), []
    for train in (False, True):
        with FlopCounterMode(display=False) as counter:
            out = model(image).sum()
            if train:
                out.backward()
        work.append(counter.get_total_flops())
    return work[0] / work[1]


def moved(classes: int, samples: int = 1200, tau: float = 0.01) -> float:
    """Return the share of labels that FedReLa moves on a client with a long tail and posteriors without structure."""
    rng = np.random.default_rng(0)
    labels = rng.choice(classes, samples, p=(weights := 0.95 ** np.arange(classes)) / weights.sum())
    return fedrela.relabel(rng.dirichlet(np.ones(classes), samples), labels, tau=tau, seed=0).share


STEP = ("minority", "overall")
CLAIMED = {  # by study of results/: which claim it is about
    "fmnist-fedavg": "tab:step, FedAvg", "fmnist-baselines": "tab:step, other baselines", "fmnist-alpha": "alpha",
    "fmnist-published": "tab:step at the published size", "cifar10-lt": "tab:lt", "sensitivity-tau": "tau",
    "cifar10-more": "other remedies on long-tailed CIFAR-10", "tinyimagenet": "a long tail of Tiny-ImageNet",
    "cifar100-k10": "tab:lt on CIFAR-100, 10 clients", "cifar100-k50": "50 clients", "cifar100-k100": "100 clients",
    "fmnist-easy": "step imbalance, rare classes that are easy to distinguish",
    "fmnist-easy-published": "the same with 500 rounds",
    "sensitivity-start": "T", "sensitivity-normalize": "normalisation", "sensitivity-period": "period",
}  # fmt: skip


def measured() -> Iterator[str]:
    """Yield what the records in results/ say about the claims: paired gains of the rare classes and of the headline."""
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

    def hard(at: dict[str, str]) -> bool:
        return loge(at) and (at["IF"], at["alpha"]) == ("100", "0.1")

    yield f"tab:step, minority: {fallen('step', 'minority')}; overall: {fallen('step', 'overall')}"
    for ir in ("10", "20"):
        said = [ends("step", of, lambda at, ir=ir: at["IR"] == ir and at["dataset"] != "CIFAR-100") for of in STEP]
        yield f"tab:step without CIFAR-100, IR {ir}, minority and overall gain: {'; '.join(said)}"
    yield f"tab:step, CIFAR-100, minority gain: {ends('step', 'minority', lambda at: at['dataset'] == 'CIFAR-100')}"
    for share in ("10%", "30%"):
        said = []
        for name in ("F-MNIST", "CIFAR-10", "CIFAR-100"):
            here = {"minority share": share, "dataset": name}.items()
            said.append(f"{name} {fallen('step', 'majority', lambda at, here=here: here <= at.items())}")
        yield f"tab:step, {share} minority, majority: {'; '.join(said)}"
    yield f"tab:lt, tail gain: {ends('lt', 'tail')}"
    yield f"tab:lt, overall accuracy: {fallen('lt', 'overall')}; head: {fallen('lt', 'head')}"
    yield f"tab:lt, FedLoGe: tail {fallen('lt', 'tail', loge)}; overall {fallen('lt', 'overall', loge)}"
    yield f"tab:lt, FedLoGe at IF 100 and alpha 0.1, overall gain: {ends('lt', 'overall', hard)}"
    yield f"tab:lt, mean tail gain by alpha: {mean_by('lt', 'alpha', 'tail')}; by IF: {mean_by('lt', 'IF', 'tail')}"
    for metric in ("medium_tail_gain", "overall_gain"):
        by = "; ".join(f"by {axis}: {mean_by('tail_improvement', axis, metric)}" for axis in ("IF", "alpha"))
        yield f"tab:tail_improvement, mean {metric.replace('_', ' ')} {by}"
    for metric in STEP:
        means = mean_by("ablation", "alpha", metric)
        yield f"tab:ablation, {metric} gain: {ends('ablation', metric)}; mean by alpha: {means}"
    yield f"tab:ablation, alpha <= 1, gap between majority and minority closed: {gap_closed('ablation', 0.3, 1)}"
    for name in ("FedETF", "FedLOGE"):
        found = [
            f"IR {at['IR']} {g['overall']:+.2f}"
            for at, g in gains("lr_step")
            if (at["method"], at["alpha"]) == (name, "0.1")
        ]
        yield f"tab:lr_step, {name} at alpha 0.1, overall gain: {', '.join(found)}"
    yield f"tab:lr_step, overall accuracy: {fallen('lr_step', 'overall')}"
    half = (f"{of} {fallen('ir10_50percent', of)}" for of in STEP)
    yield f"tab:ir10_50percent: {'; '.join(half)}"
    many = (f"{of} {fallen('cifar100_lt_clients', of)}" for of in ("overall", "head", "tail"))
    yield f"tab:cifar100_lt_clients: {'; '.join(many)}"
    yield f"tab:imagenet_lt, overall gain: {ends('imagenet_lt', 'overall')}"
    for metric in ("Overall", "Tail"):
        yield f"tab:trelabel_sensitivity, {metric.lower()} gain: {over_values('trelabel_sensitivity', metric)}"
    yield f"tab:sensitivity, overall gain: {over_values('sensitivity', 'Overall')}"
    moves = {cell.at["tau"]: cell.published["moved"] for cell in paper_table("sensitivity").cells}
    yield f"tab:sensitivity, labels moved: {', '.join(f'{tau} {number:.0f}' for tau, number in moves.items())}"
    yield f"tab:period_sensitivity, overall gain: {over_values('period_sensitivity', 'Overall')}"
    for name in ("zscore", "norm_ablation"):
        yield f"tab:{name}, overall gain: {over_values(name, 'Overall')}"
    shares = ", ".join(f"IF {factor} {absent_tail(10, 5000, factor, 40)}" for factor in (50, 100))
    yield f"tail classes that a client lacks, CIFAR-10-LT, 40 clients, alpha 0.1: {shares}"
    shares = ", ".join(f"{clients} clients {absent_tail(100, 500, 100, clients)}" for clients in (10, 50, 100))
    yield f"tail classes that a client lacks, CIFAR-100-LT, IF 100, alpha 0.1: {shares}"
    shares = ", ".join(f"{classes} classes {percent(moved(classes))}" for classes in (10, 100))
    yield f"labels moved at tau = 1 %, made-up posteriors: {shares}"
    yield f"operations of a forward pass over those of a training step, ResNet-18: {forward_share('resnet18'):.3f}"
    added = (73.06 - 72.36) * 200 / 72.36
    yield f"0.70 s more per round, over 200 rounds, in rounds of 72.36 s: {added:.2f}; a third of a round: {1 / 3:.2f}"
    yield from measured()


def page() -> str:
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + "".join(f"{line}\n" for line in lines()) + END + rest.split(END)[1]


if __name__ == "__main__":
    if PAGE.exists():
        PAGE.write_text(page())
    sys.stdout.write("".join(f"{line}\n" for line in lines()))
