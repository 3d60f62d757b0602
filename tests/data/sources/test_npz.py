"""The npz form: images of every layout, tables, labels, clients; and values that must be refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrela.data.sources import load
from fedrela.data.sources import npz as npz_module
from fedrela.data.sources.labels import check_codes
from fedrela.errors import ArgumentError, DataError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.normal(size=(12, 4)),
        "y_train": (np.arange(12) % 2).astype(np.uint8),
        "x_test": rng.normal(size=(4, 4)),
        "y_test": np.arange(4) % 2,
    }


def save(folder, arrays, packed=False):
    (np.savez_compressed if packed else np.savez)(folder / "set.npz", **arrays)
    return folder / "set.npz"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("big", [False, True])
def test_images_in_memory_or_mapped(tmp_path, images, packed, big, monkeypatch):
    if big:
        monkeypatch.setattr(npz_module, "LARGE", 1)
    source = load("npz", save(tmp_path, images, packed))
    assert isinstance(source.x_train, np.memmap) is big
    assert np.array_equal(source.x_train, images["x_train"])
    assert np.array_equal(source.x_test, images["x_test"])
    assert source.class_names == ("a", "b", "c")
    assert source.name == "npz:set.npz"
    assert not source.x_train.flags.writeable


@pytest.mark.parametrize(
    ("shape", "layout", "back"),
    [
        ((9, 6, 7), "auto", lambda x: x[:, None]),
        ((9, 1, 6, 7), "auto", lambda x: x),
        ((9, 6, 7, 3), "auto", lambda x: x.transpose(0, 3, 1, 2)),
        ((9, 6, 7, 1), "auto", lambda x: x.transpose(0, 3, 1, 2)),
        ((9, 3, 7, 3), "auto", lambda x: x),
        ((9, 3, 7, 3), "nhwc", lambda x: x.transpose(0, 3, 1, 2)),
        ((9, 5, 6, 7), "nchw", lambda x: x),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_layouts(tmp_path, noise, shape, layout, back, order):
    x = np.asarray(noise(*shape), order=order)
    path = save(tmp_path, {"x_train": x, "y_train": np.zeros(9, int), "x_test": x, "y_test": np.zeros(9, int)})
    source = load("npz", path, layout=layout)
    assert np.array_equal(source.x_train, back(x))
    assert np.array_equal(source.x_test, back(x))


def test_channels_that_do_not_show_need_a_layout(tmp_path, images, noise):
    images["x_train"] = noise(12, 5, 8, 8)
    with pytest.raises(DataError, match="set layout to nchw or nhwc"):
        load("npz", save(tmp_path, images))
    with pytest.raises(ArgumentError, match="one of auto, nchw, nhwc"):
        load("npz", save(tmp_path, images), layout="chw")


def test_progress_reaches_the_total(tmp_path, images):
    steps = []
    load("npz", save(tmp_path, images), progress=lambda *step: steps.append(step))
    assert [step[:2] for step in steps] == [(12, 12), (6, 6)]


def test_tables_become_float32_with_all_columns_numbers(tmp_path, table):
    source = load("npz", tmp_path, file=save(tmp_path, table).name)
    assert source.x_train.dtype == np.float32
    assert np.array_equal(source.x_train, table["x_train"].astype(np.float32))
    assert source.numeric.tolist() == [True] * 4
    assert source.class_names == ("0", "1")
    assert source.client_train is None


def test_category_codes_on_request(tmp_path, table):
    table["x_train"][:, 1] = np.arange(12) % 3
    table["x_test"][:, 1] = [0, 1, 2, 7]
    source = load("npz", save(tmp_path, table), categories=[1])
    assert source.feature_names == ("x0", "x1=0", "x1=1", "x1=2", "x2", "x3")
    assert source.numeric.tolist() == [True, False, False, False, True, True]
    assert source.x_train[:3, 1:4].tolist() == np.eye(3).tolist()
    assert source.x_test[3, 1:4].tolist() == [0, 0, 0]
    for wrong in ([4], [-1], [1, 1]):
        with pytest.raises(ArgumentError, match="different positions from 0 to 3"):
            load("npz", save(tmp_path, table), categories=wrong)


def test_clients_numbers_or_text(tmp_path, images):
    path = save(tmp_path, images | {"client_train": np.arange(12) * 5})
    assert load("npz", path).client_train.tolist() == (np.arange(12) * 5).tolist()
    path = save(tmp_path, images | {"client_train": np.array(["b", "a"] * 6)})
    assert load("npz", path).client_train.tolist() == [1, 0] * 6


def test_columns_of_labels(tmp_path, images):
    images["y_train"] = images["y_train"][:, None].astype(np.uint8)
    assert load("npz", save(tmp_path, images)).y_train.tolist() == [0, 1, 2] * 4


WRONG = {
    "no x_test": (lambda a: a.pop("x_test"), "array x_test is missing"),
    "float images": (lambda a: a.update(x_train=a["x_train"] / 255), "differ in dtype: float32 and uint8"),
    "label too large": (lambda a: a.update(y_train=np.arange(12)), "sample 3: expected a label from 0 to 2, got 3"),
    "negative label": (lambda a: a.update(y_test=np.arange(6) - 1), "y_test: sample 0: labels count from 0, got -1"),
    "text labels": (lambda a: a.update(y_train=np.array(["a", "b"] * 6)), "expected integer labels, got <U1"),
    "NaN labels": (lambda a: a.update(y_train=np.full(12, np.nan)), "expected integer labels, got float64"),
    "infinite labels": (lambda a: a.update(y_test=np.full(6, np.inf)), "expected integer labels, got float64"),
    "names not in UTF-8": (lambda a: a.update(class_names=np.array([b"a", b"\xff", b"c"])), "UTF-8, got b'.xff'"),
    "no names": (lambda a: a.update(class_names=np.zeros(0, "U1")), "C from 1 to 65536"),
    "too many names": (lambda a: a.update(class_names=np.arange(65537).astype("U5")), "C from 1 to 65536"),
    "float labels": (lambda a: a.update(y_train=np.ones(12)), "expected integer labels"),
    "label matrix": (lambda a: a.update(y_train=np.ones((12, 2), int)), "multi-label targets"),
    "no labels": (lambda a: a.update(y_train=np.ones(0, int)), r"one label for each of x_train, .*\(12, .*, got 0"),
    "too few labels": (lambda a: a.update(y_train=np.ones(11, int)), r"which has shape \(12, .*, got 11"),
    "names twice": (lambda a: a.update(class_names=np.array(["a", "b", "a"])), "'a' occurs twice"),
    "name not printable": (lambda a: a.update(class_names=np.array(["a", "b\n", "c"])), "printable"),
    "names as numbers": (lambda a: a.update(class_names=np.arange(3)), "text"),
    "objects": (lambda a: a.update(class_names=np.array(["a", None, "c"], object)), "pickle"),
    "object labels": (lambda a: a.update(y_train=np.arange(12).astype(object)), "pickle"),
    "object images": (lambda a: a.update(x_train=a["x_train"].astype(object)), "pickle"),
    "clients too few": (lambda a: a.update(client_train=np.arange(3)), "client_train: expected int64"),
    "shapes differ": (lambda a: a.update(x_test=a["x_test"][:, :, :4]), "differ in shape"),
    "structured": (lambda a: a.update(y_train=np.zeros(12, "i4,i4")), "expected numbers or text"),
    "five dimensions": (lambda a: a.update(x_train=a["x_train"][None]), "has shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(tmp_path, images, case):
    alter, message = WRONG[case]
    alter(images)
    with pytest.raises(DataError, match=message) as caught:
        load("npz", save(tmp_path, images))
    assert "\n" not in str(caught.value)


UNNAMED = {
    "endless": (np.array([0, 1] * 5 + [1, 10**15]), "sample 11: expected a label from 0 to 11 for 12 samples"),
    "past int64": (np.array([0, 2**64 - 1] * 6, np.uint64), "sample 1: .*got 18446744073709551615"),
    "more classes than samples": (np.arange(12) + 1, "sample 11: expected a label from 0 to 11 .*got 12"),
    "negative": (np.arange(12) % 2 - 1, "sample 0: labels count from 0, got -1; renumber the classes"),
    "text": (np.array(["a", "b"] * 6), "expected integer labels, got <U1"),
    "bytes": (np.array([b"a", b"b"] * 6), "expected integer labels, got .S1"),
    "NaN": (np.full(12, np.nan), "expected integer labels, got float64"),
    "infinite": (np.full(12, np.inf), "expected integer labels, got float64"),
}


@pytest.mark.parametrize("case", UNNAMED)
def test_wrong_labels_without_class_names(tmp_path, table, case):
    labels, message = UNNAMED[case]
    with pytest.raises(DataError, match=f"y_train: {message}") as caught:
        load("npz", save(tmp_path, table | {"y_train": labels}))
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"y_test: sample 3: expected a label from 0 to 1, got 2"):
        load("npz", save(tmp_path, table | {"y_test": np.array([0, 1, 1, 2])}))


def test_classes_without_names_end_at_65536():
    where = "y_train"
    assert check_codes(np.arange(65536), None, where).max() == 65535
    with pytest.raises(DataError, match=r"sample 65536: expected a label from 0 to 65535 .*got 65536"):
        check_codes(np.arange(65537), None, where)


def test_names_that_are_no_characters(tmp_path, images):
    images["class_names"] = np.array([0x61, 0x62, 0x110000], np.uint32).view("U1")
    with pytest.raises(DataError, match="class_names: damaged: has values that are not characters"):
        load("npz", save(tmp_path, images))


def test_other_byte_orders_are_read(tmp_path, table):
    swapped = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in table.items()}
    source = load("npz", save(tmp_path, swapped | {"class_names": np.array(["é", "b"], ">U1")}))
    assert source.class_names == ("é", "b")
    assert np.array_equal(source.x_train, table["x_train"].astype(np.float32))


def test_a_table_that_is_not_finite_is_placed(tmp_path, table):
    for value in (np.nan, np.inf, 1e300):
        table["x_test"][2, 3] = value
        with pytest.raises(DataError, match="x_test: row 2, column 3: expected a finite number"):
            load("npz", save(tmp_path, table))


def test_where_the_file_is(tmp_path, images):
    save(tmp_path, images)
    with pytest.raises(ArgumentError, match="root: expected the file with"):
        load("npz")
    with pytest.raises(ArgumentError, match="is a folder"):
        load("npz", tmp_path)
    with pytest.raises(DataError, match="is missing; put the file"):
        load("npz", tmp_path / "other.npz")


def test_codes_of_many_digits_stay_apart(tmp_path, table):
    table["x_train"][:, 1] = 1234567 + np.arange(12) % 3
    table["x_test"][:, 1] = 1234567
    source = load("npz", save(tmp_path, table), categories=[1])
    assert [name for name in source.feature_names if "=" in name] == [f"x1={1234567 + k}" for k in range(3)]
    table["x_train"][:, 1] = 2.0**24 + 1e6 * (np.arange(12) % 3)
    with pytest.raises(DataError, match="column 1: expected codes below 16777216; number them from 0"):
        load("npz", save(tmp_path, table), categories=[1])


def test_categories_are_for_tables(tmp_path, images):
    with pytest.raises(ArgumentError, match="categories: applies to tables only"):
        load("npz", save(tmp_path, images), categories=[0])


def test_values_that_float32_cannot_tell_apart_are_refused(tmp_path, table):
    table["x_train"][:, 2] = 1.7e9 + np.arange(12)
    with pytest.raises(DataError, match="x_train: column 2: 32-bit numbers cannot tell its values apart; subtract"):
        load("npz", save(tmp_path, table))
    for column in (np.full(12, 1.7e9), 1.7e9 + 1e6 * np.arange(12), 0.3 + 1e-17 * np.arange(12)):
        table["x_train"][:, 2] = column
        load("npz", save(tmp_path, table))


def test_a_source_of_your_own_with_nan_is_refused(tmp_path, table):
    source = load("npz", save(tmp_path, table))
    x = source.x_train.copy()
    x[5, 1] = np.nan
    with pytest.raises(DataError, match="x_train: row 5: expected finite numbers, got nan or inf"):
        replace(source, x_train=x)
