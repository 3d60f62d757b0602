"""Battery B3: 24 kinds of posterior at 10 places or sizes; refused with the index, or valid though odd."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from helpers import batteries
from helpers.core_cases import make


def spoil(Q, i, j, value):
    Q = Q.copy()
    Q[i, j] = value
    return Q


def row(Q, i, values):
    Q = Q.copy()
    Q[i] = values
    return Q


def column(Q, j, value):
    Q = Q.copy()
    Q[:, j] = value
    return Q


# kind -> (what is given for posterior Q at place i, j; the reason; the index that must be named)
REFUSED = {
    "NaN cell": (lambda Q, i, j: spoil(Q, i, j, np.nan), "not finite", "i"),
    "NaN row": (lambda Q, i, j: row(Q, i, np.nan), "not finite", "i"),
    "NaN column": (lambda Q, i, j: column(Q, j, np.nan), "not finite", 0),
    "all NaN": (lambda Q, i, j: np.full_like(Q, np.nan), "not finite", 0),
    "+Inf": (lambda Q, i, j: spoil(Q, i, j, np.inf), "not finite", "i"),
    "both infinities": (lambda Q, i, j: row(Q, i, [np.inf, -np.inf, 0, 0, 1]), "not finite", "i"),
    "-Inf": (lambda Q, i, j: spoil(Q, i, j, -np.inf), "not finite", "i"),
    "negative": (lambda Q, i, j: row(Q, i, [1.01, -0.01, 0, 0, 0]), "not normalised", "i"),
    "above one": (lambda Q, i, j: spoil(Q, i, j, 1.5), "not normalised", "i"),
    "row sum 0": (lambda Q, i, j: row(Q, i, 0.0), "not normalised", "i"),
    "row sum 2": (lambda Q, i, j: row(Q, i, Q[i] * 2), "not normalised", "i"),
    "logits": (lambda Q, i, j: row(Q, i, [4.0, 0.5, 1.0, 2.0, 0.1]), "not normalised", "i"),
    "width C-1": (lambda Q, i, j: Q[:, :-1], "wrong width", 0),
    "width C+1": (lambda Q, i, j: np.hstack([Q, Q[:, :1] * 0]), "wrong width", 0),
    "one-dimensional": (lambda Q, i, j: Q[:, j], "wrong width", 0),
    "integer": (lambda Q, i, j: np.eye(5, dtype=int)[Q.argmax(axis=1)], "wrong type", 0),
    "boolean": (lambda Q, i, j: np.eye(5, dtype=bool)[Q.argmax(axis=1)], "wrong type", 0),
    "object": (lambda Q, i, j: Q.astype(object), "wrong type", 0),
    "complex": (lambda Q, i, j: Q.astype(complex), "wrong type", 0),
}
ODD = {
    "empty": lambda Q: Q[:0],
    "float16": lambda Q: Q.astype(np.float16),
    "big-endian": lambda Q: Q.astype(">f8"),
    "Fortran order": lambda Q: np.asfortranarray(Q),
    "non-contiguous view": lambda Q: np.repeat(np.repeat(Q, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": lambda Q: frozen(Q),
}


def frozen(Q):
    Q = Q.copy()
    Q.flags.writeable = False
    return Q


def client(place: int, seed: int):
    return make(23 + 17 * place, 5, 0.2, 1000 * seed + place, skew=1.0, skill=2.0, digits=None)


SEEDS = range(batteries.count(1, 20))


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("kind", REFUSED)
def test_refused_with_the_first_index(kind, place):
    for seed in SEEDS:
        case = client(place, seed)
        i, j = (7 * place + seed) % case.n, place % 5
        give, reason, where = REFUSED[kind]
        done = fedrela.relabel(give(case.Q, i, j), case.y, num_classes=5, tau=0.2)
        assert done.refusal is not None
        assert done.refusal.startswith(reason)
        assert done.refused_at == (i if where == "i" else where)
        assert f"row {done.refused_at}" in done.refusal
        assert done.ledger.refusal == done.refusal
        np.testing.assert_array_equal(done.labels, case.y)
        assert done.labels is not case.y
        assert done.moved.size == 0
        assert not done.rho.any()
        outlook = fedrela.preview(give(case.Q, i, j), case.y, num_classes=5)
        assert (outlook.refusal, outlook.refused_at) == (done.refusal, done.refused_at)
        batteries.tried(faults=1)


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("kind", ODD)
def test_odd_but_valid(kind, place):
    for seed in SEEDS:
        case = client(place, seed)
        given = ODD[kind](case.Q)
        y, U = case.y[: len(given)], case.U[: len(given)]
        done = fedrela.relabel(given, y, tau=0.2, uniforms=U)
        plain = fedrela.relabel(np.array(given, np.float64, order="C"), y, tau=0.2, uniforms=U)
        assert done.refusal is None
        np.testing.assert_array_equal(done.labels, plain.labels)
        np.testing.assert_array_equal(done.rho, plain.rho)
        batteries.tried()


def test_the_earliest_of_several_bad_rows_is_named():
    case = client(3, 0)
    Q = row(spoil(case.Q, 20, 1, np.nan), 11, 0.0)
    assert fedrela.relabel(Q, case.y).refused_at == 11
    assert fedrela.relabel(row(Q, 4, [1.02, -0.02, 0, 0, 0]), case.y).refused_at == 4


@pytest.mark.parametrize(("label", "dtype"), [(5, int), (-1, int), (200, np.uint8), (2**63 + 1, np.uint64)])
def test_label_out_of_range_is_refused(label, dtype):
    case = client(2, 0)
    y = case.y.astype(dtype)
    y[9] = label
    done = fedrela.relabel(case.Q, y)
    assert done.refusal == f"label out of range: row 9: expected a label from 0 to 4, got {label}"
    assert done.refused_at == 9
    np.testing.assert_array_equal(done.labels, y)


def test_rounded_rows_are_used_as_given():
    case = client(5, 0)
    assert fedrela.relabel(case.Q * 1.049, case.y).refusal is None
    assert fedrela.relabel(case.Q * 0.951, case.y).refusal is None
    assert fedrela.relabel(case.Q * 1.051, case.y).refusal is not None
    assert fedrela.relabel(case.Q * 0.949, case.y).refusal is not None


def test_a_refused_ledger_still_gives_the_labels_back():
    case = client(1, 0)
    done = fedrela.relabel(case.Q * np.nan, case.y)
    np.testing.assert_array_equal(fedrela.undo(done.ledger), case.y)
