"""Sources from memory and made ones: arrays, digits, Gaussians; the split; the registry."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.sources import SOURCES, from_arrays, gaussians, load
from fedrela.data.sources.labels import encode_clients, encode_labels, held_out_count, stratified
from fedrela.errors import ArgumentError, DataError
from helpers.batteries import examples


def test_images_and_labels(noise):
    x, y = noise(20, 6, 6), np.arange(20) % 4
    source = from_arrays(x, y, class_names="abcd", client_ids=np.arange(20) // 5, test_share=0.4)
    assert source.x_train.shape == (12, 1, 6, 6)
    assert np.bincount(source.y_test).tolist() == [2, 2, 2, 2]
    for image, label, client in zip(source.x_train, source.y_train, source.client_train, strict=True):
        i = next(i for i in range(20) if np.array_equal(x[i], image[0]))
        assert (label, client) == (y[i], i // 5)


def test_nothing_is_copied_and_nothing_can_be_written(noise):
    x = noise(6, 3, 4, 4)
    source = from_arrays(x, np.arange(6) % 2, x, np.arange(6) % 2)
    assert np.shares_memory(source.x_train, x)
    assert not source.x_train.flags.writeable
    assert x.flags.writeable


@pytest.mark.parametrize(
    ("labels", "names", "codes"),
    [
        ([5, 3, 5, 3], ("3", "5"), [1, 0, 1, 0]),
        (["b", "a", "b", "a"], ("a", "b"), [1, 0, 1, 0]),
        ([1.0, 0.0, 1.0, 0.0], ("0", "1"), [1, 0, 1, 0]),
        ([True, False, True, False], ("0", "1"), [1, 0, 1, 0]),
        (np.array(["b", "a", "b", "a"], object), ("a", "b"), [1, 0, 1, 0]),
        (np.array([b"10", b"9", b"10", b"9"]), ("9", "10"), [1, 0, 1, 0]),
    ],
)
def test_labels_of_any_kind(labels, names, codes):
    source = from_arrays(np.zeros((4, 2)), labels, np.zeros((4, 2)), labels)
    assert source.class_names == names
    assert source.y_train.tolist() == source.y_test.tolist() == codes


def test_class_names_fix_the_order():
    x = np.zeros((4, 1))
    assert from_arrays(x, ["b", "a", "b", "a"], class_names=["b", "a", "c"], test_share=0.5).num_classes == 3
    assert from_arrays(x, ["7", "8", "7", "8"], x, ["8"] * 4, class_names=["8", "7"]).y_test.tolist() == [0] * 4
    assert from_arrays(x, [1, 0, 1, 0], x, [0] * 4, class_names=["8", "7"]).y_train.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.zeros((4, 2)), [0, 1, 0]), {}, ArgumentError, "y: expected one per sample"),
        ((np.zeros((4, 2)), [0, 1, 0, 1]), {"client_ids": [1]}, ArgumentError, "client_ids: expected one per sample"),
        ((np.zeros((4, 2)), [0, 1, 0, 1], np.zeros((1, 2))), {}, ArgumentError, "both x_test and y_test, or neither"),
        ((np.zeros((4, 2)), [0, 1, 0, 1], np.zeros((1, 3)), [0]), {}, DataError, "differ in shape"),
        ((np.zeros((4, 2)), [0, 1, 0, 1], np.zeros((1, 2)), [2]), {}, DataError, "'2' is not one of"),
        ((np.zeros((4, 2)), [0, 1, 0, 2]), {"class_names": "ab"}, DataError, "sample 3: expected a label from 0 to 1"),
        ((np.zeros((4, 2)), list("abac")), {"class_names": "ab"}, DataError, "sample 3: label 'c'"),
        ((np.zeros((4, 2)), [0.5, 1, 0, 1]), {}, DataError, "integer"),
        ((np.zeros((4, 2)), [0, 1, 0, 1j]), {}, DataError, "integers or text"),
        *(
            (
                (np.zeros((4, 2)), np.array(["a", "b", none, "b"], object)),
                {},
                DataError,
                "y: sample 2: expected a value",
            )
            for none in (None, np.nan, pd.NA)
        ),
        (
            (np.zeros((4, 2)), pd.Series(["a", "b", None, "b"])),
            {},
            DataError,
            "y: sample 2: expected a value, got none",
        ),
        (
            (np.zeros((4, 2)), [0, 1, 0, 1]),
            {"client_ids": np.array(["h", "h", np.nan, "i"], object)},
            DataError,
            "client_ids: sample 2: expected a value, got none",
        ),
        ((np.full((4, 2), np.nan), [0, 1, 0, 1]), {}, DataError, "row 0, column 0"),
        ((np.zeros((4, 2), object), [0, 1, 0, 1]), {}, DataError, "table of numbers"),
        ((np.zeros((4, 2, 2), object), [0, 1, 0, 1]), {}, DataError, "expected numbers"),
        ((np.zeros(4), [0, 1, 0, 1]), {}, DataError, "table of numbers"),
        (
            (np.zeros((4, 2)), [0, 1, 0, 1]),
            {"test_share": -0.5},
            ArgumentError,
            "test_share: expected a number from 0 to 1",
        ),
        (
            (np.zeros((4, 2)), [0, 1, 0, 1]),
            {"test_share": "0.5"},
            ArgumentError,
            "test_share: expected a number from 0 to 1",
        ),
        ((np.zeros((4, 2)), [0, 1, 0, 1]), {"seed": -1}, ArgumentError, "seed: expected an integer >= 0, got -1"),
        ((np.zeros((4, 2)), [0, -1, 0, 1]), {"class_names": "ab"}, DataError, "sample 1: labels count from 0, got -1"),
        ((np.zeros((0, 2)), []), {}, DataError, "at least one value"),
    ],
)
def test_wrong_arguments(arguments, options, error, message):
    with pytest.raises(error, match=message) as caught:
        from_arrays(*arguments, **options)
    assert "\n" not in str(caught.value)


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**32),
)
@examples(100, 5000)
def test_the_split_covers_once_and_counts_exactly(counts, share, seed):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    train, test = stratified(labels, share, seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    held_out = np.bincount(labels[test], minlength=len(counts))
    assert held_out.tolist() == [held_out_count(n, share) for n in counts]
    assert all(n - k >= 1 for n, k in zip(counts, held_out, strict=True))
    assert np.array_equal(test, stratified(labels, share, seed)[1])


def test_digits():
    from sklearn.datasets import load_digits

    source = load("digits")
    assert (source.x_train.shape, source.x_test.shape) == ((1438, 1, 8, 8), (359, 1, 8, 8))
    assert (source.x_train.min(), source.x_train.max()) == (0, 16)
    bunch = load_digits()
    counts = np.bincount(bunch.target)
    assert np.bincount(source.y_test).tolist() == [int(0.2 * n + 0.5) for n in counts]
    known = {image.astype(np.uint8).tobytes(): label for image, label in zip(bunch.images, bunch.target, strict=True)}
    shown = zip([*source.x_train, *source.x_test], [*source.y_train, *source.y_test], strict=True)
    assert all(known[image.tobytes()] == label for image, label in shown)
    assert np.array_equal(source.x_test, load("digits").x_test)


@pytest.mark.parametrize(("classes", "dimension"), [(2, 1), (2, 5), (4, 3), (10, 12)])
def test_gaussian_means_lie_apart_as_said(classes, dimension):
    centres = gaussians.means(classes, dimension, 3.0)
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    assert distances[~np.eye(classes, dtype=bool)] == pytest.approx(3.0)
    assert centres.sum(axis=0) == pytest.approx(0)


def test_gaussians_have_the_bayes_error_they_state():
    source = load("gaussians", samples=10, test_samples=40_000, separation=2.0)
    wrong = (source.x_test[:, 0] > 0) != source.y_test
    assert wrong.mean() == pytest.approx(0.5 * (1 - erf(1 / sqrt(2))), abs=0.004)


def test_the_bayes_boundary_moves_as_stated():
    source = load("gaussians", samples=10, test_samples=[90_000, 10_000], separation=2.0)
    errors = {
        cut: ((source.x_test[:, 0] > cut) != source.y_test).mean() for cut in np.log(9) / 2 + np.array([-0.3, 0, 0.3])
    }
    assert min(errors, key=errors.get) == pytest.approx(np.log(9) / 2)


def test_gaussian_counts_and_seeds():
    source = load("gaussians", samples=[30, 20, 10], classes=3, seed=5)
    assert np.bincount(source.y_train).tolist() == [30, 20, 10]
    assert not np.array_equal(source.x_train, load("gaussians", samples=[30, 20, 10], classes=3, seed=6).x_train)
    assert source.numeric.all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 1}, "classes: expected an integer >= 2, got 1"),
        ({"classes": 4}, "dimension: expected from classes - 1 to 1,000,000, got 2 for 4 classes"),
        ({"classes": 20_000, "dimension": 20_000}, "classes: expected at most 100,000,000 values"),
        ({"dimension": 1_000_001}, "dimension: expected from classes - 1 to 1,000,000"),
        ({"dimension": 2.5}, "dimension: expected an integer >= 1, got 2.5"),
        ({"separation": -1.0}, "separation: expected a number from 0 to 1000000, got -1.0"),
        ({"separation": 1e308}, r"separation: expected a number from 0 to 1000000, got 1e\+308"),
        ({"separation": float("nan")}, "separation: expected a number from 0 to 1000000, got nan"),
        ({"separation": "2"}, "separation: expected a number from 0 to 1000000, got '2'"),
        ({"samples": 0}, "samples: expected an integer >= 1, got 0"),
        ({"samples": "9"}, "samples: expected an integer >= 1, got '9'"),
        ({"samples": 2.5}, "samples: expected an integer >= 1, got 2.5"),
        ({"samples": [1, 2, 3]}, "samples: expected one count, or 2, one per class, got 3"),
        (
            {"samples": 10**15},
            "samples: expected at most 100,000,000 values, got 2,000,000,000,000,000 times 2 features",
        ),
        ({"test_samples": [10**30, 1]}, "test_samples: expected at most 100,000,000 values"),
        ({"seed": -1}, "seed: expected an integer >= 0, got -1"),
        ({"seed": 1.5}, "seed: expected an integer >= 0, got 1.5"),
    ],
)
def test_gaussians_refuse_what_cannot_be_drawn(options, message):
    with pytest.raises(ArgumentError, match=f"^{message}") as caught:
        load("gaussians", **options)
    assert "\n" not in str(caught.value)


def test_the_largest_separation_is_finite():
    assert np.isfinite(load("gaussians", samples=5, test_samples=5, classes=3, separation=1e6).x_train).all()


def test_the_registry_is_sorted_and_helps():
    assert list(SOURCES) == sorted(SOURCES)
    with pytest.raises(ArgumentError, match=r"source: expected one of .*; nearest: fashion_mnist"):
        load("fashionmnist")
    with pytest.raises(ArgumentError, match="source: expected one of cifar10, cifar100, csv"):
        load("zzz")
    with pytest.raises(ArgumentError, match="lable: unknown option; nearest: label"):
        load("csv", lable="x")
    with pytest.raises(ArgumentError, match="seed: unknown option; source 'digits' has none"):
        load("digits", seed=1)
    assert SOURCES["fashion_mnist"].options == {}
    assert "train_list" in SOURCES["image_folder"].options


def test_sources_without_files_take_and_ignore_a_root(tmp_path):
    assert load("digits", tmp_path, cache=tmp_path, progress=print).num_classes == 10
    assert list(tmp_path.iterdir()) == []


def test_two_spellings_of_a_number_name_their_samples():
    texts = np.array(["0", "1", "1.0"])
    with pytest.raises(DataError) as error:
        encode_labels(texts, None, "y")
    assert str(error.value) == "y: sample 1: expected one spelling of a number, got '1' and, in sample 2, '1.0'"
    with pytest.raises(DataError, match=r"^who: sample 1: expected one spelling of a number"):
        encode_clients(texts, "who")
    assert encode_labels(texts, ["0", "1", "1.0"], "y")[0].tolist() == [0, 1, 2]
    assert encode_labels(np.array(["07", "7", "1.5"]), None, "y")[1] == ("07", "1.5", "7")
