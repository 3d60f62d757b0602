"""``fedrela compare``: what it says before, while and after it runs, and how it goes on."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from fedrela.arms import MATCHED
from fedrela.experiment.grid import Grid
from fedrela.experiment.toml.writer import toml_text
from fedrela.runfolder.grids import GridFolder
from helpers.small_runs import small

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")


def write(name="clinic.toml", **tables):
    Path(name).write_text(toml_text(small(**tables)))
    return name


def test_from_configuration_to_report(run):
    baselines = ["fedavg", {"name": "fedprox", "mu": 0.1, "label": "Prox"}]
    name = write(compare={"seeds": 2, "baselines": baselines, "arms": ["baseline", "fedrela"]})
    done = run("compare", name)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "clinic.toml: FedAvg, Prox; arms baseline, fedrela; seeds 1, 2"
    assert lines[1] == "8 runs, 36 rounds, 12 of them shared by several runs"
    assert sum(line.startswith("Prox, seed 2: fedrela, done to round 6; 0:0") for line in lines) == 1
    assert "FedAvg, seed 1: shared rounds, done to round 3; 0:" in done.out
    folder = Path("runs/compare/clinic")
    summary = GridFolder.open(folder).read_json("summary.json")
    baseline = summary["baselines"][0]
    both = [100 * baseline["arms"][arm]["majority"]["mean"] for arm in ("baseline", "fedrela")]
    assert f"{both[0]:.1f} ({both[1]:.1f})" in done.out
    assert "FedAvg: FedReLa against baseline: majority " in done.out
    assert done.out.count("noise (95 % interval") == 2 * 3
    assert f"report  {folder}/report.html" in done.out
    assert json.loads((folder / "table.json").read_text()) == summary
    rows = csv.DictReader(io.StringIO((folder / "table.csv").read_text()))
    assert {row["baseline"] for row in rows} == {"FedAvg", "Prox"}
    assert {path.name for path in folder.glob("table.*")} == {"table.md", "table.csv", "table.tex", "table.json"}
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")
    again = run("compare", name)
    assert "8 of 8 runs are finished in runs/compare/clinic and will not be repeated" in again.out
    assert again.out.splitlines()[-12:] == lines[-12:]
    assert "done to round" not in again.out


def test_options_take_the_place_of_the_table(run):
    name = write(compare={"seeds": 9, "arms": ["baseline"]})
    done = run("compare", name, "--seeds", 1, "--arms", "fedrela, random", "--out", "o", "--workers", 1)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("clinic.toml: FedAvg; arms fedrela, random; seeds 1\n")
    assert [(cell["arm"], cell["seed"]) for cell in GridFolder.open("o").cells] == [("fedrela", 1), ("random", 1)]
    assert "FedAvg: FedReLa against random moves: majority" in done.out
    assert "points; one seed cannot tell this from noise.\n" in done.out
    more = run("compare", name, "--seeds", 1, "--arms", "fedrela,random,baseline", "--out", "o")
    assert "2 of 3 runs are finished in o and will not be repeated" in more.out
    assert "seed 1: random, done" not in more.out
    alone = run("compare", name, "--seeds", 1, "--arms", "baseline", "--out", "o")
    assert alone.code == 0
    assert "against" not in alone.out


def test_another_baseline_to_compare_with(run):
    baselines = ["fedavg", {"name": "fedprox", "mu": 0.5, "label": "Prox"}]
    name = write(compare={"seeds": 2, "baselines": baselines, "arms": ["baseline", "fedrela"]})
    done = run("compare", name, "--against", "FedAvg")
    assert (done.code, done.err) == (0, "")
    shown = [line for line in done.out.splitlines() if line.startswith("Prox against FedAvg, ")]
    assert [line.split(",")[1].split(":")[0] for line in shown] == [" baseline", " fedrela"]
    first, other = GridFolder.open(Path("runs/compare/clinic")).read_json("summary.json")["baselines"]
    mean = np.mean(other["arms"]["fedrela"]["overall"]["values"]) - np.mean(
        first["arms"]["fedrela"]["overall"]["values"]
    )
    assert f"overall {100 * mean:+.1f} points" in shown[1].replace("overall 0.0", "overall +0.0")
    wrong = run("compare", name, "--against", "Fedavg")
    assert (wrong.code, wrong.line()) == (2, "--against: expected one of FedAvg, Prox, got 'Fedavg'; nearest: FedAvg")


def test_a_dry_run_writes_nothing(run):
    done = run("compare", write(), "--dry-run", "--seeds", 1)
    assert (done.code, done.err) == (0, "")
    assert "4 runs, 15 rounds, 3 of them shared by several runs\n" in done.out
    rows = [line.split() for line in done.out.splitlines()[-4:]]
    assert [row[:5] for row in rows] == [["to", "do", "FedAvg", arm, "1"] for arm in MATCHED]
    assert sorted(path.name for path in Path().iterdir()) == ["clinic.toml"]


def test_ctrl_c_while_runs_go_on_side_by_side_leaves_a_folder_to_continue(run):
    name = write(
        compare={"seeds": 2, "arms": ["baseline", "fedrela"]},
        train={"rounds": 60, "epochs": 1, "evaluate_every": 30},
        relabel={"start": 59},
    )
    command = [sys.executable, "-m", "fedrela.cli.main", "compare", name, "--out", "o", "--workers", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        until = time.monotonic() + 600
        while len(list(Path("o/prefixes").glob("*/rounds.jsonl"))) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err.decode().splitlines() == [
        "fedrela: o: finished runs are kept; run the same command to continue", "fedrela: interrupted",
    ]  # fmt: skip
    done = run("compare", name, "--out", "o", "--workers", 1)
    assert (done.code, len(GridFolder.open("o").read_json("grid.json")["cells"])) == (0, 4)


def test_interrupted_it_goes_on_where_it_stopped(run, monkeypatch):
    name, real = write(), Grid.position

    def stop(self, progress):
        if progress.task.cell and progress.task.cell.arm == "fedrela":
            raise KeyboardInterrupt
        return real(self, progress)

    monkeypatch.setattr(Grid, "position", stop)
    done = run("compare", name, "--seeds", 1, "--out", "o")
    assert done.code == 130
    assert done.err.splitlines() == [
        "fedrela: o: finished runs are kept; run the same command to continue", "fedrela: interrupted",
    ]  # fmt: skip
    monkeypatch.setattr(Grid, "position", real)
    again = run("compare", name, "--seeds", 1, "--out", "o")
    assert again.code == 0
    assert "2 of 4 runs are finished in o and will not be repeated" in again.out
    assert "shared rounds" not in again.out.replace("shared by several", "")


def test_a_baseline_that_fails_ends_with_one(run):
    bad = {"name": "fedprox", "label": "bad", "train": {"lr": 1e30, "give_up": 1}}
    done = run("compare", write(compare={"seeds": 1, "baselines": ["fedavg", bad]}), "--out", "o")
    assert done.code == 1
    assert done.err.startswith("fedrela: bad: left out because one of its runs failed: the rounds before re-labelling")
    assert done.err.endswith("\nfedrela: o: 4 runs failed; run the same command to try again\n")
    assert "FedAvg: FedReLa against baseline" in done.out
    assert "failed: fedprox-" in done.out
    assert "report  o/report.html" in done.out


def test_where_every_baseline_fails_one_line_says_why(run):
    bad = {"name": "fedprox", "train": {"lr": 1e30, "give_up": 1}}
    done = run("compare", write(compare={"seeds": 1, "baselines": [bad], "arms": ["baseline"]}), "--out", "o")
    assert done.code == 5  # as `fedrela run` ends where too few clients took part
    assert done.err.startswith("fedrela: o: no baseline could be run: ")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_baseline_that_cannot_begin_is_left_out_and_the_others_run(run, workers):
    wanted = {"seeds": 1, "baselines": ["fedavg", "fedyoyo", "fedprox"], "arms": ["baseline", "fedrela"]}
    done = run("compare", write(compare=wanted), "--out", "o", "--workers", workers)
    why = "fedyoyo: expected uint8 images to augment, got other samples"
    assert done.code == 1
    assert done.err.startswith(f"fedrela: FedYoYo: left out because one of its runs failed: {why}\n")
    assert "FedProx: FedReLa against baseline" in done.out


def test_where_no_run_can_begin_its_reason_stands_alone(run):
    done = run("compare", write(compare={"seeds": 2, "baselines": ["fedyoyo"]}), "--out", "o")
    assert (done.code, done.err) == (2, "fedrela: fedyoyo: expected uint8 images to augment, got other samples\n")


@pytest.mark.parametrize("more", [["--arms", "baseline,fedrela,random"], ["--seeds", "2"]])
def test_other_data_are_not_compared_with_those_of_finished_runs(run, more):
    rng = np.random.default_rng(0)

    def write_rows():
        rows = [f"{rng.normal(label):.4f},{rng.normal():.4f},{'ab'[label]}" for label in [0] * 60 + [1] * 20]
        Path("rows.csv").write_text("\n".join(["x,y,label", *rows, ""]))

    write_rows()
    tables = {
        "data": {
            "source": "csv", "root": ".", "options": {"file": "rows.csv", "label": "label"},
            "imbalance": {"kind": "natural"}, "partition": {"kind": "iid", "clients": 3},
        },
        "compare": {"seeds": 1, "arms": ["baseline", "fedrela"]},
    }  # fmt: skip
    Path("t.toml").write_text(toml_text({**small(), **tables}))
    assert run("compare", "t.toml", "--out", "o").code == 0
    before = {path: path.read_bytes() for path in Path("o").rglob("*") if path.is_file() and path.name != "lock"}
    write_rows()
    done = run("compare", "t.toml", "--out", "o", *more)
    assert done.code == 4
    assert done.err.count("\n") == 1
    assert ": data differs from what the run started with; " in done.err
    assert all(path.read_bytes() == content for path, content in before.items() if path.parent != Path("o"))


@pytest.mark.parametrize("workers", [1, 2])
def test_where_every_round_of_every_run_was_skipped_the_exit_code_is_that_of_one_run(run, workers):
    late = {"rounds": 2, "deadline": 0.001, "give_up": 100}
    name = write(train=late, relabel={"start": 2}, compare={"seeds": 2})
    done = run("compare", name, "--out", "o", "--workers", workers)
    assert (done.code, done.err.count("\n")) == (5, 1)
    assert done.err.startswith("fedrela: o: no baseline could be run: ")
    assert run("run", name, "--out", "alone", "--workers", 1).code == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--arms", "baseline,fedrel"],
            "--arms: expected one of baseline, baseline-drop, fedrela, fedrela-drop, random, random-drop",
        ),
        (["--arms", ""], "--arms: expected one of baseline"),
        (["--arms", "baseline,baseline"], "--arms: 'baseline' is listed twice"),
        (["--seeds", "0"], "Invalid value for '--seeds'"),
        (["--workers", "none"], "--workers: expected 'auto' or an integer from 1 to"),
    ],
)
def test_wrong_options(run, options, words):
    done = run("compare", write(), *options)
    assert done.code == 2
    assert done.err.startswith(f"fedrela: {words}")
    assert done.err.count("\n") == 1


def test_the_users_own_configuration_is_not_overwritten(run):
    Path("mine").mkdir()
    text = "# mine\n" + toml_text(small(compare={"seeds": 1, "arms": ["baseline"]}))
    Path("mine/config.toml").write_text(text)
    done = run("compare", "mine/config.toml", "--out", "mine")
    assert (done.code, done.err) == (2, "fedrela: mine: contains other files; choose a new or an empty folder\n")
    assert Path("mine/config.toml").read_text() == text


def test_a_learning_rate_drop_of_another_size_is_refused(run):
    done = run("compare", write(relabel={"lr_scale": 0.5}))
    assert done.code == 2
    assert done.line().endswith(
        "lr_scale: the arms of a comparison set it: 1, or 0.1 in those with -drop; leave it out"
    )


def test_other_folders_are_left_alone(run):
    name = write(train={"rounds": 4})
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("x")
    taken = run("compare", name, "--out", "mine")
    assert (taken.code, taken.err) == (2, "fedrela: mine: contains other files; choose a new or an empty folder\n")
    assert run("compare", name, "--out", "o", "--seeds", 1, "--arms", "baseline").code == 0
    other = run("compare", write(train={"rounds": 5}), "--out", "o", "--seeds", 1, "--arms", "baseline")
    assert other.code == 2
    assert other.err.startswith("fedrela: o: contains a compare of another configuration; choose another folder")


def test_help_teaches(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(run("compare", "--help").out.split())
    words = (
        "Example",
        "--seeds",
        "--arms",
        "--dry-run",
        "--workers",
        "run the same command to continue",
        "exit code 1",
    )
    assert [word for word in words if word not in shown] == []
