"""The only module that writes: whole or not at all, one writer at a time, and no name leads out of its folder."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrela.errors import ArgumentError, BusyError, DataError
from fedrela.files import (
    PartialFile,
    append_line,
    atomic,
    digest,
    digest_file,
    new_folder,
    safe_join,
    safe_path,
    write_bytes,
    write_new,
)
from fedrela.files.lock import try_lock


def test_write_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_bytes(path, b"old")
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file"]


def test_only_private_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_bytes(tmp_path / "public", b"")
        write_bytes(tmp_path / "private", b"", private=True)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("public", "private")] == [0o644, 0o600]


def test_write_without_overwriting(tmp_path: Path) -> None:
    write_bytes(tmp_path / "file", b"old", overwrite=False)
    with pytest.raises(ArgumentError, match="exists already"):
        write_bytes(tmp_path / "file", b"new", overwrite=False)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_write_that_fails_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_of_the_system_names_the_target(tmp_path: Path) -> None:
    target = tmp_path / ("a" * 250)  # the temporary name is too long
    for write in (lambda: write_bytes(target, b""), lambda: new_folder(target).__enter__()):
        with pytest.raises(OSError) as caught:
            write()
        assert caught.value.filename == str(target)


def test_new_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "made" / "target"
    with new_folder(target) as folder:
        (folder / "deep").mkdir()
        write_new(folder / "deep" / "file", [b"in ", b"parts"])
        assert not target.exists()
    assert (target / "deep" / "file").read_bytes() == b"in parts"
    assert os.listdir(tmp_path / "made") == ["target"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_new_folder_vanishes_after_an_error(error: type[BaseException], tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x"
        raise error

    with pytest.raises(error), new_folder(tmp_path / "target") as folder:
        write_new(folder / "file", chunks())
    assert os.listdir(tmp_path) == []


def test_new_folder_does_not_take_an_existing_place(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match="exists already"), new_folder(tmp_path / "link"):
        pass
    with pytest.raises(OSError, match="not empty"), new_folder(tmp_path / "late"):
        (tmp_path / "late" / "other").mkdir(parents=True)
    assert sorted(os.listdir(tmp_path)) == ["late", "link"]
    assert os.listdir(tmp_path / "late") == ["other"]


def test_write_new_does_not_overwrite(tmp_path: Path) -> None:
    write_new(tmp_path / "file", [b"old"])
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", [b"new"])
    assert (tmp_path / "file").read_bytes() == b"old"


def test_part_grows_over_attempts(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with PartialFile(target) as part:
        part.append(b"one ")
    with PartialFile(target) as part:
        assert part.size == 4
        part.append(b"two")
        assert part.size == 7
        part.finish(target)
    assert target.read_bytes() == b"one two"
    assert os.listdir(tmp_path) == ["file"]
    assert not stat.S_IMODE(target.stat().st_mode) & 0o111


def test_part_starts_again(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "file") as part:
        part.append(b"wrong")
        part.restart()
        assert part.size == 0
        part.append(b"right")
        part.finish(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"right"


def test_an_empty_part_is_removed(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "file") as part:
        part.append(b"x")
        part.restart()
    assert os.listdir(tmp_path) == []


def test_part_has_one_writer(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "file") as part:
        part.append(b"x")
        with pytest.raises(BusyError, match="another process"), PartialFile(tmp_path / "file"):
            pass
        assert part.size == 1
    with PartialFile(tmp_path / "file") as part:
        assert part.size == 1


def test_part_that_was_finished_meanwhile_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PartialFile(tmp_path / "file") as part:
        part.append(b"right")
    really_open = atomic.open_no_link

    def open_and_lose_the_race(path: str, flags: int) -> int:
        handle = really_open(path, flags)
        os.replace(tmp_path / ".file.part", tmp_path / "file")
        return handle

    monkeypatch.setattr(atomic, "open_no_link", open_and_lose_the_race)
    with pytest.raises(BusyError), PartialFile(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_bytes() == b"right"


def test_part_works_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with PartialFile(tmp_path / "file") as part:
        part.append(b"x")
        part.finish(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"x"


def test_part_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / ".file.part").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), PartialFile(tmp_path / "file"):
        pass
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_digests(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data" * 100_000)
    assert digest_file(tmp_path / "file") == hashlib.sha256(b"data" * 100_000).hexdigest()
    assert digest(memoryview(b"data")) == hashlib.sha256(b"data").hexdigest()


@pytest.mark.parametrize(
    "name",
    ["a", "client-3.json", "a b", "Straße", "日本", "100%", "50%ab", "console", "n.con", "X-ray X", "a" * 200],
)
def test_plain_names(name: str) -> None:
    assert safe_join("folder", name) == Path("folder", name)
    assert safe_path("folder", f"{name}/{name}") == Path("folder", name, name)


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "a/b", "a\\b", "a:b", "a*", "a?", 'a"', "a<", "a>", "a|", ".a", "a.", " a", "a ", "a\tb",
        "a\x7f", "a\ud800", "con", "Aux.txt", "nul .x", "lpt9", "COM²", "CONIN$", "x" * 201, "é" * 101, "%2e%2e",
        "a%2Fb", "%252e", "a／b", "a∕b", "a⁄b", "a∖b", "‥", "%EF%BC%8Fa", "ﷺ" * 60,
    ],
)  # fmt: skip
def test_names_that_are_not_plain(name: str) -> None:
    with pytest.raises(DataError, match="not a plain file name") as caught:
        safe_join("folder", name)
    assert str(caught.value).isprintable()
    with pytest.raises(DataError, match="not a plain relative path"):
        safe_path("folder", f"good/{name}" if name != "a/b" else "a//b")


def test_a_plain_name_has_at_most_200_bytes() -> None:
    for name in ("a" * 201, "ä" * 101):
        with pytest.raises(DataError, match="not a plain file name"):
            safe_join("folder", name)


def test_a_message_shows_the_beginning_of_a_long_name() -> None:
    for join, what in ((safe_join, "file name"), (safe_path, "relative path")):
        with pytest.raises(DataError, match=f"^'{'a' * 80}': not a plain {what}$"):
            join("folder", "a" * 1001)


def test_paths_have_limits() -> None:
    assert len(safe_path("folder", "/".join("a" * 32)).parts) == 33
    with pytest.raises(DataError, match="not a plain relative path"):
        safe_path("folder", "/".join("a" * 33))
    with pytest.raises(DataError, match="not a plain relative path"):
        safe_path("folder", "/".join(["a" * 100] * 10))


def test_no_overwrite_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    write_bytes(tmp_path / "a", b"one", overwrite=False)
    with pytest.raises(ArgumentError, match="exists already"):
        write_bytes(tmp_path / "a", b"two", overwrite=False)
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_line_waits_for_another_writer_and_gives_up(tmp_path, monkeypatch):
    monkeypatch.setattr("fedrela.files.atomic.LONGEST_WAIT", 2)
    path = tmp_path / "a.log"
    path.write_bytes(b"")
    with path.open("rb") as other:
        assert try_lock(other.fileno())
        with pytest.raises(BusyError, match="another process is writing it"):
            append_line(path, lambda before: b"line\n")
    append_line(path, lambda before: b"line\n")
    assert path.read_bytes() == b"line\n"
