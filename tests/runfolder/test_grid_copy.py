"""Copies for sharing: no sample is in them, and all the rest is as sound as before."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.experiment import begin
from fedrela.experiment import run as run_experiment
from fedrela.experiment.result import Result
from fedrela.report.page import render
from fedrela.report.run_page import run_page
from fedrela.report.writing import write_report
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder, copy_without_samples
from helpers.small_runs import bytes_of, small

torch.set_num_threads(1)
LEFT_OUT = {"gallery.npz", "report.html"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = run_experiment(small(algorithm={"name": "scaffold"}), out=tmp_path_factory.mktemp("whole") / "run").folder
    write_report(folder)
    return folder


def test_a_copy_is_sound_and_has_no_samples(whole, tmp_path):
    copy_without_samples(RunFolder.open(whole), tmp_path / "copy")
    copy = RunFolder.open(tmp_path / "copy")
    copy.check()
    assert copy.status == "done"
    here, there = bytes_of(whole), bytes_of(copy.path)
    kept = {name for name in here if not name.startswith("checkpoint/")} - LEFT_OUT
    assert {name for name in there if not name.startswith("checkpoint/")} == kept
    assert all(here[name] == there[name] for name in kept - {"result.json"})
    assert here["result.json"] != there["result.json"]
    result, stripped = (RunFolder.open(folder).read_json("result.json") for folder in (whole, copy.path))
    assert set(result["files"]) - set(stripped["files"]) == {"gallery.npz"}
    assert {**result, "files": 0} == {**stripped, "files": 0}


def test_the_weights_stay_and_the_state_of_the_algorithm_goes(whole, tmp_path):
    copy_without_samples(RunFolder.open(whole), tmp_path / "copy")
    for name, array in Result.load(whole).weights().items():
        np.testing.assert_array_equal(Result.load(tmp_path / "copy").weights()[name], array)
    saved, kept = (RunFolder.open(folder).load_checkpoint() for folder in (tmp_path / "copy", whole))
    assert set(saved.arrays) == {"weights"} < set(kept.arrays)


def test_the_page_of_a_copy_is_that_of_the_run_without_samples(whole, tmp_path):
    copy_without_samples(RunFolder.open(whole), tmp_path / "copy")
    for folder in (whole, tmp_path / "copy"):
        (tmp_path / folder.name).with_suffix(".html").write_text(
            render(run_page(RunFolder.open(folder), samples=False))
        )
    assert (tmp_path / "run.html").read_bytes() == (tmp_path / "copy.html").read_bytes()


def test_a_copy_notices_a_change_like_the_run_itself(whole, tmp_path):
    copy_without_samples(RunFolder.open(whole), tmp_path / "copy")
    with open(tmp_path / "copy" / "relabelling.json", "a") as file:
        file.write("\n")
    with pytest.raises(IntegrityError, match=r"relabelling\.json"):
        RunFolder.open(tmp_path / "copy").check()


def test_a_damaged_run_is_not_copied(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    with open(tmp_path / "run" / "relabelling.json", "a") as file:
        file.write("\n")
    with pytest.raises(IntegrityError):
        copy_without_samples(RunFolder.open(tmp_path / "run"), tmp_path / "copy")
    assert [place.name for place in tmp_path.iterdir()] == ["run"]


def test_a_place_that_is_taken_or_cannot_be_written(whole, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="exists already"):
        copy_without_samples(RunFolder.open(whole), tmp_path / "file")
    with pytest.raises(ArgumentError, match="cannot be written"):
        copy_without_samples(RunFolder.open(whole), tmp_path / "file" / "copy")


def test_an_unfinished_run_can_be_looked_at(tmp_path):
    with begin(small(), out=tmp_path / "run") as execution:
        for done in execution.rounds():
            if done.record.round == 5:
                break
        with pytest.raises(BusyError, match="running at round 5"):
            copy_without_samples(RunFolder.open(tmp_path / "run"), tmp_path / "copy")
    copy_without_samples(RunFolder.open(tmp_path / "run"), tmp_path / "copy")
    assert RunFolder.open(tmp_path / "copy").status_text == "interrupted at round 5"
    assert not (tmp_path / "copy" / "checkpoint").exists()
    run_page(RunFolder.open(tmp_path / "copy"))


def test_runs_that_belong_together(whole, tmp_path):
    cells = [{"folder": f"runs/{name}"} for name in ("one", "one", "two", "missing")]
    record = {"kind": "compare", "name": "x", "base": "b", "config": "seed = 1\n", "cells": cells, "facts": {}}
    grid = GridFolder.begin(tmp_path / "grid", record)
    for name in ("one", "two"):
        shutil.copytree(whole, grid.path / "runs" / name)
    shutil.copytree(whole, grid.path / "trunks" / "shared")
    grid.write_json("summary.json", {"kind": "compare"})
    grid.write("report.html", b"with samples")
    copy_without_samples(grid, tmp_path / "copy")
    copy = GridFolder.open(tmp_path / "copy")
    assert copy.record == grid.record
    assert copy.status_text == grid.status_text == "interrupted, 3 of 4 runs done"
    for cell in cells[1:3]:
        copy.run_folder(cell).check()
    names = {path.relative_to(copy.path).parts[0] for path in copy.path.rglob("*") if path.is_file()}
    assert names == {"grid.json", "config.toml", "summary.json", "runs"}
    assert not list(copy.path.rglob("gallery.npz"))
