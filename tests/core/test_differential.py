"""Battery B2: the package against the two slow references, on arbitrary clients."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import fedrela
from helpers import reference
from helpers.batteries import examples
from helpers.core_cases import clients, settled

battery = examples(250, 10_000)  # two references: 500 and 20,000 comparisons
small = clients(max_n=40, max_C=9)


@battery
@given(small, st.sampled_from(["higher", "linear"]))
def test_paper(case, rule):
    assume(case.n > 0)
    labels, _, t, rho = reference.paper(case.Q, case.y, case.C, case.tau, case.U, rule)
    done = fedrela.relabel(case.Q, case.y, tau=case.tau, threshold=rule, uniforms=case.U)
    np.testing.assert_allclose(done.threshold, t, atol=1e-9)
    np.testing.assert_allclose(done.rho, rho, atol=1e-9)
    sure = settled(rho, case.U)
    np.testing.assert_array_equal(done.labels[sure], labels[sure])


@battery
@given(small)
def test_official(case):
    assume(case.n > 0)
    labels, _, t, rates = reference.official(case.Q, case.y, case.C, case.tau, case.U)
    done = fedrela.relabel(case.Q, case.y, tau=case.tau, preset="official", uniforms=case.U)
    np.testing.assert_allclose(done.threshold, t, atol=1e-9)
    np.testing.assert_allclose(done.rho, np.maximum(rates, 0), atol=1e-9)
    sure = settled(np.maximum(rates, 0), case.U)
    np.testing.assert_array_equal(done.labels[sure], labels[sure])


@battery
@given(small, st.sampled_from(["argmax", "winner"]))
def test_preview_is_the_mean_of_draws(case, target):
    """The expected flow against the exact law, enumerated over each sample's independent draws."""
    options = {"preset": "official", "target": target}
    rho = fedrela.relabel(case.Q, case.y, tau=case.tau, **options).rho
    expected = np.zeros((case.C, case.C))
    for i, row in enumerate(rho):
        ranked = sorted(range(case.C), key=lambda c: (-row[c], c))
        nobody = 1.0
        for c in ranked:
            expected[case.y[i], c if target == "winner" else ranked[0]] += nobody * row[c]
            nobody *= 1.0 - row[c]
    table = fedrela.preview(case.Q, case.y, taus=[case.tau], **options)
    np.testing.assert_allclose(table.flow[0], expected, atol=1e-9)
