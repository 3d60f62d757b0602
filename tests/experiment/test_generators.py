"""Models and algorithms that draw from Python's, NumPy's and torch's global generators still repeat to the bit."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

from fedrela import experiment
from fedrela.algorithms import ALGORITHMS
from fedrela.engine.client import ClientRunner
from fedrela.experiment import runner
from fedrela.experiment.load import parse_config
from helpers import own_parts
from helpers.quick import QUICK
from helpers.small_runs import small

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


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_algorithm_draws_from_torchs_generator_at_a_client(name, tmp_path, monkeypatch):
    """So clients of this package's own algorithms and models need no seed, which would take as long as a small one."""
    call, seen = ClientRunner.__call__, set()

    def watched(runner, task):
        before = torch.get_rng_state()
        result = call(runner, task)
        seen.add((runner._is_seeded, torch.equal(before, torch.get_rng_state())))
        return result

    monkeypatch.setattr(ClientRunner, "__call__", watched)
    algorithm = {"name": name, **QUICK.get(name, {})}
    data = {"source": "digits", "options": {}, "imbalance": {"kind": "step", "ratio": 20, "minority": [0]}}
    config = small(algorithm=algorithm, data=data, model={"hidden": [12]}, train={"rounds": 2}, relabel={"start": 2})
    experiment.run(config, out=tmp_path, workers=1)
    assert seen == {(False, True)}


def with_dropout(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(*shape, classes))


def with_hook(shape: tuple[int, ...], classes: int) -> nn.Module:
    model = nn.Sequential(nn.Linear(*shape, classes))
    model.register_forward_hook(lambda _, __, logits: logits * (random.random() + np.random.random()))  # noqa: NPY002
    return model


def with_another_forward(shape: tuple[int, ...], classes: int) -> nn.Module:
    model = nn.Linear(*shape, classes)
    forward = model.forward
    model.forward = lambda x: forward(x) * (random.random() + np.random.random())  # noqa: NPY002
    return model


@pytest.mark.parametrize("model", [with_dropout, with_hook, with_another_forward])
def test_models_of_torchs_layers_that_draw_repeat_to_the_bit(tmp_path, model):
    done = []
    for number in (7, 8):
        seed_all(number)
        config = small(train={"rounds": 2}, relabel={"start": 2})
        done.append(experiment.run(config, out=tmp_path / str(number), workers=1, model=model))
    assert done[0].record == done[1].record
