"""The algorithm contract in the engine: the same bytes in every process, after a checkpoint; only declared uploads."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedrela.algorithms import ALGORITHMS
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedprox import FedProx
from fedrela.engine import round
from fedrela.engine.checkpoint import restore_checkpoint, save_checkpoint
from fedrela.engine.round import next_round
from fedrela.errors import ArgumentError, RunFailedError
from fedrela.models import build
from fedrela.runfolder import RunFolder
from helpers.engine_federations import (
    CLASSES,
    COLUMNS,
    Made,
    carry_out,
    doubled,
    dropping,
    image_problem,
    made_of,
    normed,
    snapshot,
    weights_of,
)
from helpers.quick import quick
from helpers.throwaway import THROWAWAY, TwoHeads


@pytest.mark.parametrize("name", THROWAWAY)
@pytest.mark.parametrize("participation", [1.0, 0.5])
@pytest.mark.parametrize("enabled", [True, False])
def test_one_process_and_two_workers_give_the_same_bytes(serial, pool, name, participation, enabled):
    made = made_of(THROWAWAY[name](), train={"participation": participation}, relabel={"enabled": enabled})
    alone, records = carry_out(made, serial)
    together, again = carry_out(made, pool)
    assert alone == together
    assert records == again
    assert len({each["weights"] for each in alone}) == 4
    assert any(record.moved for record in records) == enabled
    assert all(record.excluded == [] for record in records)


@pytest.mark.parametrize("name", THROWAWAY)
def test_a_checkpoint_is_the_whole_state(serial, pool, tmp_path, name):
    made = made_of(THROWAWAY[name](), train={"participation": 0.5, "rounds": 5}, relabel={"collected": True})
    whole, _ = carry_out(made, serial)
    first = made.begin(pool)
    for _ in range(3):
        next_round(first)
    folder = RunFolder.create(tmp_path / "run", {}, "", {})
    save_checkpoint(first, folder)
    first.close()
    second = made.begin(serial)
    restore_checkpoint(second, folder.load_checkpoint())
    assert snapshot(second) == whole[2]
    assert [(next_round(second), snapshot(second))[1] for _ in range(2)] == whole[3:]
    second.close()


@pytest.mark.parametrize("make", [normed, dropping, doubled])
@pytest.mark.parametrize("name", ["two_heads", "weighted"])
def test_a_users_model_gives_the_same_bytes_everywhere(serial, pool, make, name):
    made = made_of(THROWAWAY[name](), make=make, train={"participation": 0.5})
    assert carry_out(made, serial) == carry_out(made, pool) == carry_out(made, serial)


def test_torchs_own_generator_is_left_alone(serial):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    some = weights_of(Made(make=dropping), serial, 2)
    assert torch.rand(3).equal(expected)
    assert weights_of(Made(make=dropping), serial, 2) == some
    assert weights_of(Made(make=dropping, seed=12), serial, 2) != some


@pytest.mark.parametrize("participation", [1.0, 0.6])
def test_fedprox_without_a_pull_is_fedavg_to_the_bit(serial, participation):
    parts = {"train": {"participation": participation, "clip": 1.0}, "make": normed}
    assert weights_of(Made(FedProx(mu=0), **parts), serial) == weights_of(Made(FedAvg(), **parts), serial)
    assert weights_of(Made(FedProx(mu=0.1), **parts), serial) != weights_of(Made(FedAvg(), **parts), serial)


class Wrong(FedAvg):
    def server(self, context):
        return super().server(context)[:-1]


class Overflowing(FedAvg):
    def server(self, context):
        return super().server(context) * 1e300


@pytest.mark.parametrize(
    ("algorithm", "message"), [(Wrong(), "expected 64 shared values"), (Overflowing(), "no longer finite")]
)
def test_a_server_without_a_usable_model_ends_the_run(serial, algorithm, message):
    with pytest.raises(RunFailedError, match=message):
        carry_out(Made(algorithm=algorithm), serial)


def test_an_algorithm_that_needs_features_says_so(serial):
    with pytest.raises(ArgumentError, match="two_heads: needs a model's features"):
        Made(algorithm=TwoHeads(), make=plain).begin(serial)


def plain():
    return nn.Sequential(nn.Linear(COLUMNS, CLASSES))


def test_what_cannot_be_sent_runs_here_and_says_so(serial, pool):
    made = Made(make=lambda: build("mlp", (COLUMNS,), CLASSES, seed=7, hidden=[6]))
    run = made.begin(pool)
    next_round(run)
    assert "one process" in run.note
    assert run.state.weights.tobytes() == weights_of(Made(), serial, 1)[0]
    run.close()


def test_pictures_with_augmentation(serial, pool):
    made = Made(problem=image_problem(), train={"augment": True})
    some = carry_out(made, serial)
    assert some == carry_out(made, pool)
    assert some[0][0]["weights"] != weights_of(Made(problem=image_problem()), serial, 1)[0]


BASELINES = THROWAWAY | {name: quick(name) for name in ALGORITHMS} | {"fedyoyo": quick("fedyoyo", views="none")}
SHORT = {"epochs": 1, "batch_size": 32, "evaluate_every": 9}


def uploads_of(made, executor, monkeypatch):
    """Return what was sent in each round: sender, number of samples, and the form of each array."""
    arrived, admit = [], round.admit

    def spy(uploads, **rules):
        forms = [
            (u.client, u.samples, [(name, a.shape, a.dtype.str, a.nbytes) for name, a in u.arrays.items()])
            for u in sorted(uploads, key=lambda upload: upload.client)
        ]
        if rules["reference"] is not None:  # no answers of an exchange
            arrived.append(forms)
        return admit(uploads, **rules)

    with monkeypatch.context() as patch:
        patch.setattr(round, "admit", spy)
        run = made.begin(executor)
        moved = sum(next_round(run).record.moved for _ in range(2))
        declared = {"weights", *made.algorithm.sends(run.arrays.sizes)}
        run.close()
    return arrived, moved, declared


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("make", [None, normed, dropping])
def test_uploads_are_the_same_with_and_without_re_labelling(serial, monkeypatch, name, make):
    def of(**relabel):
        return uploads_of(made_of(BASELINES[name](), make=make, train=SHORT, relabel=relabel), serial, monkeypatch)

    (on, moved, declared), (off, unmoved, _), (collected, _, _) = of(), of(enabled=False), of(collected=True)
    assert on == off == collected
    assert moved > 0 == unmoved
    names = {array for array, *_ in on[0][0][2]}
    assert names == declared == set(BASELINES[name]().uploads)
