"""Posterior files as .npz: what is read, and the one line that every other file gets."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.posteriors import read_posteriors
from fedrela.data.sources.file_readers import LARGEST_ARRAY, Npz
from fedrela.errors import DataError
from helpers.batteries import examples


def put(folder, content: bytes):
    path = folder / "p.npz"
    path.write_bytes(content)
    return path


def complaint(path, **options) -> str:
    """The one line that a file is refused with, without the name of its folder."""
    with pytest.raises(DataError) as caught:
        read_posteriors(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize(("name", "kind"), [("p.csv", " as CSV file"), ("p.npz", " as .npz file")])
def test_files_that_cannot_be_opened(tmp_path, name, kind):
    assert complaint(tmp_path / name) == f"{name}: cannot be read{kind}: No such file or directory"
    (tmp_path / name).mkdir()
    assert complaint(tmp_path / name) == f"{name}: cannot be read{kind}: Is a directory"
    with pytest.raises(DataError, match="null byte"):
        read_posteriors(f"a\0{name}")


Q, Y = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1])


def pack(folder, **arrays):
    np.savez(folder / "p.npz", **{"posterior": Q, "labels": Y} | arrays)
    return folder / "p.npz"


def test_npz(tmp_path):
    data = read_posteriors(pack(tmp_path, class_names=np.array(["a", "b"]), eligible=Y == 0, allowed=np.eye(2) == 1))
    assert np.array_equal(data.posterior, Q)
    assert data.class_names == ("a", "b")
    assert data.allowed.tolist() == [[True, False], [False, True]]
    assert data.eligible.tolist() == [True, False]
    assert data.place(1) == f"{tmp_path}/p.npz"
    assert read_posteriors(pack(tmp_path)).class_names == ("0", "1")


def test_labels_get_room_for_every_class(tmp_path):
    wide = np.full((2, 300), 1 / 300)
    assert read_posteriors(pack(tmp_path, posterior=wide, labels=Y.astype(np.int8))).labels.dtype == np.int64
    assert read_posteriors(pack(tmp_path, labels=Y.astype(">i2"))).labels.dtype == np.int16


BAD_ARRAYS = {
    "posterior of one dimension": (
        {"posterior": Q[0]},
        "posterior: expected shape (n, C), C from 2 to 65536, got (2,)",
    ),
    "one class": ({"posterior": Q[:, :1]}, "posterior: expected shape (n, C)"),
    "endless classes": ({"posterior": np.empty((0, 10**12)), "labels": Y[:0]}, "posterior: expected shape (n, C)"),
    "lengths": ({"labels": np.arange(3)}, "labels: expected integers of shape (2,), got int64 of shape (3,)"),
    "float labels": ({"labels": Y * 1.0}, "labels: expected integers of shape (2,), got float64 of shape (2,)"),
    "text labels": ({"labels": np.array(["a", "b"])}, "labels: expected integers of shape (2,), got <U1"),
    "names": ({"class_names": np.array(["a"])}, "class_names: expected text of shape (2,), got <U1 of shape (1,)"),
    "equal names": ({"class_names": np.array(["a", "a"])}, "class_names: expected 2 distinct names, got 1"),
    "allowed": ({"allowed": np.ones((2, 2))}, "allowed: expected booleans of shape (2, 2), got float64"),
    "eligible": ({"eligible": np.ones(3, bool)}, "eligible: expected booleans of shape (2,), got bool of shape (3,)"),
    "objects": ({"labels": np.array([{}, []], object)}, "labels: contains Python objects, which means a pickle"),
    "object names": ({"class_names": np.array(["a", "b"], object)}, "class_names: contains Python objects"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_npz_errors_name_the_key(tmp_path, case):
    arrays, said = BAD_ARRAYS[case]
    assert complaint(pack(tmp_path, **arrays)).startswith(f"p.npz: {said}")


@pytest.mark.parametrize(
    ("key", "value"), [("posterior", Q[0]), ("labels", np.zeros(9, int)), ("ids", np.zeros((2, 9)))]
)
def test_shapes_are_checked_before_anything_is_unpacked(tmp_path, monkeypatch, key, value):
    np.savez_compressed(tmp_path / "p.npz", **{"posterior": Q, "labels": Y} | {key: value})
    read = []
    monkeypatch.setattr(Npz, "read", lambda archive, name: read.append(name) or Y)
    with pytest.raises(DataError, match=f"{key}: expected "):
        read_posteriors(tmp_path / "p.npz")
    assert key not in read


@pytest.mark.parametrize("key", ["posterior", "labels"])
def test_a_missing_array(tmp_path, key):
    np.savez(tmp_path / "p.npz", **{"posterior": Q, "labels": Y, "extra": Y} | {key.upper(): Y})
    with zipfile.ZipFile(tmp_path / "p.npz") as old, zipfile.ZipFile(tmp_path / "q.npz", "w") as new:
        for name in old.namelist():
            if name != f"{key}.npy":
                new.writestr(name, old.read(name))
    assert complaint(tmp_path / "q.npz").startswith(f"q.npz: {key}: this array is missing; the file has '")


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    raw = io.BytesIO()
    np.lib.format.write_array_header_1_0(raw, {"shape": shape, "fortran_order": False, "descr": descr})
    return raw.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (header((10**15, 10)), f"the limit is {LARGEST_ARRAY:,}"),
        (header((10**6, 10)) + b"x", "takes 80,000,000 bytes, but the file has 1"),
        (header((-1, 2)), "takes -16 bytes"),
        (header((2, 2)) + bytes(40), "takes 32 bytes, but the file has 40"),
        (b"cos\nsystem\n(S'true'\ntR.", "damaged or invalid .npy array: ValueError"),
        (b"\x93NUMPY\x09\x00", "unsupported .npy version (9, 0)"),
        (b"", "damaged or invalid .npy array"),
    ],
)
def test_headers_that_lie(tmp_path, content, said):
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("posterior.npy", content)
        archive.writestr("labels.npy", b"")
    line = complaint(tmp_path / "p.npz")
    assert line.startswith("p.npz: posterior: ")
    assert said in line


@pytest.mark.parametrize("point", [b"\xff\xff\xff\xff", b"\x00\xd8\x00\x00"])
def test_names_that_are_no_characters(tmp_path, point):
    with zipfile.ZipFile(pack(tmp_path), "a") as archive:
        archive.writestr("class_names.npy", header((2,), "<U1") + b"a\0\0\0" + point)
    assert complaint(tmp_path / "p.npz").startswith("p.npz: class_names: damaged")


def test_unusual_packing_is_refused(tmp_path):
    with zipfile.ZipFile(pack(tmp_path), "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("eligible.npy", header((2,), "|b1") + b"\1\0")
    assert complaint(tmp_path / "p.npz").startswith("p.npz: eligible: not packed as NumPy does")


def test_more_than_deflate_can_pack_is_refused(tmp_path):
    with zipfile.ZipFile(pack(tmp_path), "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("eligible.npy", header((2,), "|b1") + b"\1\0")
        archive.getinfo("eligible.npy").file_size = 10**6
    assert complaint(tmp_path / "p.npz").startswith("p.npz: eligible: not packed as NumPy does")


def test_two_arrays_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(pack(tmp_path), "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("labels.npy", b"")
    assert complaint(tmp_path / "p.npz").startswith("p.npz: has two arrays of one name")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"a,b,label\n", header((2, 2)) + bytes(32), bytes(5000)])
def test_files_that_are_no_archives(tmp_path, content):
    assert complaint(put(tmp_path, content)).startswith("p.npz: damaged or invalid .npz file: BadZipFile")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("posteriors")


@examples(50, 2000)
@given(st.data())
def test_a_damaged_archive_is_read_or_refused_in_one_line(place, data):
    content = bytearray(pack(place, class_names=np.array(["a", "b"])).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(1, len(content))) :]
    path = put(place, bytes(content))
    try:
        line = read_posteriors(path).place(None)
    except DataError as error:
        line = str(error)
    assert "\n" not in line


def test_one_limit_of_classes_in_every_reader(tmp_path, monkeypatch):
    """Tables, archives, lists of images, ledgers and class names all have it."""
    from fedrela.core import ledger
    from fedrela.data import posterior_tables, posteriors
    from fedrela.data.sources import image_folder, labels

    for module in (ledger, posteriors, posterior_tables, image_folder, labels):
        assert module.MOST_CLASSES == labels.MOST_CLASSES
        monkeypatch.setattr(module, "MOST_CLASSES", 2)
    (tmp_path / "a.csv").write_text("a,b,c,label\n0.2,0.3,0.5,a\n")
    np.savez(tmp_path / "a.npz", posterior=np.full((2, 3), 1 / 3), labels=np.zeros(2, np.int64))
    for name in ("a.csv", "a.npz"):
        with pytest.raises(DataError, match="2 to 2"):
            read_posteriors(tmp_path / name)
    with pytest.raises(DataError, match="at most 2 classes, got 3"):
        labels.encode_labels(np.array(["a", "b", "c"]), None, "y")
    (tmp_path / "list.txt").write_text("a/1.png 0\na/2.png 1\na/3.png 2\n")
    with pytest.raises(DataError, match="expected labels below 2, got 2"):
        image_folder.list_files(tmp_path, "list.txt", "list.txt")
