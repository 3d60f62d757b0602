"""Global imbalance: the official counts, exact sampling, who is head and who is minority."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedrela.data.imbalance import (
    Imbalance,
    class_order,
    long_tail_counts,
    minority_classes,
    step_counts,
    subsample,
)
from fedrela.errors import ArgumentError, DataError
from goldens.counts import load
from helpers.batteries import examples

LARGEST = {"c10": 5000, "c100": 500, "fmnist": 6000}
CLASSES = {"c10": 10, "c100": 100, "fmnist": 10}


def test_goldens(request):
    arrays = load("class_counts", request.config.getoption("--goldens"))
    checked = 0
    for key, expected in arrays.items():
        kind, name, *rest = key.split("_")
        numbers = [int(re.sub(r"\D", "", part)) for part in rest]
        if kind == "trunk":
            continue
        if kind == "exp":
            found = long_tail_counts(CLASSES[name], LARGEST[name], numbers[0])
        elif kind == "step":
            found = step_counts(CLASSES[name], LARGEST[name], numbers[0], 0.5)
        else:
            found = step_counts(CLASSES[name], LARGEST[name], numbers[1], numbers[0] / 100)
        np.testing.assert_array_equal(found, expected, err_msg=key)
        checked += 1
    assert checked == 34


label_lists = st.lists(st.integers(0, 5), max_size=60)


@st.composite
def labels_and_counts(draw):
    labels = np.array(draw(label_lists), np.int64)
    available = np.bincount(labels, minlength=6)
    return labels, np.array([draw(st.integers(0, int(n))) for n in available])


@examples(300, 10_000)
@given(labels_and_counts(), st.integers(0, 2**40))
def test_subsample_is_exact_and_repeatable(case, seed):
    labels, counts = case
    kept = subsample(labels, counts, seed=seed)
    np.testing.assert_array_equal(np.bincount(labels[kept], minlength=6), counts)
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(kept, subsample(labels, counts, seed=seed))


@examples(100, 2_000)
@given(labels_and_counts(), st.integers(0, 5))
def test_a_class_is_drawn_without_looking_at_the_others(case, c):
    labels, counts = case
    alone = np.where(np.arange(6) == c, counts, 0)
    kept = subsample(labels, counts, seed=3)
    np.testing.assert_array_equal(kept[labels[kept] == c], subsample(labels, alone, seed=3))


def test_another_seed_draws_other_samples():
    labels = np.zeros(100, np.int64)
    assert not np.array_equal(subsample(labels, [50], seed=1), subsample(labels, [50], seed=2))


def test_every_sample_can_be_drawn():
    seen = np.concatenate([subsample(np.zeros(8, np.int64), [2], seed=s) for s in range(60)])
    assert set(seen.tolist()) == set(range(8))


imbalances = st.one_of(
    st.builds(
        Imbalance,
        kind=st.just("step"),
        ratio=st.floats(1, 30),
        minority=st.one_of(st.floats(0.1, 0.9), st.sets(st.integers(0, 5), min_size=1, max_size=5).map(tuple)),
        order=st.one_of(st.just("random"), st.permutations(range(6)).map(tuple)),
    ),
    st.builds(Imbalance, kind=st.just("long_tail"), factor=st.floats(1, 30), order=st.just("random")),
)


@examples(300, 10_000)
@given(imbalances, st.lists(st.integers(30, 90), min_size=6, max_size=6), st.integers(0, 99))
def test_default_largest_is_the_largest_feasible(imbalance, available, seed):
    labels = np.repeat(np.arange(6), available)
    kept = imbalance.apply(labels, 6, seed=seed)
    np.testing.assert_array_equal(np.bincount(labels[kept.indices], minlength=6), kept.counts)
    assert (kept.counts <= available).all()
    with pytest.raises(DataError, match="were requested"):
        replace(imbalance, largest=int(kept.counts.max()) + 1).apply(labels, 6, seed=seed)


def test_the_official_settings():
    labels = np.repeat(np.arange(10), 5000)
    kept = Imbalance("long_tail", factor=100).apply(labels, 10, seed=1)
    np.testing.assert_array_equal(kept.counts, long_tail_counts(10, 5000, 100))
    assert kept.minority is None
    kept = Imbalance("step", ratio=20, minority=0.3).apply(labels, 10, seed=1)
    np.testing.assert_array_equal(kept.counts, step_counts(10, 5000, 20, 0.3))
    assert kept.minority is not None
    assert kept.minority.tolist() == [7, 8, 9]


def test_natural_leaves_all():
    indices, counts, minority = Imbalance().apply([2, 0, 2], 4, seed=1)
    assert indices.tolist() == [0, 1, 2]
    assert counts.tolist() == [1, 0, 2, 0]
    assert minority is None


def test_step_uses_more_than_the_smallest_class():
    labels = np.repeat([0, 1], [500, 60])
    kept = Imbalance("step", ratio=10, minority=(1,)).apply(labels, 2, seed=1)
    assert kept.counts.tolist() == [500, 50]


@pytest.mark.parametrize(
    ("imbalance", "counts", "minority"),
    [
        (Imbalance("step", ratio=4, minority=0.5, largest=8), [8, 8, 2, 2], [2, 3]),
        (Imbalance("step", ratio=4, minority=0.5, side="first", largest=8), [2, 2, 8, 8], [0, 1]),
        (Imbalance("step", ratio=4, minority=0.25, largest=8, order=(3, 2, 0, 1)), [8, 2, 8, 8], [1]),
        (Imbalance("step", ratio=4, minority=0.25, side="first", largest=8, order=(3, 2, 0, 1)), [8, 8, 8, 2], [3]),
        (Imbalance("step", ratio=4, minority=(3, 1), largest=8, order=(3, 2, 0, 1)), [8, 2, 8, 2], [1, 3]),
        (Imbalance("long_tail", factor=8, largest=8, order=(3, 2, 0, 1)), [2, 1, 4, 8], None),
    ],
)
def test_who_is_head_and_who_is_minority(imbalance, counts, minority):
    kept = imbalance.apply(np.repeat(np.arange(4), 10), 4, seed=1)
    assert kept.counts.tolist() == counts
    assert (None if kept.minority is None else kept.minority.tolist()) == minority


@examples(100, 1_000)
@given(st.integers(1, 40), st.floats(0, 1))
def test_first_mirrors_last(num_classes, share):
    assume(share == 0 or share * num_classes >= 0.5)
    last = minority_classes(num_classes, share)
    first = minority_classes(num_classes, share, side="first")
    np.testing.assert_array_equal(first, (num_classes - 1 - last)[::-1])
    np.testing.assert_array_equal(
        step_counts(num_classes, 50, 7, share, side="first"), step_counts(num_classes, 50, 7, share)[::-1]
    )


def test_a_share_of_few_classes_is_at_least_one():
    with pytest.raises(
        ArgumentError, match=r"minority: 0.1 of 3 classes are none; give a list of class ids, such as \[2\]"
    ):
        Imbalance("step", ratio=5, minority=0.1).apply([0, 1, 2] * 10, 3, seed=1)
    with pytest.raises(ArgumentError, match=r"minority: .* got 1; write 0.3 for a share, \[1\] for a class"):
        Imbalance("step", ratio=5, minority=1)


def test_the_class_that_limits_all_others_is_named():
    imbalance = Imbalance("step", ratio=20, minority=(0,))
    labels = np.repeat(np.arange(4), [100, 100, 100, 5])
    with pytest.raises(
        DataError, match=r"class 0 would keep .*; lower ratio or factor, or set largest: class 3 has only 5"
    ):
        imbalance.apply(labels, 4, seed=1)
    with pytest.raises(DataError, match=r"class 3 has no samples; leave it out"):
        imbalance.apply(labels[:300], 4, seed=1)


def test_random_order_is_a_permutation_of_the_seed():
    assert sorted(class_order(20, "random", seed=4)) == list(range(20))
    np.testing.assert_array_equal(class_order(20, "random", seed=4), class_order(20, "random", seed=4))
    assert not np.array_equal(class_order(20, "random", seed=4), class_order(20, "random", seed=5))


FAULTS = [
    (lambda: long_tail_counts(0, 5, 2), ArgumentError, "num_classes: expected an integer >= 1"),
    (lambda: long_tail_counts(3, -1, 2), ArgumentError, "largest: expected an integer >= 0"),
    (lambda: long_tail_counts(10.0, 5, 2), ArgumentError, "num_classes: expected an integer"),
    (lambda: long_tail_counts(3, 5, 0.5), ArgumentError, "factor: expected .* at least 1, got 0.5"),
    (lambda: step_counts(3, 5, float("nan")), ArgumentError, "ratio: expected .* at least 1, got nan"),
    (lambda: minority_classes(3, 1.5), ArgumentError, "minority: expected class ids or a share from 0 to 1, got 1.5"),
    (lambda: minority_classes(3, True), ArgumentError, "minority: expected class ids or a share .* got True"),
    (
        lambda: minority_classes(3, [0, 3]),
        ArgumentError,
        r"minority: expected different class ids from 0 to 2, got \[0, 3\]",
    ),
    (lambda: minority_classes(3, [1, 1]), ArgumentError, r"minority: expected different class ids .* got \[1, 1\]"),
    (lambda: minority_classes(3, 0.5, side="left"), ArgumentError, "side: expected one of last, first, got 'left'"),
    (
        lambda: Imbalance("step", ratio=2, minority=()).apply([0, 0, 1, 1], 2, seed=1),
        ArgumentError,
        "minority: expected at least one of 2 classes, and not all, got 0",
    ),
    (
        lambda: Imbalance("step", ratio=2, minority=(0, 1)).apply([0, 0, 1, 1], 2, seed=1),
        ArgumentError,
        "minority: expected at least one of 2 classes, and not all, got 2",
    ),
    (lambda: minority_classes(3, [1], side="first"), ArgumentError, r"side: applies only to a share .* is \[1\]"),
    (lambda: class_order(3, "sorted"), ArgumentError, "order: expected one of natural, random, got 'sorted'"),
    (lambda: class_order(3, [0, 2]), ArgumentError, r"order: expected each class id from 0 to 2 once, got \[0, 2\]"),
    (lambda: class_order(3, "random", seed=-1), ArgumentError, "seed: expected an integer >= 0, got -1"),
    (
        lambda: subsample([0, 0, 1], [1, 2], seed=1),
        DataError,
        "class 1 has 1 samples, but 2 were requested; lower `largest`",
    ),
    (lambda: subsample([0, 2], [1, 1], seed=1), DataError, "labels: expected classes 0 to 1, got 2 at index 1"),
    (lambda: subsample([0, -1], [1, 1], seed=1), DataError, "labels: classes count from 0, got -1 at index 1"),
    (lambda: subsample([0, 1], [1, -1], seed=1), ArgumentError, r"counts: expected one integer .* got \[1, -1\]"),
    (lambda: subsample([0, 1], [0.5, 1], seed=1), ArgumentError, r"counts: expected one integer .* got \[0.5, 1.0\]"),
    (lambda: subsample([0, 1], [1, 1], seed=-1), ArgumentError, "seed: expected an integer >= 0, got -1"),
    (lambda: subsample([0.0, 1.0], [1, 1], seed=1), ArgumentError, "labels: expected integers, got float64"),
    (lambda: Imbalance("linear"), ArgumentError, "kind: expected one of natural, step, long_tail, got 'linear'"),
    (lambda: Imbalance("step"), ArgumentError, "ratio: a number >= 1 is missing; kind 'step' needs it"),
    (lambda: Imbalance("long_tail"), ArgumentError, "factor: a number >= 1 is missing; kind 'long_tail' needs it"),
    (lambda: Imbalance("step", ratio=2, factor=3), ArgumentError, "factor: kind 'step' does not use it"),
    (lambda: Imbalance("natural", largest=5), ArgumentError, "largest: kind 'natural' does not use it"),
    (lambda: Imbalance("long_tail", factor=2, side="first"), ArgumentError, "side: kind 'long_tail' does not use it"),
    (
        lambda: Imbalance("step", ratio=2, largest=0),
        ArgumentError,
        "largest: expected an integer from 1 .+, got 0",
    ),
    (lambda: Imbalance("step", ratio=2, largest=2.5), ArgumentError, "largest: expected an integer from 1 .+, got 2.5"),
    (lambda: Imbalance().apply([0, 3], 3, seed=1), DataError, "labels: expected classes 0 to 2, got 3 at index 1"),
    (
        lambda: Imbalance("step", ratio=20, minority=(0,)).apply([0, 0, 1, 1], 2, seed=1),
        DataError,
        "class 0 would keep none of its 2 samples with 2 in the largest class; lower ratio or factor",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), FAULTS)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_step_counts_are_whole_quotients():
    """Not largest * (1 / ratio), which for 49 / 49 is less than 1."""
    for largest in range(1, 400):
        for ratio in (1, 2, 3, 7, 10, 20, 49, 50, 98, 103, 107):
            assert step_counts(2, largest, ratio, [1]).tolist() == [largest, largest // ratio]


def test_a_share_of_any_float_type():
    assert step_counts(10, 100, 10, np.float32(0.3)).tolist() == step_counts(10, 100, 10, 0.3).tolist()
