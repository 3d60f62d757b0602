"""Evaluation groups: the official splits, protocols A, B and C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.partition import dirichlet
from fedrela.errors import ArgumentError
from fedrela.metrics import evaluation_groups, local_test_counts, shot_groups
from goldens.counts import load, official_partitions
from helpers.batteries import examples


def test_shot_split_goldens(request):
    arrays = load("shot_split", request.config.getoption("--goldens"))
    names = [key.removesuffix("_counts") for key in arrays if key.endswith("_counts")]
    assert len(names) == 19
    for name in names:
        counts = arrays[f"{name}_counts"]
        np.testing.assert_array_equal(shot_groups(counts), arrays[f"{name}_group"], err_msg=name)
        np.testing.assert_array_equal(evaluation_groups(counts).of_class, arrays[f"{name}_group"], err_msg=name)


def test_local_test_goldens(request):
    cases = official_partitions(request.config.getoption("--goldens"))
    assert len(cases) in (10, 72)
    for case in cases:
        parts = dirichlet(case.labels, case.clients, case.alpha, seed=0, numpy_seed=case.numpy_seed)
        n = np.array([np.bincount(case.labels[part], minlength=case.num_classes) for part in parts])
        capped = local_test_counts(n, cap=case.test_counts)
        np.testing.assert_array_equal(local_test_counts(n), case.found["globaltest_uncapped"])
        np.testing.assert_array_equal(capped, case.found["globaltest_capped"])
        loge = evaluation_groups(n, protocol="fedloge")
        rela = evaluation_groups(n, protocol="fedrela-release", test_counts=case.test_counts)
        np.testing.assert_array_equal(loge.of_class, case.found["group_uncapped"])
        np.testing.assert_array_equal(rela.of_class, case.found["group_capped"])
        np.testing.assert_array_equal(evaluation_groups(n).of_class, shot_groups(case.counts))


def test_protocols_differ():
    case = next(c for c in official_partitions() if c.num_classes == 100 and c.alpha == 0.1 and c.clients == 10)
    n = case.found["client_counts"]
    sizes = [
        evaluation_groups(n, protocol=protocol, test_counts=case.test_counts).sizes
        for protocol in ("counts", "fedloge", "fedrela-release")
    ]
    assert [tuple(s.values()) for s in sizes] == [(34, 34, 32), (33, 33, 34), (39, 32, 29)]


matrices = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 50), min_size=width, max_size=width), min_size=1, max_size=6)
)


@examples(300, 5_000)
@given(matrices, st.integers(1, 20_000), st.integers(0, 300))
def test_local_test_counts_are_bounded(n, test_size, cap):
    whole = local_test_counts(n, test_size)
    capped = local_test_counts(n, test_size, cap=cap)
    share = np.sum(n, axis=0) / max(np.sum(n), 1) * test_size
    assert (whole <= share + 1e-6).all()
    assert (whole > share - len(n) - 1e-6).all()
    assert (capped <= np.minimum(whole, cap * len(n))).all()
    np.testing.assert_array_equal(capped[np.max(n, axis=0) == 0], 0)


def test_majority_and_minority():
    groups = evaluation_groups(np.ones((3, 5), int), minority=np.array([4, 1]))
    assert groups.names == ("majority", "minority")
    assert groups.of_class.tolist() == [0, 1, 0, 0, 1]
    assert groups.members("minority").tolist() == [1, 4]
    assert groups.sizes == {"majority": 3, "minority": 2}
    assert evaluation_groups([5, 5], minority=[]).sizes == {"majority": 2, "minority": 0}


N = np.ones((2, 3), int)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: shot_groups([]), "counts"),
        (lambda: shot_groups([1, -1]), "counts"),
        (lambda: shot_groups([1, 2], (0.9, 0.5)), "cuts"),
        (lambda: evaluation_groups(N, protocol="B"), "protocol"),
        (lambda: evaluation_groups(3), "counts"),
        (lambda: evaluation_groups([1, 2], protocol="fedloge"), "client_counts"),
        (lambda: evaluation_groups(N, protocol="fedrela-release"), "test_counts"),
        (lambda: evaluation_groups(N, minority=[3]), "minority"),
        (lambda: evaluation_groups(N, minority=np.array([True, False, False])), "minority"),
        (lambda: evaluation_groups(N, minority=[1.7]), "minority"),
        (lambda: evaluation_groups(N, minority=[1], protocol="fedloge"), "protocol"),
        (lambda: evaluation_groups(N).members("minority"), "group"),
        (lambda: local_test_counts([[0.5]]), "client_counts"),
        (lambda: local_test_counts([[1, -1]]), "client_counts"),
        (lambda: local_test_counts(N, 0), "test_size"),
        (lambda: local_test_counts(N, cap=[1, 2]), "cap"),
    ],
)
def test_errors(call, argument):
    with pytest.raises(ArgumentError, match=r"^[^\n]+$") as caught:
        call()
    assert caught.value.argument == argument


def test_fractional_counts_reach_a_cut_of_1():
    for count in (0.1, 1):
        assert shot_groups([count] * 10, (0.75, 1.0)).tolist() == [0] * 8 + [1] * 2


def test_counts_that_are_no_numbers():
    with pytest.raises(ArgumentError, match="counts: expected one non-negative number per class"):
        shot_groups(["a"])
