"""`fedrela run CONFIG`: where it writes, what it shows, how it fails, and what Ctrl-C leaves."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from fedrela.experiment import begin
from fedrela.experiment import run as run_experiment
from fedrela.experiment.load import config_toml, parse_config
from fedrela.runfolder import RunFolder
from helpers.small_runs import bytes_of, small

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")
LONG = small(train={"rounds": 80, "epochs": 1}, relabel={"start": 0.8, "tau": 0.2}, engine={"checkpoint_every": 5})


def write(table, name="small.toml") -> Path:
    path = Path(name)
    path.write_text(config_toml(parse_config(table)))
    return path


def test_without_test_samples_it_trains_all_the_same(run, tmp_path):
    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    np.savez("set.npz", x_train=x, y_train=y, x_test=x[:0], y_test=y[:0])
    data = {"source": "npz", "root": ".", "options": {"file": "set.npz"}, "imbalance": {"kind": "natural"}}
    done = run("run", write(small(data={**data, "partition": {"kind": "iid", "clients": 3}})))
    assert (done.code, done.err) == (0, "")
    assert "labels moved" in done.out


def test_it_shows_the_rounds_and_ends_with_a_table(run):
    done = run("run", write(small()))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("small.toml: gaussians, 5 clients, fedavg with mlp, 6 rounds, re-labelling in round 4")
    assert lines[1] == "run folder runs/small; 1 worker"
    assert lines.pop(2).startswith("columns: numbers ")
    rounds = [re.match(r"round (\d+)/6  overall [\d.]+ %  majority [\d.]+ %  minority [\d.]+ %", x) for x in lines[2:8]]
    assert [int(found[1]) for found in rounds] == [1, 2, 3, 4, 5, 6]
    moved = [int(re.search(r"moved (\d+)", line)[1]) for line in lines[2:8]]
    assert moved[:3] == [0, 0, 0]
    assert moved[3] == moved[5] > 0
    result = RunFolder.open("runs/small").read_json("result.json")
    assert re.search(rf"^overall +{100 * result['accuracy']['overall']:.1f} %$", done.out, re.M)
    assert re.search(rf"^minority +{100 * result['accuracy']['groups']['minority']:.1f} %$", done.out, re.M)
    assert re.search(rf"^labels moved  {result['moved']} of \d+, by 5 clients$", done.out, re.M)
    assert "\nrun folder    runs/small\n" in done.out
    assert 'Result.load("runs/small").weights()' in done.out
    assert "enabled = false" in done.out
    assert all(line == line.rstrip() for line in lines)


def test_the_default_folder_is_numbered_when_it_is_taken(run):
    config = write(small(train={"rounds": 1}, relabel={"start": 1}))
    assert [run("run", config).code for _ in range(3)] == [0, 0, 0]
    assert sorted(path.name for path in Path("runs").iterdir()) == ["small", "small-2", "small-3"]
    assert bytes_of("runs/small") == bytes_of("runs/small-3")


def cut_off(folder, table, rounds):
    with begin(table, out=folder) as recorded:
        for _ in zip(range(rounds), recorded.rounds(), strict=False):
            pass


def test_an_interrupted_run_of_the_same_configuration_is_named(run):
    config = write(small())
    for folder, table, rounds in (
        ("runs/small", small(seed=9), 5),  # another configuration
        ("runs/small-2", small(), 2),
        ("runs/small-3", small(), 4),
        ("runs/smaller", small(), 5),  # of another file
    ):
        cut_off(folder, table, rounds)
    Path("runs/small-4").mkdir()
    done = run("run", config)
    assert (done.code, done.err) == (0, "")
    lines, command = done.out.splitlines(), "`fedrela resume runs/small-3`"
    said = f"note: runs/small-3: the same run, interrupted at round 4; {command} continues it, this one begins anew"
    assert lines[0] == said
    assert lines[1].startswith("small.toml: gaussians")
    assert lines[2] == "run folder runs/small-5; 1 worker"
    assert run("resume", "runs/small-3").code == 0
    assert "runs/small-2: the same run, interrupted at round 2" in run("run", config).out
    assert run("resume", "runs/small-2").code == 0
    assert "note: " not in run("run", config).out
    assert "note: " not in run("run", config, "--out", "named").out


@pytest.mark.parametrize(
    ("relabel", "is_said"), [({"tau": 0.3}, True), ({"tau": 0.2}, False), ({"max_fraction": 0.9}, False)]
)
def test_a_tau_by_which_all_labels_could_move_is_named(run, relabel, is_said):
    done = run("run", write(small(relabel={"start": 4, "tau": 0.3} | relabel, train={"rounds": 4, "epochs": 1})))
    said = (
        "note: tau 0.3 is per class: with 4 classes all labels could move; tau = 0.2 or a max_fraction would limit them"
    )
    assert (said in done.out.splitlines()) is is_said


def test_tables_about_several_runs_are_left_out_and_it_says_so(run):
    table = small(compare={"seeds": 2}, train={"rounds": 1}, relabel={"start": 1})
    done = run("run", write(table))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "note: fedrela run leaves out [compare]; `fedrela compare small.toml` uses it"
    assert lines[1].startswith("small.toml: ")


def test_many_rounds_get_about_a_dozen_lines(run):
    config = write(small(train={"rounds": 50, "evaluate_every": 50}, relabel={"start": 37}))
    rounds = [int(number) for number in re.findall(r"^round (\d+)/50 ", run("run", config).out, re.M)]
    assert {1, 37, 50} <= set(rounds)
    assert 12 <= len(rounds) <= 14
    assert rounds == sorted(rounds)


def test_what_else_was_scored_is_shown(run):
    table = small(data={"validation": 0.3}, train={"local_test": True}, relabel={"enabled": False})
    table["data"]["options"] = {"classes": 2, "samples": [200, 40], "test_samples": [60, 20]}
    table["data"]["imbalance"] = {"kind": "natural"}
    out = run("run", write(table)).out
    names = re.findall(r"^(.+?) {2,}[\d.]+ %$", out, re.M)
    assert names[:2] == ["balanced", "overall"], "what counts most comes first"
    assert names[-5:] == [
        "AUROC",
        "AUPRC of class 1",
        "balanced, on validation data",
        "balanced, threshold from validation",
        "mean over clients' own test data",
    ]
    assert "labels moved  0 of " in out
    assert "enabled = false" not in out


def test_clients_that_were_lost_are_told(run):
    table = small(data={"partition": {"kind": "dirichlet", "clients": 20, "alpha": 0.02, "min_size": 0}})
    done = run("run", write(table))
    assert done.code == 0
    found = re.search(
        r"^excluded (\d+) updates of (\d+) clients, last client \d+ in round 6: no samples$", done.out, re.M
    )
    assert int(found[1]) == 6 * int(found[2]) > 0
    assert done.out.count("excluded ") > 3, "the lines of the rounds say it too"


def test_a_note_says_why_a_run_is_serial(run, monkeypatch):
    def refuse(*_):
        raise OSError("no more processes")

    monkeypatch.setattr("fedrela.engine.executors.forkserver.start", refuse)
    out = run("run", write(small()), "--workers", "2").out
    assert re.search(r"^run folder runs/small; 1 worker\n(columns: .*\n)?note: .*no more processes", out, re.M)


def test_a_named_folder_that_has_a_run_is_left_alone(run):
    config = write(small())
    assert run("run", config, "--out", "mine").code == 0
    before = bytes_of("mine")
    done = run("run", config, "--out", "mine")
    assert (done.code, done.line()) == (2, "--out: mine: already holds a run, done; choose another folder")
    assert bytes_of("mine") == before
    with begin(small(), out="cut off") as execution:
        next(execution.rounds())
        busy = run("run", config, "--out", "cut off")
        assert busy.code == 5
        assert busy.line() == "--out: cut off: a run is running at round 1 here; wait until it has ended"
    done = run("run", config, "--out", "cut off")
    assert done.code == 2
    assert done.line() == (
        "--out: cut off: already holds a run, interrupted at round 1; continue it with `fedrela resume 'cut off'`"
    )


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[train]\nround = 3", 2, "bad.toml:2:1: train.round: unknown key; nearest: rounds"),
        ("[data]\nsource = 'npz'\nroot = 'none.npz'", 3, "bad.toml:3:8: data.root: "),
        (
            "[data]\nimbalance = { kind = 'step', ratio = 5000, minority = [0] }",
            3,
            "bad.toml:2:13: data.imbalance: class 0",
        ),
        ("[train]\naugment = true\n[data]\nsource = 'gaussians'", 2, "bad.toml:2:11: train.augment: crops and flips"),
        (
            "[data]\nsource = 'csv'\nroot = 'one.csv'",
            3,
            "bad.toml:2:10: data.source: every sample is of the class ill;",
        ),
    ],
)
def test_what_cannot_be_run_gets_one_line_and_leaves_nothing(run, text, code, said):
    Path("bad.toml").write_text(text)
    Path("one.csv").write_text("x,label\n" + "1,ill\n2,ill\n" * 99)
    done = run("run", "bad.toml")
    assert done.code == code
    assert done.err.startswith(f"fedrela: {said}")
    assert done.err.count("\n") == 1
    assert not Path("runs").exists()


def test_a_folder_with_other_files_and_a_wrong_number_of_workers(run):
    config = write(small())
    for workers in ("0", "two", "-1", "1.5"):
        done = run("run", config, "--workers", workers)
        assert done.code == 2
        assert "workers: expected 'auto' or an integer from 1 to 1024" in done.err
    done = run("run", config, "--out", ".")
    assert done.code == 2
    assert done.err == "fedrela: .: contains other files; choose a new or an empty folder\n"


@contextlib.contextmanager
def started(*arguments, **more) -> Iterator[subprocess.Popen]:
    """Yield a command that runs in a session of its own; all of that is killed if the test fails meanwhile."""
    command = [sys.executable, "-m", "fedrela.cli.main", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, start_new_session=True, **more) as process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def session_members(leader: int) -> list[str]:
    """Return the command names of all processes in the session of `leader` that are not mere zombies."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = place.read_text().rsplit(")", 1)
        except OSError:
            continue
        state, _, _, session = rest.split()[:4]
        if int(session) == leader and state != "Z":
            found.append(name)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_ctrl_c_leaves_a_folder_to_resume_and_nothing_else(run, request, fast_folder, number):
    """So do the signals of systemd, SLURM, containers and terminals that are closed, however often they come."""
    if number == signal.SIGHUP and not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery")
    config = write(LONG, "long.toml")
    whole = run_experiment(LONG, out="whole")
    with started("run", config, "--workers", "2", env=os.environ | {"TMPDIR": str(fast_folder)}) as process:
        for line in process.stdout:
            if line.startswith("round 7/"):
                break
        os.killpg(process.pid, signal.SIGSTOP)  # so that it cannot end before it is looked at
        assert len(session_members(process.pid)) > 3, "its workers and their server"
        assert [run(*verb).code for verb in (("resume", "runs/long"), ("run", config, "--out", "runs/long"))] == [5, 5]
        os.killpg(process.pid, number)  # as a terminal does: to every process of the group
        os.killpg(process.pid, signal.SIGCONT)
        for _ in range(20):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            time.sleep(0.005)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(
        r"fedrela: runs/long: interrupted at round \d+; continue with `fedrela resume runs/long`\n"
        r"fedrela: interrupted\n", err,
    )  # fmt: skip
    until = time.monotonic() + 30
    while session_members(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert session_members(process.pid) == []
    assert list(Path("/dev/shm").glob(f".fedrela-{process.pid}-*")) == []
    assert list(fast_folder.iterdir()) == []
    done = run("resume", "runs/long")
    assert done.code == 0
    assert re.search(r"^run folder runs/long; 1 worker; continues after round \d+$", done.out, re.M)
    assert bytes_of("runs/long") == bytes_of(whole.folder)


def test_interrupted_before_there_is_a_run(run, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fedrela.experiment.runner.build_data", stop)
    done = run("run", write(small()))
    assert (done.code, done.err) == (130, "fedrela: interrupted\n")


def test_help_teaches(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    words = ("Example", "fedrela init; fedrela run digits.toml", "--out", "--workers", "Ctrl-C", "fedrela resume")
    shown = run("run", "--help").out
    assert [word for word in words if word not in shown] == []
