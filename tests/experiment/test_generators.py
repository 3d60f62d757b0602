"""Models and algorithms that draw from Python's, NumPy's and torch's global generators still repeat to the bit."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from fedrela import experiment
from fedrela.experiment import runner
from fedrela.experiment.load import parse_config
from helpers import own_parts

torch.set_num_threads(1)
CONFIG = {
    "data": {"source": own_parts.load, "options": {"samples": 80}, "partition": {"kind": "iid", "clients": 3}},
    "model": {"name": own_parts.Noisy},
    "algorithm": {"name": own_parts.Drawing},
    "train": {"rounds": 3, "epochs": 1},
    "relabel": {"method": own_parts.Swap, "start": 2, "tau": 0.1},
    "engine": {"checkpoint_every": 1},
}


def states() -> list[object]:
    return [random.getstate(), str(np.random.get_state(legacy=False)), torch.get_rng_state().tolist()]  # noqa: NPY002


def seed_all(number: int) -> None:
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002
    torch.manual_seed(number)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    seed_all(1)
    return experiment.run(CONFIG, out=tmp_path_factory.mktemp("generators") / "run", workers=1)


def test_workers_and_the_callers_state_change_nothing(whole, tmp_path):
    seed_all(2)
    before = states()
    assert experiment.run(CONFIG, out=tmp_path / "one", workers=1).record == whole.record
    assert states() == before
    assert experiment.run(CONFIG, out=tmp_path / "two", workers=2).record == whole.record


def test_a_resumed_run_is_the_same(whole, tmp_path):
    with experiment.begin(CONFIG, out=tmp_path / "cut", workers=1) as recorded:
        next(iter(recorded.rounds()))
    seed_all(3)
    with runner.resume(tmp_path / "cut", workers=1) as recorded:
        assert recorded.complete().record == whole.record


def test_flower_gives_the_same(whole, tmp_path):
    pytest.importorskip("flwr", reason="the extra flower is not installed")
    from helpers.flower_federations import assert_equal, federate

    seed_all(4)
    assert_equal(federate(parse_config(CONFIG), tmp_path)[0], whole)


def test_a_model_given_as_a_function_is_made_from_the_seed_alone(tmp_path):
    done = []
    for number in (5, 6):
        seed_all(number)
        config = {**CONFIG, "model": {}, "algorithm": {}, "train": {"rounds": 1, "epochs": 1}, "relabel": {"start": 1}}
        done.append(experiment.run(config, out=tmp_path / str(number), workers=1, model=own_parts.make))
    assert done[0].record == done[1].record
