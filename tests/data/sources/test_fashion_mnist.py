"""Fashion-MNIST and the IDX reader on small files in the true format, and on wrong ones."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.sources import fashion_mnist, load
from fedrela.data.sources.fashion_mnist import _map_idx, _unzip_idx
from fedrela.errors import DataError
from helpers.batteries import examples


def idx_bytes(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def files(noise):
    arrays = {
        "train-images-idx3-ubyte": noise(30, 28, 28),
        "train-labels-idx1-ubyte": np.arange(30, dtype=np.uint8) % 10,
        "t10k-images-idx3-ubyte": noise(20, 28, 28),
        "t10k-labels-idx1-ubyte": np.arange(20, dtype=np.uint8) % 10,
    }
    return arrays, {name: idx_bytes(array) for name, array in arrays.items()}


def put(folder, contents, packed=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)


@pytest.mark.parametrize("layout", ["FashionMNIST/raw", "."])
@pytest.mark.parametrize("packed", [False, True])
def test_both_layouts_packed_or_not(tmp_path, files, layout, packed):
    arrays, contents = files
    put(tmp_path / "set" / layout, contents, packed)
    steps = []
    source = load("fashion_mnist", tmp_path / "set", progress=lambda *step: steps.append(step))
    assert packed == ((30 * 784, 30 * 784, f"decoding {IMAGES}.gz") in steps)
    assert np.array_equal(source.x_train[:, 0], arrays["train-images-idx3-ubyte"])
    assert np.array_equal(source.x_test[:, 0], arrays["t10k-images-idx3-ubyte"])
    assert source.y_test.tolist() == arrays["t10k-labels-idx1-ubyte"].tolist()
    assert source.x_train.shape == (30, 1, 28, 28)
    assert not source.x_train.flags.writeable
    assert isinstance(source.x_train, np.memmap)
    assert (source.class_names[0], source.class_names[9]) == ("T-shirt/top", "Ankle boot")


def test_a_plain_file_is_mapped_where_it_lies(tmp_path, files, own_cache):
    put(tmp_path / "set", files[1])
    load("fashion_mnist", tmp_path / "set")
    assert not own_cache.exists()


def test_without_root_debian_is_the_last_place(tmp_path, files, monkeypatch):
    put(tmp_path / "debian", files[1], packed=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")
    assert len(load("fashion_mnist").y_train) == 30
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="fedrela data fetch fashion_mnist"):
        load("fashion_mnist", "empty")


def test_a_missing_sister_is_named(tmp_path, files):
    put(tmp_path, files[1])
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte\.gz is missing"):
        load("fashion_mnist", tmp_path)


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
WRONG = {
    "truncated": (IMAGES, lambda d: d[:-1], "ends early|expected .* bytes"),
    "too long": (IMAGES, lambda d: d + b"\0", "continues after|expected .* bytes"),
    "wrong magic": (IMAGES, lambda d: b"\0\0\x0d\x03" + d[4:], "starts with 00000d03, not 00000803"),
    "labels as images": (IMAGES, lambda d: b"\0\0\x08\x01" + d[4:], "starts with 00000801"),
    "header only": (IMAGES, lambda d: d[:9], "ends early"),
    "empty": (IMAGES, lambda d: b"", "ends early"),
    "claims too much": (IMAGES, lambda d: d[:4] + b"\xff" * 12 + d[16:], "claims|expected .* bytes"),
    "holds nothing": (IMAGES, lambda d: d[:4] + bytes(12), "is empty"),
    "other size": (IMAGES, lambda d: d[:8] + struct.pack(">II", 14, 56) + d[16:], "28x28"),
    "label 10": (LABELS, lambda d: d[:-1] + b"\x0a", "got 10 at position 29"),
    "too few labels": (LABELS, lambda d: d[:4] + struct.pack(">I", 29) + d[8:-1], "expected 30 labels"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_one_line_that_names_the_file(tmp_path, files, case, packed):
    name, change, message = WRONG[case]
    put(tmp_path, files[1] | {name: change(files[1][name])}, packed)
    with pytest.raises(DataError, match=message) as caught:
        load("fashion_mnist", tmp_path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [lambda d: d[:-4], lambda d: d[:40] + b"\xff" + d[41:], lambda d: b"no gzip"])
def test_damaged_gzip(tmp_path, files, change):
    put(tmp_path, files[1], packed=True)
    path = tmp_path / f"{IMAGES}.gz"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz"):
        load("fashion_mnist", tmp_path)


@given(data=st.data())
@examples(60, 2000)
def test_any_bytes_give_the_array_or_a_data_error(tmp_path_factory, data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    raw = bytearray(idx_bytes(array))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    path = tmp_path_factory.mktemp("idx") / "a"
    path.write_bytes(raw)
    packed = path.with_name("a.gz")
    packed.write_bytes(gzip.compress(bytes(raw)))
    readers = (
        lambda: _map_idx(path, array.ndim),
        lambda: _unzip_idx(packed, array.ndim),
    )
    for read in readers:
        try:
            result = read()
        except DataError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert idx_bytes(result) == raw
