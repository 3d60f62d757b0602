"""`fedrela resume FOLDER`: continues what was interrupted, shows what is done, leaves all else alone."""

from __future__ import annotations

import re

import pytest
import torch

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
