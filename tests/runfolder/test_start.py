"""How a run folder begins: in a free place, whole or not at all, and opened only where it is sound."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.files import hold_lock, operations
from fedrela.runfolder import RunFolder
from fedrela.runfolder.folder import initial_files
from fedrela.runfolder.json_records import json_file, sealed
from helpers.disk_faults import Notes
from helpers.toy_run import CONFIG, MACHINE, MANIFEST


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", MANIFEST, CONFIG, MACHINE)


def test_what_is_created_can_be_opened(folder):
    again = RunFolder.open(str(folder.path))
    assert again.manifest == folder.manifest == MANIFEST
    assert again.read("config.toml") == CONFIG.encode()
    assert again.read_json("machine.json") == MACHINE
    assert again.read_json("manifest.json").keys() == {*MANIFEST, "files"}
    assert again.status == "new"


def test_the_manifest_is_written_last(tmp_path):
    notes = Notes()
    with operations.observed(notes):
        RunFolder.create(tmp_path / "deep" / "run", MANIFEST, CONFIG, MACHINE)
    assert [arguments[1].name for verb, arguments in notes.done if verb == "rename"] == [
        "machine.json", "config.toml", "manifest.json",
    ]  # fmt: skip


def test_a_run_that_exists_is_not_created_again(folder):
    with pytest.raises(ArgumentError, match="exists already; continue it with `fedrela resume`"):
        RunFolder.create(folder.path, MANIFEST, CONFIG, {"started": "tomorrow"})
    with pytest.raises(ArgumentError, match="contains another run"):
        RunFolder.create(folder.path, MANIFEST | {"seed": 2}, CONFIG, MACHINE)
    with pytest.raises(ArgumentError, match="contains another run"):
        RunFolder.create(folder.path, MANIFEST, "seed = 2\n", MACHINE)
    assert folder.read_json("machine.json") == MACHINE


@pytest.mark.parametrize("name", ["notes.txt", "config.toml", "checkpoint", ".config.toml.part", "rounds.jsonl"])
def test_other_peoples_folders_are_left_alone(name, tmp_path):
    (tmp_path / name).write_text("precious")
    with pytest.raises(ArgumentError, match="contains other files"):
        RunFolder.create(tmp_path, MANIFEST, CONFIG, MACHINE)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "precious"


def test_a_file_is_no_place_for_a_run(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArgumentError, match="expected a folder; choose another path"):
        RunFolder.create(tmp_path / "file", MANIFEST, CONFIG, MACHINE)
    with pytest.raises(ArgumentError, match=r"cannot be written: Not a directory; choose another folder"):
        RunFolder.create(tmp_path / "file" / "run", MANIFEST, CONFIG, MACHINE)


@pytest.mark.parametrize("left", [["machine.json"], ["machine.json", "config.toml"], ["lock"], []])
def test_what_an_interrupted_creation_left_is_taken_over(left, tmp_path):
    for name in [*left, ".manifest.json.0123456789ab.part"]:
        (tmp_path / name).write_text("torn")
    RunFolder.create(tmp_path, MANIFEST, CONFIG, MACHINE)
    assert sorted(os.listdir(tmp_path)) == ["config.toml", "lock", "machine.json", "manifest.json"]
    assert RunFolder.open(tmp_path).read_json("machine.json") == MACHINE


def test_two_creations_at_once(tmp_path):
    (tmp_path / "run").mkdir()
    with hold_lock(tmp_path / "run" / "lock"), pytest.raises(BusyError, match="is using it"):
        RunFolder.create(tmp_path / "run", MANIFEST, CONFIG, MACHINE)


@pytest.mark.parametrize(
    "record", [{"files": 1}, {"sha256": 1}, {"a": float("nan")}, {"a": {1, 2}}, {"a": np.int64(1)}]
)
def test_a_manifest_that_cannot_be_kept_is_refused(record, tmp_path):
    with pytest.raises(ArgumentError, match="record: ") as caught:
        RunFolder.create(tmp_path / "run", record, CONFIG, MACHINE)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["", "nothing", "file", "file/deeper"])
def test_where_no_run_is(name, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=r"no run found; name a folder that has a manifest.json"):
        RunFolder.open(tmp_path / name)


def test_a_manifest_that_cannot_be_read(folder):
    (folder.path / "manifest.json").unlink()
    (folder.path / "manifest.json").symlink_to(folder.path / "machine.json")
    with pytest.raises(DataError, match=r"manifest.json: cannot be read: "):
        RunFolder.open(folder.path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b"{}"),
        ("manifest.json", b"[1]\n"),
        ("manifest.json", b"\xff"),
        ("manifest.json", b"[" * 200_000),
        ("config.toml", b"seed = 2\n"),
    ],
)
def test_a_damaged_start_is_noticed(name, content, folder):
    (folder.path / name).write_bytes(content)
    with pytest.raises(IntegrityError, match=f"{name}: does not match its digest; it was changed or damaged"):
        RunFolder.open(folder.path)


def test_a_lost_configuration_is_noticed(folder):
    (folder.path / "config.toml").unlink()
    with pytest.raises(IntegrityError, match=r"config.toml: does not match its digest"):
        RunFolder.open(folder.path)


def test_a_sealed_record_that_vouches_for_nothing(folder):
    (folder.path / "manifest.json").write_bytes(json_file(sealed({"format": "toy-1"})))
    with pytest.raises(IntegrityError, match="it has another format"):
        RunFolder.open(folder.path)


@pytest.mark.parametrize("name", ["checkpoint", "ledgers"])
def test_no_write_leaves_the_folder_through_a_link(name, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityError, match="expected a folder, got a link"):
        RunFolder.open(folder.path)


def test_first_files_do_not_depend_on_the_host():
    one, two = (initial_files(MANIFEST, CONFIG, {"started": day}) for day in ("today", "tomorrow"))
    assert one["manifest.json"] == two["manifest.json"]
    assert one["machine.json"] != two["machine.json"]
