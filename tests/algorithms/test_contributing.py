"""CONTRIBUTING's steps are true: an algorithm is one file and one line of the table, and everything knows it."""

from __future__ import annotations

import pytest

from helpers.contributed import COMMAND, DOCS, PACKAGE, contributed

CONFIG = """
data.partition = { clients = 4, alpha = 1.0 }
model.hidden = [8]
train.rounds = 2
train.evaluate_every = 2
compare.seeds = 1
compare.baselines = ["fedavg", { name = "halfway", mu = 0.5 }]
compare.arms = ["baseline", "fedrela"]
relabel.start = 2
"""
CHECKED = """
from fedrela.algorithms import ALGORITHMS
from fedrela.testing import check_algorithm
print(len(check_algorithm(ALGORITHMS["halfway"])))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run Python with a copy of the package that has one algorithm more."""
    nearest = (PACKAGE / "algorithms" / "fedprox.py").read_text()
    text = nearest.replace("fedprox", "halfway").replace("FedProx", "Halfway").replace("Holds each", "Keeps each")
    root = tmp_path_factory.mktemp("contributed")
    line, after = '"halfway": "halfway:Halfway",', '"fedprox": "fedprox:FedProx",'
    return contributed(root, "algorithms/halfway.py", text, line, after)


def test_the_list_shows_it(run):
    lines = run("-c", COMMAND, "list", "algorithms").splitlines()
    assert any(line.startswith("halfway") and "Keeps each client" in line for line in lines)
    assert any(line.split()[:2] == ["mu", "mu"] for line in lines[lines.index("halfway") :])


def test_it_is_compared_under_its_label(run, tmp_path):
    config = tmp_path / "compare.toml"
    config.write_text(CONFIG)
    out = tmp_path / "out"
    run("-c", COMMAND, "compare", str(config), "--out", str(out))
    assert "Halfway" in (out / "report.html").read_text()


def test_the_documentation_table_has_it(run):
    page = run("-c", f"import runpy; print(runpy.run_path({str(DOCS / 'algorithms.py')!r})['page']())")
    assert "| `halfway` | Li et al., 2020 |" in page
    assert "## halfway\n\nHalfway. Keeps each client near the global model" in page


def test_the_public_battery_takes_it(run):
    assert run("-c", CHECKED).strip() == "7"
