"""The npz form: images of every layout, tables, labels, clients; and files that must be refused."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batteries import examples
from fedrela.data.sources import load
from fedrela.data.sources import npz as npz_module
from fedrela.errors import ArgumentError, DataError, FedrelaError


@pytest.fixture
def images(noise):
    return {
        "x_train": noise(12, 3, 8, 8),
        "y_train": np.arange(12) % 3,
        "x_test": noise(6, 3, 8, 8),
        "y_test": np.arange(6) % 3,
        "class_names": np.array(["a", "b", "c"]),
    }


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
        monkeypatch.setattr(npz_module, "BIG", 1)
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
    "float images": (lambda a: a.update(x_train=a["x_train"] / 255), "images of uint8"),
    "label too large": (lambda a: a.update(y_train=np.arange(12)), "sample 3: label 3; 0 to 2 are classes"),
    "negative label": (lambda a: a.update(y_test=np.arange(6) - 1), "sample 0: label -1"),
    "float labels": (lambda a: a.update(y_train=np.ones(12)), "integer labels are needed"),
    "label matrix": (lambda a: a.update(y_train=np.ones((12, 2), int)), r"labels \(n,\) are needed"),
    "no labels": (lambda a: a.update(y_train=np.ones(0, int)), "at least one"),
    "too few labels": (lambda a: a.update(y_train=np.ones(11, int)), r"int64 \(12,\) is needed"),
    "names twice": (lambda a: a.update(class_names=np.array(["a", "b", "a"])), "'a' is there twice"),
    "name not printable": (lambda a: a.update(class_names=np.array(["a", "b\n", "c"])), "printable"),
    "names as numbers": (lambda a: a.update(class_names=np.arange(3)), "text"),
    "objects": (lambda a: a.update(class_names=np.array(["a", None, "c"], object)), "pickle"),
    "object labels": (lambda a: a.update(y_train=np.arange(12).astype(object)), "pickle"),
    "object images": (lambda a: a.update(x_train=a["x_train"].astype(object)), "pickle"),
    "clients too few": (lambda a: a.update(client_train=np.arange(3)), "client_train: int64"),
    "shapes differ": (lambda a: a.update(x_test=a["x_test"][:, :, :4]), "differ in shape"),
    "structured": (lambda a: a.update(y_train=np.zeros(12, "i4,i4")), "numbers or text are needed"),
    "five dimensions": (lambda a: a.update(x_train=a["x_train"][None]), "got shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(tmp_path, images, case):
    alter, message = WRONG[case]
    alter(images)
    with pytest.raises(DataError, match=message) as caught:
        load("npz", save(tmp_path, images))
    assert "\n" not in str(caught.value)


def test_a_table_that_is_not_finite_is_placed(tmp_path, table):
    for value in (np.nan, np.inf, 1e300):
        table["x_test"][2, 3] = value
        with pytest.raises(DataError, match="x_test: row 2, column 3: a finite number is needed"):
            load("npz", save(tmp_path, table))


def test_where_the_file_is(tmp_path, images):
    save(tmp_path, images)
    with pytest.raises(ArgumentError, match="root: the file with"):
        load("npz")
    with pytest.raises(ArgumentError, match="is a folder"):
        load("npz", tmp_path)
    with pytest.raises(DataError, match="is missing; put the file"):
        load("npz", tmp_path / "other.npz")


def member(header: bytes, values: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values


LIES = {
    "claims more": b"{'descr': '|u1', 'fortran_order': False, 'shape': (10, 3, 8, 9)}",
    "claims the world": b"{'descr': '|u1', 'fortran_order': False, 'shape': (999999999999, 3, 8, 8)}",
    "overflows": b"{'descr': '|u1', 'fortran_order': False, 'shape': (18446744073709551616, 1, 1)}",
    "negative": b"{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 3, 8, 8)}",
    "no dict": b"[1, 2]",
    "open bracket": b"{'descr': (",
    "deep": b"-" * 9000,
    "zero width": b"{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999,)}",
}


@pytest.mark.parametrize("case", LIES)
def test_headers_that_lie(tmp_path, images, case):
    path = save(tmp_path, {k: v for k, v in images.items() if k != "x_train"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x_train.npy", member(LIES[case], bytes(100)))
    with pytest.raises(DataError) as caught:
        load("npz", path)
    assert "\n" not in str(caught.value)


def test_unusual_packing_and_doubled_members_are_refused(tmp_path, images):
    path = save(tmp_path, {k: v for k, v in images.items() if k != "x_train"})
    buffer = io.BytesIO()
    np.save(buffer, images["x_train"])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x_train.npy", buffer.getvalue())
    with pytest.raises(DataError, match="not packed as NumPy does"):
        load("npz", path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("x_train.npy", buffer.getvalue())
    with pytest.raises(DataError, match="two arrays of one name"):
        load("npz", path)


@given(data=st.data())
@examples(80, 3000)
def test_damaged_bytes_never_give_more_than_a_fedrela_error(tmp_path_factory, data):
    arrays = {"x_train": np.zeros((4, 2), np.float32), "y_train": np.arange(4) % 2}
    arrays |= {"x_test": np.ones((4, 2), np.float32), "y_test": np.arange(4) % 2}
    path = save(tmp_path_factory.mktemp("npz"), arrays, packed=data.draw(st.booleans()))
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.sampled_from([len(raw), len(raw) - 30, len(raw) // 2]))])
    try:
        source = load("npz", path)
    except FedrelaError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert source.x_train.ndim in (2, 4)
