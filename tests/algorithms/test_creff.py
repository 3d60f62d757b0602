"""CReFF against its official numbers and its invariants."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from fedrela.algorithms.creff import Creff, head_gradients, match_features, match_loss
from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from goldens.class_gradients import load
from helpers.engine_federations import Made

QUICK = {"retrain_epochs": 2, "match_steps": 2, "features": 6, "repeats": 2}


def test_the_match_loss_is_the_official_one():
    golden = {name: torch.tensor(array) for name, array in load("creff_match_loss").items()}
    made = golden["g_syn_W"].requires_grad_(), golden["g_syn_b"].requires_grad_()
    loss = match_loss((golden["g_real_W"], golden["g_real_b"]), made)
    assert loss.item() == pytest.approx(10.642446, abs=5e-6)


def test_three_official_steps_of_matching():
    golden = load("creff_update_feature_syn_3steps")
    present, count = golden["present"].sum(axis=0) > 0, np.maximum(golden["present"].sum(axis=0), 1)
    real = (
        torch.tensor(golden["real_grad_W"].sum(axis=0) / count[:, None, None]).float(),
        torch.tensor(golden["real_grad_b"].sum(axis=0) / count[:, None]).float(),
    )
    head = torch.tensor(golden["clf_W"]), torch.tensor(golden["clf_b"])
    start = torch.tensor(golden["feature_init"]).reshape(10, 4, 256)
    new = match_features(start, real, head, torch.tensor(present), 3, 0.1)
    assert (new.reshape(40, 256) - torch.tensor(golden["feature_after"])).abs().max() < 5e-6
    assert torch.equal(new[~present], start[~present])


def test_head_gradients_are_those_of_autograd():
    generator = torch.Generator().manual_seed(0)
    f, y = torch.randn(7, 5, generator=generator), torch.arange(7) % 3
    W, b = torch.randn(3, 5, generator=generator).requires_grad_(), torch.randn(3, generator=generator).requires_grad_()
    expected = torch.autograd.grad(cross_entropy(linear(f, W, b), y), [W, b])
    for found, wanted in zip(head_gradients(f, y, W.detach(), b.detach()), expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_the_match_loss_of_equal_opposite_and_scaled_gradients():
    generator = torch.Generator().manual_seed(1)
    W, b = 3 * torch.randn(4, 6, generator=generator), 3 * torch.randn(4, generator=generator)
    assert match_loss((W, b), (W, b)).item() == pytest.approx(0, abs=1e-5)
    assert match_loss((W, b), (-W, -b)).item() == pytest.approx(2 * (4 + 1), abs=1e-4)
    other = torch.randn(4, 6, generator=generator), torch.randn(4, generator=generator)
    scaled = match_loss((7 * W, 7 * b), other).item()
    assert scaled == pytest.approx(match_loss((W, b), other).item(), abs=1e-4)


def test_what_is_trained_is_fedavg_exactly_and_what_is_scored_is_not():
    results = {}
    for algorithm in (Creff(**QUICK), Creff(retrain_epochs=0), FedAvg()):
        # Without FedReLa, whose posterior comes from what is scored.
        run = Made(algorithm=algorithm, relabel={"enabled": False}).begin(SerialExecutor())
        losses = [next_round(run).record.loss for _ in range(3)]
        results[str(algorithm.params)] = (run.arrays.layout.sha256(run.state.weights), losses)
        run.close()
    (first, scored), (second, plain), (third, reference) = results.values()
    assert first == second == third
    assert plain == reference
    assert scored != reference


def test_uploads_have_all_blocks_whatever_classes_a_client_has():
    run = Made(algorithm=Creff(**QUICK)).begin(SerialExecutor())
    next_round(run)
    rows = [run.memory["uploads"].row(row) for row in range(2)]
    assert [row["present"].tolist() for row in rows] == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert rows[0]["gradient_weight"].shape == rows[1]["gradient_weight"].shape == (4, 4, 6)
    assert not rows[1]["gradient_weight"][3].any()
    run.close()
