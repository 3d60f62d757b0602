"""Reading what somebody else may have put there, locks, sweeping and mapped arrays on odd systems."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fedrela.errors import BusyError, DataError
from fedrela.files import (
    NewArrayFile,
    array_bytes,
    digest,
    hold_lock,
    is_locked,
    lock,
    open_plain,
    operations,
    read_arrays,
    read_plain,
    remove_temporary,
    safe_path,
    size_and_digest,
)


def test_a_plain_file_is_read_up_to_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_plain(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes") as error:
        read_plain(tmp_path / "file", 4)
    assert (error.value.errno, error.value.filename) == (errno.EFBIG, str(tmp_path / "file"))


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(__file__)])
def test_what_is_no_plain_file_is_not_read(make, tmp_path):
    make(tmp_path / "odd")
    for read in (open_plain, size_and_digest, lambda path: read_plain(path, 100)):
        with pytest.raises(OSError, match=r"not a plain file|symbolic links"):
            read(tmp_path / "odd")


@pytest.mark.parametrize(
    ("first", "size"), [(None, 3_000_000), (0, 0), (7, 7), (2_500_000, 2_500_000), (9**9, 3_000_000)]
)
def test_size_and_digest_of_a_file_or_its_beginning(first, size, tmp_path):
    data = bytes(range(250)) * 12_000
    (tmp_path / "file").write_bytes(data)
    assert size_and_digest(tmp_path / "file", first) == (size, digest(data[:size]))


def test_one_at_a_time(tmp_path):
    assert not is_locked(tmp_path / "lock")
    with hold_lock(tmp_path / "lock"):
        assert is_locked(tmp_path / "lock")
        with (
            pytest.raises(BusyError, match=rf"process {os.getpid()} on .*, started .*Z, is using it"),
            hold_lock(tmp_path / "lock"),
        ):
            pass
    assert not is_locked(tmp_path / "lock")
    with hold_lock(tmp_path / "lock"):
        pass


def test_a_lock_that_is_free_in_a_moment_is_waited_for(tmp_path, monkeypatch):
    held = contextlib.ExitStack()
    held.enter_context(hold_lock(tmp_path / "lock"))
    monkeypatch.setattr(lock.time, "sleep", lambda seconds: held.close())
    with hold_lock(tmp_path / "lock"):
        assert is_locked(tmp_path / "lock")


ODD_OWNERS = (
    b"", b"\xff", b"[]", b"{}", b"[" * 900, b'{"pid": 1, "machine": "a\\nb", "started": 2}',
    b'{"pid": 1, "machine": "%s", "started": 1}' % (b"a" * 300),
)  # fmt: skip


@pytest.mark.parametrize("text", ODD_OWNERS)
def test_an_owner_that_cannot_be_named(text, tmp_path):
    with hold_lock(tmp_path / "lock"):
        (tmp_path / "lock").write_bytes(text)
        with pytest.raises(BusyError, match="another process is using it") as caught, hold_lock(tmp_path / "lock"):
            pass
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(("length", "named"), [(199, True), (200, False)])
def test_an_owner_is_named_in_fewer_than_200_characters(length, named, tmp_path):
    text = "process 1 on {}, started 2,"
    machine = "a" * (length - len(text.format("")))
    with hold_lock(tmp_path / "lock"):
        (tmp_path / "lock").write_text(json.dumps({"pid": 1, "machine": machine, "started": 2}))
        with pytest.raises(BusyError) as caught, hold_lock(tmp_path / "lock"):
            pass
        owner = text.format(machine) if named else "another process"
        assert str(caught.value) == f"{tmp_path}: {owner} is using it; wait until it has ended"


def test_where_files_cannot_be_locked(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open(__file__, "rb") as file:
        assert lock.try_lock(file.fileno())
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with hold_lock(tmp_path / "lock"), hold_lock(tmp_path / "lock"):
        assert not is_locked(tmp_path / "lock")


def test_sweeping_takes_only_what_is_unfinished(tmp_path):
    aside = tmp_path / ".file.0123456789ab.part"
    (aside / "deep").mkdir(parents=True)
    (aside / "deep" / "file").write_text("x")
    (aside / "link").symlink_to(tmp_path)
    for name in ("file", ".file.part", ".other.0123456789ab.part", ".file.0123456789aX.part"):
        (tmp_path / name).write_text("x")
    remove_temporary(tmp_path, keep="other")
    assert sorted(os.listdir(tmp_path)) == [".file.0123456789aX.part", ".file.part", ".other.0123456789ab.part", "file"]
    remove_temporary(tmp_path / "nothing")


def test_sweeping_may_leave_what_is_young(tmp_path):
    """Another process may be writing it."""
    for name, age in (("old", 61), ("young", 30)):
        path = tmp_path / f".{name}.0123456789ab.part"
        path.write_text("x")
        os.utime(path, (time.time() - age, time.time() - age))
    remove_temporary(tmp_path, older=60)
    assert os.listdir(tmp_path) == [".young.0123456789ab.part"]


def test_two_processes_may_sweep_at_once(tmp_path):
    paths = [tmp_path / f".file.{number:012}.part" for number in range(3)]

    def other(moment: str, *_: object) -> None:
        for path in paths:
            path.unlink(missing_ok=True)

    for older in (0, 60):
        for path in paths:
            path.write_text("x")
            os.utime(path, (0, 0))
        with operations.observed(other):
            remove_temporary(tmp_path, older=older)
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("system", ["without", "not supported"])
def test_arrays_where_blocks_cannot_be_claimed(system, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if system == "without":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    else:
        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    aside = NewArrayFile(tmp_path / "a.npy", (3,), "i4")
    aside.array[:] = 7
    aside.finish()
    assert os.listdir(tmp_path) == ["a.npy"]
    array = np.load(tmp_path / "a.npy")
    assert (array.dtype, array.tolist()) == (np.int32, [7, 7, 7])


def test_the_longest_and_the_deepest_path():
    longest = "/".join(["x" * 99] * 9 + ["x" * 100])
    assert len(longest) == 1000
    safe_path("folder", longest)
    safe_path("folder", "/".join("x" * 32))
    for name in (longest + "x", "/".join("x" * 33)):
        with pytest.raises(DataError, match="not a plain relative path"):
            safe_path("folder", name)


def test_arrays_are_read_within_a_limit():
    data = io.BytesIO()
    np.savez_compressed(data, a=np.zeros(1000), b=np.arange(3))
    with zipfile.ZipFile(data) as archive:
        size = sum(info.file_size for info in archive.infolist())
    assert read_arrays(data.getvalue(), size)["b"].tolist() == [0, 1, 2]
    said = rf"^not an \.npz file: ValueError: unpacks to {size} bytes, more than {size - 1}$"
    with pytest.raises(ValueError, match=said):
        read_arrays(data.getvalue(), size - 1)


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_as_bytes(compressed):
    arrays, save = {"a": np.zeros(1000), "b": np.array(["x"])}, np.savez_compressed if compressed else np.savez
    data, expected = array_bytes(arrays, compressed=compressed), io.BytesIO()
    save(expected, **arrays)
    assert data == expected.getvalue()
    assert (len(data) < 8000) == compressed
    assert read_arrays(data, 1 << 20)["b"].tolist() == ["x"]
    assert array_bytes(arrays) == array_bytes(arrays, compressed=False)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        array_bytes({"a": np.array([None], object)}, compressed=compressed)


def test_pickled_arrays_are_not_read():
    """To unpickle is to run code of whoever wrote the file."""
    data = io.BytesIO()
    np.savez(data, a=np.array([None, "x"], object))
    with pytest.raises(ValueError, match=r"^not an \.npz file: ValueError: Object arrays cannot be loaded"):
        read_arrays(data.getvalue(), 1 << 20)


@pytest.mark.parametrize("kind", ["lies about its size", "needs a password", "unknown packing", "cut", "claims more"])
def test_arrays_of_a_bad_archive(kind):
    """Each made zipfile or NumPy raise something else."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (999999999999999,)}"
        member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(9999)
        archive.writestr("a.npy", member)
        info = archive.getinfo("a.npy")
        if kind == "lies about its size":
            info.file_size = 50
        elif kind == "needs a password":
            info.flag_bits |= 1
        elif kind == "unknown packing":
            info.compress_type = 97
    data = buffer.getvalue()
    with pytest.raises(ValueError, match=r"^not an \.npz file: "):
        read_arrays(data[:-9] if kind == "cut" else data, 1 << 20)
