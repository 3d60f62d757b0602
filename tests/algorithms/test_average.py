"""The weighted mean: float64, in the order of the clients, whatever the pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedrela.algorithms import average
from fedrela.algorithms.average import equal_weights, sample_weights, weighted_sum
from fedrela.algorithms.fedavg import FedAvg
from fedrela.errors import ArgumentError
from fedrela.records import Upload
from helpers.batteries import examples
from helpers.contexts import server_context, uploads_of

VALUES = st.floats(-1e6, 1e6, width=32)
SAMPLES = st.lists(st.integers(1, 10_000), min_size=1, max_size=8)


def one_by_one(vectors, weights):
    """The sum as it is defined: client after client, in float64."""
    result = np.zeros(vectors.shape[1:])
    for vector, weight in zip(vectors, weights, strict=True):
        result = result + vector.astype(np.float64) * weight
    return result


@examples(60, 2000)
@given(st.data(), SAMPLES, st.sampled_from(["<f4", "<f8"]))
def test_equals_the_plain_sum_in_float64(data, samples, dtype):
    shape = (len(samples), *data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)))
    vectors = data.draw(hnp.arrays(dtype, shape, elements=VALUES))
    weights = data.draw(hnp.arrays("f8", len(samples), elements=st.floats(-3, 3)))
    found = weighted_sum(uploads_of(vectors, samples), "weights", weights)
    assert found.dtype == np.float64
    assert found.shape == shape[1:]
    assert found.tobytes() == one_by_one(vectors, weights).tobytes()


@pytest.mark.parametrize("size", [0, 1, 7, average.PIECE - 1, average.PIECE, average.PIECE + 1, 3 * average.PIECE + 5])
@pytest.mark.parametrize("piece", [3, 64, average.PIECE])
def test_pieces_change_no_bit(monkeypatch, size, piece):
    vectors = np.random.default_rng(size).normal(size=(4, min(size, 500) if piece == 3 else size)).astype("f4")
    sent = uploads_of(vectors, [5, 1, 9, 2])
    monkeypatch.setattr(average, "PIECE", piece)
    assert (
        weighted_sum(sent, "weights", sample_weights(sent)).tobytes()
        == one_by_one(vectors, sample_weights(sent)).tobytes()
    )


@examples(60, 2000)
@given(SAMPLES, st.integers(1, 1000))
def test_shares_depend_on_proportions_only(samples, factor):
    some = sample_weights(uploads_of(np.zeros((len(samples), 1)), samples))
    more = sample_weights(uploads_of(np.zeros((len(samples), 1)), [n * factor for n in samples]))
    np.testing.assert_allclose(some, more, rtol=1e-14)
    assert some.sum() == pytest.approx(1)


def test_scaling_all_counts_leaves_the_model_to_the_bit():
    vectors = np.random.default_rng(0).normal(size=(5, 40)).astype("f4")
    once, twice = (
        FedAvg().server(server_context(uploads_of(vectors, [n * k for n in (3, 8, 1, 30, 2)]), vectors[0]))
        for k in (1, 2)
    )
    assert once.tobytes() == twice.tobytes()


def test_identical_clients_leave_the_model():
    one = np.random.default_rng(0).normal(size=40).astype("f4")
    found = FedAvg().server(server_context(uploads_of(np.tile(one, (7, 1)), [3, 1, 4, 1, 5, 9, 2]), one))
    np.testing.assert_allclose(found, one, rtol=1e-15)


def test_one_client_is_taken_as_it_is():
    one = np.random.default_rng(0).normal(size=40).astype("f4")
    assert FedAvg().server(server_context(uploads_of(one[None], [17]), one)).tobytes() == one.astype("f8").tobytes()


def test_who_is_called_what_matters_to_the_last_bits_only():
    vectors = np.random.default_rng(0).normal(size=(6, 200)).astype("f4")
    samples = np.array([30, 2, 11, 7, 90, 5])
    order = np.array([3, 0, 5, 1, 4, 2])
    some, other = (
        FedAvg().server(server_context(uploads_of(vectors[o], samples[o]), vectors[0])) for o in (np.arange(6), order)
    )
    np.testing.assert_allclose(some, other, atol=1e-6)


def test_equal_shares():
    assert equal_weights(uploads_of(np.zeros((4, 1)), [1, 2, 3, 4])).tolist() == [0.25] * 4


def test_a_part_of_a_vector():
    vectors = np.arange(12, dtype="f4").reshape(3, 4)
    sent = uploads_of(vectors)
    assert weighted_sum(sent, "weights", [1, 1, 1], slice(2)).tolist() == [12, 15]
    assert weighted_sum(sent, "weights", [1, 1, 1], slice(2, None)).tolist() == [18, 21]


def test_an_array_of_integers_and_a_scalar():
    sent = [Upload(i, 1, 1, {"steps": np.array(i + 1)}) for i in range(3)]
    found = weighted_sum(sent, "steps", [0.5, 0.5, 1])
    assert (found.shape, found.item()) == ((), 4.5)


def test_uploads_are_not_changed():
    vectors = np.random.default_rng(0).normal(size=(3, 50)).astype("f4")
    before = vectors.tobytes()
    weighted_sum(uploads_of(vectors), "weights", [0.1, 0.2, 0.7])
    assert vectors.tobytes() == before


@pytest.mark.parametrize("clients", [[], [1, 0], [2, 2]])
def test_order_is_asked_for(clients):
    sent = [Upload(client, 1, 1, {"weights": np.zeros(2)}) for client in clients]
    with pytest.raises(ArgumentError, match="ascending"):
        weighted_sum(sent, "weights", [1.0] * len(sent))


def test_a_weight_for_every_client():
    with pytest.raises(ValueError):
        weighted_sum(uploads_of(np.zeros((3, 2))), "weights", [0.5, 0.5])
