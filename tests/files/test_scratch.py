"""Temporary folders: gone at the end, and after a kill as soon as the next process needs one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from fedrela.files import scratch as module
from fedrela.files.scratch import LOCK, mark_scratch, remove_leftovers, scratch

KILLED = """
import os, sys
from fedrela.files.scratch import mark_scratch, scratch
from pathlib import Path
with scratch() as folder:
    (folder / "part").write_text("x")
    Path(sys.argv[1]).mkdir()
    mark_scratch(Path(sys.argv[1]))
    os._exit(9)
"""


@pytest.fixture
def temporary(tmp_path, fast_folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(fast_folder))
    return fast_folder


def test_a_folder_is_gone_at_the_end_also_after_an_error(temporary):
    with pytest.raises(KeyError), scratch() as folder:  # noqa: PT012
        (folder / "deep").mkdir()
        raise KeyError((folder / "deep" / "file").write_text("x"))
    assert folder.parent == temporary
    assert not any(temporary.iterdir())


def test_leftovers_go_from_the_folder_that_is_named_too(temporary, tmp_path):
    code = KILLED.replace("scratch()", "scratch(Path(sys.argv[2]))")
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    named = tmp_path / "named"
    named.mkdir()
    subprocess.run([sys.executable, "-c", code, temporary / "pymp-1", named], env=environment)
    (left,) = named.iterdir()
    with scratch():
        assert left.is_dir()
    with scratch(named) as mine:
        assert [*named.iterdir()] == [mine]
    assert not any(named.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_one(temporary, monkeypatch):
    foreign = temporary / "pymp-1"
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, foreign], env=environment)
    left = set(temporary.iterdir())
    assert (done.returncode, len(left), foreign in left) == (9, 2, True)
    (temporary / "new").mkdir()
    (temporary / "new" / LOCK).touch()
    remove_leftovers()
    assert {path.name for path in temporary.iterdir()} == {"new"}  # its owner may be about to lock it
    monkeypatch.setattr(module, "YOUNG", -60)
    with scratch() as mine:
        assert set(temporary.iterdir()) == {mine}
        remove_leftovers()
        assert mine.is_dir()  # locked


def test_what_is_not_marked_or_lies_elsewhere_stays(temporary, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "YOUNG", -60)
    (temporary / "fedrela-other").mkdir()
    (tmp_path / LOCK).write_text("")
    (temporary / "link").symlink_to(tmp_path)
    remove_leftovers()
    foreign = temporary / "foreign"
    foreign.mkdir()
    (foreign / LOCK).write_text("")
    monkeypatch.setattr(module, "_user", lambda: os.getuid() + 1)
    remove_leftovers()
    monkeypatch.undo()
    assert {path.name for path in temporary.iterdir()} == {"fedrela-other", "link", "foreign"}
    assert (tmp_path / LOCK).exists()


def test_a_folder_is_marked_once(temporary):
    folder = temporary / "pymp-2"
    folder.mkdir()
    mark_scratch(folder)
    mark_scratch(folder)
    assert (folder / LOCK).exists()


def test_without_locks_nobody_knows_what_is_in_use(temporary, monkeypatch):
    monkeypatch.setattr(module, "YOUNG", -60)
    (temporary / "mine").mkdir()
    (temporary / "mine" / LOCK).write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_user", None)
        remove_leftovers()
    assert (temporary / "mine").exists()
    remove_leftovers()
    assert not (temporary / "mine").exists()
