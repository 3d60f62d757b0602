"""`fedrela results`: every run is recorded when it ends and never done again; recorded runs can be checked."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fedrela.data.sources import load
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.errors import DataError
from fedrela.experiment import compare
from fedrela.experiment.toml.writer import toml_text
from fedrela.reproduction import studies, study_records
from fedrela.reproduction.studies import Study
from helpers.small_runs import small

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")
ROOT = Path(__file__).parents[2]
ARMS = ["baseline", "fedrela"]


def write(name="one", **tables) -> Path:
    """Write a study of two arms with two seeds."""
    folder = Path("results") / name
    folder.mkdir(parents=True, exist_ok=True)
    config = small(**{"compare": {"arms": ARMS, "seeds": 2}} | tables)
    (folder / "study.toml").write_text(toml_text(config))
    return folder


def test_each_run_is_recorded_with_what_its_folder_says(run):
    folder = write()
    done = run("results", "run", folder)
    assert (done.code, done.err) == (0, "")
    assert "one: 4 of 4 runs recorded" in done.out
    found = json.loads((folder / "summary.json").read_text())["cells"]
    assert [(cell["arm"], cell["seed"]) for cell in found] == [
        ("baseline", 1),
        ("fedrela", 1),
        ("baseline", 2),
        ("fedrela", 2),
    ]
    same = compare(small(compare={"arms": ARMS, "seeds": 2}), out="again").record["baselines"][0]["arms"]
    for arm in ARMS:
        for metric in ("minority", "overall"):
            mine = [cell["groups"].get(metric, cell.get(metric)) for cell in found if cell["arm"] == arm]
            assert mine == pytest.approx(same[arm][metric]["values"], abs=1e-6)
    for cell in found:
        assert cell["rounds"] == 6
        assert (cell["moved"] > 0) == (cell["arm"] == "fedrela")
        assert cell["environment"]["torch"] == torch.__version__
        assert cell["curve"][-1] == [6, cell["overall"]]


def test_a_run_is_recorded_before_the_next_one_begins():
    study = Study(write(compare={"arms": ARMS, "seeds": 1}))
    (grid,) = study.grids()
    known = {}
    for progress in study.run(grid, SerialExecutor()):
        recorded = json.loads((study.folder / "summary.json").read_text())["cells"]
        known.setdefault(progress.task.cell and progress.task.cell.arm, len(recorded))
    assert known == {None: 0, "baseline": 0, "fedrela": 1}
    assert len(study.summary()["cells"]) == 2


def test_some_runs_of_a_study_alone(run):
    folder = write(sweep={"relabel.tau": [0.05, 0.2]})
    done = run("results", "run", folder, "--only", "seed=2,fedrela,tau=0.2", "--workers", 1)
    assert (done.code, done.err) == (0, "")
    (found,) = json.loads((folder / "summary.json").read_text())["cells"]
    assert (found["arm"], found["seed"], found["values"]) == ("fedrela", 2, {"relabel.tau": 0.2})
    wrong = run("results", "run", folder, "--only", "seed=3")
    assert (wrong.code, wrong.line()) == (2, "only: expected one of 1, 2, got '3'")
    wrong = run("results", "run", "results", "--only", "seed=1")
    assert (wrong.code, wrong.line()) == (2, "only: expected the folder of one study with it")


def test_what_is_recorded_is_not_run_again_even_without_its_run_folder(run):
    folder = write()
    assert run("results", "run", folder, "--seeds", "1").code == 0
    before = (folder / "summary.json").read_bytes()
    assert b'"seed": 2' not in before
    shutil.rmtree("runs")
    assert run("results", "run", folder).code == 0
    assert [place.name.split("-s")[1][0] for place in sorted(Path("runs/results/runs").iterdir())] == ["2", "2"]
    cells = Study(folder).summary()["cells"]
    assert [cell for cell in cells if cell["seed"] == 1] == json.loads(before)["cells"]
    write(train={"lr": 0.02})
    assert len(Study(folder).remaining()) == 4, "the records are of another configuration"
    assert run("results", "run", folder, "--seeds", "1", "--drop").code == 0
    assert len(Study(folder).summary()["cells"]) == 2, "other records are gone"


def test_a_new_key_with_a_default_leaves_records_as_they_are(run, monkeypatch):
    folder = write()
    assert run("results", "run", folder, "--seeds", "1").code == 0
    monkeypatch.setattr("fedrela.experiment.grid.config_sha256", lambda config: "f" * 64)
    assert len(Study(folder).remaining()) == 2
    write(engine={"workers": 2})
    assert len(Study(folder).remaining()) == 2
    write(train={"lr": 0.02})
    assert len(Study(folder).remaining()) == 4


def test_a_baseline_with_other_settings_is_another_run(run):
    def study(**train):
        baselines = [{"name": "fedavg"}, {"name": "fedavg", "label": "ours", "train": {"lr": 0.01, **train}}]
        return write(compare={"arms": ["baseline"], "seeds": 1, "baselines": baselines})

    assert run("results", "run", study()).code == 0
    assert not Study(study()).remaining()
    assert [cell.baseline for cell in Study(study(lr=0.02)).remaining()] == ["ours"]


def test_more_seeds_leave_the_records_of_a_table_as_they_are(tmp_path):
    found = []
    for seeds, protocol in ((1, "matched"), (2, "both")):
        (tmp_path / "study.toml").write_text(
            f'reproduce = "tab:step"\nscale = "smoke"\nseeds = {seeds}\nprotocol = "{protocol}"\n'
        )
        found.append(set(Study(tmp_path)._runs))
    assert found[0] < found[1]


def test_rows_that_are_one_run_are_verified_once(run):
    folder = write(sweep={"relabel.tau": [0.1, 0.2]}, compare={"arms": ["baseline"], "seeds": 1})
    assert run("results", "run", folder).code == 0
    assert len(Study(folder).recorded()) == 2
    done = run("results", "verify", folder, "--cells", "2")
    assert done.line() == "--cells: expected at most 1, the runs that are recorded, got 2"
    assert run("results", "verify", folder, "--cells", "1").code == 0


def test_a_selection_needs_validation_samples(run):
    write("select", sweep={"train.lr": [0.1]}, compare={"seeds": 1, "arms": ["baseline"]})
    assert run("results", "run", "results/select").code == 0
    with pytest.raises(DataError, match=r"select: nothing can be chosen: data\.validation is 0"):
        Study("results/select").choice()


def test_the_queue_goes_on_after_a_study_that_cannot_be_run(run):
    write("good", compare={"arms": ["baseline"], "seeds": 1})
    write("bad", data={"source": "npz", "options": {"file": "gone.npz"}})
    Path("results/queue.toml").write_text(
        "".join(f'[[study]]\nname = "{name}"\ntitle = "the {name} one"\nminutes = 2\n' for name in ("bad", "good"))
    )
    done = run("results", "run")
    assert done.code == 3
    assert "results/bad: " in done.err
    assert "gone.npz is missing" in done.err
    assert "good: 1 of 1 run recorded" in done.out
    listed = run("results", "list").out
    assert "0 / 4" in listed
    assert "1 / 1" in listed
    assert "the good one" in listed


def test_a_recorded_run_is_the_same_when_it_is_done_again(run):
    folder = write()
    assert run("results", "run", folder).code == 0
    done = run("results", "verify", folder, "--cells", "2", "--seed", "7")
    assert done.code == 0
    assert done.out.count("as recorded: the same weights, bit by bit") == 2
    text = (folder / "summary.json").read_text()
    for cell in Study(folder).summary()["cells"]:
        text = text.replace(cell["weights_sha256"], "0" * 64)
    (folder / "summary.json").write_text(text)
    done = run("results", "verify", folder, "--cells", "1")
    assert done.code == 4
    assert "NOT as recorded: other weights" in done.out
    (folder / "summary.json").write_text(text.replace(torch.__version__, "1.0"))
    done = run("results", "verify", folder, "--cells", "1")
    assert done.code == 0
    assert "overall differs by 0.0 points, within the tolerance of 2" in done.out


def test_a_selection_gives_each_baseline_its_own_values(run):
    baselines = [{"name": "fedavg"}, {"name": "fedavg", "label": "wide", "model": {"hidden": [16]}}]
    sweep = {"sweep": {"train.lr": [1e-6, 0.1]}, "data": {"validation": 0.3}}
    write("select", **sweep, compare={"seeds": [9], "arms": ["baseline"], "baselines": baselines})
    folder = write("chosen", compare={"seeds": 1, "baselines": baselines})
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(f'selection = "select"\n{text}')
    assert "results/select: nothing is chosen yet; 4 runs left" in run("results", "run", folder).err
    assert run("results", "run", "results/select").code == 0
    assert Study("results/select").choice() == {"FedAvg": {"train.lr": 0.1}, "wide": {"train.lr": 0.1}}
    assert {cell.config.train.lr for cell in Study(folder).cells} == {0.1}
    (folder / "study.toml").write_text(f'selection = "select"\n{text.replace("wide", "wider")}')
    assert "wider: is not among the baselines of select" in run("results", "run", folder).err
    (folder / "study.toml").write_text(f'selection = "select"\n{text}')
    assert {cell.config.model.options["hidden"] for cell in Study(folder).cells if cell.baseline == "wide"} == {(16,)}


def test_keys_that_a_baseline_sets_itself_are_not_chosen_by_another_one(run, monkeypatch):
    sweep = {"sweep": {"train.lr": [0.1], "train.epochs": [2]}, "data": {"validation": 0.3}}
    write("select", **sweep, compare={"seeds": [9], "arms": ["baseline"]})
    assert run("results", "run", "results/select").code == 0
    own = ["fedavg", {"name": "fedprox", "train": {"lr": 0.02}}]
    folder = write("chosen", compare={"seeds": 1, "arms": ["baseline"], "baselines": own})
    (folder / "study.toml").write_text(f'selection = "select"\n{(folder / "study.toml").read_text()}')
    trained = [(cell.baseline, cell.config.train.lr, cell.config.train.epochs) for cell in Study(folder).cells]
    assert trained == [("FedAvg", 0.1, 2), ("FedProx", 0.02, 2)]
    monkeypatch.chdir(folder)
    assert len(Study(".").cells) == 2, "the selection is found beside it also from within"


def test_records_are_dropped_only_if_asked_for(run):
    folder = write()
    assert run("results", "run", folder).code == 0
    text = (folder / "summary.json").read_text()
    write(train={"rounds": 7})
    done = run("results", "run", folder, "--store", "elsewhere")
    assert done.code == 2
    assert "4 records in summary.json: study.toml no longer has such runs; restore study.toml, or --drop" in done.line()
    assert (folder / "summary.json").read_text() == text
    assert run("results", "run", folder, "--store", "elsewhere", "--drop").code == 0
    assert {cell["rounds"] for cell in Study(folder).summary()["cells"]} == {7}


def test_a_record_names_the_machine_on_which_the_run_started(run, monkeypatch):
    folder = write()
    assert run("results", "run", folder).code == 0
    text = (folder / "summary.json").read_text()
    (folder / "summary.json").unlink()
    monkeypatch.setattr(study_records, "processor", lambda: "another one")
    assert run("results", "run", folder).code == 0
    assert (folder / "summary.json").read_text() == text


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("one/summary.json", "{", 4, "one/summary.json: is not JSON; restore it"),
        ("one/study.toml", "reproduce = 5", 2, "expected reproduce = the name of a table"),
        ("one/study.toml", "reproduce = 'lt'\nevery = 'yes'", 2, "every = true or false"),
        ("queue.toml", "study = [{ name = 'one', minutes = '10' }]", 2, "expected tables [[study]] with name"),
    ],
)
def test_damaged_files_are_named(run, name, text, code, words):
    write()
    Path("results/queue.toml").write_text("study = [{ name = 'one', minutes = 1 }]")
    (Path("results") / name).write_text(text)
    done = run("results", "run")
    assert done.code == code
    assert words in done.line()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "nowhere"), 3, "nowhere/queue.toml: is missing"),
        (("verify", "results/one"), 3, "summary.json: no run is recorded"),
        (("verify", "results"), 3, "results/study.toml: is missing"),
    ],
)
def test_what_is_missing_is_named(run, arguments, code, words):
    write()
    done = run("results", *arguments)
    assert done.code == code
    assert words in done.line()


def test_a_table_of_the_paper_is_a_study(tmp_path):
    (tmp_path / "study.toml").write_text('reproduce = "tab:step"\nscale = "smoke"\nseeds = 2\n')
    study = Study(tmp_path)
    assert {cell.seed for cell in study.cells} == {1, 2}
    assert {cell.arm for cell in study.cells} == {"baseline", "fedrela"}
    (tmp_path / "study.toml").write_text('reproduce = "tab:step"\nsize = "smoke"\n')
    with pytest.raises(ValueError, match="size"):
        _ = Study(tmp_path).cells


KEPT = sorted(path.name for path in (ROOT / "results").iterdir() if path.is_dir() and path.name != "__pycache__")


@pytest.mark.parametrize("name", KEPT)
def test_every_record_belongs_to_its_study(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)  # a study may have a source of its own, such as results.noisy
    study = Study(ROOT / "results" / name)
    assert {path.name for path in study.folder.iterdir()} <= {studies.STUDY, studies.SUMMARY}
    if (study.folder / studies.SUMMARY).exists():
        summary = study.summary()
        assert len(summary["cells"]) == len(study.recorded()), "records of other runs"
        assert summary["runs"] == len(study.cells)


def test_every_study_is_queued_and_all_are_small():
    assert {each.folder.name for each in studies.read_queue(ROOT / "results")} == set(KEPT)
    assert sum(path.stat().st_size for path in (ROOT / "results").rglob("*") if path.is_file()) < 5_000_000


def alter(folder, **changed):
    """Write other values into every record."""
    summary = json.loads((folder / "summary.json").read_text())
    summary["cells"] = [{**cell, **changed} for cell in summary["cells"]]
    (folder / "summary.json").write_text(json.dumps(summary))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"groups": {"majority": 0.9, "minority": 0.99}}, "groups"),
        ({"per_class": [1.0] * 10}, "per_class"),
        ({"moved": 5000}, "moved"),
        ({"curve": [[6, 0.99]]}, "curve"),
        ({"config_sha256": "0" * 64}, "config_sha256"),
        ({"data_sha256": "0" * 64}, "data_sha256"),
        ({"overall": 1.0}, "overall (off by "),
    ],
)
def test_a_record_that_was_changed_by_hand_is_noticed(run, changed, words):
    folder = write(compare={"arms": ["fedrela"], "seeds": 1})
    assert run("results", "run", folder).code == 0
    assert run("results", "verify", folder, "--cells", "1").code == 0
    alter(folder, **changed)
    done = run("results", "verify", folder, "--cells", "1")
    assert done.code == 4
    assert f"NOT as recorded: the same weights, bit by bit, but the record has another {words}" in done.out


def test_elsewhere_groups_have_a_tolerance_of_their_own(run):
    folder = write(compare={"arms": ["fedrela"], "seeds": 1})
    assert run("results", "run", folder).code == 0
    record = json.loads((folder / "summary.json").read_text())["cells"][0]
    elsewhere = {"environment": {"torch": "1"}, "weights_sha256": "0" * 64}
    near = {**record["groups"], "minority": record["groups"]["minority"] + 0.09}
    alter(folder, **elsewhere, groups=near)
    assert run("results", "verify", folder, "--cells", "1").code == 0
    alter(folder, groups={**near, "minority": record["groups"]["minority"] + 0.11})
    done = run("results", "verify", folder, "--cells", "1")
    assert done.code == 4
    assert "groups.minority differs by 11.0 points, more than the tolerance of 10" in done.out


def test_two_processes_that_run_a_study_keep_each_others_records():
    folder = write(compare={"arms": ARMS, "seeds": 1})
    both = [Study(folder, f"store-{i}") for i in range(2)]
    assert [len(study.records) for study in both] == [0, 0], "both begin before either has written"
    for study, arm in zip(both, ARMS, strict=True):
        (grid,) = study.grids(only=arm)
        for _ in study.run(grid, SerialExecutor()):
            pass
    assert len(Study(folder).records) == 2


def save(sign: int):
    """Write the digits as a table of one's own, with every pixel times `sign`."""
    digits = load("digits")
    arrays = {"x_train": sign * digits.x_train.astype(np.float32), "x_test": sign * digits.x_test.astype(np.float32)}
    Path("data").mkdir(exist_ok=True)
    np.savez("data/own.npz", **arrays, y_train=digits.y_train, y_test=digits.y_test)


def test_runs_on_other_data_are_not_recorded_beside_earlier_ones(run):
    save(1)
    own = {"source": "npz", "options": {"file": "own.npz"}}
    folder = write(data=own, compare={"arms": ["baseline"], "seeds": 2})
    assert run("results", "run", folder, "--seeds", "1").code == 0
    text = (folder / "summary.json").read_text()
    save(-1)
    done = run("results", "run", folder)
    assert done.code == 4
    assert "the data changed since other runs were recorded; restore what was, or remove summary.json" in done.err
    assert (folder / "summary.json").read_text() == text


def test_runs_of_other_code_are_not_recorded_beside_earlier_ones(run, monkeypatch):
    monkeypatch.syspath_prepend(".")
    body = "from fedrela.models import build\n"
    body += "def make(shape, classes, hidden=(8,)):\n    return build('mlp', shape, classes, hidden=hidden)"
    folder = write(model={"name": "own_net:make"}, compare={"arms": ["baseline"], "seeds": 2})
    for text, code in ((body, 0), (f"{body}  # other code", 4)):
        Path("own_net.py").write_text(text)
        sys.modules.pop("own_net", None)
        done = run("results", "run", folder, *(["--seeds", "1"] if not code else ()))
        assert done.code == code
    assert "your own code in own_net changed since other runs were recorded" in done.err
    assert len(Study(folder).records) == 1


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda cells: cells * 2, "cells[1]: this run is recorded twice; restore the file"),
        (lambda cells: [{k: v for k, v in cells[0].items() if k != "address"}], "cells[0].address: is missing or no"),
        (lambda cells: [cells[0] | {"overall": "high"}], "cells[0].overall: is missing or no overall"),
        (lambda cells: [cells[0] | {"overall": float("nan")}], "is not JSON"),
        (lambda cells: ["a"], "cells[0]: expected a table, got str"),
        (lambda cells: {}, "expected a list of cells"),
    ],
)
def test_damaged_records_are_named(run, damage, words):
    folder = write(compare={"arms": ["baseline"], "seeds": 1})
    assert run("results", "run", folder).code == 0
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**summary, "cells": damage(summary["cells"])}))
    for arguments in (("run", folder), ("verify", folder, "--cells", "1")):
        done = run("results", *arguments)
        assert done.code == 4
        assert words in done.err


def test_a_selection_cannot_wait_for_itself(run):
    for name, other in (("one", "two"), ("two", "one")):
        folder = write(name)
        (folder / "study.toml").write_text(f'selection = "{other}"\n{(folder / "study.toml").read_text()}')
    done = run("results", "run", "results/one")
    assert (done.code, "selection: one waits for this study's own runs" in done.err) == (2, True)
    (folder / "study.toml").write_text((folder / "study.toml").read_text().replace('"one"', '"oen"'))
    done = run("results", "run", "results/two")
    assert (done.code, "expected the name of a study beside it, got 'oen'" in done.err) == (2, True)


def test_a_study_alone_has_the_exit_code_of_its_error(run):
    folder = write()
    (folder / "study.toml").write_text("[trian]\n")
    assert run("results", "run", folder).code == 2
    Path("results/queue.toml").write_text("study = [{ name = 'one', minutes = 1, seeds = '1' }]")
    assert run("results", "run").code == 2


def test_a_run_folder_of_another_run_is_refused(run):
    folder = write(compare={"arms": ARMS, "seeds": 1})
    assert run("results", "run", folder).code == 0
    (folder / "summary.json").unlink()
    one, other = (Path("runs/results/runs") / cell.name for cell in Study(folder).cells)
    for source, target in ((one, "swap"), (other, one), ("swap", other)):
        Path(source).rename(target)
    done = run("results", "run", folder)
    assert (done.code, "is the run of another configuration; was the folder renamed?" in done.err) == (4, True)


def test_rounds_that_were_changed_by_hand_are_not_recorded(run):
    folder = write(compare={"arms": ["baseline"], "seeds": 1})
    assert run("results", "run", folder).code == 0
    (folder / "summary.json").unlink()
    (cell,) = Study(folder).cells
    rounds = Path("runs/results/runs") / cell.name / "rounds.jsonl"
    rounds.write_bytes(rounds.read_bytes().replace(b"0.", b"0.9", 1))
    done = run("results", "run", folder)
    assert (done.code, "rounds.jsonl: does not match its digest" in done.err) == (4, True)
