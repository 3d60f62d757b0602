"""`fedrela sweep CONFIG`: what it shows and writes, that it goes on, what it refuses, and how a failed run ends."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import torch

from fedrela.experiment.sweeps import Sweep
from fedrela.experiment.toml.writer import toml_text
from fedrela.runfolder.grids import GridFolder
from helpers.small_runs import small

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")
TAUS = {"relabel.tau": [0.1, 0.4]}
QUICK = {"train": {"rounds": 2, "epochs": 1}, "relabel": {"start": 2}}


def write(name="small.toml", **tables) -> Path:
    path = Path(name)
    path.write_text(toml_text(small(**QUICK | {"sweep": TAUS} | tables)))
    return path


def test_it_ends_with_a_table_a_choice_and_a_report(run):
    done = run("sweep", write(data={"validation": 0.3}))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "small.toml: relabel.tau = [0.1, 0.4]; seeds 5"
    assert lines[1] == "2 runs, 3 rounds, 1 of them shared by several runs"
    found = Sweep.load("runs/sweep/small")
    for point in found.points:
        shown = [f"{100 * point['metrics'][name]['mean']:.1f}" for name in ("majority", "minority", "overall")]
        shown += [f"{100 * point['validation']['mean']:.1f}", f"{point['metrics']['moved']['mean']:.0f}"]
        assert re.search(rf"^{point['values']['relabel.tau']} +{' +'.join(shown)}$", done.out, re.M)
    chosen = found.choice[0]["values"]["relabel.tau"]
    assert (
        f"FedAvg: balanced accuracy on the clients' validation samples is highest at relabel.tau = {chosen} ("
        in done.out
    )
    assert "On the test set: majority " in done.out
    assert "\nreport  runs/sweep/small/report.html\n" in done.out
    page = Path("runs/sweep/small/report.html").read_text()
    assert "relabel.tau" in page
    assert json.loads(Path("runs/sweep/small/table.json").read_text())["points"] == found.points
    rows = list(csv.DictReader(Path("runs/sweep/small/table.csv").read_text().splitlines()))
    assert [float(row["relabel.tau"]) for row in rows] == [0.1, 0.4]
    assert GridFolder.open("runs/sweep/small").status == "done"
    assert all(line == line.rstrip() for line in lines)


def test_more_values_go_on_in_the_same_folder(run):
    assert run("sweep", write()).code == 0
    more = write(sweep={"relabel.tau": [0.1, 0.2, 0.4]})
    done = run("sweep", more)
    assert (done.code, done.err) == (0, "")
    assert "\n2 of 3 runs are finished in runs/sweep/small and will not be repeated\n" in done.out
    assert re.findall(r"relabel\.tau = ([\d.]+), done to round 2", done.out) == ["0.2"]
    assert "data.validation = 0.1 would hold out a tenth of them." in done.out
    again = run("sweep", more)
    assert "done to round" not in again.out
    assert Path("runs/sweep/small/report.html").exists()
    other = run("sweep", write(model={"hidden": [9]}))
    assert other.code == 2
    said = "contains a sweep of another configuration; choose another folder or remove this one"
    assert other.err == f"fedrela: runs/sweep/small: {said}\n"


def test_baselines_and_arms_have_columns_of_their_own(run):
    compare = {"baselines": ["fedavg", "fedprox"], "arms": ["baseline", "fedrela"], "seeds": 2}
    done = run("sweep", write(compare=compare, sweep={"relabel.tau": [0.4]}), "--out", "mine", "--workers", "1")
    assert done.code == 0
    assert re.search(r"^baseline +arm +", done.out, re.M)
    assert re.search(r"^FedProx +FedReLa +0\.4 +\d+\.\d ± \d", done.out, re.M)
    assert "mean ± standard deviation over 2 seeds" in done.out
    assert "There is nothing to choose: these values do not affect any run." in done.out


def test_a_dry_run_names_the_runs_and_writes_nothing(run):
    config = write(
        sweep={"relabel.tau": [0.1, 0.4], "relabel.preset": ["paper", "official"]}, compare={"seeds": [5, 6]}
    )
    done = run("sweep", config, "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert not Path("runs").exists()
    assert 'relabel.preset = ["paper", "official"]; seeds 5, 6\n' in done.out
    listed = re.findall(r"^to do +FedAvg +as given +\d +\S+ = [\d.]+, \S+ = \w+ +runs/(\S+)$", done.out, re.M)
    assert len(set(listed)) == 8
    assert run("sweep", config).code == 0
    assert {path.name for path in Path("runs/sweep/small/runs").iterdir()} == set(listed)
    assert run("sweep", config, "--dry-run").out.count("\ndone   FedAvg ") == 8


def test_a_failed_run_is_named_and_the_others_stand(run):
    config = write(sweep={"train.lr": [0.05, 1e30]}, train={"rounds": 2, "epochs": 1, "give_up": 1})
    done = run("sweep", config)
    assert done.code == 1
    assert re.search(r"^failed: fedavg-fedrela-s5-\w+: .*fewer than 1 clients", done.out, re.M)
    assert re.search(r"^1e\+30 +- +- +- +-$", done.out, re.M)
    assert done.err == "fedrela: runs/sweep/small: 1 run failed; run the same command to try again\n"
    assert Path("runs/sweep/small/report.html").exists()


def test_where_every_round_of_every_run_was_skipped_the_exit_code_is_that_of_one_run(run):
    done = run("sweep", write(train={"rounds": 2, "deadline": 0.001, "give_up": 100}))
    assert (done.code, done.err.count("\n")) == (5, 1)
    assert done.err.startswith("fedrela: runs/sweep/small: no run succeeded: ")


def test_interrupted_it_goes_on_where_it_stopped(run, monkeypatch):
    config = write()

    def stop(self, progress):
        if progress.task.cell is not None and progress.task.cell.values == {"relabel.tau": 0.4}:
            raise KeyboardInterrupt
        return 1

    with monkeypatch.context() as patched:
        patched.setattr("fedrela.experiment.grid.Grid.position", stop)
        done = run("sweep", config)
    assert done.code == 130
    assert done.err.startswith("fedrela: runs/sweep/small: finished runs are kept; run the same command to continue")
    done = run("sweep", config)
    assert done.code == 0
    assert "1 of 2 runs are finished" in done.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sweep]\n'relabel.tua' = [0.1]", 'bad.toml:2:1: sweep."relabel.tua": unknown key; nearest: tau'),
        ("[sweep]\n'relabel.tau' = [0.1, 5]", 'bad.toml:2:23: sweep."relabel.tau"[1]: expected a fraction from 0 to 1'),
        ("seed = 3", 'bad.toml: sweep: expected keys with values to try, such as [sweep] "relabel.tau" ='),
    ],
)
def test_what_cannot_be_swept_gets_one_line_and_leaves_nothing(run, text, said):
    Path("bad.toml").write_text(text)
    done = run("sweep", "bad.toml")
    assert done.code == 2
    assert done.line().startswith(said)
    assert not Path("runs").exists()


def test_the_starter_is_sound(run):
    assert run("init", "--kind", "sweep").code == 0
    done = run("sweep", "sweep.toml", "--dry-run")
    assert done.code == 0
    assert "20 runs, 276 rounds, 46 of them shared by several runs" in done.out


def test_help_teaches(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = run("sweep", "--help").out
    words = ("Example", "[sweep]", "[0.01, 0.03, 0.05]", "[compare]", "--dry-run", "--workers", "Ctrl-C", "report.html")
    assert [word for word in words if word not in shown] == []
