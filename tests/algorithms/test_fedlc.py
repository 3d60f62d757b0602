"""FedLC: its published baseline's gradients through the training loop, and when it is FedAvg."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedlc import FedLC
from goldens.frames_and_losses import load
from helpers.contexts import blobs, client_context, linear
from helpers.engine_federations import normed
from helpers.one_step import one_step, whose_logits_are
from helpers.through_engine import weights_of

FORMS = {"inf": {}, "floor1e8": {"floor": 1e-8}, "excl_y": {"denominator": "without_label"}}


CASES = [("full", form) for form in FORMS] + [("absent", "inf"), ("absent", "floor1e8")]


@pytest.mark.parametrize(("case", "form"), CASES)
@pytest.mark.parametrize("tau", ["0.1", "0.5", "1.0"])
def test_the_step_of_the_public_baseline(request, case, tau, form):
    golden = load("fedlc", request.config.getoption("--goldens"))
    expected = golden[f"{case}_tau{tau}_{form}_grad"]
    algorithm = FedLC(tau=float(tau), **FORMS[form])
    model = whose_logits_are(golden["logits"])
    moved, _ = one_step(algorithm, model, golden[f"{case}_y"], golden[f"{case}_counts"])
    np.testing.assert_allclose(moved["head.weight"].T, expected, atol=1e-12, rtol=0)
    np.testing.assert_allclose(moved["head.bias"], expected.sum(axis=0), atol=1e-12, rtol=0)


@pytest.mark.parametrize("relabelled", [True, False])
@pytest.mark.parametrize("participation", [1.0, 0.6])
def test_without_a_margin_it_is_fedavg_to_the_bit(relabelled, participation):
    parts = {"relabelled": relabelled, "train": {"participation": participation, "clip": 1.0}, "make": normed}
    plain = weights_of(FedAvg(), **parts)
    assert weights_of(FedLC(tau=0.0), **parts).tobytes() == plain.tobytes()
    assert weights_of(FedLC(tau=0.5), **parts).tobytes() != plain.tobytes()
    assert weights_of(FedLC(tau=0.0, denominator="without_label"), **parts).tobytes() != plain.tobytes()


@pytest.mark.parametrize("relabelled", [True, False])
def test_with_equal_counts_it_is_fedavg(relabelled):
    """Counts are equal where all of them are raised to one number."""
    equal = weights_of(FedLC(tau=1.0, floor=1000.0), relabelled=relabelled)
    np.testing.assert_allclose(equal, weights_of(FedAvg(), relabelled=relabelled), atol=1e-6, rtol=0)


@pytest.mark.parametrize("params", [{}, {"denominator": "without_label"}])
def test_a_client_of_one_class_learns_nothing_unless_counts_are_raised(params):
    x, y = blobs(dtype="f8")
    rng = np.random.default_rng(1)
    W, b = rng.normal(size=(4, 5)), rng.normal(size=4)
    for floor, still in ((0.0, True), (1.0, False)):
        context = client_context(linear(W, b), x, np.full(len(y), 2), batch_size=8)
        context.counts = np.array([0, 0, len(y), 0])
        start = context.model.collect()
        FedLC(floor=floor, **params).client(context)
        assert (context.model.collect().tobytes() == start.tobytes()) == still
        assert np.isfinite(context.model.collect()).all()


def test_it_collects_the_logits_that_it_is_scored_with():
    x, y = blobs(n=8)
    module = linear(np.ones((4, 5), "f4"), np.zeros(4, "f4"))
    expected = (x @ np.ones((5, 4))).astype("f4")
    context = client_context(module, x, y, batch_size=8)
    context.scores, context.counts = np.zeros((8, 4), "f4"), np.bincount(y, minlength=4)
    FedLC(tau=3.0).client(context)
    np.testing.assert_allclose(context.scores, expected, atol=1e-5)
