"""Pages that are made from the code are the code's."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment.registries import traffic

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_algorithms_is_up_to_date():
    made = runpy.run_path(str(DOCS / "algorithms.py"))
    assert (DOCS / "algorithms.md").read_text() == made["page"](), "run python docs/algorithms.py"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_is_sent_is_what_the_algorithm_names(name):
    assert ("weights", *traffic(name).up) == ALGORITHMS[name].uploads


def test_sizes_of_the_specification():
    """Twice FedAvg's traffic for SCAFFOLD; C blocks of C (d + 1) for CReFF, and the head down."""
    scaffold = traffic("scaffold", "simple_cnn")
    assert scaffold.weights == scaffold.up["control"] == scaffold.down["control"] == 4 * 62_006
    creff = traffic("creff", "resnet8")
    assert sum(creff.down.values()) == 10_280
    assert creff.up["gradient_weight"] + creff.up["gradient_bias"] == 10 * 10_280
