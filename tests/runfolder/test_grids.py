"""The folder of runs that belong together: what is in it is sound, ours, and of one kind."""

from __future__ import annotations

import pytest

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.runfolder.grids import GridFolder, copy_without_samples

RECORD = {
    "kind": "sweep", "name": "small", "base": "b", "config": "seed = 1\n", "facts": {},
    "cells": [{"folder": "runs/one", "machine": "FedAvg", "arm": "machine", "seed": 1, "values": {}}],
}  # fmt: skip


def test_it_is_read_back(tmp_path):
    made = GridFolder.begin(tmp_path / "deep" / "grid", RECORD)
    there = GridFolder.open(made.path)
    assert there.record == {"format": "fedrela-grid-1", **RECORD}
    assert (there.path / "config.toml").read_text() == "seed = 1\n"
    assert there.place(there.cells[0]) == made.path / "runs" / "one"
    assert (there.done, there.status_text) == (0, "interrupted, 0 of 1 runs done")
    with there.locked():
        assert there.status_text == "running, 0 of 1 runs done"
    there.write_json("summary.json", {"kind": "sweep"})
    assert there.read_json("summary.json") == {"kind": "sweep"}


def test_the_same_again_keeps_the_summary_and_other_cells_drop_it(tmp_path):
    GridFolder.begin(tmp_path, RECORD).write_json("summary.json", {})
    assert (GridFolder.begin(tmp_path, RECORD).path / "summary.json").exists()
    changed = GridFolder.begin(tmp_path, {**RECORD, "cells": []})
    assert not (changed.path / "summary.json").exists()
    assert changed.cells == []


def test_shared_runs_lie_beside_the_grid(tmp_path, monkeypatch):
    made = GridFolder.begin(tmp_path / "grid", {**RECORD, "shared": True})
    assert made.place(made.cells[0]) == tmp_path / "runs" / "one"
    monkeypatch.chdir(made.path)
    assert GridFolder.open(".").place(made.cells[0]) == tmp_path / "runs" / "one"
    copy_without_samples(made, tmp_path / "far" / "copy")
    copy = GridFolder.open(tmp_path / "far" / "copy")
    assert copy.record == {"format": "fedrela-grid-1", **RECORD}
    assert copy.place(copy.cells[0]) == copy.path / "runs" / "one"


@pytest.mark.parametrize("key", ["kind", "base"])
def test_another_one_is_left_alone(tmp_path, key):
    GridFolder.begin(tmp_path, RECORD)
    with pytest.raises(ArgumentError, match="contains a sweep of another configuration"):
        GridFolder.begin(tmp_path, {**RECORD, key: "other"})
    assert GridFolder.open(tmp_path).record[key] == RECORD[key]


def test_other_peoples_files_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("words")
    with pytest.raises(ArgumentError, match="mine: contains other files; choose a new or an empty folder"):
        GridFolder.begin(tmp_path / "mine", RECORD)
    (tmp_path / "mine" / "manifest.json").write_text("{}")
    with pytest.raises(ArgumentError, match="mine: contains a run"):
        GridFolder.begin(tmp_path / "mine", RECORD)
    with pytest.raises(ArgumentError, match="expected a folder"):
        GridFolder.begin(tmp_path / "mine" / "thesis.tex", RECORD)
    with pytest.raises(DataError, match=r"nowhere: no grid of runs found; name a folder that has a grid"):
        GridFolder.open(tmp_path / "nowhere")


def test_what_was_changed_by_hand_is_noticed(tmp_path):
    GridFolder.begin(tmp_path, RECORD)
    text = (tmp_path / "grid.json").read_text()
    (tmp_path / "grid.json").write_text(text.replace("runs/one", "runs/two"))
    with pytest.raises(IntegrityError, match=r"grid\.json: does not match its digest"):
        GridFolder.open(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    (tmp_path / "grid.json").write_text(text)
    with pytest.raises(IntegrityError, match=r"summary\.json: is damaged"):
        GridFolder.open(tmp_path).read_json("summary.json")


def test_a_cell_lies_below_the_folder_and_only_known_files_are_written(tmp_path):
    made = GridFolder.begin(tmp_path, {**RECORD, "cells": [{"folder": "../elsewhere"}]})
    with pytest.raises(DataError, match="not a plain relative path"):
        made.place(made.cells[0])
    with pytest.raises(ArgumentError, match=r"expected one of .*, got 'notes'"):
        made.write("notes", b"")


def test_the_summary_is_of_a_finished_grid_of_its_kind(tmp_path):
    made = GridFolder.begin(tmp_path, RECORD)
    with pytest.raises(
        DataError, match="interrupted, 0 of 1 runs done; finish it first, with the command that started"
    ):
        made.summary("sweep")
    made.write_json("summary.json", {"kind": "sweep"})
    assert made.summary("sweep") == {"kind": "sweep"}
    with pytest.raises(DataError, match="expected a compare, got a sweep"):
        made.summary("compare")


def test_a_grid_of_another_version_is_not_read(tmp_path, monkeypatch):
    made = GridFolder.begin(tmp_path / "grid", RECORD)
    monkeypatch.setattr("fedrela.runfolder.grids.FORMAT", "fedrela-grid-9")
    with pytest.raises(IntegrityError, match=r"grid\.json: was written by another version of fedrela"):
        GridFolder.open(made.path)
