"""The operations: every write of `files` and `runfolder` is made of them, and each can be watched."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import fedrela
from fedrela.files import NewArrayFile, PartialFile, new_folder, operations, write_bytes, write_new

ROOT = Path(fedrela.__file__).parent
CHANGING = {
    "fsync", "ftruncate", "link", "mkdir", "open_memmap", "posix_fallocate", "rename", "replace", "rmdir", "rmtree",
    "symlink", "symlink_to", "touch", "truncate", "unlink", "write", "write_text",
}  # fmt: skip
ALLOWED = {
    "files/operations.py": CHANGING,
    "files/atomic.py": {"open_memmap"},  # inside an operation of its own
    "files/mapped.py": CHANGING,  # files without a name, of which nothing is kept
    "runfolder/json_records.py": {"write"},  # of the folder itself
}


class Story:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def __call__(self, moment: str, verb: str, arguments: tuple[Path, ...]) -> None:
        self.told.append((moment, verb, arguments[0].name))

    @property
    def done(self) -> list[str]:
        return [verb for moment, verb, _ in self.told if moment == "after"]


def changes(path: Path) -> set[str]:
    """Return the calls in a file that change something on disk."""
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    methods = [(ast.unparse(call.value), call.attr) for call in calls if isinstance(call, ast.Attribute)]
    past = [(owner, name) for owner, name in methods if name in CHANGING and owner != "operations"]
    return {name for owner, name in past if name != "replace" or owner == "os"}


@pytest.mark.parametrize("path", sorted([*ROOT.glob("files/*.py"), *ROOT.glob("runfolder/*.py")]), ids=str)
def test_nothing_changes_the_disk_past_the_verbs(path):
    assert changes(path) <= ALLOWED.get(path.relative_to(ROOT).as_posix(), set())


def test_an_atomic_write_step_by_step(tmp_path):
    story = Story()
    with operations.observed(story):
        write_bytes(tmp_path / "deep" / "file", b"x")
    assert story.done == ["make_folder", "sync_folder", "write_temporary", "sync", "rename", "sync_folder"]
    assert [moment for moment, _, _ in story.told] == ["before", "after"] * 6
    write_bytes(tmp_path / "file", b"x")
    assert len(story.told) == 12


def test_a_write_that_does_not_overwrite_step_by_step(tmp_path):
    story = Story()
    with operations.observed(story):
        write_bytes(tmp_path / "file", b"x", overwrite=False)
    assert story.done == ["write_temporary", "sync", "link", "remove", "sync_folder"]


def test_a_new_folder_step_by_step(tmp_path):
    story = Story()
    with operations.observed(story), new_folder(tmp_path / "target") as folder:
        write_new(folder / "b", [b"1", memoryview(b"2")])
        write_new(folder / "a", [])
    assert story.done == [
        "make_folder", "write_temporary", "append", "append", "write_temporary", "sync", "sync", "sync_folder",
        "rename", "sync_folder",
    ]  # fmt: skip
    assert [name for moment, verb, name in story.told if (moment, verb) == ("after", "sync")] == ["a", "b"]


def test_a_part_step_by_step(tmp_path):
    story = Story()
    with operations.observed(story), PartialFile(tmp_path / "file") as part:
        part.restart()
        part.append(b"x")
        part.finish(tmp_path / "file")
    assert story.done == ["append", "overwrite", "append", "sync", "rename", "sync_folder"]


def test_a_mapped_array_step_by_step(tmp_path):
    story = Story()
    with operations.observed(story):
        aside = NewArrayFile(tmp_path / "a.npy", (2,), "i4")
        aside.array[:] = 1
        aside.finish()
        NewArrayFile(tmp_path / "b.npy", (2,), "i4").discard()
    assert story.done == ["map_temporary", "sync", "rename", "sync_folder", "map_temporary", "remove"]


@pytest.mark.parametrize("step", ["write_temporary", "sync", "rename"])
def test_an_observer_may_stop_a_step(step, tmp_path):
    def stop(moment: str, verb: str, arguments: tuple[Path, ...]) -> None:
        if (moment, verb) == ("before", step):
            raise OSError(5, "stopped")

    write_bytes(tmp_path / "file", b"old")
    with operations.observed(stop), pytest.raises(OSError, match="stopped"):
        write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_step_that_fails_is_not_reported_as_done(tmp_path):
    story = Story()
    with operations.observed(story), pytest.raises(FileNotFoundError):
        operations.remove(tmp_path / "nothing")
    assert story.told == [("before", "remove", "nothing")]


def test_observers_take_turns(tmp_path):
    outer, inner = Story(), Story()
    with operations.observed(outer):
        with operations.observed(inner):
            operations.make_folder(tmp_path / "a")
        operations.make_folder(tmp_path / "b")
    assert [name for _, _, name in inner.told] == ["a", "a"]
    assert [name for _, _, name in outer.told] == ["b", "b"]


def test_remove_takes_a_link_and_not_what_it_names(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    operations.remove(tmp_path / "link")
    assert os.listdir(tmp_path) == ["folder"]
    operations.remove(tmp_path / "folder")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("verb", [operations.write_temporary, operations.append, operations.overwrite])
def test_nothing_is_written_through_a_link(verb, tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match=r"File exists|symbolic links"):
        verb(tmp_path / "link", b"x")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_overwrite_leaves_nothing_of_the_old(tmp_path):
    (tmp_path / "file").write_bytes(b"a long old text")
    operations.overwrite(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_folder_that_cannot_be_read_is_synced_as_well_as_can_be(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    operations.sync_folder(tmp_path)
    with pytest.raises(PermissionError):
        operations.sync(tmp_path)
