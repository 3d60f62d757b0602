"""The official implementations' own values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.losses import balance, balanced_softmax, contrastive, fedlc, logit_adjustment
from goldens.frames_and_losses import MOON, load

TAUS = ("0.1", "0.5", "1.0")


@pytest.fixture
def folder(request):
    return request.config.getoption("--goldens")


def check(golden: dict[str, np.ndarray], key: str, loss: torch.Tensor, logits: torch.Tensor) -> None:
    (gradient,) = torch.autograd.grad(loss, [logits])
    assert loss.item() == pytest.approx(float(golden[f"{key}_loss"]), abs=1e-12)
    if f"{key}_grad" in golden:
        np.testing.assert_allclose(gradient.numpy(), golden[f"{key}_grad"], atol=1e-12)


@pytest.fixture(params=["full", "absent"])
def case(request):
    return request.param


def batch(golden: dict[str, np.ndarray], case: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    logits = torch.from_numpy(golden["logits"]).requires_grad_()
    return logits, torch.from_numpy(golden[f"{case}_y"]).long(), torch.from_numpy(golden[f"{case}_counts"])


def test_balanced_softmax(folder, case):
    golden = load("balanced_softmax", folder)
    logits, y, counts = batch(golden, case)
    check(golden, case, balanced_softmax(logits, y, counts), logits)
    check(golden, f"{case}_fedetf_floor1", balanced_softmax(logits, y, counts, floor=1), logits)
    each = [balanced_softmax(logits[i : i + 1], y[i : i + 1], counts).item() for i in range(len(y))]
    np.testing.assert_allclose(each, golden[f"{case}_none"], atol=1e-12)


@pytest.mark.parametrize("tau", ["0.5", "1.0", "1.5"])
def test_logit_adjustment(folder, case, tau):
    golden = load("balanced_softmax", folder)
    logits, y, counts = batch(golden, case)
    check(golden, f"{case}_la_tau{tau}", logit_adjustment(logits, y, counts, float(tau)), logits)


@pytest.mark.parametrize("tau", TAUS)
def test_fedlc(folder, case, tau):
    golden = load("fedlc", folder)
    logits, y, counts = batch(golden, case)
    check(golden, f"{case}_tau{tau}_inf", fedlc(logits, y, counts, float(tau)), logits)
    check(golden, f"{case}_tau{tau}_floor1e8", fedlc(logits, y, counts, float(tau), floor=1e-8), logits)
    if case == "full":
        check(golden, f"{case}_tau{tau}_excl_y", fedlc(logits, y, counts, float(tau), exclude_label=True), logits)


@pytest.mark.parametrize("name", MOON)
def test_contrastive(folder, name):
    golden = load(name, folder)
    z = torch.from_numpy(golden["z_local"]).requires_grad_()
    others = torch.from_numpy(golden["z_global"]), torch.from_numpy(golden["z_prev"])
    loss = contrastive(z, *others, float(golden["temperature"]))
    assert loss.item() == pytest.approx(float(golden["con_loss_unscaled"]), abs=1e-6)
    total = float(golden["mu"]) * loss
    assert total.item() == pytest.approx(float(golden["loss2_mu_times_con"]), abs=1e-5)
    (gradient,) = torch.autograd.grad(total, [z])
    np.testing.assert_allclose(gradient.numpy(), golden["grad_total_wrt_z_local"], atol=1e-6)
    plain = cross_entropy(torch.from_numpy(golden["logits"]), torch.from_numpy(golden["target"]).long())
    assert (plain + total).item() == pytest.approx(float(golden["total_loss"]), abs=1e-5)


def test_weights_of_dot_regression(folder):
    golden = load("etf_dot_regression", folder)
    for case in ("d16_c10", "d32_c10_b1", "d512_c100"):
        if f"{case}_y" in golden:
            counts = np.bincount(golden[f"{case}_y"], minlength=golden[f"{case}_M"].shape[1])
            np.testing.assert_allclose(balance(torch.tensor(counts)).numpy(), golden[f"{case}_Ew"][0], atol=1e-6)
    whole = balance(torch.from_numpy(golden["global_Ew_counts"])).numpy()
    np.testing.assert_allclose(whole, golden["global_Ew"][0], atol=1e-6)
