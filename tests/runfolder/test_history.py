"""The logs: rounds, timing and exclusions, torn, damaged, cut back and mended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import operations
from fedrela.records import Failure, FailureKind
from fedrela.runfolder import RunFolder, json_records
from fedrela.runfolder.json_records import json_line, sealed
from helpers.disk_faults import Fail, Notes
from helpers.toy_run import CONFIG, MACHINE, MANIFEST

DEADLINE, DIED = Failure(FailureKind.DEADLINE), Failure(FailureKind.WORKER_DIED, "twice (SIGKILL)")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", MANIFEST, CONFIG, MACHINE)


@pytest.fixture
def four(folder: RunFolder) -> RunFolder:
    for round in range(1, 5):
        folder.append_timing({"round": round, "train_seconds": 0.1})
        folder.append_round({"round": round, "loss": 1 / round})
    return folder


def numbers(folder: RunFolder) -> list[int]:
    return [record["round"] for record in folder.rounds()]


def test_rounds_come_back_in_order(four):
    assert four.rounds()[2] == {"round": 3, "loss": 1 / 3}
    assert [list(record) for record in four.timing()] == [["round", "train_seconds"]] * 4
    assert four.read("rounds.jsonl").splitlines()[0] == b'{"round": 1, "loss": 1.0}'
    assert four.status_text == "interrupted at round 4"


def test_a_run_without_rounds(folder):
    assert (folder.rounds(), folder.timing(), folder.exclusions()) == ([], [], {})
    folder.truncate_rounds(0)
    assert not (folder.path / "rounds.jsonl").exists()


@pytest.mark.parametrize("record", [{"loss": float("nan")}, {"loss": object()}, {(1, 2): 3}])
def test_a_record_that_is_no_plain_value_is_not_written(record, four):
    with pytest.raises(ArgumentError, match="expected plain JSON values"):
        four.append_round(record)
    assert numbers(four) == [1, 2, 3, 4]


@pytest.mark.parametrize("torn", [b'{"round": 5', b'{"round": 5}', b"\0" * 40, b"\0\0: 5}\n", b"\xff\xfe", b"null\n"])
def test_a_torn_last_line_is_passed_over_and_mended(torn, four):
    path = four.path / "rounds.jsonl"
    path.write_bytes(path.read_bytes() + torn)
    again = RunFolder.open(four.path)
    assert numbers(again) == [1, 2, 3, 4]
    again.append_round({"round": 5})
    assert numbers(again) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "bad", [b"x\n", b'{"round":3}\n', b'{"round": 3, "round": 3}\n', b'{"loss": 1e999}\n', b"[]\n"]
)
def test_damage_in_the_middle_is_noticed_but_can_be_cut_off(bad, four):
    path = four.path / "rounds.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], bad, lines[3]]))
    again = RunFolder.open(four.path)
    with pytest.raises(IntegrityError, match=r"rounds.jsonl: line 3 is damaged"):
        again.rounds()
    with pytest.raises(IntegrityError, match=r"line 3 is damaged"):
        again.append_round({"round": 5})
    with pytest.raises(IntegrityError, match="expected rounds 1 to 3 in order"):
        again.truncate_rounds(3)
    again.truncate_rounds(2)
    assert numbers(again) == [1, 2]


@pytest.mark.parametrize("order", [(0, 1, 1, 2), (1, 2, 3), (0, 2, 1), (0, 1, 3)])
def test_rounds_out_of_order_are_noticed(order, four):
    path = four.path / "rounds.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in order))
    with pytest.raises(IntegrityError, match="in order; it was damaged"):
        four.rounds()


def test_a_line_without_end(four, monkeypatch):
    monkeypatch.setattr(json_records, "LINE_LIMIT", 20)
    with pytest.raises(IntegrityError, match="line 1 is damaged"):
        four.rounds()


@pytest.mark.parametrize("after", range(5))
def test_later_rounds_are_cut_off_both_logs(after, four):
    four.truncate_rounds(after)
    assert numbers(four) == list(range(1, after + 1))
    assert [record["round"] for record in four.timing()] == list(range(1, after + 1))
    four.append_round({"round": after + 1})
    assert numbers(four) == list(range(1, after + 2))


def test_cutting_nothing_off_writes_nothing(four):
    notes = Notes()
    with operations.observed(notes):
        four.truncate_rounds(4)
    assert notes.tried == []


def test_rounds_that_are_not_there_cannot_be_kept(four):
    with pytest.raises(IntegrityError, match="expected rounds 1 to 5 in order"):
        four.truncate_rounds(5)
    assert numbers(four) == [1, 2, 3, 4]


def test_timing_is_cut_where_it_is_damaged(four):
    path = four.path / "timing.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"x\n", *lines[2:]]))
    four.truncate_rounds(3)
    assert [record["round"] for record in four.timing()] == [1]


@pytest.mark.parametrize("odd", [1, 9, 2.5, "2", None, [2]])
def test_timing_is_cut_where_rounds_do_not_rise(odd, four):
    path = four.path / "timing.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], json_line({"round": odd}), *lines[2:]]))
    four.truncate_rounds(3)
    assert [record["round"] for record in four.timing()] == [1]


def test_timing_may_miss_a_round(four):
    path = four.path / "timing.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([json_line({"round": 1.0}), *lines[2:]]))
    four.truncate_rounds(3)
    assert [record["round"] for record in four.timing()] == [1, 3]


def test_a_failed_append_can_be_tried_again(four):
    with operations.observed(Fail(0, "short")), pytest.raises(DataError, match="No space left"):
        four.append_round({"round": 5})
    four.append_round({"round": 5})
    assert numbers(four) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["rounds.jsonl", "timing.jsonl"])
def test_a_log_that_is_no_plain_file(name, folder):
    os.mkfifo(folder.path / name)
    with pytest.raises(DataError, match=f"{name}: cannot be read: not a plain file"):
        folder.truncate_rounds(0)


def test_exclusions_are_on_disk_at_once_and_the_first_note_counts(folder):
    notes = Notes()
    with operations.observed(notes):
        folder.note_exclusions(3, {7: DEADLINE, 2: DIED})
    assert [verb for verb, _ in notes.done] == ["append", "sync", "sync_folder"]
    folder.note_exclusions(3, {7: DIED, 8: DEADLINE})
    folder.note_exclusions(4, {})
    again = RunFolder.open(folder.path)
    again.note_exclusions(5, {1: DEADLINE})
    assert again.exclusions() == {
        3: {2: DIED, 7: DEADLINE, 8: DEADLINE},
        5: {1: DEADLINE},
    }


def test_a_torn_exclusion_never_counts(folder):
    folder.note_exclusions(3, {7: DEADLINE})
    path = folder.path / "exclusions.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:-9])
    again = RunFolder.open(folder.path)
    assert again.exclusions() == {3: {7: DEADLINE}}
    again.note_exclusions(4, {1: DEADLINE})
    assert again.exclusions() == {3: {7: DEADLINE}, 4: {1: DEADLINE}}


def test_a_note_whose_sync_failed_is_made_again(folder):
    folder.note_exclusions(3, {7: DEADLINE})
    with operations.observed(Fail(1, "EIO")), pytest.raises(DataError, match="cannot be written: Input/output error"):
        folder.note_exclusions(4, {1: DEADLINE})
    folder.note_exclusions(4, {1: DEADLINE})
    assert RunFolder.open(folder.path).exclusions() == {3: {7: DEADLINE}, 4: {1: DEADLINE}}


@pytest.mark.parametrize(
    "lines",
    [
        lambda lines: [lines[1], lines[2]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [lines[0], lines[1].replace(b"deadline", b"DEADLINE"), lines[2]],
        lambda lines: [lines[0], lines[1].replace(b'"round": 2', b'"round": 9'), lines[2]],
        lambda lines: [json_line(sealed({"round": 1}))],
        lambda lines: [json_line(sealed({"note": 1, "round": 1, "excluded": [[1]]}))],
        lambda lines: [json_line(sealed({"note": 1, "round": 1, "excluded": 5}))],
        lambda lines: [json_line(sealed({"note": 1, "round": [], "excluded": []}))],
    ],
)
def test_exclusions_that_were_changed_are_noticed(lines, folder):
    for round in (1, 2, 3):
        folder.note_exclusions(round, {round: DEADLINE})
    path = folder.path / "exclusions.jsonl"
    path.write_bytes(b"".join(lines(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(IntegrityError, match=r"exclusions.jsonl: "):
        RunFolder.open(folder.path).exclusions()
