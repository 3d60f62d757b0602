"""Battery B1: fourteen invariants of `relabel` on arbitrary clients (guarantees G1 to G4)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fedrela
from helpers.batteries import examples
from helpers.core_cases import Case, clients, settled, styles

battery = examples(300, 20_000)
INTEGERS = st.sampled_from(["i1", "u1", ">i2", "<u2", "i4", ">i8", "i8", "u8"])


def run(case: Case, style: dict, **more) -> fedrela.Relabelling:
    return fedrela.relabel(case.Q, case.y, tau=case.tau, uniforms=case.U, **style, **more)


@battery
@given(clients(), styles(), INTEGERS)
def test_length_and_dtype_are_kept(case, style, dtype):
    done = fedrela.relabel(case.Q, case.y.astype(dtype), tau=case.tau, uniforms=case.U, **style)
    assert done.labels.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(done.labels, run(case, style).labels)


@battery
@given(clients(), styles())
def test_input_is_never_written_to(case, style):
    before = [array.copy() for array in (case.Q, case.y, case.U)]
    done = run(case, style)
    done.labels[:] = 0  # the result is the caller's own
    for array, copy in zip((case.Q, case.y, case.U), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(fedrela.undo(done.ledger), before[1])


@battery
@given(clients(), styles())
def test_labels_stay_classes_and_only_the_moved_change(case, style):
    done = run(case, style)
    assert done.refusal is None
    assert set(done.labels.tolist()) <= set(range(case.C))
    np.testing.assert_array_equal(np.flatnonzero(done.labels != case.y), done.moved)


@battery
@given(clients(), styles())
def test_bound_of_each_target_class(case, style):
    done = run(case, style)
    into = np.bincount(done.labels[done.moved], minlength=case.C)
    assert into.max(initial=0) <= int(case.tau * case.n)
    assert (done.rho > 0).sum(axis=0).max(initial=0) <= int(case.tau * case.n)


@battery
@given(clients(), styles(), st.floats(0, 1))
def test_cap_on_the_whole_keeps_the_largest_rho(case, style, fraction):
    free, capped = run(case, style), run(case, style, max_fraction=fraction)
    limit = int(fraction * case.n)
    assert capped.moved.size == min(limit, free.moved.size)
    rank = np.lexsort((free.moved, -free.ledger.rho))[:limit]
    np.testing.assert_array_equal(capped.moved, np.sort(free.moved[rank]))
    np.testing.assert_array_equal(capped.labels[capped.moved], free.labels[capped.moved])


@battery
@given(clients(), styles())
def test_moves_go_to_rarer_classes_only(case, style):
    done = run(case, style)
    counts = np.bincount(case.y, minlength=case.C)
    assert np.all(counts[done.labels[done.moved]] < counts[case.y[done.moved]])


@battery
@given(clients(), styles())
def test_the_rarest_class_is_never_drained(case, style):
    done = run(case, style)
    counts = np.bincount(case.y, minlength=case.C)
    if case.n:
        assert not np.isin(done.moved, np.flatnonzero(counts[case.y] == counts.min())).any()


@battery
@given(clients(), styles())
def test_tau_zero_changes_nothing(case, style):
    done = fedrela.relabel(case.Q, case.y, tau=0.0, uniforms=np.zeros_like(case.U), **style)
    assert done.moved.size == 0
    assert not done.rho.any()


@battery
@given(st.integers(1, 8), st.integers(2, 12), clients(max_n=0), styles())
def test_equal_counts_change_nothing(each, C, case, style):
    rng = np.random.default_rng(each * 1000 + C)
    y = rng.permutation(np.repeat(np.arange(C), each))
    Q = rng.dirichlet(np.ones(C), y.size)
    done = fedrela.relabel(Q, y, tau=0.5, uniforms=np.zeros_like(Q), **style)
    assert done.moved.size == 0


@battery
@given(clients(ties=False), styles(), st.integers(0, 2**32 - 1))
def test_permuting_samples_permutes_the_result(case, style, seed):
    order = np.random.default_rng(seed).permutation(case.n)
    done = run(case, style)
    mixed = run(Case(case.Q[order], case.y[order], case.U[order], case.tau), style)
    sure = settled(done.rho, case.U)[order]
    np.testing.assert_array_equal(mixed.labels[sure], done.labels[order][sure])
    np.testing.assert_allclose(mixed.rho, done.rho[order], atol=1e-9)


@battery
@given(clients(ties=False), styles(), st.integers(0, 2**32 - 1))
def test_renaming_classes_commutes(case, style, seed):
    name = np.random.default_rng(seed).permutation(case.C)
    done = run(case, style)
    back = np.argsort(name)
    renamed = run(Case(case.Q[:, back], name[case.y], case.U[:, back], case.tau), style)
    sure = settled(done.rho, case.U)
    np.testing.assert_array_equal(renamed.labels[sure], name[done.labels][sure])
    np.testing.assert_allclose(renamed.rho, done.rho[:, back], atol=1e-9)


@battery
@given(clients(), styles())
def test_undo_restores(case, style):
    done = run(case, style)
    back = fedrela.undo(done.ledger, done.labels)
    np.testing.assert_array_equal(back, case.y)
    assert back.dtype == case.y.dtype


@battery
@given(clients(), styles(), st.integers(0, 2**63))
def test_same_seed_same_result(case, style, seed):
    first, second = (fedrela.relabel(case.Q, case.y, tau=case.tau, seed=seed, **style) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.ledger == second.ledger


@battery
@given(clients(), styles())
def test_ledger_counts_are_the_difference_of_histograms(case, style):
    done = run(case, style)
    before, after = (np.bincount(labels, minlength=case.C) for labels in (case.y, done.labels))
    flow = done.ledger.flow
    np.testing.assert_array_equal(after - before, flow.sum(axis=0) - flow.sum(axis=1))
    np.testing.assert_array_equal(np.diag(flow), 0)
    np.testing.assert_array_equal(done.ledger.rho, done.rho[done.moved, done.labels[done.moved]])
    np.testing.assert_array_equal(done.ledger.posterior, case.Q[done.moved, done.labels[done.moved]])
