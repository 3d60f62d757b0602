"""The demonstration: what README shows is what it prints, and the effect is there by a margin."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fedrela.experiment import demo


def table(text: str, gap: str) -> dict[str, list[float]]:
    """Return the means in a table, arm by arm; `gap` follows the name of an arm."""
    return {
        arm: [float(m) for m in re.findall(r"(\d+\.\d) \(", text[text.index(arm + gap) :])[:3]] for arm in demo.ARMS
    }


def test_the_demo_shows_what_the_readme_says(run):
    outcome = run("demo")
    assert outcome.code == 0
    shown = table(outcome.out, "  ")
    plain, ours, chance = (shown[arm][0] for arm in demo.ARMS)  # minority recall, per cent
    assert ours > max(plain, chance) + 15
    readme = table((Path(__file__).parents[2] / "README.md").read_text(), " |")
    for arm in demo.ARMS:  # another processor may round another way
        assert shown[arm] == pytest.approx(readme[arm], abs=3)


def test_random_moves_keep_the_flow():
    trial = next(iter(demo.trials()))
    mixed = demo.random_moves(trial.ledger, trial.seed)
    flow = np.zeros((10, 10), int)
    np.add.at(flow, (trial.ledger.original, mixed), 1)
    np.fill_diagonal(flow, 0)
    np.testing.assert_array_equal(flow, trial.ledger.flow)
    assert (mixed != trial.ledger.labels).any()
    assert trial.outlook.total[2] == pytest.approx(len(trial.ledger), rel=0.3)
