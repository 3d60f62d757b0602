"""`check_source` lets good sources pass and names the first fault of bad ones."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedrela.data.sources import Source, from_arrays, load
from fedrela.errors import DataError
from fedrela.testing import check_source
from fedrela.testing.sources import doubled_share


def noise(*shape):
    return np.random.default_rng(7).integers(0, 256, shape, np.uint8)


def table(**changes):
    rng = np.random.default_rng(3)
    source = Source(
        "mine",
        rng.normal(size=(30, 3)).astype(np.float32),
        np.arange(30) % 3,
        rng.normal(size=(6, 3)).astype(np.float32),
        np.arange(6) % 3,
        ("a", "b", "c"),
        np.arange(30) // 10,
        ("p", "q", "r"),
        np.ones(3, np.bool_),
    )
    for name, value in changes.items():
        object.__setattr__(source, name, value)  # past the checks of the class, as a careless subclass could
    return source


@pytest.mark.parametrize("name", ["digits", "gaussians"])
def test_our_own_sources_pass(name):
    assert len(check_source(lambda: load(name))) == 10


def test_a_memory_mapped_source_passes(tmp_path):
    np.save(tmp_path / "x.npy", noise(20, 1, 4, 4))
    y = np.arange(20) % 2

    def mine():
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        return Source("mine", x[:15], y[:15].copy(), x[15:], y[15:].copy(), ("a", "b"))

    assert "indexing" in check_source(mine)


def test_arrays_in_memory_pass_since_they_are_read_only():
    x, y = noise(20, 4, 4), np.arange(20) % 2
    check_source(lambda: from_arrays(x, y))
    check_source(lambda: from_arrays(x, y, noise(5, 4, 4) * 0, [0, 1, 0, 1, 0]))


class Odd(np.ndarray):
    """An array that does not understand index arrays."""

    def __getitem__(self, key):
        return super().__getitem__(np.sort(key) if isinstance(key, np.ndarray) else key)


counter = itertools.count()
shared = np.zeros((30, 3), np.float32)
BAD = {
    "no source": (lambda: {"x_train": 1}, "returns a Source: .*got dict"),
    "list": (lambda: table(x_train=[[1.0]]), "shapes and types: mine: x_train: expected a NumPy array, got list"),
    "float64": (lambda: table(x_train=np.zeros((30, 3))), "shapes and types: .*float64"),
    "label": (lambda: table(y_train=np.arange(30)), "shapes and types: .*expected labels from 0 to 2, got 29"),
    "int32": (lambda: table(y_test=np.zeros(6, np.int32)), "shapes and types: .*int64"),
    "clients": (lambda: table(client_train=np.zeros(30)), "shapes and types: .*client_train: expected int64"),
    "no test": (
        lambda: table(x_test=np.zeros((0, 3), np.float32), y_test=np.zeros(0, np.int64)),
        "not empty: x_test",
    ),
    "one class": (
        lambda: table(class_names=("a",), y_train=np.zeros(30, np.int64), y_test=np.zeros(6, np.int64)),
        "class names: .*two classes",
    ),
    "names twice": (lambda: table(class_names=("a", "b", "b")), "class names: .*'b' occurs twice"),
    "names unprintable": (lambda: table(class_names=("a", "b", "\x1b[31m")), "class names: .*printable"),
    "absent class": (lambda: table(y_train=np.arange(30) % 2), r"every class .*y_train: class 2 \(c\) has no sample"),
    "class not tested": (
        lambda: table(y_test=np.arange(6) % 2),
        r"every class in the test set: y_test: class 2 \(c\) has no sample",
    ),
    "nan": (lambda: table(x_test=np.full((6, 3), np.nan, np.float32)), "shapes and types: mine: x_test: row 0"),
    "feature names": (
        lambda: table(feature_names=("p",)),
        "shapes and types: .*feature_names: expected one per feature",
    ),
    "numeric": (
        lambda: table(numeric=np.ones(2, np.bool_)),
        "shapes and types: .*numeric: expected one boolean per feature",
    ),
    "indexing": (lambda: table(x_train=table().x_train.view(Odd)), "indexing: x_train"),
    "random": (
        lambda: table(x_train=np.full((30, 3), next(counter), np.float32)),
        "the same twice: x_train: differs between two calls",
    ),
    "random names": (lambda: table(class_names=("a", "b", str(next(counter)))), "the same twice: class_names"),
    "shared": (lambda: table(x_train=shared), "protected from writing: x_train: two calls share"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_first_fault_is_named(case):
    load_bad, message = BAD[case]
    with pytest.raises(DataError, match=message) as caught:
        check_source(load_bad)
    assert "\n" not in str(caught.value)


WRONG_PARTS = {
    "list x_train": ({"x_train": [[1.0, 2.0, 3.0]] * 30}, "mine: x_train: expected a NumPy array, got list"),
    "list y_train": ({"y_train": [0] * 30}, "mine: y_train: expected a NumPy array, got list"),
    "no x_test": ({"x_test": None}, "mine: x_test: expected a NumPy array, got NoneType"),
    "list clients": ({"client_train": [0] * 30}, "mine: client_train: expected a NumPy array, got list"),
    "list numeric": ({"numeric": [True] * 3}, "mine: numeric: expected a NumPy array, got list"),
    "no names": ({"class_names": None}, "mine: class_names: expected a tuple of strings, got NoneType"),
    "one text as names": ({"class_names": "abc"}, "mine: class_names: expected a tuple of strings, got str"),
    "numbers as names": ({"class_names": ("a", "b", 3)}, "mine: class_names: .* got int in it"),
    "one text as features": ({"feature_names": "pqr"}, "mine: feature_names: expected a tuple of strings, got str"),
    "no name": ({"name": None}, "source: name: expected text, got NoneType"),
    "a label too large": ({"y_test": np.arange(6)}, "mine: y_test: expected labels from 0 to 2, got 5"),
    "a label below 0": ({"y_test": np.arange(6) % 3 - 1}, "mine: y_test: expected labels from 0 to 2, got -1"),
}


@pytest.mark.parametrize("case", WRONG_PARTS)
def test_the_constructor_names_a_part_of_the_wrong_kind(case):
    parts, message = WRONG_PARTS[case]
    with pytest.raises(DataError, match=f"^{message}$") as caught:
        replace(table(), **parts)
    assert "\n" not in str(caught.value)


def test_lists_of_names_become_tuples():
    names = ["a", "b", "c"]
    source = replace(table(), class_names=names, feature_names=["p", "q", "r"])
    names.append("d")
    assert (source.class_names, source.feature_names) == (("a", "b", "c"), ("p", "q", "r"))


def test_training_samples_in_the_test_set_are_a_warning():
    good = table()
    doubled = replace(good, x_test=good.x_train[:6].copy())
    assert (doubled_share(good), doubled_share(doubled)) == (0.0, 1.0)
    with pytest.warns(UserWarning, match="100.0 % of the test samples are also training samples"):
        check_source(lambda: replace(doubled, **{n: getattr(doubled, n).copy() for n in ARRAYS}))


ARRAYS = ("x_train", "y_train", "x_test", "y_test", "client_train", "numeric")
