"""`fedrela check CONFIG [--show]`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedrela.experiment.load import config_sha256, load_config
from fedrela.experiment.schema import Config
from fedrela.models import runtime

VALID = {
    "": "digits, 10 clients, fedavg with mlp, 60 rounds, re-labelling in round 48 (tau 0.05); seed 1",
    "seed = 7\n[train]\nrounds = 1\n[data]\npartition = { kind = 'iid', clients = 1 }": (
        "digits, 1 client, fedavg with mlp, 1 round, re-labelling in round 1 (tau 0.05); seed 7"
    ),
    "[train]\nrounds = 2000\nparticipation = 0.1\n[relabel]\nperiod = 5\ntau = { 0 = 0.1, default = 0.02 }\n"
    "[data]\nsource = 'cifar10'\npartition = { kind = 'iid', clients = 1200 }\n[model]\nname = 'resnet8'\n"
    "[algorithm]\nname = 'fedprox'": (
        "cifar10, 1,200 clients (120 per round), fedprox with resnet8, 2,000 rounds, re-labelling in round 1,600 and "
        "every 5 rounds (tau 0.02, different for 1 client); seed 1"
    ),
    "relabel.enabled = false\ntrain.participation = 0.25\n[data]\nsource = 'csv'\npartition.kind = 'natural'": (
        "csv, the source's own clients (0.25 of them per round), fedavg with mlp, 60 rounds, no re-labelling; seed 1"
    ),
}


@pytest.fixture
def write(tmp_path):
    def save(text: str, name: str = "run.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return save


@pytest.mark.parametrize("text", VALID)
def test_a_valid_configuration_gets_one_line_that_says_what_it_would_run(run, write, text):
    path = write(text)
    done = run("check", path)
    assert (done.code, done.out, done.err) == (0, f"{path}: valid: {VALID[text]}\n", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[compare]\nseeds = 2", "[compare]; `fedrela compare {0}` uses it"),
        ("sweep.'relabel.tau' = [0.1]", "[sweep]; `fedrela sweep {0}` uses it"),
        (
            "compare.seeds = 2\nsweep.'relabel.tau' = [0.1]",
            "[compare] and [sweep]; `fedrela compare {0}` and `fedrela sweep {0}` use them",
        ),
    ],
)
def test_tables_about_several_runs_have_commands_of_their_own(run, write, text, said):
    path = write(text)
    done = run("check", path)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{path}: valid: {VALID['']}\nnote: fedrela run leaves out {said.format(path)}\n"


@pytest.mark.parametrize("text", [*VALID, "[data]\nroot = 'a é'", "sweep.'relabel.tau' = [0.1, 0.2]"])
def test_what_show_prints_is_the_same_configuration(run, write, text):
    path = write(text)
    done = run("check", path, "--show")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"# {path}: valid: ")
    full = load_config(write(done.out, "full.toml"))
    assert full == load_config(path)
    assert config_sha256(full) == config_sha256(load_config(path))
    again = run("check", path.parent / "full.toml", "--show").out
    assert again.splitlines()[1:] == done.out.splitlines()[1:]


def test_show_names_every_key_and_says_what_it_is(run, write):
    lines = run("check", write(""), "--show").out.splitlines()
    assert "start = 0.8           # first round of re-labelling: a share of all rounds (0.8), or a round (48)" in lines
    assert "hidden = [200]" in lines
    for name, table in Config():
        assert name == "seed" or table is None or f"[{name}]" in lines
        for key, field in getattr(type(table), "model_fields", {}).items():
            shown = re.compile(rf"(# )?{key} = .*# {re.escape(field.description)}|# {re.escape(field.description)}")
            assert any(shown.fullmatch(line) for line in lines), key
    assert max(map(len, lines[1:])) < 180


def test_every_problem_gets_its_line(run, write):
    path = write("[train]\nrounds = 0\nlr = -1\nround = 3\n[relabel]\ntau = 5\n[engine]\nworkers = 0\n")
    done = run("check", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f"fedrela: {path}:2:10: train.rounds: expected an integer from 1 to 1000000, got 0",
        f"fedrela: {path}:3:6: train.lr: expected a number > 0, got -1",
        f"fedrela: {path}:4:1: train.round: unknown key; nearest: rounds",
        f"fedrela: {path}:6:7: relabel.tau: expected a fraction from 0 to 1, got 5; the official code counts in per "
        "cent: 5 there is 0.05 here",
        f"fedrela: {path}:8:11: engine.workers: expected 'auto' or an integer from 1 to 1024, got 0",
    ]
    shown = run("check", path, "--show")
    assert (shown.code, shown.out, shown.err) == (2, "", done.err)
    assert run("--debug", "check", path).err.endswith(done.err.splitlines()[-1] + "\n")


def test_very_many_problems_are_counted(run, write):
    path = write("\n".join(f"k{i} = 1" for i in range(1000)))
    done = run("check", path)
    assert done.code == 2
    lines = done.err.splitlines()
    assert len(lines) == 51
    assert lines[-1] == f"fedrela: {path}: and 950 more"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[train]\nrounds = 60\nrounds = 50\n", "run.toml:3:12: train.rounds: given twice"),
        ("[model]\nhidden = 64", "run.toml:2:10: model.hidden: expected a list of integers, one per layer, got 64"),
        ("[algorithm]\nname = 'fedprox'\nnu = 1", "run.toml:3:1: algorithm.nu: unknown key; nearest: mu"),
        ("[algoritm]", "run.toml:1:2: algoritm: unknown key; nearest: algorithm"),
        ("[train]\nmin_clients = 11", "run.toml:2:15: train.min_clients: expected at most 10"),
        ("x = '\x1b'", "run.toml:1:6: x: "),
    ],
)
def test_one_problem_is_one_line(run, write, text, said):
    path = write(text)
    done = run("check", path)
    assert done.code == 2
    assert done.line().startswith(f"{path.parent}/{said}")
    assert done.line().isprintable()


def test_a_file_that_is_not_there(run, tmp_path):
    done = run("check", tmp_path / "none.toml")
    assert done.code == 2
    assert done.line().startswith(f"{tmp_path}/none.toml: cannot be read: No such file or directory")


def test_a_hostile_file_name_stays_one_comment(run, write):
    path = write("", "a\nseed = 2\x1b.toml")
    done = run("check", path, "--show")
    assert done.out.splitlines()[0].startswith(f"# {path.parent}/a\\nseed = 2\\x1b.toml: valid: ")
    assert load_config(write(done.out)).seed == 1


def test_help_teaches(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = run("check", "--help")
    assert done.code == 0
    words = (
        "Example",
        "fedrela check run.toml --show > full.toml",
        "file:line:column: key",
        "exit code is 2",
        "data show",
    )
    assert [word for word in words if word not in done.out] == []
    assert "check" in run("--help").out


def test_a_precision_that_the_processor_lacks_is_said_before_anything_is_run(run, tmp_path, monkeypatch):
    path, flags = tmp_path / "run.toml", tmp_path / "cpuinfo"
    path.write_text('[train]\nprecision = "float16"\n')
    flags.write_text("flags\t\t: fpu avx2\n")
    monkeypatch.setattr(runtime, "CPU_INFO", flags)
    for verb in ("check", "run"):
        done = run(verb, path)
        assert done.code == 2
        what = "this processor has no instructions for float16; use float32"
        assert f"{path}:2:13: train.precision: {what}\n" in done.err


def test_a_device_that_is_not_there_is_said_before_anything_is_run(run, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[engine]\ndevice = "cuda:7"\n')
    what = "torch finds no cuda:7 here; choose cpu or auto"
    for verb in ("check", "run"):
        done = run(verb, path)
        assert done.code == 2
        assert f"{path}:2:10: engine.device: {what}\n" in done.err
