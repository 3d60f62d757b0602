"""The .npz reader and files whose headers, sizes or bytes lie."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.sources import load
from fedrela.data.sources.file_readers import Npz
from fedrela.errors import DataError, FedrelaError
from helpers.batteries import examples


def save(folder, arrays, packed=False):
    (np.savez_compressed if packed else np.savez)(folder / "set.npz", **arrays)
    return folder / "set.npz"


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
    "past the limit": b"{'descr': '|u1', 'fortran_order': False, 'shape': (17179869185, 1, 1)}",
    "endless rows of nothing": b"{'descr': '|u1', 'fortran_order': False, 'shape': (999999999999999999, 0, 1)}",
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


def test_an_array_has_a_largest_size(tmp_path, images):
    path = save(tmp_path, {k: v for k, v in images.items() if k != "x_train"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x_train.npy", member(LIES["past the limit"]))
    with pytest.raises(DataError, match=r"x_train: shape .* takes 17,179,869,185 bytes; the limit is 17,179,869,184"):
        load("npz", path)


def test_endless_rows_of_nothing_are_read_at_once(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("x.npy", member(LIES["endless rows of nothing"]))
    assert Npz(tmp_path / "set.npz").read("x").shape == (999999999999999999, 0, 1)


WRONG_SHAPES = {
    "y_train": np.zeros((10, 3), int),
    "y_test": np.zeros(10**5, int),
    "class_names": np.zeros((4, 4), "U3"),
}


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_shapes_are_checked_before_anything_is_unpacked(tmp_path, images, monkeypatch, name):
    path, read = save(tmp_path, images | {name: WRONG_SHAPES[name]}, packed=True), []
    monkeypatch.setattr(Npz, "read", lambda archive, each: read.append(each) or images[each])
    with pytest.raises(DataError, match=f"{name}: "):
        load("npz", path)
    assert name not in read


@pytest.mark.parametrize(("key", "value"), [("file_size", 10**6), ("compress_size", 10**9)])
def test_sizes_that_cannot_be_true_are_refused(tmp_path, images, key, value):
    path = save(tmp_path, {k: v for k, v in images.items() if k != "x_train"})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x_train.npy", member(LIES["claims more"]))
        setattr(archive.getinfo("x_train.npy"), key, value)
    with pytest.raises(DataError, match="x_train: not packed as NumPy does"):
        load("npz", path)


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
