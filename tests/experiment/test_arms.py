"""Matched arms: each equals the same arm run alone, whatever it was cut off by, and nothing is done twice."""

from __future__ import annotations

import pytest
import torch

from experiment.small_runs import bytes_of, small
from fedrela.engine.serial import SerialPool
from fedrela.errors import ArgumentError, BusyError
from fedrela.experiment import arms, begin
from fedrela.experiment.arms import ARMS, MATCHED, arm_config, arm_results, is_done, run_arms
from fedrela.experiment.load import parse_config

torch.set_num_threads(1)
SEED = 7


@pytest.fixture
def crew():
    with SerialPool() as pool:
        yield pool


def config(**tables):
    return parse_config(small(**{"relabel": {"start": 4, "tau": 0.2}, "engine": {"checkpoint_every": 1}} | tables))


def finish(configuration, out, crew, chosen=MATCHED):
    return [(each.arm, each.done.record.round) for each in run_arms(configuration, SEED, out, crew, chosen)]


VARIANTS = {
    "fedavg": {},
    "fedprox": {"algorithm": {"name": "fedprox", "mu": 0.1}},
    "collected": {"relabel": {"start": 4, "tau": 0.2, "collected": True}},
    "sampled": {
        "algorithm": {"name": "fedprox", "mu": 0.1},
        "train": {"rounds": 6, "epochs": 1, "participation": 0.5},
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_arm_from_the_prefix_equals_the_same_arm_alone(tmp_path, crew, variant):
    configuration = config(**VARIANTS[variant])
    chosen = (*MATCHED, "random-drop") if variant == "fedavg" else MATCHED
    done = finish(configuration, tmp_path / "shared", crew, chosen)
    assert done == [("prefix", r) for r in (1, 2, 3)] + [(arm, r) for arm in chosen for r in (4, 5, 6)]
    for arm in chosen:
        with begin(arm_config(configuration, arm, SEED), out=tmp_path / arm, crew=crew) as execution:
            execution.complete()
        assert bytes_of(tmp_path / "shared" / arm) == bytes_of(tmp_path / arm)
    results = arm_results(tmp_path / "shared", chosen)
    assert len({result.weights_sha256 for result in results.values()}) == len(chosen)
    assert [result.moved > 0 for result in results.values()] == [ARMS[arm]["enabled"] for arm in chosen]


def test_random_moves_are_as_many(tmp_path, crew):
    finish(config(), tmp_path, crew, ("fedrela", "random"))
    ours, chance = arm_results(tmp_path, ("fedrela", "random")).values()
    assert ours.moved == chance.moved > 0
    assert (ours.folder / "relabelling.json").read_bytes() == (chance.folder / "relabelling.json").read_bytes()
    ledgers = [[path.read_bytes() for path in sorted(each.folder.glob("ledgers/*"))] for each in (ours, chance)]
    assert len(ledgers[0]) == len(ledgers[1]) == 5
    assert ledgers[0] != ledgers[1]


@pytest.mark.parametrize("start", [1, 4])
@pytest.mark.parametrize("stop", [2, 5, 9])
def test_arms_that_were_cut_off_go_on(tmp_path, crew, start, stop):
    configuration = config(relabel={"start": start})
    expected = finish(configuration, tmp_path / "whole", crew, ("host", "fedrela"))
    cut_off = run_arms(configuration, SEED, tmp_path / "cut", crew, ("host", "fedrela"))
    before = [next(cut_off, None) for _ in range(min(stop, len(expected)))]
    cut_off.close()
    rest = finish(configuration, tmp_path / "cut", crew, ("host", "fedrela"))
    assert [(each.arm, each.done.record.round) for each in before if each] + rest == expected
    for arm in ("host", "fedrela"):
        assert bytes_of(tmp_path / "cut" / arm) == bytes_of(tmp_path / "whole" / arm)
    assert finish(configuration, tmp_path / "cut", crew, ("host", "fedrela")) == []


@pytest.mark.parametrize("start", [1, 4])
def test_arms_that_were_cut_off_before_their_first_round_go_on(tmp_path, crew, start):
    configuration = config(relabel={"start": start})
    for place, arm in (("prefix", "fedrela"), ("fedrela", "fedrela")):
        with begin(arm_config(configuration, arm, SEED), out=tmp_path / place, crew=crew):
            pass
    finish(configuration, tmp_path, crew, ("fedrela",))
    with begin(arm_config(configuration, "fedrela", SEED), out=tmp_path / "alone", crew=crew) as execution:
        execution.complete()
    assert bytes_of(tmp_path / "fedrela") == bytes_of(tmp_path / "alone")


def test_runs_of_another_configuration_are_not_taken_for_ours(tmp_path, crew):
    finish(config(), tmp_path, crew, ("host",))
    assert is_done(config(), "host", SEED, tmp_path)
    assert not is_done(config(), "fedrela", SEED, tmp_path)
    other = config(train={"rounds": 6, "epochs": 2})
    with pytest.raises(ArgumentError, match="host: a run of another configuration is here; choose another folder or"):
        finish(other, tmp_path, crew, ("host",))
    with pytest.raises(ArgumentError, match="prefix: a run of another configuration is here"):
        finish(other, tmp_path, crew, ("fedrela",))


def test_somebody_else_at_work_is_noticed(tmp_path, crew):
    first = run_arms(config(), SEED, tmp_path, crew)
    next(first)
    with SerialPool() as another, pytest.raises(BusyError, match="prefix: process"):
        finish(config(), tmp_path, another)
    first.close()


def test_an_unknown_arm():
    with pytest.raises(
        ArgumentError, match="arm: one of host, host-drop, fedrela, fedrela-drop, random, random-drop is"
    ):
        arm_config(config(), "control", SEED)


def test_an_arm_says_all_that_makes_it():
    odd = config(relabel={"start": 4, "moves": "random", "lr_scale": 0.5, "enabled": False})
    for arm in ARMS:
        relabel = arm_config(odd, arm, SEED).relabel
        assert relabel.enabled == ("host" not in arm)
        assert relabel.lr_scale == (arms.DROP if arm.endswith("drop") else 1.0)
        assert "host" in arm or relabel.moves == arm.removesuffix("-drop")
        assert arm_config(odd, arm, SEED).seed == SEED
