"""Heads: linear ones, the simplex ETF and the sparse frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from fedrela.errors import ArgumentError
from fedrela.losses import balanced_softmax, dot_regression
from fedrela.models import FlatModel
from fedrela.models.heads import (
    EtfHead,
    FixedHead,
    ProjectedEtfHead,
    linear,
    simplex_etf,
    sparse_etf,
    spread_apart,
    zero_positions,
)
from goldens.frames_and_losses import load
from helpers import batteries
from helpers.batteries import examples

CASES = ("d16_c10", "d32_c10_b1", "d512_c100")


@given(st.integers(2, 12), st.integers(0, 30), st.integers(0, 5))
@examples(25, 400)
def test_simplex_etf(classes, more, seed):
    M = simplex_etf(classes + more, classes, seed=seed)
    gram = (M.double().T @ M.double()).numpy()
    ideal = np.full((classes, classes), -1 / (classes - 1)) + np.eye(classes) * classes / (classes - 1)
    np.testing.assert_allclose(gram, ideal, atol=1e-6)
    np.testing.assert_allclose(M.double().sum(dim=1).numpy(), 0, atol=1e-6)
    assert np.linalg.matrix_rank(M.double().numpy(), tol=1e-4) == classes - 1


def test_simplex_etf_is_a_function_of_its_seed_and_not_of_threads():
    before = torch.get_rng_state()
    M = simplex_etf(64, 20, seed=3)
    torch.set_num_threads(2)
    try:
        assert torch.equal(simplex_etf(64, 20, seed=3), M)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert not torch.equal(simplex_etf(64, 20, seed=4), M)
    assert torch.equal(torch.get_rng_state(), before)
    assert M.dtype == torch.float32
    assert M.is_contiguous()


def test_too_few_features():
    with pytest.raises(
        ArgumentError, match=r"^simplex ETF: expected at least as many features.*got 9 features for 10 classes"
    ):
        simplex_etf(9, 10, seed=0)
    with pytest.raises(ArgumentError, match=r"^classes: expected an integer >= 2, got 1$"):
        simplex_etf(9, 1, seed=0)


@pytest.mark.parametrize("case", CASES)
def test_official_etf_head(case, request):
    arrays = load("etf_dot_regression", request.config.getoption("--goldens"))
    golden = {key.removeprefix(f"{case}_"): value for key, value in arrays.items() if key.startswith(case)}
    if not golden:
        pytest.skip("only among the full goldens")
    head = EtfHead(torch.from_numpy(golden["M"]))
    x, y = torch.from_numpy(golden["x"]).requires_grad_(), torch.from_numpy(golden["y"]).long()
    fresh = head.eval().unit(x).detach().numpy()
    np.testing.assert_allclose(fresh, golden["feat_eval_fresh_bn"], atol=1e-6)
    np.testing.assert_allclose(fresh, (x / x.norm(dim=1, keepdim=True)).detach().numpy(), atol=1e-6)
    unit = head.train().unit(x)
    np.testing.assert_allclose(unit.detach().numpy(), golden["feat_train"], atol=1e-6)
    np.testing.assert_allclose((unit @ head.etf).detach().numpy(), golden["logits_train"], atol=1e-6)
    np.testing.assert_allclose((head.etf.T @ head.etf).numpy(), golden["gram"], atol=1e-6)
    loss = dot_regression(unit, y, head.etf)
    assert loss.item() == pytest.approx(float(golden["loss"]), abs=1e-6)
    assert loss.item() == pytest.approx(float(golden["closed_form"]), abs=1e-6)
    by_feature, by_x = torch.autograd.grad(loss, [unit, x])
    np.testing.assert_allclose(by_feature.numpy(), golden["grad_feat"], atol=1e-6)
    np.testing.assert_allclose(by_x.numpy(), golden["grad_x"], atol=1e-6)
    if len(y) > 1:
        np.testing.assert_allclose(head.norm.running_mean.numpy(), golden["bn_running_mean"], atol=1e-6)
        np.testing.assert_allclose(head.norm.running_var.numpy(), golden["bn_running_var"], atol=1e-6)


def test_official_projected_head(request):
    golden = {key: torch.from_numpy(np.asarray(value)) for key, value in
              load("fedetf_original", request.config.getoption("--goldens")).items()}  # fmt: skip
    head = ProjectedEtfHead(10, golden["proto"], seed=0)
    z = golden["z"].clone().requires_grad_()
    head.projection = torch.nn.Identity()  # the golden starts from the projection's output
    logits = head(z)
    np.testing.assert_allclose(head.unit(z).detach().numpy(), golden["feature"].numpy(), atol=1e-6)
    np.testing.assert_allclose(logits.detach().numpy(), golden["logits"].numpy(), atol=1e-6)
    loss = balanced_softmax(logits, golden["y"].long(), golden["sample_per_class"])
    by_z, by_scale = torch.autograd.grad(loss, [z, head.scale])
    assert loss.item() == pytest.approx(1.5010321, abs=1e-6)
    assert by_scale.item() == pytest.approx(0.0823408, abs=1e-6)
    np.testing.assert_allclose(by_z.numpy(), golden["grad_z"].numpy(), atol=1e-6)


@pytest.mark.parametrize(("classes", "loss"), [(10, 1.376935), (100, 3.612377)])
def test_perfect_features_of_the_projected_head(classes, loss):
    M = simplex_etf(classes, classes, seed=0)
    head = ProjectedEtfHead(classes, M, seed=0)
    head.projection = torch.nn.Identity()
    y = torch.arange(classes)
    assert cross_entropy(head(M.T), y).item() == pytest.approx(loss, abs=1e-5)
    assert cross_entropy(head(7 * M.T), y).item() == pytest.approx(loss, abs=1e-5)


@pytest.mark.parametrize(("classes", "low", "high"), [(10, 0.03529, 0.25235), (100, 0.003665, 0.026988)])
def test_posterior_of_cosines_is_flat(classes, low, high):
    M = simplex_etf(128, classes, seed=1)
    head = EtfHead(M, batch_norm=False)
    for posterior in (head(M.T).softmax(dim=1), head(-M.T).softmax(dim=1)):
        assert posterior.min() >= low - 1e-5
        assert posterior.max() <= high + 1e-5
    assert head(M.T).softmax(dim=1).max().item() == pytest.approx(high, abs=1e-5)
    assert head(-M.T).softmax(dim=1).min().item() == pytest.approx(low, abs=1e-5)


def test_one_sample_in_training_skips_the_norm_and_in_evaluation_does_not():
    head = EtfHead(simplex_etf(8, 3, seed=0))
    x = torch.rand(6, 8)
    head.train().unit(x)
    state = head.norm.running_mean.clone()
    assert torch.equal(head.unit(x[:1]), torch.nn.functional.normalize(x[:1], dim=1))
    assert torch.equal(head.norm.running_mean, state)
    head.eval()
    torch.testing.assert_close(head.unit(x[:1]), head.unit(x)[:1])


def test_fixed_matrices_are_no_arrays():
    M = simplex_etf(8, 3, seed=0)
    assert {entry.name for entry in FlatModel(EtfHead(M)).layout.entries} == {
        "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var",
    }  # fmt: skip
    assert [entry.name for entry in FlatModel(ProjectedEtfHead(5, M, seed=0)).layout.entries] == [
        "scale", "projection.weight", "projection.bias",
    ]  # fmt: skip
    fixed = FixedHead(M, linear(8, 3, seed=0).bias)
    assert not list(fixed.parameters())
    assert not fixed.state_dict()
    x = torch.rand(4, 8)
    torch.testing.assert_close(fixed(x), x @ M + linear(8, 3, seed=0).bias)
    torch.testing.assert_close(FixedHead(M)(x), x @ M)
    assert fixed.double()(x.double()).dtype == torch.float64


def test_linear_heads_have_addresses():
    first = linear(8, 3, seed=0, purpose="auxiliary", client=2)
    assert torch.equal(first.weight, linear(8, 3, seed=0, purpose="auxiliary", client=2).weight)
    for other in ({"client": 1}, {"round": 1, "client": 2}, {"seed": 1, "client": 2}):
        address = {"seed": 0, "purpose": "auxiliary"} | other
        assert not torch.equal(first.weight, linear(8, 3, **address).weight)


@pytest.fixture
def golden(request):
    return load("fedloge_sse_c", request.config.getoption("--goldens"))


def off_diagonal(S: torch.Tensor) -> np.ndarray:
    unit = (S / S.norm(dim=0)).double()
    gram = (unit.T @ unit).numpy()
    return gram[~np.eye(len(gram), dtype=bool)]


def test_official_first_steps(golden):
    zeros = torch.from_numpy(golden["zero_flat_indices"]).long()
    options = {"lr": float(golden["adam_lr"]), "norm": float(golden["norm_target"])}
    S = spread_apart(torch.from_numpy(golden["M0"]), zeros, steps=50, **options)
    np.testing.assert_allclose(S.numpy(), golden["S_50steps"], atol=1e-6, rtol=0)
    np.testing.assert_array_equal(np.flatnonzero(S.numpy() == 0), np.sort(golden["zero_flat_indices"]))


@pytest.mark.parametrize(("features", "classes", "zeros"), [(512, 100, 30_720), (512, 10, 3072), (64, 10, 384)])
def test_number_of_zeros(features, classes, zeros):
    positions = zero_positions(features, classes, 0.6, seed=1)
    assert len(np.unique(positions)) == zeros
    S = sparse_etf(features, classes, seed=1, steps=3)
    np.testing.assert_array_equal(np.flatnonzero(S.numpy() == 0), positions)


def test_steps_spread_the_columns_apart():
    start, later = (sparse_etf(32, 6, seed=0, steps=steps) for steps in (0, 300))
    assert off_diagonal(later).max() < off_diagonal(start).max() - 0.02
    assert np.array_equal(start.numpy() == 0, later.numpy() == 0)


def test_ten_thousand_steps(golden):
    """Norms and angles of specification 5.7, from the official start and from one of ours."""
    if not batteries.NIGHTLY:
        pytest.skip("20,000 steps: nightly only")
    zeros = torch.from_numpy(golden["zero_flat_indices"]).long()
    official = spread_apart(torch.from_numpy(golden["M0"]), zeros, steps=10_000)
    for S, more in ((official, 1), (sparse_etf(64, 10, seed=7), 3)):  # chaotic: the official range, and a little more
        norms, cosines = S.norm(dim=0), off_diagonal(S)
        assert (S == 0).sum() == 384
        assert 0.10014 - 5e-5 * more < norms.min() <= norms.max() < 0.10057 + 5e-5 * more
        assert -0.11253 - 5e-4 * more < cosines.min() <= cosines.max() < -0.11015 + 5e-4 * more


def test_the_global_generator_and_the_threads_are_left_alone():
    before = torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        S = sparse_etf(64, 10, seed=0, steps=30)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(S, sparse_etf(64, 10, seed=0, steps=30))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_column_is_ever_empty():
    for seed in range(20):
        S = sparse_etf(4, 4, seed=seed, steps=2)
        assert S.abs().amax(dim=0).min() > 0
        assert torch.isfinite(S).all()
    with pytest.raises(ArgumentError, match=r"^beta: 0.99 leaves a column of 4 x 4 empty; lower it$"):
        sparse_etf(4, 4, seed=0, beta=0.99)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 1.0}, "^beta: expected a number >= 0 and < 1, got 1.0$"),
        ({"steps": -1}, "^steps: expected an integer >= 0, got -1$"),
        ({"norm": "x"}, "^norm: expected a number >= 0, got 'x'$"),
        ({"lr": float("nan")}, "^lr: expected a number >= 0, got nan$"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        sparse_etf(8, 4, seed=0, **options)
