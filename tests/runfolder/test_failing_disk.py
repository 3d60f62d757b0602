"""B13: the n-th step on disk fails, for every n; the caller gets one line, nothing is lost, and trying again works."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from fedrela.errors import ArgumentError, DataError
from fedrela.files import operations
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder
from fedrela.runfolder.json_records import writing
from helpers.batteries import count, tried
from helpers.disk_faults import Fail, Notes
from helpers.toy_run import CONFIG, DEADLINE, MACHINE, MANIFEST, carry_on, check_sound, compared, open_or_create

ERRORS = ("ENOSPC", "EIO", "EACCES", "short")


class Persistent:
    """A run folder whose caller tries once more after an error, and looks at the folder in between."""

    def __init__(self, folder: RunFolder, errors: list[str]) -> None:
        self.folder, self.errors = folder, errors

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.folder, name)
        if not callable(found) or name in ("locked", "ledger_path"):
            return found
        return lambda *args: persist(lambda: found(*args), self.folder.path, self.errors)


def persist(action: Any, path: Path, errors: list[str]) -> Any:
    """Carry out `action`, and once more if the disk failed it."""
    try:
        return action()
    except (ArgumentError, DataError) as error:
        errors.append(str(error))
        check_sound(path)
        return action()


def steps(folder: Path) -> int:
    notes = Notes()
    with operations.observed(notes):
        carry_on(folder / "counted")
    return len(notes.tried)


@pytest.mark.parametrize(
    ("begun", "error", "said"),
    [
        (True, errno.ENOSPC, "; free space or fix the disk, then continue with `fedrela resume`"),
        (False, errno.ENOSPC, "; free space or fix the disk, then try again"),
        (False, errno.EACCES, "; choose another folder"),
        (True, errno.EACCES, "; allow writing there, then continue with `fedrela resume`"),
        (True, errno.EPERM, "; allow writing there, then continue with `fedrela resume`"),
        (True, errno.EROFS, "; allow writing there, then continue with `fedrela resume`"),
    ],
)
def test_resuming_is_advised_only_where_there_is_a_run(tmp_path, begun, error, said):
    if begun:
        RunFolder.create(tmp_path, MANIFEST, CONFIG, MACHINE)
    with pytest.raises(ArgumentError if "choose" in said else DataError) as caught, writing(tmp_path):
        raise OSError(error, os.strerror(error))
    assert str(caught.value) == f"{tmp_path}: cannot be written: {os.strerror(error)}{said}"


@pytest.mark.parametrize("error", ERRORS)
def test_a_failing_step_loses_nothing_and_can_be_tried_again(error, fast_folder, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    carry_on(fast_folder / "whole")
    wanted = compared(fast_folder / "whole")
    total = steps(fast_folder)
    assert total > 100
    for number in range(count(100, total)):
        path, fail, errors = fast_folder / f"{number}", Fail(number, error), []

        def begin(path: Path, errors: list[str] = errors) -> Persistent:
            return Persistent(persist(lambda: open_or_create(path), path, errors), errors)

        try:
            with operations.observed(fail):
                carry_on(path, begin=begin)
        except (ArgumentError, DataError, OSError) as failure:  # of the lock, or of a ledger
            errors.append(str(failure))
            check_sound(path)
            carry_on(path)
        assert fail.hit, number
        assert len(errors) == 1, (number, fail.hit, errors)
        assert "\n" not in errors[0]
        assert compared(path) == wanted, (number, fail.hit)
        assert check_sound(path) == 6
        tried(faults=1)


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: folder.append_round({"round": 6}),
        lambda folder: folder.append_timing({"round": 6}),
        lambda folder: folder.truncate_rounds(4),
        lambda folder: folder.note_exclusions(6, {1: DEADLINE}),
        lambda folder: folder.save_checkpoint(5, {}, {}),
        lambda folder: folder.clear_ledgers([0]),
        lambda folder: folder.write_json("relabelling.json", {}),
        lambda folder: folder.finish({}),
        lambda folder: folder.locked().__enter__(),
    ],
)
def test_the_line_says_where_and_why(write, fast_folder):
    carry_on(fast_folder / "run", 5)
    with operations.observed(Fail(0, "ENOSPC")), pytest.raises(DataError) as error:
        write(RunFolder.open(fast_folder / "run"))
    advice = "free space or fix the disk, then continue with `fedrela resume`"
    assert str(error.value) == f"{fast_folder / 'run'}: cannot be written: No space left on device; {advice}"


def test_the_line_names_the_folder_that_is_begun(fast_folder):
    """For a run, for a fork of it and for a grid of runs."""
    new, advice = fast_folder / "new", "free space or fix the disk, then try again"
    for begin in (lambda: RunFolder.create(new, MANIFEST, CONFIG, MACHINE), lambda: GridFolder.begin(new, {})):
        with operations.observed(Fail(0, "EIO")), pytest.raises(DataError) as error:
            begin()
        assert str(error.value) == f"{new}: cannot be written: Input/output error; {advice}"
    carry_on(fast_folder / "run", 2)
    run, begun = RunFolder.open(fast_folder / "run"), RunFolder.create(new, MANIFEST, CONFIG, MACHINE)
    with operations.observed(Fail(2, "EIO")), pytest.raises(DataError) as error:  # the lock takes the first two steps
        run.fork(begun.path, MANIFEST, CONFIG, MACHINE)
    assert str(error.value).startswith(f"{new}: cannot be written: Input/output error; ")
