"""`fedrela resume FOLDER`: continues what was interrupted, shows what is done, leaves all else alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
import torch

from fedrela.core import Ledger
from fedrela.data.sources import load
from fedrela.experiment import begin
from fedrela.experiment import run as run_experiment
from helpers.small_runs import bytes_of, small

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run_experiment(small(), out=tmp_path_factory.mktemp("whole") / "run").folder


def cut_off(folder, rounds: int, **own):
    with begin(small(), out=folder, **own) as execution:
        for done, _ in enumerate(execution.rounds(), 1):
            if done == rounds:
                return folder
    return folder


@pytest.mark.parametrize(("rounds", "kept"), [(1, 0), (5, 4)])
def test_it_goes_on_from_the_newest_checkpoint(run, tmp_path, whole, rounds, kept):
    folder = cut_off(tmp_path / "run", rounds)
    done = run("resume", folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{folder}: gaussians, 5 clients, fedavg with mlp, 6 rounds, re-labelling in round 4")
    assert (f"; continues after round {kept}\n" in done.out) == bool(kept)
    assert [int(number) for number in re.findall(r"^round (\d)/6 ", done.out, re.M)] == list(range(kept + 1, 7))
    assert bytes_of(folder) == bytes_of(whole)


def test_a_checkpoint_that_cannot_be_used_is_named(run, tmp_path, whole):
    folder = cut_off(tmp_path / "run", 5)
    newest = max((folder / "checkpoint").iterdir())
    (newest / "arrays.safetensors").write_bytes(b"x")
    done = run("resume", folder)
    assert (done.code, done.err) == (0, "")
    assert "; continues after round 2\n" in done.out
    assert (
        len(re.findall(r"^note: a newer checkpoint cannot be used: 000004: arrays\.\S+: .* got 1$", done.out, re.M))
        == 1
    )
    compared = [
        {name: data for name, data in bytes_of(each).items() if "checkpoint" not in name} for each in (folder, whole)
    ]
    assert compared[0] == compared[1]


def test_modules_of_the_users_own_are_named_before_they_are_imported(run, tmp_path):
    config = small() | {"algorithm": {"name": "helpers.own_parts:Mine"}}
    with begin(config, out=tmp_path / "run", workers=1):
        pass
    done = run("resume", tmp_path / "run", "--workers", "1")
    assert done.code == 0
    assert done.out.startswith(f"{tmp_path / 'run'}: imports helpers.own_parts, which its config.toml names\n")


def test_a_run_that_has_not_begun_yet(run, tmp_path, whole):
    with begin(small(), out=tmp_path / "run"):
        pass
    assert run("resume", tmp_path / "run", "--workers", "2").code == 0
    assert bytes_of(tmp_path / "run") == bytes_of(whole)


def test_a_run_of_all_rounds_without_a_result(run, tmp_path, whole):
    folder = cut_off(tmp_path / "run", 6)
    done = run("resume", folder)
    assert done.code == 0
    assert "\nround " not in done.out
    assert bytes_of(folder) == bytes_of(whole)


def test_a_finished_run_is_shown(run, whole):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    done = run("resume", whole)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{whole}: already done\n")
    assert re.search(r"^overall +[\d.]+ %$", done.out, re.M)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


def test_a_running_one_is_busy(run, tmp_path):
    with begin(small(), out=tmp_path / "run") as execution:
        next(execution.rounds())
        done = run("resume", tmp_path / "run")
        assert done.code == 5
        assert done.line() == f"{tmp_path}/run: running at round 1 in another process; wait until it has ended"


@pytest.mark.parametrize("name", ["none", "", "file"])
def test_something_else_is_no_run(run, tmp_path, name):
    (tmp_path / "file").write_text("")
    done = run("resume", tmp_path / name)
    assert done.code == 3
    assert done.line() == f"{tmp_path / name}: no run found; name a folder that has a manifest.json"


@pytest.mark.parametrize("name", ["config.toml", "manifest.json", "rounds.jsonl"])
@pytest.mark.parametrize("rounds", [4, None])
def test_damage_is_told_and_nothing_is_written(run, tmp_path, name, rounds):
    folder = tmp_path / "run"
    if rounds is None:
        run_experiment(small(), out=folder)
    else:
        cut_off(folder, rounds)
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b"5", b"6", 1))
    before = bytes_of(folder)
    done = run("resume", folder)
    assert done.code == 4
    assert done.err.count("\n") == 1
    assert name in done.err
    assert bytes_of(folder) == before


@pytest.mark.parametrize("change", ["a space", "another move", "indented", "gone"])
def test_a_ledger_that_was_changed_before_the_run_had_finished_is_noticed(run, tmp_path, change):
    """Also where the ledger agrees with itself: no digest of it is stored before the end."""
    folder = cut_off(tmp_path / "run", 4)
    path, ledger = next((path, each) for path in (folder / "ledgers").iterdir() if len(each := Ledger.load(path)))
    if change == "a space":
        path.write_bytes(path.read_bytes() + b" ")
    elif change == "another move":
        new = (ledger.new + 1) % ledger.num_classes
        replace(ledger, new=np.where(new == ledger.old, (new + 1) % ledger.num_classes, new)).save(path, overwrite=True)
    elif change == "indented":
        path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))
    else:
        path.unlink()
    done = run("resume", folder)
    assert done.code == 4
    assert ("the ledgers are not those of this run" if change == "gone" else f"{path}: is not the ledger") in done.err
    assert not (folder / "result.json").exists()


def test_other_versions_are_named(run, tmp_path, monkeypatch):
    folder = cut_off(tmp_path / "run", 2)
    others = {"numpy": "9.9", "torch": "8"}
    monkeypatch.setattr("fedrela.experiment.manifests.version", lambda name: others.get(name, "7"))
    done = run("resume", folder)
    assert done.code == 4
    then = ", ".join(f"{name} {version(name)}" for name in ("fedrela", "numpy", "torch"))
    assert "this environment has fedrela 7, numpy 9.9, torch 8, but the run started with" in done.err
    assert f"started with {then}; install the same to continue" in done.err


def test_a_run_with_a_source_of_its_own_is_resumed_where_the_source_is(run, tmp_path):
    folder = cut_off(tmp_path / "run", 2, source=load("gaussians", **small()["data"]["options"]))
    done = run("resume", folder)
    assert done.code == 2
    assert "fedrela.experiment.resume" in done.err
    assert done.err.count("\n") == 1


def test_wrong_workers_and_help(run, tmp_path, monkeypatch):
    folder = cut_off(tmp_path / "run", 2)
    done = run("resume", folder, "--workers", "none")
    assert done.code == 2
    assert "workers: expected 'auto' or an integer from 1 to 1024, got 'none'" in done.err
    monkeypatch.setenv("COLUMNS", "200")
    shown = run("resume", "--help").out
    assert [word for word in ("Example", "FOLDER", "--workers", "exit code 5") if word not in shown] == []
