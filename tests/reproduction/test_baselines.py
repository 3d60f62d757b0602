"""A researcher's own parts in a table of the paper, under its protocol."""

from __future__ import annotations

import pytest
import torch

from fedrela.errors import ArgumentError
from fedrela.experiment import Result
from fedrela.experiment.load import parse_config
from fedrela.reproduction import reproduce
from fedrela.reproduction.baselines import with_baselines, with_changes
from fedrela.reproduction.estimate import data_size, round_work
from fedrela.reproduction.paper_table import NAMES, paper_table
from fedrela.runfolder.grids import GridFolder
from helpers import own_parts

torch.set_num_threads(1)
OWN = "helpers.own_parts"


@pytest.mark.parametrize("name", NAMES)
def test_an_own_baseline_is_at_every_place_of_every_table(name):
    plain = paper_table(name)
    table = with_baselines(plain, [f"{OWN}:Mine"])
    own = [cell for cell in table.cells if cell.at["method"] == "Mine"]
    methods = {cell.at["method"] for cell in table.cells}
    assert [cell.published for cell in table.cells if cell not in own] == [cell.published for cell in plain.cells]
    assert all(cell.published == {} for cell in own)
    assert len(own) >= len(plain.cells) / (len(methods) - 1)
    for scale in ("smoke", "paper"):
        chosen = [cell for cell in table.chosen(scale) if cell in own]
        assert chosen
        for cell in (chosen[0], chosen[-1]):
            theirs = next(each for each in table.chosen(scale) if each not in own and each.arm == cell.arm)
            (arm, *_), (other, *_) = table.arms(cell), table.arms(theirs)
            config = table.config(cell, arm, scale, 1)
            assert config.algorithm.name == f"{OWN}:Mine"
            assert config.relabel.enabled == table.config(theirs, other, scale, 1).relabel.enabled


def test_a_table_is_measured_with_own_parts(tmp_path):
    changes = {
        "data": {"source": own_parts.load, "options": {"samples": 200}, "imbalance": {"kind": "natural"}},
        "train": {"rounds": 2, "epochs": 1},
        "relabel": {"method": own_parts.Swap, "start": 2},
    }
    mine = {"name": own_parts.Mine, "share": 0.3, "label": "Mine 0.3"}
    summary = reproduce("zscore", out=tmp_path / "out", seeds=1, workers=1, baselines=[mine], changes=changes)
    entries = {(entry["at"]["method"], entry["at"]["variant"]): entry for entry in summary["entries"]}
    assert all(entry["measured"]["overall"]["mean"] > 0 for entry in entries.values())
    assert entries["Mine 0.3", "+FedReLa"]["published"] == {}
    assert entries["FedLOGE", "+FedReLa"]["published"]["overall"] == 70.0
    assert f'Not the paper\'s, in every run: relabel.method = "{OWN}:Swap"' in summary["notes"]
    folder = GridFolder.open(tmp_path / "out")
    done = [Result.load(folder.place(cell)) for cell in folder.cells if cell["baseline"] == "Mine 0.3"]
    assert sorted(result.moved > 0 for result in done) == [False, True, True]
    with pytest.raises(ArgumentError, match="contains a reproduce of another configuration"):
        reproduce("zscore", out=tmp_path / "out", seeds=1, workers=1, baselines=[mine])


@pytest.mark.parametrize(
    ("baselines", "changes", "message"),
    [
        (["fedavg"], {}, "^tab:step already has FedAvg; leave it out or give it another label$"),
        ([f"{OWN}:Min"], {}, r"^tab:step: compare\.baselines\[0\]: module .* has no 'Min'; nearest: 'Mine'$"),
        ([f"{OWN}:load"], {}, "expected .* but"),
        ([], {"seed": 3}, "^seed: is set by the table; leave it out$"),
        ([], {"compare": {"arms": ["baseline"]}}, r"^compare\.arms: is set by the table"),
    ],
)
def test_what_cannot_be_added_is_one_line(baselines, changes, message):
    with pytest.raises(ArgumentError, match=message):
        with_changes(with_baselines(paper_table("step"), baselines), changes)


def test_the_time_of_own_parts_is_estimated_from_a_trial():
    table = {"data": {"source": f"{OWN}:load", "options": {"samples": 40}}, "model": {"name": f"{OWN}:make"}}
    config = parse_config({**table, "data": {**table["data"], "partition": {"kind": "iid", "clients": 2}}})
    assert (data_size(config).train + data_size(config).test, data_size(config).shape) == (50, (3,))
    assert round_work(config) > 0
    assert round_work(parse_config({"model": {"name": "logistic"}})) > 0  # its price is not known either
