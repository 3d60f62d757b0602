"""The table ``[compare]``: what it means, and that it is written as it was read."""

from __future__ import annotations

import pytest

from fedrela.arms import MATCHED
from fedrela.experiment.load import commented_toml, config_sha256, config_toml, parse_config
from fedrela.experiment.schema.compare import CompareConfig

FULL = """
[train]
lr = 0.2
[compare]
seeds = 2
baselines = [
  "scaffold",
  { name = "fedprox", mu = 0.25, label = 'Prox "¼"', train = { lr = 0.1, epochs = 3 }, model = { hidden = [8, 4] } },
  { name = "fedavg", server = "adam", label = "FedAdam" },
]
arms = ["baseline", "random-drop"]
pairs = [["baseline", "random-drop"], ["random-drop", "baseline"]]
score = "best-test"
"""


def test_what_is_left_out():
    assert parse_config("").compare is None
    table = parse_config("[compare]").compare
    assert table == CompareConfig()
    assert (table.seeds, table.baselines, table.arms, table.score) == ((1, 2, 3), None, MATCHED, "last")


def test_seeds_are_a_number_or_a_list():
    assert CompareConfig(seeds=2).seeds == CompareConfig(seeds=[1, 2]).seeds == (1, 2)
    assert CompareConfig(seeds=[9, 0]).seeds == (9, 0)


def test_baselines_are_algorithms_with_labels_and_changes():
    first, second, third = parse_config(FULL).compare.baselines
    assert (first.label, first.name, first.train, first.model) == ("SCAFFOLD", "scaffold", {}, {})
    assert (second.label, second.params) == ('Prox "¼"', {"mu": 0.25})
    assert second.changes() == {
        "algorithm": {"name": "fedprox", "mu": 0.25},
        "train": {"lr": 0.1, "epochs": 3},
        "model": {"hidden": [8, 4]},
    }
    assert (third.label, third.params) == ("FedAdam", {"server": "adam"})


def test_every_algorithm_has_a_label_of_its_own():
    from fedrela.algorithms import ALGORITHMS

    assert len({kind.label for kind in ALGORITHMS.values()}) == len(ALGORITHMS)


@pytest.mark.parametrize("write", [config_toml, commented_toml])
@pytest.mark.parametrize("text", [FULL, "[compare]", "[compare]\nseeds = [5]", "[[compare.baselines]]\nname = 'moon'"])
def test_it_is_written_as_it_was_read(write, text):
    config = parse_config(text)
    again = parse_config(write(config))
    assert again == config
    assert write(again) == write(config)
    assert config_sha256(again) == config_sha256(config)


def test_best_validation_needs_what_clients_hold_back():
    text = "[data]\nvalidation = 0.2\n[compare]\nscore = 'best-validation'"
    assert parse_config(text).compare.score == "best-validation"
