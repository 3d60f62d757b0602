"""The cache of decoded arrays: addresses, damage, two processes at once, and what it does on a full disk."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from fedrela.data import cache
from fedrela.data.cache import cache_folder, cached_arrays, files_digest
from fedrela.errors import DataError


class Decoder:
    """Doubles the bytes of a file, and counts how often it was asked."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder, self.calls = path, folder, 0

    def make(self, new) -> None:
        self.calls += 1
        data = np.frombuffer(self.path.read_bytes(), np.uint8)
        new("twice", (2, len(data)), np.uint8)[:] = data
        new("count", (1,), np.int64)[:] = len(data)

    def __call__(self, **options):
        return cached_arrays("test", [self.path], options, ["twice", "count"], self.make, folder=self.folder)


@pytest.fixture
def decoder(tmp_path):
    path = tmp_path / "source"
    path.write_bytes(bytes(range(100)))
    return Decoder(path, tmp_path / "cache")


def test_second_call_reads_the_entry_memory_mapped_and_read_only(decoder):
    decoder()
    arrays = decoder()
    assert decoder.calls == 1
    assert isinstance(arrays["twice"], np.memmap)
    assert arrays["twice"].tolist() == [list(range(100))] * 2
    assert arrays["count"].tolist() == [100]
    with pytest.raises(ValueError, match="read-only"):
        arrays["twice"][0, 0] = 1


def test_only_its_owner_may_read_an_entry(decoder):
    os.utime(decoder.path, (1, 1))  # so that the digest of the files is stored as well
    decoder()
    assert len(list(decoder.folder.iterdir())) == 5
    assert {path.stat().st_mode & 0o777 for path in decoder.folder.iterdir()} == {0o600}


def test_other_options_other_bytes_and_other_versions_have_other_addresses(decoder, monkeypatch):
    decoder(size=1)
    decoder(size=2)
    assert decoder.calls == 2
    decoder.path.write_bytes(bytes(100))
    assert decoder(size=1)["twice"].sum() == 0
    assert decoder.calls == 3
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    decoder(size=1)
    assert decoder.calls == 4


@pytest.mark.filterwarnings("ignore:.* does not match its digest")
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"",
        lambda data: data[:60],
        lambda data: b"x" + data[1:],
        lambda data: b"PK\x03\x04" + data[4:],
        lambda data: data.replace(b"(2, 100)", b"(3, 100)"),
        lambda data: data.replace(b"'|u1'", b"'|O' "),
        lambda data: data.replace(b"{'descr'", b"{'descr("),
    ],
)
def test_a_damaged_entry_is_built_again(decoder, damage):
    good = decoder()["twice"].tolist()
    path = next(decoder.folder.glob("*-twice.npy"))
    data = path.read_bytes()
    assert damage(data) != data
    path.write_bytes(damage(data))
    assert decoder()["twice"].tolist() == good
    assert decoder.calls == 2
    assert path.read_bytes() == data


def test_an_entry_with_another_value_is_built_again_and_said(decoder):
    good = decoder()["twice"].tolist()
    path = next(decoder.folder.glob("*-twice.npy"))
    with open(path, "r+b") as file:
        file.seek(-5, os.SEEK_END)
        file.write(b"\x00")
    with pytest.warns(UserWarning, match=r"-twice\.npy: does not match its digest; decoded again"):
        assert decoder()["twice"].tolist() == good
    assert decoder.calls == 2
    assert decoder()["twice"].tolist() == good
    assert decoder.calls == 2


@pytest.mark.parametrize("kind", ["pipe", "device", "link"])
@pytest.mark.parametrize("pattern", ["*-twice.npy", "*-twice.npy.sha256", "digest-*"])
def test_a_pipe_a_device_or_a_link_is_replaced_and_never_read(decoder, kind, pattern):
    os.utime(decoder.path, (1, 1))
    good = decoder()["twice"].tolist()
    (place,) = decoder.folder.glob(pattern)
    target = "/dev/zero" if kind == "device" else decoder.folder / "moved"
    place.rename(decoder.folder / "moved")
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(target)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert decoder()["twice"].tolist() == good
    assert len(said) == 1
    assert place.is_file()
    assert not place.is_symlink()


def test_a_lost_array_is_built_again(decoder):
    decoder()
    next(decoder.folder.glob("*-count.npy")).unlink()
    assert decoder()["count"].tolist() == [100]


def test_a_failed_build_leaves_nothing(decoder):
    def fail(new):
        new("twice", (5,), np.uint8)[:] = 1
        raise DataError("broken")

    with pytest.raises(DataError, match="broken"):
        cached_arrays("test", [decoder.path], {}, ["twice"], fail, folder=decoder.folder)
    assert list(decoder.folder.iterdir()) == []


def test_what_a_killed_process_left_is_swept(decoder):
    decoder.folder.mkdir()
    for name, age in (("old", 2 * cache.ABANDONED_SECONDS), ("young", 10)):
        part = decoder.folder / f".{name}.0123456789ab.part"
        part.write_bytes(b"x")
        os.utime(part, (time.time() - age,) * 2)
    decoder()
    assert [part.name for part in decoder.folder.glob(".*")] == [".young.0123456789ab.part"]


def _build_in_process(barrier, path, folder, results):
    decoder = Decoder(path, folder)
    for turn in range(20):
        barrier.wait(30)  # both start from nothing at the same instant
        results.put(int(decoder(turn=turn)["twice"].sum()))


def test_two_processes_at_once(decoder):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(2), context.Queue()
    arguments = (barrier, decoder.path, decoder.folder, results)
    workers = [context.Process(target=_build_in_process, args=arguments) for _ in range(2)]
    for worker in workers:
        worker.start()
    answers = [results.get(timeout=30) for _ in range(40)]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    assert set(answers) == {9900}
    assert not list(decoder.folder.glob(".*"))


def test_the_digest_is_remembered_until_the_file_changes(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    os.utime(path, (1e9, 1e9))
    first = files_digest([path], folder=tmp_path / "cache")
    monkeypatch.setattr(cache, "digest_file", lambda _: pytest.fail("hashed again"))
    assert files_digest([path], folder=tmp_path / "cache") == first
    monkeypatch.undo()
    path.write_bytes(b"two")
    os.utime(path, (1e9, 1e9))  # same name, size and time of change: the inode's own clock tells
    assert files_digest([path], folder=tmp_path / "cache") != first


def test_a_file_changed_just_now_is_not_remembered(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    files_digest([path], folder=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_damaged_memory_is_not_believed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    os.utime(path, (1e9, 1e9))
    first = files_digest([path], folder=tmp_path / "cache")
    memory = next((tmp_path / "cache").iterdir())
    whole = memory.read_bytes()
    for damaged in (b"g" * 64, b"", whole[:64], whole[:-1], b"\xff" + whole[1:], whole + b"0"):
        memory.write_bytes(damaged)
        with pytest.warns(UserWarning, match=r"does not match its digest; the files are read again$"):
            assert files_digest([path], folder=tmp_path / "cache") == first
    assert memory.read_bytes() == whole


@pytest.mark.parametrize("swapped", ["digest-*", "*-twice.npy*"])
def test_an_entry_of_other_files_is_not_believed(decoder, tmp_path, swapped):
    other = Decoder(tmp_path / "other", decoder.folder)
    other.path.write_bytes(bytes(reversed(range(100))))
    for each in (decoder, other):
        os.utime(each.path, (1e9, 1e9))
    good = decoder()["twice"].tolist()
    mine = sorted(decoder.folder.glob(swapped))
    other()
    theirs = sorted({*decoder.folder.glob(swapped)} - {*mine})
    assert len(mine) == len(theirs) > 0
    for to, by in zip(mine, theirs, strict=True):
        to.write_bytes(by.read_bytes())
    with pytest.warns(UserWarning, match="does not match its digest"):
        assert decoder()["twice"].tolist() == good


def test_order_and_borders_of_files_count(tmp_path):
    for name, data in (("a", b"12"), ("b", b"3"), ("c", b"1"), ("d", b"23")):
        (tmp_path / name).write_bytes(data)
    pairs = ("ab", "ba", "cd")
    assert len({files_digest([tmp_path / n for n in pair], folder=tmp_path / "c0") for pair in pairs}) == 3


def test_progress_reaches_the_total(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"x" * 5)
    seen: list[tuple[int, int, str]] = []
    files_digest(paths, folder=tmp_path, progress=lambda *step: seen.append(step))
    assert seen == [(5, 15, "hashing"), (10, 15, "hashing"), (15, 15, "hashing")]


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(DataError, match="gone: cannot be read: No such file") as caught:
        files_digest([tmp_path / "gone"], folder=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_one_line_and_leaves_nothing(decoder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DataError, match="No space left on device; free space"):
        decoder()
    assert list(decoder.folder.iterdir()) == []


def test_a_folder_that_is_a_file_is_one_line(decoder):
    decoder.folder.write_bytes(b"")
    with pytest.raises(DataError, match="cannot store decoded arrays"):
        decoder()


def test_where_the_cache_lies(tmp_path, monkeypatch):
    assert cache_folder(tmp_path) == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fedrela"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "fedrela"
