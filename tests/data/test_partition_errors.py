"""Wrong arguments of the partition functions: refused before drawing, in one line that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.data.partition import dirichlet, hold_out, iid, natural, shards
from fedrela.errors import ArgumentError, DataError

Y = np.repeat(np.arange(3), 10)

FAULTS = [
    (
        lambda: dirichlet(Y, 4, 0.3, seed=1),
        ArgumentError,
        "min_size: 4 clients with 10 samples each need 40, there are 30; lower min_size or clients",
    ),
    (lambda: dirichlet(Y, 0, 0.3, seed=1), ArgumentError, "clients: expected at least 1, got 0"),
    (lambda: dirichlet(Y, 2.0, 0.3, seed=1), ArgumentError, "clients: expected an integer, got 2.0"),
    (lambda: dirichlet(Y, True, 0.3, seed=1), ArgumentError, "clients: expected an integer, got True"),
    (lambda: dirichlet(Y, 2, 0.3, seed=1, min_size=-1), ArgumentError, "min_size: expected at least 0, got -1"),
    (lambda: dirichlet(Y, 2, 0.3, seed=-1), ArgumentError, "seed: expected at least 0, got -1"),
    (lambda: dirichlet(Y, 2, 0, seed=1), ArgumentError, r"alpha: expected a number from 1e-06 to 1e\+09, got 0"),
    (lambda: dirichlet(Y, 2, -1.0, seed=1), ArgumentError, "alpha: .* got -1.0"),
    (lambda: dirichlet(Y, 2, float("nan"), seed=1), ArgumentError, "alpha: .* got nan"),
    (lambda: dirichlet(Y, 2, float("inf"), seed=1), ArgumentError, "alpha: .* got inf"),
    (lambda: dirichlet(Y, 2, "0.3", seed=1), ArgumentError, "alpha: .* got '0.3'"),
    (lambda: dirichlet(Y, 2, True, seed=1), ArgumentError, "alpha: .* got True"),
    (
        lambda: dirichlet(Y, 2, 0.3, seed=1, scheme="even"),
        ArgumentError,
        "scheme: expected one of proportional, multinomial, niid_bench, equal, got 'even'",
    ),
    (
        lambda: dirichlet(Y, 2, 0.3, seed=1, scheme="equal", numpy_seed=1),
        ArgumentError,
        "numpy_seed: it implies scheme 'multinomial', got 'equal'; leave one of them out",
    ),
    (lambda: dirichlet(Y, 2, 0.3, seed=1, numpy_seed=-1), ArgumentError, "numpy_seed: expected at least 0, got -1"),
    (
        lambda: dirichlet(Y, 2, 0.3, seed=1, numpy_seed=2**32),
        ArgumentError,
        "numpy_seed: expected a number from 0 to 4294967295, got 4294967296",
    ),
    (
        lambda: dirichlet(Y, 2, 1e-6, seed=1, numpy_seed=1),
        ArgumentError,
        "numpy_seed: the official stream has no proportions for class 0 at alpha = 1e-06; take another numpy_seed",
    ),
    (lambda: dirichlet([0, -2], 1, 0.3, seed=1), DataError, "labels: classes count from 0, got -2 at index 1"),
    (lambda: dirichlet([0.5], 1, 0.3, seed=1), ArgumentError, "labels: expected integers, got float64"),
    (lambda: dirichlet([[0]], 1, 0.3, seed=1), ArgumentError, r"labels: expected one dimension, got shape \(1, 1\)"),
    (lambda: iid(Y, 31, seed=1), ArgumentError, "clients: 31 clients with 1 samples each need 31, there are 30"),
    (lambda: iid(Y, 3, seed=1.5), ArgumentError, "seed: expected an integer, got 1.5"),
    (lambda: natural([], seed=1), DataError, r"client_ids: expected one id a sample, got shape \(0,\)"),
    (lambda: natural([1, 2], 3, seed=1), ArgumentError, "clients: 3 clients need 3 samples, there are 2"),
    (lambda: natural([1, 2], 0, seed=1), ArgumentError, "clients: expected at least 1, got 0"),
    (lambda: natural([1, 2], seed=-1), ArgumentError, "seed: expected at least 0, got -1"),
    (lambda: shards(Y, 3, 0, seed=1), ArgumentError, "classes_per_client: expected at least 1, got 0"),
    (lambda: shards(Y, 3, 1, seed=-1), ArgumentError, "seed: expected at least 0, got -1"),
    (
        lambda: shards(Y, 2, 1, seed=1),
        ArgumentError,
        "classes_per_client: 2 clients with 1 classes each make 2 shards, fewer than the 3 classes",
    ),
    (
        lambda: shards(Y, 2, 4, seed=1),
        ArgumentError,
        "classes_per_client: 2 clients with 4 classes each make 8 shards, but the classes give no more than 6",
    ),
    (lambda: shards(Y, 31, 1, seed=1), ArgumentError, "clients: 31 clients with 1 samples each need 31"),
    (lambda: hold_out([Y], 1.0, seed=1), ArgumentError, "share: a fraction below 1 is needed"),
    (lambda: hold_out([Y], 30, seed=1), ArgumentError, "share: expected a fraction from 0 to 1, got 30"),
    (lambda: hold_out([Y], 0.1, seed=-1), ArgumentError, "seed: expected at least 0, got -1"),
]


@pytest.mark.parametrize(("call", "error", "message"), FAULTS)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
