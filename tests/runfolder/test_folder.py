"""The run folder: how it is locked, read, finished, checked and forked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.files import operations
from fedrela.runfolder import RunFolder
from fedrela.runfolder.checkpoints import vector_digest
from fedrela.runfolder.json_records import json_with_digests, sealed
from helpers.disk_faults import Fail
from helpers.toy_run import CONFIG, MACHINE, MANIFEST, carry_on, compared


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", MANIFEST, CONFIG, MACHINE)


@pytest.fixture
def finished(fast_folder: Path) -> RunFolder:
    carry_on(fast_folder / "run")
    return RunFolder.open(fast_folder / "run")


def test_the_second_process_is_told_who_is_first(folder):
    code = (
        "import sys, time; from fedrela.runfolder import RunFolder\n"
        "with RunFolder.open(sys.argv[1]).locked(): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"held\n"
            said = rf"run: process {other.pid} on .*, started 20.*Z, is using it; wait"
            with pytest.raises(BusyError, match=said) as caught, folder.locked():
                pass
            assert "\n" not in str(caught.value)
            assert folder.status_text == "running at round 0"
        finally:
            other.kill()
    with folder.locked():  # death has released it
        owner = json.loads((folder.path / "lock").read_bytes())
        assert owner["pid"] == os.getpid()
        assert owner.keys() == {"pid", "machine", "started"}
        assert folder.status_text == "running at round 0"
    assert folder.status == "new"


def test_an_error_of_the_owner_stays_what_it_is(folder):
    with pytest.raises(FileNotFoundError, match="his own"), folder.locked():
        raise FileNotFoundError("his own")
    with folder.locked():
        pass


def test_the_lock_sweeps_what_the_killed_left_but_not_a_report_in_the_making(folder):
    for name in ("checkpoint", "ledgers"):
        (folder.path / name).mkdir()
    left = [".gallery.npz.0123456789ab.part", "ledgers/.client-000001.json.0123456789ab.part"]
    kept = [".report.html.0123456789ab.part", "ledgers/.hidden", "ledgers/client-000001.json"]
    for name in [*left, *kept]:
        (folder.path / name).write_text("x")
    (folder.path / "checkpoint" / ".000002.0123456789ab.part").mkdir()
    (folder.path / "checkpoint" / ".000002.0123456789ab.part" / "arrays.safetensors").write_text("x")
    with folder.locked():
        pass
    assert [name for name in left if (folder.path / name).exists()] == []
    assert all((folder.path / name).exists() for name in kept)
    assert os.listdir(folder.path / "checkpoint") == []


def test_a_lock_that_cannot_be_written_is_one_line(folder):
    with (
        operations.observed(Fail(1, "EACCES")),
        pytest.raises(DataError, match="cannot be written: Permission denied"),
        folder.locked(),
    ):
        pass


def test_status(tmp_path, fast_folder):
    carry_on(fast_folder / "run", 3)
    folder = RunFolder.open(fast_folder / "run")
    assert folder.status_text == "interrupted at round 3"
    carry_on(fast_folder / "run")
    assert folder.status_text == "done"
    assert RunFolder.create(tmp_path, MANIFEST, CONFIG, MACHINE).status_text == "new"


def test_only_known_names(folder):
    for name in ("manifest.json", "config.toml", "rounds.jsonl", "result.json", "lock", "../x", "/etc/passwd", ""):
        with pytest.raises(
            ArgumentError, match=r"^name: expected one of machine.json, relabelling.json, gallery.npz, report.html"
        ):
            folder.write(name, b"x")
    for name in ("lock", "../x", "/etc/passwd", "checkpoint"):
        with pytest.raises(ArgumentError, match=f"^name: expected one of .*, got '{name}'"):
            folder.read(name)
    with pytest.raises(DataError, match=r"gallery.npz: cannot be read: No such file"):
        folder.read("gallery.npz")


def test_bytes_and_records_come_back(folder):
    folder.write("gallery.npz", b"\0\1")
    assert folder.read("gallery.npz") == b"\0\1"
    folder.write_json("relabelling.json", {"ä\n": [1, 2.5, None, True], "moves": {}})
    assert folder.read_json("relabelling.json") == {"ä\n": [1, 2.5, None, True], "moves": {}}
    assert folder.read("relabelling.json") == b'{\n"\\u00e4\\n": [1, 2.5, null, true],\n"moves": {}\n}\n'
    with pytest.raises(ArgumentError, match="expected plain JSON values"):
        folder.write_json("relabelling.json", {"z": [float("inf")]})
    folder.write("relabelling.json", b'{"moves": {}}')
    with pytest.raises(IntegrityError, match=r"relabelling.json: is damaged"):
        folder.read_json("relabelling.json")


def test_keys_that_are_taken():
    for make, key, what in (
        (sealed, "sha256", "its digest"),
        (lambda record: json_with_digests(record, {}), "files", "digests"),
    ):
        with pytest.raises(ArgumentError) as error:
            make({key: 1})
        assert str(error.value) == f"record: the key '{key}' is reserved for {what}; choose another"


def test_ledgers(folder):
    assert folder.ledgers() == []
    folder.clear_ledgers([0, 1])
    (folder.path / "ledgers").mkdir()
    for client in (11, 3, 1_234_567):
        folder.ledger_path(client).write_text("{}")
    (folder.path / "ledgers" / "client-3.json").write_text("not one of ours")
    assert [(client, path.name) for client, path in folder.ledgers()] == [
        (3, "client-000003.json"), (11, "client-000011.json"), (1_234_567, "client-1234567.json"),
    ]  # fmt: skip
    folder.clear_ledgers(range(10))
    assert [client for client, _ in folder.ledgers()] == [11, 1_234_567]
    with pytest.raises(ArgumentError, match=r"^client: clients count from 0, got -1$"):
        folder.ledger_path(-1)


def test_a_finished_run_vouches_for_its_files(finished):
    result = finished.read_json("result.json")
    assert result["rounds"] == 7
    assert list(result["files"]) == [
        "manifest.json", "config.toml", "rounds.jsonl", "relabelling.json", "gallery.npz",
        "ledgers/client-000000.json", "ledgers/client-000002.json",
    ]  # fmt: skip
    finished.check()


def test_every_change_after_the_end_is_noticed(finished):
    for name, content in compared(finished.path).items():
        path = finished.path / name
        path.write_bytes(content + b" ")
        with pytest.raises(IntegrityError, match=f"{name}: does not match its digest"):
            finished.check()
        path.write_bytes(content)
    finished.ledger_path(3).write_text("{}")
    with pytest.raises(IntegrityError, match=r"client-000003.json: was added after the run had finished"):
        finished.check()
    finished.clear_ledgers([3, 2])
    with pytest.raises(IntegrityError, match=r"client-000002.json: does not match its digest"):
        finished.check()


def test_a_run_that_is_not_finished_cannot_be_checked(folder):
    with pytest.raises(DataError, match=r"result.json: cannot be read"):
        folder.check()


def test_a_result_names_no_file_outside(finished):
    (finished.path / "result.json").write_bytes(json_with_digests({}, {"../run/config.toml": "0"}))
    with pytest.raises(DataError, match="not a plain relative path"):
        finished.check()


def test_a_fork_goes_on_from_the_newest_checkpoint(fast_folder):
    carry_on(fast_folder / "prefix", 5)
    prefix = RunFolder.open(fast_folder / "prefix")
    arm = prefix.fork(fast_folder / "arm", MANIFEST | {"arm": 1}, CONFIG, MACHINE)
    assert arm.status_text == "interrupted at round 4"
    assert arm.rounds() == prefix.rounds()[:4]
    assert arm.timing() == prefix.timing()[:4]
    assert [client for client, _ in arm.ledgers()] == [0, 2]
    assert np.array_equal(arm.load_checkpoint().arrays["weights"], prefix.load_checkpoint().arrays["weights"])
    assert arm.load_checkpoint().record == prefix.load_checkpoint().record
    RunFolder.create(fast_folder / "alone", MANIFEST | {"arm": 1}, CONFIG, MACHINE)
    carry_on(fast_folder / "arm")
    carry_on(fast_folder / "alone")
    assert compared(fast_folder / "arm") == compared(fast_folder / "alone")


def test_a_fork_needs_a_checkpoint_and_a_free_place(folder, fast_folder):
    with pytest.raises(DataError, match="has no checkpoint to continue from"):
        folder.fork(fast_folder / "arm", MANIFEST, CONFIG, MACHINE)
    carry_on(fast_folder / "prefix", 2)
    prefix = RunFolder.open(fast_folder / "prefix")
    prefix.fork(fast_folder / "arm", MANIFEST, CONFIG, MACHINE)
    with pytest.raises(ArgumentError, match="exists already"):
        prefix.fork(fast_folder / "arm", MANIFEST, CONFIG, MACHINE)
    with pytest.raises(ArgumentError, match="contains another run"):
        prefix.fork(folder.path, MANIFEST | {"arm": 1}, CONFIG, MACHINE)
    prefix.fork(folder.path, MANIFEST, CONFIG, MACHINE)  # begun, without a checkpoint yet
    assert folder.load_checkpoint().round == 2


def test_a_checkpoint_of_another_run_is_not_taken(fast_folder):
    carry_on(fast_folder / "one", 2)
    other = RunFolder.create(fast_folder / "other", MANIFEST | {"seed": 2}, CONFIG, MACHINE)
    for name in ("checkpoint", "rounds.jsonl"):
        os.rename(fast_folder / "one" / name, other.path / name)
    with pytest.raises(IntegrityError, match="to another run, round or format"):
        other.load_checkpoint()


@pytest.fixture
def with_model(fast_folder: Path) -> RunFolder:
    """A run of two rounds and the checkpoint of each; the model is two arrays."""
    arrays = [["layer", [2, 2], "trained"], ["bias", [1], "trained"]]
    manifest = MANIFEST | {"model": {"dtype": "float32", "arrays": arrays}}
    folder = RunFolder.create(fast_folder / "run", manifest, CONFIG, MACHINE)
    for round in (1, 2):
        folder.append_round({"round": round})
        folder.save_checkpoint(round, {"weights": np.full(5, round, np.float32)}, {})
    sha256 = vector_digest([("layer", (2, 2)), ("bias", (1,))], "float32", np.full(5, 2.0))
    folder.finish({"weights_sha256": sha256, "rounds": 2})
    return folder


def test_the_final_model_is_that_of_the_result(with_model):
    final = with_model.final_checkpoint()
    assert (final.round, final.arrays["weights"].tolist()) == (2, [2.0] * 5)


@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (lambda folder: shutil.rmtree(folder.path / "checkpoint"), "there is no checkpoint"),
        (
            lambda folder: shutil.rmtree(folder.path / "checkpoint" / "000002"),
            "the newest valid checkpoint is of round 1",
        ),
        (
            lambda folder: os.remove(folder.path / "checkpoint" / "000002" / "manifest.json"),
            "the newest valid checkpoint is of round 1 (000002: No such file or directory)",
        ),
        (
            lambda folder: [path.unlink() for path in folder.path.glob("checkpoint/*/manifest.json")],
            "checkpoint: no checkpoint is valid: 000002: No such file or directory; 000001: No such file or directory",
        ),
        (
            lambda folder: folder.save_checkpoint(2, {"weights": np.ones(5, np.float32)}, {}),
            "the checkpoint holds another model",
        ),
        (lambda folder: folder.save_checkpoint(2, {}, {}), "the checkpoint holds another model"),
    ],
)
def test_a_final_model_that_is_lost(with_model, lose, why):
    lose(with_model)
    with pytest.raises(IntegrityError) as error:
        with_model.final_checkpoint()
    what = f"the final model, of round 2, is lost: {why}; run config.toml in a new folder for the same model"
    assert str(error.value) == f"{with_model.path}: {what}"
    assert (error.value.reason, error.value.path) == (what, with_model.path)
