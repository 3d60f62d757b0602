"""``fedrela reproduce``: from a label to a table beside the paper's, and what it says before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fedrela.reproduction.paper_table import NAMES, paper_table
from fedrela.runfolder.grids import GridFolder

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_from_a_label_to_a_report(run):
    done = run("reproduce", "tab:zscore", "--seeds", 1, "--workers", 1)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "tab:zscore: With and without z-scores; scale smoke, seeds 1"
    assert "reduced: 10 clients with at least 5 samples" in lines
    assert "3 runs, 44 rounds, 23 of them shared by several runs" in lines
    assert sum(bool(re.fullmatch(r"estimated time \d+ s, from .*", line)) for line in lines) == 1
    folder = Path("runs/reproduce/zscore-smoke")
    summary = GridFolder.open(folder).read_json("summary.json")
    found = [record["measured"]["overall"]["mean"] for record in summary["entries"]]
    rows = [line for line in lines if " measured " in line]
    assert [f"{100 * share:.2f}" in row for share, row in zip(found, rows, strict=True)] == [True] * 3
    assert any(re.search(r"FedLOGE +published +57\.50†", line) for line in lines)
    assert "Settings the paper does not state: ours" in lines
    assert "tab:lt has 58.22 overall for this setting" in done.out
    assert {path.name for path in folder.glob("table.*")} == {"table.md", "table.csv", "table.tex", "table.json"}
    assert (folder / "report.html").exists()
    again = run("reproduce", "zscore", "--seeds", 1)
    assert "3 of 3 runs are finished in runs/reproduce/zscore-smoke and will not be run again" in again.out
    assert "done to round" not in again.out
    assert again.out.splitlines()[-3:] == lines[-3:]


def test_a_dry_run_writes_nothing(run):
    done = run("reproduce", "tab:step", "--scale", "cpu", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "40 runs, " in done.out
    assert done.out.count("to do ") == 40
    assert re.search(
        r"^to do +FedAvg +baseline +1 +\S.* = F-MNIST, .* = 10, .* = 10% +runs/fedavg-baseline-s1-", done.out, re.M
    )
    every = run("reproduce", "tab:step", "--scale", "cpu", "--dry-run", "--all", "--seeds", 1)
    assert every.out.count("to do ") == 120
    assert not Path("runs").exists()


def test_without_a_name_the_tables_are_listed(run):
    done = run("reproduce")
    assert (done.code, done.err) == (0, "")
    for name in NAMES:
        table = paper_table(name)
        assert re.search(rf"^{table.label} +{len(table.cells)} +\d+ +\d+ (s|min) +\d+ ", done.out, re.M)
    assert "--all" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["tab:nothing"], 2, "table: expected one of step, lt, "),
        (["tab:step", "--scale", "huge"], 2, "--scale: expected one of paper, cpu, smoke, got 'huge'"),
        (["tab:lt", "--scale", "cpu", "--data", "nowhere"], 3, "tab:lt at scale cpu: cifar10: "),
    ],
)
def test_wrong_words(run, arguments, code, line):
    done = run("reproduce", *arguments)
    assert done.code == code
    assert done.line().startswith(line)
    assert not Path("runs").exists()


def test_missing_data_names_the_command_that_gets_them(run):
    line = run("reproduce", "tab:lt", "--scale", "cpu", "--data", "nowhere").line()
    assert "`fedrela data fetch cifar10`" in line
    assert "--data" in line
