"""Fed-GraB against its official numbers and its invariants."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

from fedrela.algorithms.fedgrab import Balancer, FedGrab, balanced_bce, gain, skipped_classes
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from goldens.class_gradients import load
from helpers.engine_federations import Made


def test_the_controller_and_the_map_are_the_official_ones():
    golden = load("fedgrab_pid_and_map")
    balancer, outputs = Balancer(1), []
    for difference in golden["pn_diff_seq"]:
        balancer.state |= {"positive": np.array([float(difference)]), "negative": np.zeros(1)}
        outputs.append(float(balancer.step()[0]))
    assert outputs == pytest.approx(golden["pid_out"].ravel().tolist(), abs=1e-9)
    assert outputs[:4] == pytest.approx([0, 3.033, 5.028, 1.98])
    assert gain(golden["map_x"].astype(float)) == pytest.approx(golden["map_y"], abs=1e-5)


def test_twelve_official_steps():
    golden = load("fedgrab_pidloss_12steps_pyseed123")
    draw, balancer = random.Random(123).random, Balancer(10)
    for step in range(12):
        logits = torch.tensor(golden["logits"][step], requires_grad=True)
        labels = torch.tensor(golden["target"][step]).long()
        passed = skipped_classes(np.arange(10), draw)
        loss = balanced_bce(logits, labels, balancer, passed)
        loss.backward()
        assert passed[0]
        assert loss.item() == pytest.approx(float(golden["loss"][step]), abs=4e-5)
        assert (logits.grad - torch.tensor(golden["grad"][step])).abs().max() < 4e-5
        for name, found in (("pid", "u"), ("pos_grad", "positive"), ("neg_grad", "negative")):
            assert balancer.state[found] == pytest.approx(golden[name][step], abs=4e-5)


def test_the_map():
    v = np.linspace(-40, 40, 81)
    assert gain(np.zeros(1)) == pytest.approx([1.0])
    assert ((gain(v) > 0) & (gain(v) < 10 + 1e-12)).all()
    assert (10 / gain(v) - 1) * (10 / gain(-v) - 1) == pytest.approx(np.full(81, 81.0))
    assert np.isfinite(gain(np.array([-1e6, 1e6]))).all()


def test_closed_controllers_are_plain_binary_cross_entropy():
    generator = torch.Generator().manual_seed(3)
    balancer = Balancer(5)
    balancer.active = np.zeros(5, bool)
    for _ in range(4):
        logits, labels = torch.randn(7, 5, generator=generator).requires_grad_(), torch.arange(7) % 5
        loss = balanced_bce(logits, labels, balancer, np.zeros(5, bool))
        plain = binary_cross_entropy_with_logits(logits, one_hot(labels, 5).float(), reduction="sum") / 7
        (own,), (reference,) = torch.autograd.grad(loss, [logits]), torch.autograd.grad(plain, [logits])
        assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
        assert torch.allclose(own, reference, atol=1e-7)


def test_the_gradient_is_the_multiplied_one():
    balancer = Balancer(3)
    balancer.state["positive"] = np.array([4.0, 0.0, 1.0])
    logits, labels = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)).requires_grad_(), torch.arange(6) % 3
    (own,) = torch.autograd.grad(balanced_bce(logits, labels, balancer, np.zeros(3, bool)), [logits])
    u, hot = balancer.state["u"], one_hot(labels, 3).bool()
    weights = torch.where(hot, torch.from_numpy(gain(u)), torch.from_numpy(gain(-u)))
    expected = weights * (torch.sigmoid(logits) - hot.float()) / 6
    assert (own - expected).abs().max() < 1e-7


def test_the_most_frequent_class_is_always_skipped_classes():
    rng = np.random.default_rng(0)
    order = np.array([2, 0, 1])
    drawn = np.array([skipped_classes(order, rng.random) for _ in range(2000)])
    assert drawn[:, 2].all()
    assert drawn[:, 0].mean() == pytest.approx(0.1**0.5, abs=0.04)
    assert skipped_classes(np.array([0]), rng.random).tolist() == [True]


@pytest.mark.parametrize("head", ["trained", "frozen"])
def test_the_head_moves_or_not(head):
    run = Made(algorithm=FedGrab(head=head)).begin(SerialExecutor())
    before = run.runner.model.module.head.weight.detach().clone()
    next_round(run)
    run.runner.load(run.state.weights)
    assert torch.equal(before, run.runner.model.module.head.weight) == (head == "frozen")
    run.close()


def test_controllers_are_kept_from_round_to_round():
    run = Made(algorithm=FedGrab(tail="all")).begin(SerialExecutor())
    sums = []
    for _ in range(3):
        next_round(run)
        sums.append(run.memory["client_state"].row(0)["state.positive"].sum())
    run.close()
    assert sums[0] < sums[1] < sums[2]
