"""Partitions (battery B22): every sample once, sizes as promised, repeatable; the official stream exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedrela.data.partition import by_dirichlet as schemes
from fedrela.data.partition import dirichlet, hold_out, iid, natural, shards
from fedrela.data.partition.basic import donations, repair
from fedrela.errors import ArgumentError, DataError
from goldens.counts import official_partitions
from helpers.batteries import examples

SCHEMES = sorted(schemes.SCHEMES)
alphas = st.one_of(st.sampled_from([1e-6, 0.01, 0.3, 1.0, 1e6, 1e9]), st.floats(0.01, 1e6))
seeds = st.integers(0, 2**63)
label_arrays = st.lists(st.integers(0, 4) | st.just(40), max_size=80).map(lambda y: np.array(y, np.int64))


def assert_partition(parts: list[np.ndarray], samples: int, clients: int) -> None:
    """Cover, disjoint, sorted, int64."""
    assert len(parts) == clients
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(samples))


def client_counts(parts: list[np.ndarray], labels: np.ndarray) -> np.ndarray:
    return np.array([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@examples(300, 10_000)
@given(label_arrays, st.integers(1, 12), alphas, st.sampled_from(SCHEMES), st.integers(0, 8), seeds)
def test_every_sample_once_and_no_client_too_small(labels, clients, alpha, scheme, min_size, seed):
    assume(min_size * clients <= labels.size)
    found = dirichlet(labels, clients, alpha, seed=seed, scheme=scheme, min_size=min_size)
    assert_partition(found, labels.size, clients)
    assert min(part.size for part in found) >= min_size
    assert 0 <= found.redraws <= 100
    assert found.redraws == 100 if found.moved else (found.note == "") == (found.redraws == 0)
    assert min_size > 0 or found.note == ""


@examples(300, 10_000)
@given(label_arrays, st.integers(1, 40), alphas, st.sampled_from(SCHEMES), seeds)
def test_empty_clients_on_request_and_determinism(labels, clients, alpha, scheme, seed):
    parts = dirichlet(labels, clients, alpha, seed=seed, scheme=scheme, min_size=0)
    assert_partition(parts, labels.size, clients)
    assert same(parts, dirichlet(labels.tolist(), clients, alpha, seed=seed, scheme=scheme, min_size=0))


@examples(300, 10_000)
@given(label_arrays, st.integers(1, 40), alphas, st.sampled_from(SCHEMES), seeds)
def test_proportions_sum_to_one_at_every_step(labels, clients, alpha, scheme, seed):
    steps = []

    def watched(logs: np.ndarray) -> np.ndarray:
        steps.append(original(logs))
        return steps[-1]

    original = schemes.normalise
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schemes, "normalise", watched)
        dirichlet(labels, clients, alpha, seed=seed, scheme=scheme, min_size=0)
    assert len(steps) >= (1 if scheme == "equal" else np.unique(labels).size) or labels.size == 0
    for p in steps:
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=-1), 1.0, rtol=1e-12)


@examples(300, 10_000)
@given(st.lists(st.floats(-2000, 0) | st.just(-np.inf), min_size=1, max_size=30), st.integers(0, 500))
def test_cut_gives_all_and_nothing_to_zero_proportions(logs, total):
    assume(max(logs) > -np.inf)
    p = schemes.normalise(np.array(logs))
    counts = schemes.cut(p, total)
    assert counts.sum() == total
    assert (counts[p == 0] == 0).all()
    assert (np.abs(counts - p * total) < 1 + 1e-9 * total).all()


@examples(300, 10_000)
@given(label_arrays, st.integers(1, 12), alphas, seeds)
def test_niid_bench_closes_a_full_client(labels, clients, alpha, seed):
    assume(labels.size)
    parts = dirichlet(labels, clients, alpha, seed=seed, scheme="niid_bench", min_size=0)
    counts = client_counts(parts, labels)
    before = np.cumsum(counts, axis=1) - counts
    assert (counts[before >= labels.size / clients] == 0).all()


@examples(300, 10_000)
@given(label_arrays, st.integers(1, 40), alphas, seeds)
def test_equal_sizes(labels, clients, alpha, seed):
    sizes = [part.size for part in dirichlet(labels, clients, alpha, seed=seed, scheme="equal", min_size=0)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_another_seed_gives_another_partition(scheme):
    labels = np.repeat(np.arange(5), 40)
    assert not same(dirichlet(labels, 5, 1.0, seed=1, scheme=scheme), dirichlet(labels, 5, 1.0, seed=2, scheme=scheme))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_alpha_sets_the_heterogeneity(scheme):
    labels = np.repeat(np.arange(10), 100)

    def top_share(alpha: float) -> float:
        counts = client_counts(dirichlet(labels, 10, alpha, seed=1, scheme=scheme, min_size=0), labels)
        sizes = counts.sum(axis=1)
        return float((counts.max(axis=1) / np.maximum(sizes, 1))[sizes > 0].mean())

    shares = [top_share(alpha) for alpha in (0.01, 0.5, 1e6)]
    assert shares[0] > 0.55 > shares[1] > 0.25 > shares[2]


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_proportions_follow_the_dirichlet_law(alpha):
    K, draws = 6, 20_000
    logs = schemes.log_weights(np.random.default_rng(1), alpha, (draws, K))
    p = schemes.normalise(logs)
    variance = (K - 1) / (K**2 * (K * alpha + 1))
    np.testing.assert_allclose(p.mean(axis=0), 1 / K, atol=5 * np.sqrt(variance / draws))
    np.testing.assert_allclose(p.var(axis=0), variance, rtol=0.05)


def test_multinomial_draws_and_proportional_cuts():
    labels = np.zeros(10_000, np.int64)
    cut, drawn = (
        np.array([part.size for part in dirichlet(labels, 10, 1e9, seed=1, scheme=scheme)])
        for scheme in ("proportional", "multinomial")
    )
    assert np.abs(cut - 1000).max() <= 2
    assert 10 < np.abs(drawn - 1000).max() < 150


def test_rounding_does_not_favour_the_same_clients():
    labels = np.repeat(np.arange(20), 100)
    sizes = [part.size for part in dirichlet(labels, 1000, 1e6, seed=1, min_size=0)]
    assert max(sizes) < 12


@pytest.mark.parametrize(("scheme", "min_size"), [*((scheme, 0) for scheme in SCHEMES), ("multinomial", 4)])
def test_ten_thousand_clients(scheme, min_size):
    labels = np.tile(np.arange(10), 5000)
    parts = dirichlet(labels, 10_000, 0.3, seed=1, scheme=scheme, min_size=min_size)
    assert_partition(parts, 50_000, 10_000)
    assert min(part.size for part in parts) >= min_size


def test_redraws_are_limited_by_work(monkeypatch):
    monkeypatch.setattr("fedrela.data.partition.by_dirichlet.MAX_WEIGHTS", 7 * 30 * 2)
    found = dirichlet([0] * 30 + [1] * 30, 30, 0.01, seed=1, min_size=2)
    assert found.redraws == 7
    assert found.note.startswith("after 7 redraws, ")


def test_redraws_are_told():
    labels = np.repeat(np.arange(4), 50)
    found = [dirichlet(labels, 5, 0.5, seed=seed, min_size=20) for seed in range(30)]
    redrawn = [p for p in found if p.redraws and not p.moved]
    assert redrawn
    assert all(p.note == f"redrawn {p.redraws} times to reach the minimum size" for p in redrawn)
    assert any(p.redraws == 0 and p.note == "" for p in found)


def test_official_partitions(request):
    cases = official_partitions(request.config.getoption("--goldens"))
    compared = 0
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for case in cases:
        parts = dirichlet(case.labels, case.clients, case.alpha, seed=0, numpy_seed=case.numpy_seed)
        assert_partition(parts, case.labels.size, case.clients)
        if "client_counts" in case.found:
            np.testing.assert_array_equal(client_counts(parts, case.labels), case.found["client_counts"])
            compared += 1
    assert compared == (24 if len(cases) == 72 else 5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_the_official_stream_has_an_empty_client():
    case = next(c for c in official_partitions() if (c.alpha, c.numpy_seed, c.clients) == (0.1, 2, 40))
    parts = dirichlet(case.labels, 40, 0.1, seed=0, numpy_seed=2)
    assert sum(part.size == 0 for part in parts) == 1


def test_the_official_stream_ignores_seed_and_minimum():
    labels = np.repeat(np.arange(4), 30)
    one = dirichlet(labels, 20, 0.1, seed=1, numpy_seed=5)
    assert min(part.size for part in one) == 0
    assert same(one, dirichlet(labels, 20, 0.1, seed=2, numpy_seed=5, scheme="multinomial", min_size=3))
    assert not same(one, dirichlet(labels, 20, 0.1, seed=1, numpy_seed=6))


@examples(300, 10_000)
@given(label_arrays, st.integers(1, 100), seeds)
def test_iid(labels, clients, seed):
    parts = iid(labels, clients, seed=seed, min_size=0)
    assert_partition(parts, labels.size, clients)
    assert max(part.size for part in parts) - min(part.size for part in parts) <= 1
    assert same(parts, iid(labels, clients, seed=seed, min_size=0))


def test_iid_mixes_classes():
    counts = client_counts(iid(np.repeat(np.arange(4), 1000), 4, seed=1), np.repeat(np.arange(4), 1000))
    assert counts.min() > 150


@examples(300, 10_000)
@given(st.lists(st.integers(-3, 9), min_size=1, max_size=60), st.integers(1, 60), seeds)
def test_natural_clients(ids, clients, seed):
    assume(clients <= len(ids))
    parts = natural(ids, clients, seed=seed)
    assert_partition(parts, len(ids), clients)
    assert min(part.size for part in parts) >= 1
    owners = [set(np.array(ids)[part].tolist()) for part in parts]
    if clients >= len(set(ids)):
        assert all(len(found) == 1 for found in owners)
    else:
        assert sum(map(len, owners)) == len(set(ids))
    assert same(parts, natural(ids, clients, seed=seed))


def test_natural_clients_merge_and_split_evenly():
    ids = np.repeat(["e", "d", "c", "b", "a"], [50, 40, 30, 20, 10])
    assert [part.size for part in natural(ids, seed=1)] == [10, 20, 30, 40, 50]
    assert sorted(part.size for part in natural(ids, 3, seed=1)) == [50, 50, 50]
    assert sorted(part.size for part in natural(ids, 8, seed=1)) == [10, 15, 15, 20, 20, 20, 25, 25]
    pieces = natural(np.zeros(100, int), 2, seed=1)
    assert not same(pieces, natural(np.zeros(100, int), 2, seed=2))


@st.composite
def feasible_shards(draw):
    labels = np.array(draw(st.lists(st.integers(0, 5), min_size=1, max_size=80)))
    sizes = np.unique(labels, return_counts=True)[1]
    clients = draw(st.integers(1, min(10, labels.size)))
    fewest, most = -(-sizes.size // clients), np.minimum(sizes, clients).sum() // clients
    assume(fewest <= most)
    return labels, clients, draw(st.integers(fewest, most))


@examples(300, 10_000)
@given(feasible_shards(), seeds)
def test_shards_give_exactly_so_many_classes(case, seed):
    labels, clients, per_client = case
    parts = shards(labels, clients, per_client, seed=seed)
    assert_partition(parts, labels.size, clients)
    assert {np.unique(labels[part]).size for part in parts} == {per_client}
    assert same(parts, shards(labels, clients, per_client, seed=seed))


def test_shards_are_near_equal_and_mixed():
    labels = np.repeat(np.arange(10), 500)
    parts = shards(labels, 20, 2, seed=1)
    assert {part.size for part in parts} == {250}
    assert len({tuple(np.unique(labels[part])) for part in parts}) > 10
    assert not same(parts, shards(labels, 20, 2, seed=2))


@examples(300, 10_000)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.floats(0, 0.999), seeds)
def test_hold_out(sizes, share, seed):
    parts = np.split(np.random.default_rng(0).permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    train, validation = hold_out(parts, share, seed=seed)
    for part, kept, held in zip(parts, train, validation, strict=True):
        np.testing.assert_array_equal(np.sort(part), np.sort(np.concatenate([kept, held])))
        assert (np.diff(kept) > 0).all()
        assert (np.diff(held) > 0).all()
        assert kept.size >= min(1, part.size)
        assert abs(held.size - share * part.size) <= 0.5 or kept.size == 1
    alone = hold_out([np.empty(0, np.int64)] * (len(parts) - 1) + [parts[-1]], share, seed=seed)
    np.testing.assert_array_equal(alone[1][-1], validation[-1])


sizes_and_minimum = st.lists(st.integers(0, 15), min_size=1, max_size=12).flatmap(
    lambda sizes: st.tuples(st.just(sizes), st.integers(0, sum(sizes) // len(sizes)))
)


@examples(300, 10_000)
@given(sizes_and_minimum, st.integers(0, 2**32))
def test_repair_moves_as_few_as_possible_from_the_largest(case, seed):
    sizes, min_size = case
    clients = len(sizes)
    owner = np.random.default_rng(seed).permutation(np.repeat(np.arange(clients), sizes))
    fixed, moved = repair(owner, clients, min_size, np.random.default_rng(seed))
    after = np.bincount(fixed, minlength=clients)
    lacking = np.maximum(min_size - np.array(sizes), 0)
    assert moved == lacking.sum() == np.count_nonzero(fixed != owner)
    np.testing.assert_array_equal(after[lacking > 0], min_size)
    given_away = np.array(sizes) - after
    assert all(after[k] >= after[j] - 1 for k in np.flatnonzero(given_away > 0) for j in range(clients))


@examples(300, 10_000)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_donations_go_down_one_by_one_from_the_largest(sizes, data):
    total = data.draw(st.integers(0, sum(sizes)))
    one_by_one = np.array(sizes)
    for _ in range(total):
        one_by_one[np.argmax(one_by_one)] -= 1
    given_away = donations(np.array(sizes), total)
    assert given_away.sum() == total
    np.testing.assert_array_equal(np.sort(np.array(sizes) - given_away), np.sort(one_by_one))


THREE = np.repeat(np.arange(3), 10)
FAULTS = [
    (
        lambda: dirichlet(THREE, 4, 0.3, seed=1),
        ArgumentError,
        "min_size: 4 clients with 10 samples each need 40, but there are only 30; lower min_size or clients",
    ),
    (lambda: dirichlet(THREE, 0, 0.3, seed=1), ArgumentError, "clients: expected an integer >= 1, got 0"),
    (lambda: dirichlet(THREE, 2.0, 0.3, seed=1), ArgumentError, "clients: expected an integer >= 1, got 2.0"),
    (lambda: dirichlet(THREE, True, 0.3, seed=1), ArgumentError, "clients: expected an integer >= 1, got true"),
    (
        lambda: dirichlet(THREE, 2, 0.3, seed=1, min_size=-1),
        ArgumentError,
        "min_size: expected an integer >= 0",
    ),
    (lambda: dirichlet(THREE, 2, 0.3, seed=-1), ArgumentError, "seed: expected an integer >= 0, got -1"),
    (
        lambda: dirichlet(THREE, 2, 0, seed=1),
        ArgumentError,
        "alpha: expected a number from 1e-06 .*, got 0",
    ),
    (lambda: dirichlet(THREE, 2, -1.0, seed=1), ArgumentError, "alpha: .* got -1.0"),
    (lambda: dirichlet(THREE, 2, float("nan"), seed=1), ArgumentError, "alpha: .* got nan"),
    (lambda: dirichlet(THREE, 2, float("inf"), seed=1), ArgumentError, "alpha: .* got inf"),
    (lambda: dirichlet(THREE, 2, "0.3", seed=1), ArgumentError, "alpha: .* got '0.3'"),
    (lambda: dirichlet(THREE, 2, True, seed=1), ArgumentError, "alpha: .* got true"),
    (
        lambda: dirichlet(THREE, 2, 0.3, seed=1, scheme="even"),
        ArgumentError,
        "scheme: expected one of proportional, multinomial, niid_bench, equal, got 'even'",
    ),
    (
        lambda: dirichlet(THREE, 2, 0.3, seed=1, scheme="equal", numpy_seed=1),
        ArgumentError,
        "numpy_seed: it implies scheme 'multinomial', got 'equal'; leave one of them out",
    ),
    (
        lambda: dirichlet(THREE, 2, 0.3, seed=1, numpy_seed=-1),
        ArgumentError,
        "numpy_seed: expected an integer >= 0",
    ),
    (
        lambda: dirichlet(THREE, 2, 0.3, seed=1, numpy_seed=2**32),
        ArgumentError,
        "numpy_seed: expected an integer from 0 to 4294967295, got 4294967296",
    ),
    (
        lambda: dirichlet(THREE, 2, 1e-6, seed=1, numpy_seed=1),
        ArgumentError,
        "numpy_seed: the official stream has no proportions for class 0 at alpha = 1e-06; choose another numpy_seed",
    ),
    (lambda: dirichlet([0, -2], 1, 0.3, seed=1), DataError, "labels: classes count from 0, got -2 at index 1"),
    (lambda: dirichlet([0.5], 1, 0.3, seed=1), ArgumentError, "labels: expected integers, got float64"),
    (lambda: dirichlet([[0]], 1, 0.3, seed=1), ArgumentError, r"labels: expected one dimension, got shape \(1, 1\)"),
    (
        lambda: iid(THREE, 31, seed=1),
        ArgumentError,
        "clients: 31 clients with 1 samples each need 31, but there are only 30",
    ),
    (lambda: iid(THREE, 3, seed=1.5), ArgumentError, "seed: expected an integer >= 0, got 1.5"),
    (lambda: natural([], seed=1), DataError, r"client_ids: expected one id per sample, got shape \(0,\)"),
    (lambda: natural([1, 2], 3, seed=1), ArgumentError, "clients: 3 clients need 3 samples, but there are only 2"),
    (lambda: natural([1, 2], 0, seed=1), ArgumentError, "clients: expected an integer >= 1, got 0"),
    (lambda: natural([1, 2], seed=-1), ArgumentError, "seed: expected an integer >= 0, got -1"),
    (lambda: shards(THREE, 3, 0, seed=1), ArgumentError, "classes_per_client: expected an integer >= 1, got 0"),
    (lambda: shards(THREE, 3, 1, seed=-1), ArgumentError, "seed: expected an integer >= 0, got -1"),
    (
        lambda: shards(THREE, 2, 1, seed=1),
        ArgumentError,
        "classes_per_client: 2 clients with 1 classes each make 2 shards, fewer than the 3 classes",
    ),
    (
        lambda: shards(THREE, 2, 4, seed=1),
        ArgumentError,
        "classes_per_client: 2 clients with 4 classes each make 8 shards, but the classes allow at most 6",
    ),
    (lambda: shards(THREE, 31, 1, seed=1), ArgumentError, "clients: 31 clients with 1 samples each need 31"),
    (lambda: hold_out([THREE], 1.0, seed=1), ArgumentError, "share: expected a fraction below 1"),
    (lambda: hold_out([THREE], 30, seed=1), ArgumentError, "share: expected a fraction from 0 to 1, got 30"),
    (lambda: hold_out([THREE], 0.1, seed=-1), ArgumentError, "seed: expected an integer >= 0, got -1"),
]


@pytest.mark.parametrize(("call", "error", "message"), FAULTS)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
