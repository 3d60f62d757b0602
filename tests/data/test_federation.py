"""Source, imbalance and partition together: shards, figures, standardisation, and building it again."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.federation import Federation, Moments, Recipe, build_federation, rebuild
from fedrela.data.imbalance import Imbalance
from fedrela.data.partition import PartitionPlan
from fedrela.data.sources import from_arrays, load
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.experiment.build import groups_of
from fedrela.experiment.manifests import check_same
from helpers.batteries import examples

DIGITS = load("digits")
STEP = Imbalance("step", ratio=20, minority=(0, 1, 2))
TAIL = Imbalance("long_tail", factor=10)
NOISY = PartitionPlan("dirichlet", clients=8, alpha=0.3, min_size=3)


def table(n: int = 240, seed: int = 0, clients: bool = False):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], n // 3))
    x = rng.normal(size=(n, 4)) * [1, 100, 1e-3, 0] + [5, -1000, 0, 7]
    ids = rng.integers(0, 5, n) if clients else None
    return from_arrays(x, y, client_ids=ids)


def everyone(federation: Federation) -> np.ndarray:
    return np.sort(np.concatenate([np.r_[shard.train, shard.validation] for shard in federation.shards]))


@pytest.mark.parametrize("imbalance", [Imbalance(), STEP, TAIL])
@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_every_chosen_sample_has_one_place(imbalance, validation):
    recipe = Recipe(3, imbalance, NOISY, validation)
    federation = build_federation(DIGITS, recipe)
    chosen = everyone(federation)
    assert np.unique(chosen).size == chosen.size == federation.class_counts.sum()
    np.testing.assert_array_equal(np.bincount(DIGITS.y_train[chosen], minlength=10), federation.class_counts)
    trained = sum(shard.train.size for shard in federation.shards)
    assert federation.client_counts.sum() == trained
    assert [shard.client for shard in federation.shards] == list(range(8))
    assert (trained < chosen.size) == (validation > 0)
    assert federation.x_train is DIGITS.x_train
    np.testing.assert_array_equal(federation.available, np.bincount(DIGITS.y_train))


def test_groups_of_step_and_tail():
    step = groups_of(build_federation(DIGITS, Recipe(1, STEP, NOISY)))
    assert step.sizes == {"majority": 7, "minority": 3}
    assert step.members("minority").tolist() == [0, 1, 2]
    tail = build_federation(DIGITS, Recipe(1, Imbalance("long_tail", factor=50), NOISY))
    by_counts = groups_of(tail)
    assert by_counts.names == ("head", "medium", "tail")
    assert by_counts.of_class[0] == 0
    assert by_counts.of_class[9] == 2
    for protocol in ("fedloge", "fedrela-release"):
        assert groups_of(tail, protocol).protocol == protocol


def test_groups_do_not_depend_on_what_is_held_back():
    plans = [Recipe(1, Imbalance("long_tail", factor=20), NOISY, validation) for validation in (0.0, 0.4)]
    first, second = (groups_of(build_federation(DIGITS, plan)).of_class.tolist() for plan in plans)
    assert first == second


def test_same_seed_same_bytes_and_another_seed_other_shards():
    first, again, other = (build_federation(DIGITS, Recipe(s, STEP, NOISY)).manifest() for s in (1, 1, 2))
    assert first == again
    assert first["shards_sha256"] != other["shards_sha256"]
    assert first["arrays"] == other["arrays"]


@pytest.mark.parametrize("source", [DIGITS, table(), table(clients=True)], ids=["digits", "table", "clients"])
def test_a_manifest_is_enough_to_rebuild(source):
    kind = PartitionPlan("natural", clients=3) if source.client_train is not None else NOISY
    built = build_federation(source, Recipe(5, TAIL, kind, 0.2, "local"))
    manifest = json.loads(json.dumps(built.manifest()))
    again = rebuild(manifest, source=source)
    assert again.manifest() == built.manifest()
    assert again.x_train.tobytes() == built.x_train.tobytes()
    assert again.x_test.tobytes() == built.x_test.tobytes()
    for one, two in zip(built.shards, again.shards, strict=True):
        np.testing.assert_array_equal(one.train, two.train)
        np.testing.assert_array_equal(one.validation, two.validation)


def test_a_manifest_of_other_data_is_noticed():
    manifest = build_federation(DIGITS, Recipe(1, STEP, NOISY)).manifest()
    x = DIGITS.x_train.copy()
    x[0, 0, 0, 0] ^= 1
    other = replace(DIGITS, x_train=x)
    with pytest.raises(IntegrityError, match=r"arrays\.x_train\.sha256 is not what"):
        rebuild(manifest, source=other)
    for key, value in (("shards_sha256", "0" * 64), ("class_counts", [1]), ("format", "x"), ("recipe", {"seed": 1})):
        with pytest.raises(IntegrityError):
            rebuild(manifest | {key: value}, source=DIGITS)
    with pytest.raises(IntegrityError, match="invalid manifest"):
        rebuild({}, source=DIGITS)


def test_columns_that_are_numbers_count_too():
    source = table()
    manifest = build_federation(source, Recipe(1, Imbalance(), NOISY)).manifest()
    assert set(manifest["standardized"]) == {"x_train", "x_test"}
    with pytest.raises(IntegrityError, match=r"arrays\.numeric\.sha256 is not what"):
        rebuild(manifest, source=replace(source, numeric=np.zeros(4, bool)))


def test_a_named_source_is_loaded_again():
    options = {"samples": 60, "classes": 3, "dimension": 4, "seed": 2}
    origin = {"source": "gaussians", "options": options}
    built = build_federation(load("gaussians", **options), Recipe(1, TAIL, NOISY), origin=origin)
    again = rebuild(json.loads(json.dumps(built.manifest())))
    assert again.x_train.tobytes() == built.x_train.tobytes()
    with pytest.raises(ArgumentError, match="does not name its source"):
        rebuild(build_federation(DIGITS, Recipe()).manifest())


def test_counts_with_and_without_what_is_held_back():
    federation = build_federation(DIGITS, Recipe(1, TAIL, NOISY, validation=0.3))
    np.testing.assert_array_equal(federation.selected_counts.sum(axis=0), federation.class_counts)
    assert (federation.client_counts <= federation.selected_counts).all()
    assert federation.client_counts.sum() < federation.class_counts.sum()


def test_wrong_standardisation():
    with pytest.raises(ArgumentError, match="standardize: expected one of pooled, local, none"):
        Recipe(standardize="both")


def test_pooled_standardisation_is_that_of_all_training_samples():
    source = table()
    federation = build_federation(source, Recipe(1, Imbalance(), NOISY, validation=0.3))
    rows = np.concatenate([shard.train for shard in federation.shards])
    x = source.x_train[rows].astype(float)
    np.testing.assert_allclose(federation.x_train[rows][:, :3].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(federation.x_train[rows][:, :3].std(axis=0), 1, atol=1e-5)
    expected = (source.x_test - x.mean(axis=0))[:, :3] / x.std(axis=0)[:3]
    np.testing.assert_allclose(federation.x_test[:, :3], expected, rtol=1e-4, atol=1e-4)
    assert not federation.x_train[rows][:, 3].any()  # a constant column becomes 0, not NaN
    assert source.x_train[:, 1].mean() < -900  # the source itself is untouched


def test_local_standardisation_uses_a_clients_own_samples_only():
    source = table()
    federation = build_federation(source, Recipe(1, Imbalance(), NOISY, 0.2, "local"))
    for shard in federation.shards:
        own = source.x_train[shard.train].astype(float)
        rows = np.r_[shard.train, shard.validation]
        expected = (source.x_train[rows] - own.mean(axis=0))[:, :3] / own.std(axis=0)[:3]
        np.testing.assert_allclose(federation.x_train[rows][:, :3], expected, rtol=1e-3, atol=1e-3)
    plain = build_federation(source, Recipe(1, Imbalance(), NOISY, 0.2, "none"))
    assert plain.x_train is source.x_train


@examples(200, 5000)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.floats(-1e6, 1e6), st.integers(0, 1000))
def test_merged_moments_are_those_of_all_samples(sizes, offset, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, 3)) + offset for size in sizes]
    merged, whole = reduce(Moments.merge, map(Moments.of, parts)), Moments.of(np.concatenate(parts))
    assert merged.count == whole.count
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(merged.squares, whole.squares, rtol=1e-6, atol=1e-6)


def test_ten_thousand_clients_cost_index_memory_only():
    source = from_arrays(np.zeros((50_000, 1), np.float32), np.arange(50_000) % 10, np.zeros((10, 1)), np.arange(10))
    federation = build_federation(
        source, Recipe(1, Imbalance(), PartitionPlan("dirichlet", 10_000, 0.5, min_size=0), 0.0, "none")
    )
    assert len(federation.shards) == 10_000
    assert sum(shard.train.nbytes for shard in federation.shards) == 50_000 * 8
    assert federation.x_train is source.x_train


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "dirichlet", "clients": 3}, "alpha: .+ is missing; kind 'dirichlet' needs it"),
        ({"kind": "dirichlet", "alpha": 1.0}, "clients: .+ is missing; kind 'dirichlet' needs it"),
        ({"kind": "iid"}, "clients: .+ is missing; kind 'iid' needs it"),
        ({"kind": "iid", "clients": 3, "alpha": 1.0}, "alpha: kind 'iid' does not use it"),
        ({"kind": "shards", "clients": 3}, "classes_per_client: .+ is missing; kind 'shards' needs it"),
        ({"kind": "natural", "min_size": 3}, "min_size: kind 'natural' does not use it"),
        ({"kind": "blocks"}, "kind: expected one of dirichlet, iid, natural, shards"),
        (
            {"kind": "dirichlet", "clients": 0, "alpha": 1.0},
            "clients: expected an integer from 1 to .+, got 0",
        ),
        ({"kind": "dirichlet", "clients": 2, "alpha": 0.0}, "alpha: expected a number from"),
        ({"kind": "dirichlet", "clients": 2, "alpha": 1.0, "scheme": "even"}, "scheme: expected one of"),
        ({"kind": "dirichlet", "clients": 2, "alpha": 1.0, "numpy_seed": 1, "min_size": 5}, "min_size: numpy_seed"),
        ({"kind": "dirichlet", "clients": 2, "alpha": 1.0, "numpy_seed": 1, "scheme": "equal"}, "scheme: numpy_seed"),
    ],
)
def test_wrong_plans(options, message):
    with pytest.raises(ArgumentError, match=message):
        PartitionPlan(**options)


def test_labels_that_count_from_1_are_refused():
    x, y = np.zeros((40, 2)), np.repeat([1, 2], 20)
    arrays = {"class_names": ["0", "1", "2"], "test_share": 0.5}
    with pytest.raises(DataError, match=r"label 0 is unused, but larger labels are not; number the labels from 0, or"):
        build_federation(from_arrays(x, y, **arrays), Recipe(1, Imbalance(), PartitionPlan("iid", clients=2)))
    last = from_arrays(x, y - 1, **arrays)  # the largest one may be missing: nothing suggests another count
    assert build_federation(last, Recipe(1, Imbalance(), PartitionPlan("iid", clients=2))).available.tolist()[2] == 0
    named = from_arrays(x, y, **arrays | {"class_names": ["cat", "dog", "owl"]})
    assert build_federation(named, Recipe(1, Imbalance(), PartitionPlan("iid", clients=2))).available.tolist()[0] == 0


def test_natural_needs_client_ids():
    with pytest.raises(DataError, match="this source has no client ids"):
        build_federation(DIGITS, Recipe(1, Imbalance(), PartitionPlan("natural")))


@pytest.mark.parametrize(
    "plan",
    [
        PartitionPlan("iid", clients=5),
        PartitionPlan("iid", clients=5, min_size=0),
        PartitionPlan("shards", clients=5, classes_per_client=2),
        PartitionPlan("dirichlet", clients=5, alpha=0.1, scheme="niid_bench", min_size=1),
        PartitionPlan("dirichlet", clients=5, alpha=0.1, scheme="equal"),
        PartitionPlan("dirichlet", clients=5, alpha=0.1, numpy_seed=3),
        PartitionPlan("natural"),
    ],
    ids=lambda plan: f"{plan.kind}-{plan.scheme}",
)
def test_every_kind_of_plan(plan):
    federation = build_federation(table(clients=True), Recipe(1, Imbalance(), plan))
    np.testing.assert_array_equal(everyone(federation), np.arange(federation.y_train.size))
    assert len(federation.shards) == 5


def test_other_ids_are_other_data_but_runs_from_before_there_were_ids_go_on(tmp_path):
    arrays = from_arrays(np.arange(40.0).reshape(20, 2), np.arange(20) % 2, test_share=0.5)
    named = replace(arrays, ids_train=tuple("abcdefghij"), ids_test=tuple("klmnopqrst"))
    recipe = Recipe(partition=PartitionPlan("iid", clients=2))
    manifest = build_federation(named, recipe).manifest()
    assert rebuild(manifest, source=named).source is named
    other = replace(named, ids_train=tuple("bacdefghij"))
    with pytest.raises(IntegrityError, match="ids_sha256 is not what the run started with"):
        rebuild(manifest, source=other)
    with pytest.raises(IntegrityError, match="data differs"):
        check_same(tmp_path, {"data": manifest}, {"data": build_federation(other, recipe).manifest()})
    del manifest["ids_sha256"]
    assert rebuild(manifest, source=named).source is named
    check_same(tmp_path, {"data": manifest}, {"data": build_federation(named, recipe).manifest()})


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ((("a",), ("b",)), r"expected \(10, 10\) ids, got \(1, 1\)"),
        ((tuple("abcdefghij"), tuple("klmnopqrsa")), "two samples have the id 'a'"),
        (((1,) * 10, tuple("klmnopqrst")), "ids_train: expected a tuple of strings, got int in it"),
    ],
)
def test_ids_of_a_source_are_texts_one_per_sample_and_all_different(ids, reason):
    arrays = from_arrays(np.arange(40.0).reshape(20, 2), np.arange(20) % 2, test_share=0.5)
    with pytest.raises(DataError, match=reason):
        replace(arrays, ids_train=ids[0], ids_test=ids[1])
