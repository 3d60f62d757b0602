"""``fedrela reproduce``: from a label to a table beside the paper's, and what it says before."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from fedrela.experiment.grid import address
from fedrela.experiment.load import parse_config
from fedrela.reproduction.paper_table import NAMES, paper_table
from fedrela.runfolder.grids import GridFolder

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")


def test_from_a_label_to_a_report(run):
    done = run("reproduce", "tab:zscore", "--seeds", 1, "--workers", 1)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "tab:zscore: With and without z-scores; scale smoke, seeds 1"
    assert "reduced: 10 clients with at least 5 samples" in lines
    assert "3 runs, 44 rounds, 23 of them shared by several runs" in lines
    assert sum(bool(re.fullmatch(r"estimated time [\d.]+ s, from .*", line)) for line in lines) == 1
    folder = Path("runs/reproduce/zscore-smoke")
    summary = GridFolder.open(folder).read_json("summary.json")
    found = [record["measured"]["overall"]["mean"] for record in summary["entries"]]
    rows = [line for line in lines if re.search(r" measured on digits  +\d", line)]
    assert [f"{100 * share:.2f}" in row for share, row in zip(found, rows, strict=True)] == [True] * 3
    assert any(re.search(r"FedLOGE +published +57\.50†", line) for line in lines)
    assert "Settings the paper does not state: ours" in lines
    assert "tab:lt has 58.22 overall for this setting" in done.out
    assert {path.name for path in folder.glob("table.*")} == {"table.md", "table.csv", "table.tex", "table.json"}
    assert (folder / "report.html").exists()
    again = run("reproduce", "zscore", "--seeds", 1)
    assert "3 of 3 runs are finished in runs/reproduce/zscore-smoke and will not be repeated" in again.out
    assert "done to round" not in again.out
    assert again.out.splitlines()[-3:] == lines[-3:]


def test_a_dry_run_writes_nothing(run):
    done = run("reproduce", "tab:step", "--scale", "cpu", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "20 runs, " in done.out
    assert done.out.count("to do ") == 20
    assert re.search(
        r"^to do +FedAvg +baseline +1 +\S.* = F-MNIST, .* = 20, .* = 10% +runs/fedavg-baseline-s1-", done.out, re.M
    )
    every = run("reproduce", "tab:step", "--scale", "cpu", "--dry-run", "--all", "--seeds", 1)
    assert every.out.count("to do ") == 120
    assert not Path("runs").exists()


def test_entries_are_named_by_their_values(run):
    done = run(
        "reproduce", "tab:lt", "--scale", "cpu", "--dry-run", "--only", "fedetf,CIFAR-10,IF=50,alpha=0.3,alpha=10"
    )
    rows = [line for line in done.out.splitlines() if line.startswith("to do")]
    assert (done.code, done.err, len(rows)) == (0, "", 4)  # IF 50 is not among those of the scale
    assert all("FedETF" in row and "dataset = CIFAR-10, IF = 50, alpha = " in row for row in rows)
    assert sum("alpha = 0.3" in row for row in rows) == 2


def test_the_published_protocol_lists_what_differs(run):
    done = run("reproduce", "zscore", "--protocol", "published", "--seeds", 1, "--workers", 1)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("tab:zscore: With and without z-scores; scale smoke, protocol published, seeds 1\n")
    assert re.search(r"^relabel\.lr_scale \(\+FedReLa\) +1\.0 +0\.1$", done.out, re.M)
    assert re.search(r"^algorithm\.scored \(baseline\) +\"frame\" +\"global\"$", done.out, re.M)
    assert re.search(r"^\+FedReLa +measured on digits, best-test +\d", done.out, re.M)
    assert "What the official code does, and the published protocol here does not" in done.out
    folder = Path("runs/reproduce/zscore-smoke")
    for name in ("report.html", "table.md"):
        assert "round that counts" in (folder / name).read_text()


def test_the_configuration_of_a_run_can_be_run(run):
    done = run("reproduce", "zscore", "--protocol", "published", "--dry-run", "--toml", "--run", "fedloge-fedrela-drop")
    assert (done.code, done.err) == (0, "")
    assert re.match(r"# tab:zscore, scale smoke, FedLOGE, fedrela-drop, .*; fedloge-fedrela-drop-s1-\w{12}\n", done.out)
    config = parse_config(done.out)
    assert (config.relabel.lr_scale, config.relabel.passes, config.algorithm.name) == (0.1, 5, "fedloge")
    assert address(config) in done.out.splitlines()[0]
    first = run("reproduce", "zscore", "--dry-run", "--toml")
    assert parse_config(first.out).relabel.enabled is False
    assert not Path("runs").exists()


def test_all_tables_share_one_store(run, monkeypatch):
    monkeypatch.setattr("fedrela.reproduction.paper_table.NAMES", ("zscore", "norm_ablation"))
    done = run("reproduce", "all", "--seeds", 1, "--workers", 1)
    assert (done.code, done.err) == (0, "")
    store = Path("runs/reproduce/all-smoke")
    assert sorted(path.name for path in store.iterdir()) == ["norm_ablation", "prefixes", "runs", "zscore"]
    assert len(list((store / "runs").iterdir())) == 6
    for name in ("zscore", "norm_ablation"):
        assert GridFolder.open(store / name).status == "done"
        assert (store / name / "report.html").exists()
    again = run("reproduce", "all", "--seeds", 1)
    assert again.out.count("3 of 3 runs are finished") == 2


def test_the_published_setting_takes_hours_of_a_gpu_and_shared_runs_none(run, monkeypatch):
    monkeypatch.setattr("fedrela.reproduction.paper_table.NAMES", ("lt", "tail_improvement"))
    done = run("reproduce", "all", "--scale", "paper", "--dry-run", "--seeds", 1)
    assert "shared with tables above: 24 runs\nestimated time 0 hours of one GPU" in done.out
    assert re.search(r"^estimated time [\d,]+ hours of one GPU, at 2,000 training samples of ResNet-18", done.out, re.M)


def test_without_a_name_the_tables_are_listed(run):
    done = run("reproduce")
    assert (done.code, done.err) == (0, "")
    for name in NAMES:
        table = paper_table(name)
        assert re.search(rf"^{table.label} +{len(table.cells)} +\d+ +([\d.]+ s|\d+ min \d+ s) +\d+ ", done.out, re.M)
    assert "--all" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["tab:nothing"], 2, "table: expected one of step, lt, "),
        (["tab:step", "--protocol", "fair"], 2, "--protocol: expected one of matched, published, both, got 'fair'"),
        (["tab:step", "--toml"], 2, "--toml goes with --dry-run"),
        (["tab:step", "--dry-run", "--toml", "--run", "x"], 2, "--run: expected the start of a folder name"),
        (
            ["tab:lt", "--only", "FedEFT"],
            2,
            "only: expected one of CIFAR-10, CIFAR-100, 50, 100, FedETF, FedLOGE, 0.1, ",
        ),
        (["tab:lt", "--only", "IF=30"], 2, "only: expected one of 50, 100, got '30'"),
        (
            ["tab:lt", "--only", "alhpa=0.3"],
            2,
            "only: expected one of dataset, IF, method, alpha before =, got 'alhpa'",
        ),
        (
            ["tab:cifar100_lt_clients", "--only", "100"],
            2,
            "only: '100' has several meanings: write IF=100 or clients=100",
        ),
        (["tab:lt", "--only", ","], 2, "only: expected values, separated by commas, got none"),
        (["--only", "FedETF"], 2, "--only goes with one table"),
        (["all", "--only", "FedETF"], 2, "--only goes with one table"),
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


def test_data_of_ones_own_are_found_beside_the_file(run, tmp_path):
    rng = np.random.default_rng(1)
    arrays = {f"x_{part}": rng.integers(0, 255, (60, 1, 8, 8), np.uint8) for part in ("train", "test")}
    np.savez(tmp_path / "mine.npz", **arrays, y_train=np.arange(60) % 10, y_test=np.arange(60) % 10)
    more = (
        'imbalance = { kind = "natural" }\npartition = { kind = "iid", clients = 2 }\n[train]\nrounds = 1\nepochs = 1\n'
    )
    (tmp_path / "mine.toml").write_text(f'[data]\nsource = "npz"\nroot = "mine.npz"\n{more}')
    done = run("reproduce", "tab:norm_ablation", "--seeds", 1, "--with", "mine.toml", "--out", "o", "--workers", 1)
    assert (done.code, done.err) == (0, "")


def test_where_every_round_of_every_run_was_skipped_the_exit_code_is_that_of_one_run(run, tmp_path):
    (tmp_path / "late.toml").write_text("[train]\nrounds = 2\ndeadline = 0.001\ngive_up = 100\n")
    done = run("reproduce", "tab:norm_ablation", "--seeds", 1, "--with", "late.toml", "--out", "o", "--workers", 1)
    assert (done.code, done.err.count("\n")) == (5, 1)
    assert done.err.startswith("fedrela: o: no run succeeded: ")


def test_own_parts_join_a_table(run, tmp_path):
    (tmp_path / "mine.toml").write_text('[relabel]\nmethod = "helpers.own_parts:Swap"\n')
    added = ("--baselines", "helpers.own_parts:Mine, scaffold", "--with", "mine.toml", "--dry-run", "--seeds", 1)
    done = run("reproduce", "zscore", *added)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^to do +SCAFFOLD +fedrela ", done.out, re.M)
    shown = run("reproduce", "zscore", *added, "--toml", "--run", "helpers.own_parts.Mine-fedrela")
    config = parse_config(shown.out)
    assert (config.algorithm.name, config.relabel.method) == ("helpers.own_parts:Mine", "helpers.own_parts:Swap")
    assert "expected one of" in run("reproduce", "zscore", "--baselines", "fedavgg").line()
