"""What each loss must keep to, for any batch: the numbered invariants of the specifications."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, normalize, one_hot

from fedrela.errors import ArgumentError
from fedrela.losses import (
    LOSSES,
    balanced_softmax,
    class_balanced,
    contrastive,
    dot_regression,
    effective_weights,
    fedlc,
    focal,
    logit_adjustment,
)  # fmt: skip
from fedrela.models.heads import simplex_etf
from helpers.batteries import examples


@st.composite
def batches(draw, least: int = 0):
    """Logits, labels and counts in double precision; every label in the batch has a count of at least 1."""
    C, B = draw(st.integers(2, 8)), draw(st.integers(1, 9))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    logits = torch.tensor(generator.normal(0, draw(st.sampled_from([0.1, 3.0, 20.0])), (B, C)), requires_grad=True)
    labels = torch.tensor(generator.integers(0, draw(st.integers(1, C)), B))
    counts = torch.tensor(draw(st.lists(st.integers(least, 5000), min_size=C, max_size=C)))
    return logits, labels, torch.maximum(counts, torch.bincount(labels, minlength=C))


def gradient(loss: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(loss, [logits])[0]


FINITE = {
    "balanced_softmax": lambda f, y, n, floor: balanced_softmax(f, y, n, floor=floor),
    "logit_adjustment": lambda f, y, n, floor: logit_adjustment(f, y, n, 1.3, floor=floor),
    "fedlc": lambda f, y, n, floor: fedlc(f, y, n, 0.5, floor=floor),
    "fedlc_without_label": lambda f, y, n, floor: fedlc(f, y, n, 0.5, floor=floor, exclude_label=True),
    "class_balanced": lambda f, y, n, floor: class_balanced(f, y, n, floor=floor),
    "class_balanced_0": lambda f, y, n, floor: class_balanced(f, y, n, 0.0, floor=floor),
    "focal": lambda f, y, n, floor: focal(f, y),
    "focal_half": lambda f, y, n, floor: focal(f, y, 0.5),
    **{f"open {name}": lambda f, y, n, floor, loss=loss: loss(f, y, n) for name, loss in LOSSES.items()},
}


@pytest.mark.parametrize("name", FINITE)
@given(batches(), st.sampled_from([0.0, 1.0]), st.booleans())
@examples(25, 1000)
def test_finite_wherever_the_batch_s_labels_are_counted(name, batch, floor, single):
    logits, labels, counts = batch
    if single:
        logits = logits.detach().float().requires_grad_()
    loss = FINITE[name](logits, labels, counts, floor)
    assert loss.shape == ()
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient(loss, logits)).all()
    if name != "fedlc_without_label":
        assert loss >= 0


@given(batches(), st.floats(0.1, 1000))
@examples(40, 1000)
def test_balanced_softmax(batch, factor):
    logits, labels, counts = batch
    loss = balanced_softmax(logits, labels, counts)
    torch.testing.assert_close(balanced_softmax(logits, labels, counts.double() * factor), loss, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(logit_adjustment(logits, labels, counts), loss, atol=1e-12, rtol=0)
    expected = (logits + counts.double().log()).softmax(dim=1) - one_hot(labels, logits.shape[1])
    by_logits = gradient(loss, logits)
    torch.testing.assert_close(by_logits, expected.detach() / len(labels), atol=1e-12, rtol=0)
    torch.testing.assert_close(by_logits.sum(dim=1), torch.zeros(len(labels)).double(), atol=1e-12, rtol=0)
    assert not by_logits[:, counts == 0].any()


@given(batches(), st.integers(1, 50))
@examples(40, 1000)
def test_equal_counts_are_cross_entropy(batch, each):
    logits, labels, counts = batch
    plain, equal = cross_entropy(logits, labels), torch.full_like(counts, each)
    for loss in (balanced_softmax, lambda f, y, n: fedlc(f, y, n, 0.7), class_balanced, logit_adjustment):
        torch.testing.assert_close(loss(logits, labels, equal), plain, atol=1e-9, rtol=1e-9)
    for loss in (fedlc, logit_adjustment):
        assert torch.equal(loss(logits, labels, counts, 0.0), plain)
    torch.testing.assert_close(focal(logits, labels, 0.0), plain)
    torch.testing.assert_close(class_balanced(logits, labels, equal, 0.0), plain)


def test_one_class_alone_does_not_move_the_generic_model():
    logits, labels = torch.randn(4, 5, dtype=torch.float64).requires_grad_(), torch.full((4,), 2)
    counts = torch.tensor([0, 0, 9, 0, 0])
    loss = balanced_softmax(logits, labels, counts)
    assert loss == 0
    assert not gradient(loss, logits).any()
    assert gradient(balanced_softmax(logits, labels, counts, floor=1), logits).abs().sum() > 0
    for excluded in (0.0, 1.0):
        lone = fedlc(logits, labels, counts, 0.5, floor=excluded, exclude_label=True)
        assert (lone == 0) == (excluded == 0)


@given(batches(least=1), st.sampled_from([0.1, 0.5, 1.0]))
@examples(40, 1000)
def test_fedlc(batch, tau):
    logits, labels, counts = batch
    by_logits = gradient(fedlc(logits, labels, counts, tau), logits)
    torch.testing.assert_close(by_logits.sum(dim=1), torch.zeros(len(labels)).double(), atol=1e-12, rtol=0)
    excluded = gradient(fedlc(logits, labels, counts, tau, exclude_label=True), logits)
    assert (excluded.gather(1, labels[:, None]) == -1 / len(labels)).all()


def test_margin_of_fedlc():
    f, y = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([1])
    loss = fedlc(f, y, [200, 1], 2.0)
    assert math.log(math.expm1(loss.item())) == pytest.approx(2.0 * 0.734085, abs=2e-6)


def test_rare_classes_pull_harder():
    f = torch.zeros(1, 2)
    for loss in (balanced_softmax, lambda f, y, n: fedlc(f, y, n, 0.5), class_balanced, logit_adjustment):
        assert loss(f, torch.tensor([1]), [900, 10]) > loss(f, torch.tensor([0]), [900, 10])


@given(batches())
@examples(40, 1000)
def test_focal(batch):
    logits, labels, _ = batch
    p = logits.softmax(dim=1).gather(1, labels[:, None])[:, 0]
    expected = -((1 - p) ** 2 * logits.log_softmax(dim=1).gather(1, labels[:, None])[:, 0]).mean()
    torch.testing.assert_close(focal(logits, labels), expected, atol=1e-9, rtol=1e-9)
    assert focal(logits, labels, 3.0) <= focal(logits, labels, 1.0) <= cross_entropy(logits, labels) + 1e-12


@given(batches(), st.sampled_from([0.0, 0.5, 0.99, 0.9999]))
@examples(40, 1000)
def test_weights_of_class_balanced(batch, beta):
    logits, labels, counts = batch
    weights = effective_weights(counts.double(), beta)
    present = counts > 0
    assert not weights[~present].any()
    assert weights.sum().item() == pytest.approx(int(present.sum()))
    raw = (1 - beta) / (1 - beta ** counts[present].double())
    torch.testing.assert_close(weights[present], raw * len(raw) / raw.sum(), atol=1e-8, rtol=1e-8)
    each = cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(class_balanced(logits, labels, counts, beta), (weights[labels] * each).mean())


def test_counts_come_in_any_form():
    f, y, n = torch.randn(3, 4), torch.tensor([0, 1, 3]), np.array([5, 3, 0, 1])
    n.flags.writeable = False
    for loss in LOSSES.values():
        assert loss(f, y, n) == loss(f, y, n.tolist()) == loss(f, y, torch.tensor(n.tolist()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda f, y: balanced_softmax(f, y, [1, 2]),
            r"^counts: expected one number for each of 3 classes, got shape \(2,\)$",
        ),
        (lambda f, y: fedlc(f, y, [1, 2, 3], -0.1), r"^tau: expected a number >= 0, got -0.1$"),
        (lambda f, y: logit_adjustment(f, y, [1, 2, 3], math.inf), r"^tau: expected a number >= 0, got inf$"),
        (lambda f, y: focal(f, y, math.nan), r"^gamma: expected a number >= 0, got nan$"),
        (
            lambda f, y: class_balanced(f, y, [1, 2, 3], 1.0),
            r"^beta: expected a number >= 0 and < 1, got 1.0$",
        ),
        (lambda f, y: contrastive(f, f, f, 0.0), r"^temperature: expected a number > 0, got 0.0$"),
        (
            lambda f, y: contrastive(f, f, f[:, :2], 0.5),
            r"^contrastive: expected features of shape \(1, 3\) from all",
        ),
    ],
)
def test_wrong_arguments_get_one_line(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(torch.zeros(1, 3), torch.tensor([0]))


def views(seed: int, previous: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    drawn = torch.tensor(np.random.default_rng(seed).normal(size=(previous + 2, 5, 7)))
    return drawn[0].requires_grad_(), drawn[1], drawn[2:]


@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([0.1, 0.5, 2.0]), st.floats(0.01, 100))
@examples(40, 1000)
def test_contrastive(seed, previous, T, scale):
    z, z_global, z_previous = views(seed, previous)
    loss = contrastive(z, z_global, z_previous, T)
    by_z = gradient(loss, z)
    torch.testing.assert_close((by_z * z).sum(dim=1), torch.zeros(5).double(), atol=1e-10, rtol=0)
    torch.testing.assert_close(contrastive(scale * z, z_global, z_previous, T), loss)
    if previous == 0:
        assert loss == 0
        assert not by_z.any()
    if previous == 1:
        assert math.log1p(math.exp(-2 / T)) <= loss <= math.log1p(math.exp(2 / T))
        assert contrastive(z, z_global, z_previous[0], T) == loss


def test_the_bounds_of_contrastive_and_equal_models():
    z, z_global, _ = views(1, 0)
    assert contrastive(z, z, -z, 0.5).item() == pytest.approx(0.0181, abs=5e-5)
    assert contrastive(z, -z, z, 0.5).item() == pytest.approx(4.0181, abs=5e-5)
    same = contrastive(z, z_global, z_global, 0.5)
    assert same.item() == pytest.approx(math.log(2))
    torch.testing.assert_close(gradient(same, z), torch.zeros_like(z), atol=1e-12, rtol=0)


def test_only_the_model_in_training_gets_a_gradient_and_zero_features_are_harmless():
    z, z_global, z_previous = views(2, 1)
    for frozen in (z_global, z_previous):
        frozen.requires_grad_()
    contrastive(z, z_global, z_previous, 0.5).backward()
    assert z_global.grad is None
    assert z_previous.grad is None
    dead = torch.zeros(5, 7, dtype=torch.float64, requires_grad=True)
    loss = contrastive(dead, z_global, z_previous, 0.5)
    assert torch.isfinite(gradient(loss, dead)).all()


@given(st.integers(2, 8), st.integers(1, 12), st.integers(0, 10**6))
@examples(40, 1000)
def test_dot_regression(classes, size, seed):
    generator = np.random.default_rng(seed)
    M = simplex_etf(10, classes, seed=0).double()
    v = normalize(torch.tensor(generator.normal(size=(size, 10))), dim=1).requires_grad_()
    y = torch.tensor(generator.integers(0, classes, size))
    loss = dot_regression(v, y, M)
    cos = (v * M.T[y]).sum(dim=1)
    present = y.unique()
    closed = torch.stack([((cos[y == c] - 1) ** 2).mean() for c in present]).mean() / 2
    torch.testing.assert_close(loss, closed, atol=1e-6, rtol=0)
    assert 0 <= loss <= 2 + 1e-6
    e_squared = size / (len(present) * torch.bincount(y, minlength=classes)[y].double())
    assert e_squared.sum().item() == pytest.approx(size)
    expected = (e_squared / size * (cos - 1))[:, None] * M.T[y]
    torch.testing.assert_close(gradient(loss, v), expected.detach(), atol=1e-6, rtol=0)


@given(st.integers(2, 8), st.integers(1, 300), st.integers(0, 10**6))
@examples(40, 1000)
def test_dot_regression_counts_the_batch_exactly(classes, size, seed):
    generator = torch.Generator().manual_seed(seed)
    M = simplex_etf(10, classes, seed=0)
    v = normalize(torch.randn(size, 10, generator=generator), dim=1).requires_grad_()
    y = torch.randint(classes, (size,), generator=generator)
    losses = dot_regression(v, y, M), dot_regression(v, y, M, counts=torch.bincount(y, minlength=classes))
    assert torch.equal(*losses)
    assert torch.equal(*(gradient(loss, v) for loss in losses))


def test_the_ends_of_dot_regression():
    M = simplex_etf(10, 4, seed=0)
    y = torch.tensor([0, 0, 3])
    assert dot_regression(M.T[y], y, M) < 1e-12
    assert dot_regression(-M.T[y], y, M).item() == pytest.approx(2, abs=1e-5)
    dead = torch.zeros(3, 10, requires_grad=True)
    loss = dot_regression(dead, y, M)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient(loss, dead)).all()
    v = normalize(torch.randn(3, 10), dim=1)
    per_batch = dot_regression(v, y, M, counts=torch.tensor([2, 0, 0, 1]))
    assert per_batch == dot_regression(v, y, M)


def test_the_table_of_open_losses():
    assert list(LOSSES) == ["balanced_softmax", "class_balanced", "cross_entropy", "focal", "logit_adjustment"]
    f, y = torch.randn(3, 4), torch.tensor([0, 1, 3])
    assert LOSSES["cross_entropy"](f, y, [1, 1, 1, 1]) == cross_entropy(f, y)
    assert LOSSES["focal"](f, y, [1, 1, 1, 1]) == focal(f, y)


@pytest.mark.parametrize("loss", [balanced_softmax, logit_adjustment])
def test_large_counts_in_half_precision(loss):
    logits = torch.zeros(2, 3, dtype=torch.float16)
    value = loss(logits, torch.tensor([0, 1]), [70_000, 10, 10])
    assert torch.isfinite(value)
