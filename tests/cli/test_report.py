"""`fedrela report FOLDER`: writes the page, figures and a copy for sharing, and says where they are."""

from __future__ import annotations

import re
import shutil

import pytest
import torch

from fedrela.errors import IntegrityError
from fedrela.experiment import Result, begin
from fedrela.experiment import run as run_experiment
from fedrela.report.writing import write_report
from fedrela.runfolder import RunFolder
from helpers.small_runs import small

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run_experiment(small(), out=tmp_path_factory.mktemp("whole") / "run").folder


def test_it_writes_the_page_and_says_where(run, whole):
    done = run("report", whole)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"report   {whole}/report.html\n"
    with_samples = (whole / "report.html").read_bytes()
    assert run("report", whole, "--no-samples").code == 0
    assert len((whole / "report.html").read_bytes()) < len(with_samples)
    assert run("report", whole).code == 0
    assert (whole / "report.html").read_bytes() == with_samples


def test_figures_and_a_copy_for_sharing(run, whole, tmp_path):
    done = run("report", whole, "--figures", tmp_path / "figures", "--strip", tmp_path / "copy")
    assert done.code == 0
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert f"figures  {tmp_path}/figures, {len(figures)} files\n" in done.out
    assert {"accuracy-column.svg", "accuracy-page.svg"} <= set(figures)
    assert done.out.endswith(f"copy     {tmp_path}/copy, without samples\n")
    RunFolder.open(tmp_path / "copy").check()
    assert not (tmp_path / "copy" / "gallery.npz").exists()
    assert "Samples are left out of this page" in (tmp_path / "copy" / "report.html").read_text()


def test_several_formats(run, whole, tmp_path):
    done = run("report", whole, "--figures", tmp_path, "--format", "pdf", "--format", "svg")
    assert done.code == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".pdf", ".svg"}


def test_an_unfinished_run(run, tmp_path):
    with begin(small(), out=tmp_path / "run") as execution:
        next(execution.rounds())
    assert run("report", tmp_path / "run").code == 0
    assert "interrupted at round 1 of 6" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("{tmp}",), 3, "{tmp}: no run found; name a folder that has a manifest.json or a grid.json"),
        (("{tmp}/none",), 3, "{tmp}/none: no run found; name a folder that has a manifest.json or a grid.json"),
        (("{run}", "--format", "svg"), 2, "--format: applies to plots; name a folder for them with --figures"),
        (("{run}", "--figures", "{tmp}", "--format", "gif"), 2, "format: expected one of svg, png, pdf, got 'gif'"),
        (("{run}", "--strip", "{tmp}"), 2, "--strip: {tmp}: exists already; remove it or choose another place"),
        (("{run}", "--figures", "{run}/config.toml"), 2, "{run}/config.toml/accuracy-column.svg: cannot be written: "),
    ],
)
def test_slips_are_one_line(run, whole, tmp_path, arguments, code, line):
    places = {"tmp": tmp_path, "run": whole}
    done = run("report", *(argument.format(**places) for argument in arguments))
    assert done.code == code
    assert done.line().startswith(line.format(**places))
    assert list(tmp_path.iterdir()) == []


def test_a_changed_folder_is_an_integrity_error(run, tmp_path):
    folder = run_experiment(small(train={"rounds": 1}, relabel={"start": 1}), out=tmp_path / "run").folder
    with open(folder / "rounds.jsonl", "a") as file:
        file.write("{}\n")
    done = run("report", folder)
    assert done.code == 4
    assert done.line() == f"{folder}/rounds.jsonl: does not match its digest; it was changed or damaged"
    assert not (folder / "report.html").exists()


CONFIG = """
seed = 5
data = { source = "gaussians", options = { samples = 60, test_samples = 20, classes = 4, dimension = 6 } }
model = { name = "mlp", hidden = [8] }
train = { rounds = 2, epochs = 1, batch_size = 16 }
relabel = { start = 2, tau = 0.2 }
engine = { workers = 1 }
"""


def test_every_run_ends_with_its_report(run, tmp_path, monkeypatch):
    (tmp_path / "a.toml").write_text(CONFIG)
    done = run("run", tmp_path / "a.toml", "--out", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert f"\nreport        {tmp_path}/run/report.html\n" in done.out
    left = (tmp_path / "run" / "report.html").read_bytes()
    assert write_report(tmp_path / "run").read_bytes() == left
    assert f"\nreport        {tmp_path}/run/report.html\n" in run("resume", tmp_path / "run").out


def test_a_report_that_cannot_be_made_spoils_no_run(run, tmp_path, monkeypatch):
    def fails(path):
        raise RuntimeError("no page today")

    monkeypatch.setattr("fedrela.report.writing.write_report", fails)
    (tmp_path / "a.toml").write_text(CONFIG)
    done = run("run", tmp_path / "a.toml", "--out", tmp_path / "run")
    assert done.code == 0
    assert done.err == (
        f"fedrela: {tmp_path}/run: no report was written: no page today; `fedrela --debug report` shows why\n"
    )
    assert "report   " not in done.out


def test_plots_are_overwritten_only_by_force(run, whole, tmp_path):
    assert run("report", whole, "--figures", tmp_path / "figures").code == 0
    mine = tmp_path / "figures" / "accuracy-page.svg"
    mine.write_text("mine")
    refused = run("report", whole, "--figures", tmp_path / "figures")
    assert (refused.code, mine.read_text()) == (2, "mine")
    assert "exists already; allow overwriting (--force), or choose another folder" in refused.line()
    assert run("report", whole, "--figures", tmp_path / "figures", "--force").code == 0
    assert mine.read_text() != "mine"


@pytest.mark.parametrize("damage", ["remove the last", "change the last", "remove all", "an older model", "no model"])
def test_a_lost_model_is_said_and_never_replaced_by_an_older_one(run, whole, tmp_path, damage):
    folder = shutil.copytree(whole, tmp_path / "run")
    (older, newest), lost = sorted((folder / "checkpoint").iterdir()), RunFolder.open(folder)
    why = f"the newest valid checkpoint is of round {int(older.name)}"
    if damage == "change the last":
        with open(newest / "arrays.safetensors", "r+b") as file:
            file.seek(-3, 2)
            file.write(b"?")
        why += r" \(000006: arrays.safetensors does not match its digest\)"
    elif damage in ("an older model", "no model"):
        saved = lost.load_checkpoint()
        changed = {**saved.arrays, "weights": saved.arrays["weights"] * 0}
        if damage == "no model":
            del changed["weights"]
        lost.save_checkpoint(saved.round, changed, saved.record)
        why = "the checkpoint holds another model"
    else:
        for place in (older, newest)[damage == "remove the last" :]:
            shutil.rmtree(place)
        why = "there is no checkpoint" if damage == "remove all" else why
    said = rf"{folder}: the final model, of round 6, is lost: {why}; run config.toml in a new folder for the same model"
    with pytest.raises(IntegrityError, match=f"^{said}$"):
        Result.load(folder).weights()
    if damage != "remove the last":
        return
    page = run("report", folder)
    shown = run("resume", folder)
    assert (page.code, shown.code) == (4, 4)
    assert re.fullmatch(f"fedrela: {said}\n", page.err)
    assert page.err == shown.err
    assert "after round 6" in shown.out
    assert "is lost" in (folder / "report.html").read_text()
