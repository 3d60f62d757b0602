"""Checkpoints: what they hold, how many are kept, and what happens to damaged ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from fedrela.errors import ArgumentError, IntegrityError
from fedrela.files import digest
from fedrela.runfolder import RunFolder
from fedrela.runfolder.checkpoints import FORMAT, Checkpoints, read_tensors, tensor_chunks, vector_digest
from fedrela.runfolder.json_records import json_file, sealed
from helpers.toy_run import CONFIG, MACHINE, MANIFEST

DTYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")


@pytest.fixture
def folder(fast_folder: Path) -> RunFolder:
    return RunFolder.create(fast_folder / "run", MANIFEST, CONFIG, MACHINE)


def save_rounds(folder: RunFolder, *rounds: int) -> None:
    for round in rounds:
        while len(folder.rounds()) < round:
            folder.append_round({"round": len(folder.rounds()) + 1})
        folder.save_checkpoint(round, {"w": np.full(3, float(round))}, {"round": round})


def generations(folder: RunFolder) -> list[str]:
    return sorted(os.listdir(folder.path / "checkpoint"))


def newest(folder: RunFolder) -> Path:
    return folder.path / "checkpoint" / generations(folder)[-1]


def test_every_dtype_shape_and_order_comes_back(folder):
    rng = np.random.default_rng(0)
    arrays = {f"{dtype}": (rng.random((3, 2)) * 9).astype(dtype) for dtype in DTYPES}
    arrays |= {
        "big endian": np.arange(4, dtype=">i4"), "scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 7), "i2"),
        "fortran": np.asfortranarray(rng.random((4, 3))), "strided": rng.random(10)[::-3], "../a name": np.ones(1),
        "ä": np.array([np.nan, np.inf, -0.0, 5e-324]), "": np.ones(1),
    }  # fmt: skip
    frozen = np.ones(2)
    frozen.flags.writeable = False
    folder.save_checkpoint(0, arrays | {"frozen": frozen}, {"plain": [1, "x", None]})
    found = folder.load_checkpoint()
    assert (found.round, found.record, found.note) == (0, {"plain": [1, "x", None]}, "")
    assert list(found.arrays) == sorted([*arrays, "frozen"])
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype.newbyteorder("="), name
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == np.ascontiguousarray(array, found.arrays[name].dtype).tobytes()
        assert found.arrays[name].flags.writeable


def test_the_format_is_that_of_safetensors(tmp_path):
    arrays = {
        "b": np.arange(3, dtype=np.int16),
        "a": np.ones((2, 2)),
        "c": np.zeros(0, np.float32),
        "größe": np.ones(5, bool),
    }
    data = b"".join(map(bytes, tensor_chunks(arrays)))
    assert data == save(arrays)
    (tmp_path / "file").write_bytes(data)
    assert np.array_equal(load_file(tmp_path / "file")["a"], arrays["a"])
    assert b"".join(map(bytes, tensor_chunks({}))) == save({})


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"a": np.array([None])}, "expected integers, floats or booleans, got object"),
        ({"a": np.ones(1, complex)}, "got complex128"),
        ({"a": np.array(["x"])}, "got <U1"),
        ({"__metadata__": np.ones(1)}, "array '__metadata__'"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(arrays, match, folder):
    with pytest.raises(ArgumentError, match=match):
        folder.save_checkpoint(0, arrays, {})
    with pytest.raises(ArgumentError, match="plain JSON values"):
        folder.save_checkpoint(0, {}, {"loss": float("nan")})
    with pytest.raises(ArgumentError, match="rounds count from 0, got -1"):
        folder.save_checkpoint(-1, {}, {})
    assert not (folder.path / "checkpoint").exists()
    assert folder.load_checkpoint() is None


def test_memory_holds_no_second_copy(fast_folder):
    folder = RunFolder.create(fast_folder / "run", MANIFEST, CONFIG, MACHINE)
    arrays = {str(i): np.ones(1 << 18) for i in range(8)}  # 2 MiB each
    tracemalloc.start()
    folder.save_checkpoint(0, arrays, {})
    saving = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    found = folder.load_checkpoint()
    loading = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert saving < 3 << 20
    assert loading < 20 << 20
    assert len(found.arrays) == 8


def test_two_generations_are_kept(folder):
    save_rounds(folder, 1, 2, 5)
    assert generations(folder) == ["000002", "000005"]
    assert folder.load_checkpoint().round == 5


def test_a_kill_before_older_ones_are_removed_leaves_none_behind(folder, monkeypatch):
    save_rounds(folder, 1, 2)
    with monkeypatch.context() as killed:
        killed.setattr(Checkpoints, "_prune", lambda *_: None)
        save_rounds(folder, 3)
    assert generations(folder) == ["000001", "000002", "000003"]
    folder.finish({})
    assert generations(folder) == ["000002", "000003"]


def test_a_manifest_says_what_a_generation_holds(folder):
    save_rounds(folder, 1)
    place = newest(folder)
    manifest = json.loads((place / "manifest.json").read_bytes())
    assert {key: manifest[key] for key in ("format", "round")} == {"format": FORMAT, "round": 1}
    for name in ("arrays.safetensors", "record.json"):
        data = (place / name).read_bytes()
        assert manifest["files"][name] == {"bytes": len(data), "sha256": digest(data)}
    log = folder.read("rounds.jsonl")
    assert manifest["log"] == {"bytes": len(log), "sha256": digest(log)}
    assert sorted(os.listdir(place)) == ["arrays.safetensors", "manifest.json", "record.json"]


def test_before_the_first_round_the_log_is_empty(folder):
    save_rounds(folder, 0)
    manifest = json.loads((newest(folder) / "manifest.json").read_bytes())
    assert manifest["log"] == {"bytes": 0, "sha256": digest(b"")}
    assert folder.load_checkpoint().round == 0


@pytest.mark.parametrize("part", ["arrays.safetensors", "record.json"])
@pytest.mark.parametrize(("more", "size"), [(b" ", 1), (b"\n" * 500, 500)])
def test_a_part_that_has_grown_is_damaged(part, more, size, folder):
    """Only the log of rounds may grow after its checkpoint."""
    save_rounds(folder, 1, 2)
    path = newest(folder) / part
    data = path.read_bytes()
    path.write_bytes(data + more)
    note = f"000002: {part}: expected {len(data)} bytes, as recorded, got {len(data) + size}"
    assert (folder.load_checkpoint().round, folder.load_checkpoint().note) == (1, note)


def test_every_checkpoint_that_was_skipped_is_named_up_to_three(folder):
    save_rounds(folder, 1)
    place, other = newest(folder), "it belongs to another run, round or format"
    for name in ("000002", "000003", "000004"):
        shutil.copytree(place, place.with_name(name))
    assert folder.load_checkpoint().note == f"000004: {other}; 000003: {other}; 000002: {other}"
    shutil.rmtree(place)
    shutil.copytree(place.with_name("000002"), place.with_name("000005"))
    with pytest.raises(IntegrityError) as error:
        folder.load_checkpoint()
    assert error.value.reason == f"no checkpoint is valid: 000005: {other}; 000004: {other}; 000003: {other}"
    assert error.value.path == folder.path / "checkpoint"


@pytest.mark.parametrize("part", ["arrays.safetensors", "record.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["lost", "longer", "changed"])
def test_a_damaged_newest_gives_way_to_the_one_before(part, damage, folder):
    save_rounds(folder, 1, 2)
    path = newest(folder) / part
    data = path.read_bytes()
    path.unlink()
    if damage != "lost":
        path.write_bytes(data + b" " if damage == "longer" else data[:-3] + b"?" + data[-2:])
    found = folder.load_checkpoint()
    assert (found.round, found.arrays["w"].tolist()) == (1, [1.0, 1.0, 1.0])
    assert found.note.startswith("000002: ")
    os.remove(newest(folder).with_name("000001") / "record.json")
    with pytest.raises(
        IntegrityError, match=r"no checkpoint is valid: 000002: .*; 000001: record.json: expected 15 bytes"
    ):
        folder.load_checkpoint()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data + b" ", "not a record of this format"),
        (lambda data: b"[]", "not a record of this format"),
        (lambda data: data.replace(b'"round": 2', b'"round": 3'), "it does not match its digest"),
    ],
)
def test_the_note_says_what_is_wrong_with_a_manifest(change, said, folder):
    save_rounds(folder, 1, 2)
    path = newest(folder) / "manifest.json"
    path.write_bytes(change(path.read_bytes()))
    assert folder.load_checkpoint().note == f"000002: {said}"


def test_saving_again_after_going_back(folder):
    save_rounds(folder, 2, 4)
    (newest(folder) / "record.json").unlink()
    assert folder.load_checkpoint().round == 2
    save_rounds(folder, 4)
    assert generations(folder) == ["000002", "000004-1"]
    assert (folder.load_checkpoint().round, folder.load_checkpoint().note) == (4, "")
    save_rounds(folder, 4)
    assert generations(folder) == ["000002", "000004-2"]
    folder.truncate_rounds(2)
    save_rounds(folder, 3)
    assert generations(folder) == ["000002", "000003"]


def test_a_log_that_was_changed_leads_back_to_where_it_was_not(folder):
    save_rounds(folder, 1, 2)
    path = folder.path / "rounds.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"round": 2', b'"round": 3'))
    found = folder.load_checkpoint()
    assert (found.round, found.note) == (1, "000002: rounds.jsonl does not match its digest")
    folder.truncate_rounds(found.round)
    assert folder.rounds() == [{"round": 1}]
    path.unlink()
    with pytest.raises(IntegrityError, match=r"rounds.jsonl: expected 13 bytes, as recorded, got 0"):
        folder.load_checkpoint()


def test_a_log_that_has_grown_is_sound(folder):
    save_rounds(folder, 1)
    folder.append_round({"round": 2})
    assert folder.load_checkpoint().note == ""


OTHER, INCOMPLETE = "it belongs to another run, round or format", "its manifest is incomplete"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(round=7), OTHER),
        (lambda m: m.update(run="0" * 64), OTHER),
        (lambda m: m.update(format="fedrela-checkpoint-0"), OTHER),
        (lambda m: m.pop("files"), INCOMPLETE),
        (lambda m: m.pop("run"), INCOMPLETE),
        (lambda m: m.update(files=[]), INCOMPLETE),
        (lambda m: m["files"].pop("record.json"), INCOMPLETE),
        (
            lambda m: m["files"].update({"record.json": {"bytes": 2**62, "sha256": ""}}),
            f"record.json: expected {2**62} bytes, as recorded, got 15",
        ),
        (
            lambda m: m["files"]["record.json"].update(sha256="0" * 64),
            "record.json does not match its digest",
        ),
        (lambda m: m["log"].update(bytes=-5), "rounds.jsonl: expected -5 bytes, as recorded, got 13"),
        (lambda m: m["log"].update(bytes="13"), "rounds.jsonl: expected '13' bytes, as recorded, got 13"),
        (lambda m: m["log"].update(bytes=2**80), f"rounds.jsonl: expected {2**80} bytes, as recorded, got 13"),
        (lambda m: m.update(log=None), INCOMPLETE),
    ],
)
def test_a_forged_manifest_is_not_believed(change, said, folder):
    save_rounds(folder, 1)
    path = newest(folder) / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["sha256"]
    change(manifest)
    path.write_bytes(json_file(sealed(manifest)))
    with pytest.raises(IntegrityError) as caught:
        folder.load_checkpoint()
    assert caught.value.reason == f"no checkpoint is valid: 000001: {said}"


def test_a_part_that_is_no_plain_file_is_not_read(folder):
    save_rounds(folder, 1)
    manifest = newest(folder) / "manifest.json"
    manifest.unlink()
    os.mkfifo(manifest)
    with pytest.raises(IntegrityError, match="000001: not a plain file"):
        folder.load_checkpoint()


def test_what_is_no_generation_is_left_alone(folder):
    save_rounds(folder, 1)
    for name in ("notes", "12", "000009x", "-000009"):
        (folder.path / "checkpoint" / name).mkdir()
    save_rounds(folder, 2, 3)
    assert generations(folder) == ["-000009", "000002", "000003", "000009x", "12", "notes"]


def test_bytes_that_are_no_arrays(tmp_path):
    (tmp_path / "file").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="not a safetensors file: SafetensorError"):
        read_tensors(tmp_path / "file")


@pytest.mark.parametrize("given", ["<f4", ">f4", "f8"])
def test_the_digest_of_a_model_is_of_names_shapes_and_values(given):
    """So a model has the same digest on every machine, and other programs can check it."""
    values = np.array([1, 2, 3, 4, 5], "<f4").tobytes()
    expected = b"w [2, 2] float32\n" + values[:16] + b"b [1] float32\n" + values[16:]
    vector = np.repeat(np.arange(1, 6), 2).astype(given)[::2]
    assert vector_digest([("w", (2, 2)), ("b", (1,))], "float32", vector) == hashlib.sha256(expected).hexdigest()
