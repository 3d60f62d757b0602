"""Summaries by hand, as compare, sweep and reproduce write them, with round numbers."""

from __future__ import annotations

import itertools
from typing import Any

Record = dict[str, Any]
FIGURES = {"majority": (0.88, 0.87), "minority": (0.525, 0.77), "overall": (0.84, 0.86)}
PAIRS = (("baseline", "fedrela"), ("baseline-drop", "fedrela-drop"), ("random", "fedrela"))


def spread(mean: float, deviation: float, seeds: int) -> Record:
    return {"mean": mean, "deviation": deviation if seeds > 1 else None, "values": [mean] * seeds}


def interval(mean: float, half: float, seeds: int) -> Record:
    ends = (mean - half, mean + half) if seeds > 1 else (None, None)
    return {**spread(mean, 0.01, seeds), "low": ends[0], "high": ends[1]}


def arm(treated: bool, moved: int, seeds: int, names: tuple[str, ...]) -> Record:
    shares = dict(zip(names, (pair[treated] for pair in FIGURES.values()), strict=True))
    return {name: spread(share, 0.01, seeds) for name, share in shares.items()} | {"moved": spread(moved, 2.0, seeds)}


def compare_summary(seeds: int = 3, label: str = "FedAvg", names: tuple[str, ...] = tuple(FIGURES)) -> Record:
    arms = {
        "baseline": arm(False, 0, seeds, names), "baseline-drop": arm(False, 0, seeds, names),
        "fedrela": arm(True, 113, seeds, names), "fedrela-drop": arm(True, 113, seeds, names),
        "random": arm(False, 113, seeds, names),
    }  # fmt: skip
    changes = {name: interval(b - a, 0.025, seeds) for name, (a, b) in zip(names, FIGURES.values(), strict=True)}
    pairs = [{"base": base, "treated": treated, "differences": changes} for base, treated in PAIRS]
    baselines = [{"label": label, "algorithm": "fedavg", "arms": arms, "pairs": pairs}]
    return {
        "format": "fedrela-summary-1", "kind": "compare", "name": "digits", "score": "last", "headline": names[-1],
        "metrics": list(names), "seeds": list(range(1, seeds + 1)), "baselines": baselines,
    }  # fmt: skip


def sweep_summary(keys: int) -> Record:
    values = dict(
        [("relabel.tau", [0.05, 0.1]), ("relabel.start", [0.6, 0.8]), ("relabel.preset", ["paper", "official"])][:keys]
    )
    points = [
        {
            "baseline": "FedAvg", "arm": "as given", "values": dict(zip(values, chosen, strict=True)),
            "metrics": {
                "minority": spread(0.5 + k / 100, 0.01, 2), "overall": spread(0.8 + k / 100, 0.01, 2),
                "moved": spread(10.0 + k, 1.0, 2),
            },
            "validation": spread(0.7 - k / 100, 0.01, 2),
        }
        for k, chosen in enumerate(itertools.product(*values.values()))
    ]  # fmt: skip
    choice = {
        "baseline": "FedAvg", "arm": "as given", "by": "balanced accuracy on the clients' validation samples",
        "values": points[0]["values"], "validation": 0.7, "test": {"minority": 0.5, "overall": 0.8},
        "best_test_values": points[-1]["values"], "best_test": points[-1]["metrics"]["overall"]["mean"],
    }  # fmt: skip
    return {
        "format": "fedrela-summary-1", "kind": "sweep", "name": "digits", "headline": "overall",
        "metrics": ["minority", "overall"], "seeds": [1, 2], "keys": list(values), "values": values, "points": points,
        "choice": [choice], "why_no_choice": "",
    }  # fmt: skip


def reproduce_summary() -> Record:
    published = {
        ("10%", "baseline"): (88.43, 52.5), ("10%", "+FedReLa"): (87.4, 77.0),
        ("30%", "baseline"): (89.86, 60.67), ("30%", "+FedReLa"): (90.17, 70.5),
    }  # fmt: skip
    measured = {("10%", "baseline"): (0.8, 0.4, 0), ("10%", "+FedReLa"): (0.82, 0.6, 113)}
    entries = [
        {
            "at": {"dataset": "F-MNIST", "IR": "10", "method": "FedAvg", "minority share": share},
            "arm": arm,
            "published": dict(zip(("majority", "minority"), numbers, strict=True)),
            "measured": {
                name: spread(value, 0.01, 3)
                for name, value in zip(("majority", "minority", "moved"), measured[share, arm], strict=True)
            }
            if (share, arm) in measured
            else None,
            "doubtful": "printed twice" if (share, arm) == ("30%", "+FedReLa") else "",
        }
        for (share, arm), numbers in published.items()
    ]
    return {
        "format": "fedrela-summary-1", "kind": "reproduce", "name": "tab:step", "title": "Step imbalance",
        "scale": "smoke", "seeds": [1, 2, 3], "rows": ["dataset", "IR"], "columns": ["minority share"],
        "metrics": [{"name": "Majority", "of": "majority"}, {"name": "Minority", "of": "minority"}],
        "entries": entries, "ours": ["momentum 0.9"], "reduction": ["digits in place of F-MNIST"], "notes": [],
    }  # fmt: skip
