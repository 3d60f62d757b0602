"""The pages of comparisons, sweeps and tables of the paper say what their folders say."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch

from fedrela.experiment.comparison import compare
from fedrela.experiment.sweeps import sweep
from fedrela.metrics.paired import paired
from fedrela.plots.comparisons import table_gains
from fedrela.plots.folders import GridData
from fedrela.plots.style import new_figure
from fedrela.plots.svg import describe_lines
from fedrela.report.compare_page import meaning, verdicts
from fedrela.report.grid_page import grid_page
from fedrela.report.page import Figure, Page, Pictures, Table, Text, render, say
from fedrela.report.reproduction_page import reproduce_page, sensitivity_figures
from fedrela.report.sweep_page import choice_sentence
from fedrela.report.writing import write_figures, write_report
from fedrela.reproduction.paper_table import paper_table
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder
from fedrela.text import points
from helpers.small_runs import small
from helpers.summaries import compare_summary, interval, reproduce_summary, sweep_summary
from helpers.svg_checks import check_safe
from report.test_page import check_page

torch.set_num_threads(1)
ARMS = ["baseline", "fedrela", "random"]
GROUPS = ["overall", "head", "medium", "tail"]
ENDING = ["cost", "runs", "configuration"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    data = {"source": "digits", "options": {}, "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]}}
    baselines = ["fedavg", {"name": "fedprox", "mu": 0.1, "label": "prox <b>"}]
    table = {"seeds": [1, 2], "arms": ARMS, "baselines": baselines}
    config = small(data=data, relabel={"start": 4, "tau": 0.1}, compare=table)
    return compare(config, out=tmp_path_factory.mktemp("compared") / "grid", workers=1).folder


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    def made(keys, **data):
        config = small(sweep=keys, compare={"seeds": [1, 2]}, data=data)
        return sweep(config, out=tmp_path_factory.mktemp("swept") / "grid", workers=1).folder

    return made


def page_of(folder, **options) -> Page:
    return grid_page(GridFolder.open(folder), **options)


def shown(page: Page) -> list[str]:
    return [part.key for part in page.sections if part.blocks]


def section(page: Page, key: str):
    return next(part for part in page.sections if part.key == key)


def words(page: Page, key: str) -> str:
    return " ".join(block.text for block in section(page, key).blocks if isinstance(block, Text))


def tables(page: Page, key: str) -> list[Table]:
    return [block for block in section(page, key).blocks if isinstance(block, Table)]


def check_figures(page: Page) -> None:
    names = [figure.name for figure in page.figures]
    assert len(set(names)) == len(names) > 0
    for figure in page.figures:
        title, description = check_safe(figure.svg())[:2]
        assert title.text == figure.title
        assert description.text


def test_the_page_of_a_comparison(compared):
    page = page_of(compared)
    keys = shown(page)
    assert keys == ["arms", "gains", "rounds", "classes", "moves", "samples", *ENDING]
    assert "FedAvg and prox <b> in 3 matched arms each, over 2 seeds." in page.lead
    paper, arms = tables(page, "arms")
    assert len(paper.rows) == 2 * 2
    assert len(arms.rows) == 2 * len(ARMS)
    assert len(tables(page, "runs")[0].rows) == 2 * 2 * len(ARMS)
    check_figures(page)
    read = check_page(render(page))
    assert "prox <b>, minority" in "".join(read.words)


def test_rounds_before_re_labelling_are_drawn_once(compared):
    found = [block for block in section(page_of(compared), "rounds").blocks if isinstance(block, Figure)]
    assert len(found) == 2 * 2  # two baselines, the headline and the rarest classes
    for block in found:
        drawn = new_figure(block.draw)
        assert "shared by all arms: from" in describe_lines(drawn)
        assert "at 3, at most" in describe_lines(drawn)  # T is 4
        assert "T = 4" in [text.get_text() for text in drawn.axes[0].texts]


def test_the_change_by_class_is_the_mean_over_seeds(compared):
    folder = GridFolder.open(compared)
    first = next(figure for figure in page_of(compared).figures if figure.name == "classes-1")
    shares = {
        arm: [
            folder.run_folder(cell).read_json("result.json")["accuracy"]["per_class"][0]
            for cell in folder.cells
            if (cell["baseline"], cell["arm"]) == ("FedAvg", arm)
        ]
        for arm in ("baseline", "fedrela")
    }
    change = 100 * paired(shares["baseline"], shares["fedrela"]).mean
    assert points(change / 100) in [text.get_text() for text in new_figure(first.draw).axes[0].texts]


def test_the_same_folder_elsewhere_gives_the_same_bytes(compared, tmp_path):
    write_report(compared)
    shutil.copytree(compared, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "report.html").unlink()
    write_report(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "report.html").read_bytes() == (compared / "report.html").read_bytes()


def test_samples_can_be_left_out(compared):
    assert any(isinstance(block, Pictures) for block in section(page_of(compared), "samples").blocks)
    hidden = page_of(compared, samples=False)
    assert not any(isinstance(block, Pictures) for part in hidden.sections for block in part.blocks)
    assert "data:image" not in render(hidden)


def test_figures_are_files_with_harmless_names(compared, tmp_path):
    written = write_figures(compared, tmp_path / "figures")
    assert len(written) == 2 * len(page_of(compared).figures)
    assert all(place.parent == tmp_path / "figures" and place.read_text().startswith("<?xml") for place in written)


def test_the_cost_counts_every_run_once_and_every_round(tmp_path):
    config = small(sweep={"relabel.tau": [0.1, 0.2, 0.3]}, compare={"seeds": [1], "arms": ["baseline", "fedrela"]})
    (table,) = tables(page_of(sweep(config, out=tmp_path / "grid", workers=1).folder), "cost")
    assert [row[2] for row in table.rows] == ["1", "3"]


def test_a_comparison_whose_run_folders_are_gone_says_so(compared, tmp_path):
    shutil.copytree(compared, tmp_path / "grid")
    shutil.rmtree(tmp_path / "grid" / "runs")
    page = page_of(tmp_path / "grid")
    assert "12 of 12 runs did not finish, or their folders are gone" in words(page, "unfinished")
    assert not any("No arm moves labels" in words(page, part.key) for part in page.sections)


def test_a_comparison_that_is_not_done_has_a_page(compared, tmp_path):
    shutil.copytree(compared, tmp_path / "grid")
    folder = GridFolder.open(tmp_path / "grid")
    (folder.place(folder.cells[0]) / "result.json").unlink()
    page = page_of(tmp_path / "grid")
    assert words(page, "unfinished").startswith("1 of 12 runs did not finish, or their folders are gone: ")
    assert [row[3] for row in tables(page, "runs")[0].rows].count("not finished") == 1
    (tmp_path / "grid" / "summary.json").unlink()
    page = page_of(tmp_path / "grid")
    assert words(page, "unfinished") == "This compare is unfinished: interrupted, 11 of 12 runs done."
    check_page(render(page))


def test_failed_baselines_and_a_flattering_score_are_said_aloud(compared, tmp_path):
    shutil.copytree(compared, tmp_path / "grid")
    folder = GridFolder.open(tmp_path / "grid")
    summary = folder.read_json("summary.json")
    summary["score"] = "best-test"
    summary["baselines"][1] |= {"arms": {}, "pairs": [], "failed": "it diverged"}
    folder.write_json("summary.json", summary)
    said = words(page_of(tmp_path / "grid"), "summary")
    assert "prox <b> is left out because one of its runs failed: it diverged" in said
    assert "not a fair estimate" in said


@pytest.mark.parametrize(
    ("base", "treated", "name", "title"),
    [
        ("baseline", "fedrela", "FedReLa", "FedReLa against the baseline"),
        ("random-drop", "fedrela-drop", "over random moves, lr / 10",
         "FedReLa against random moves, both with lr / 10"),
        ("baseline", "fedrela-drop", "FedReLa, lr / 10 over baseline", "FedReLa, lr / 10 against baseline"),
    ],
)  # fmt: skip
def test_what_a_pair_of_arms_is_called(base, treated, name, title):
    assert (say("pair", base, treated), say("pair_title", base, treated)) == (name, title)


def test_which_differences_are_noise():
    summary = compare_summary()
    pair = summary["baselines"][0]["pairs"][0]
    pair["differences"] = {
        "majority": interval(-0.03, 0.01, 3), "minority": interval(0.2, 0.1, 3), "overall": interval(0.01, 0.02, 3),
    }  # fmt: skip
    assert verdicts(summary)["baseline", "fedrela"] == (
        "Gains beyond noise, in points: FedAvg minority +20.0. Losses beyond noise: FedAvg majority -3.0. "
        "Within noise: FedAvg overall +1.0."
    )
    assert "So few seeds" in meaning(summary)
    assert verdicts(compare_summary(seeds=1))["baseline", "fedrela"].startswith("One seed cannot tell these from noise")
    assert meaning(compare_summary(seeds=1)).startswith("One seed was run.")
    summary["baselines"] *= 2
    assert "Of 18 differences about 1 would do so by chance alone." in meaning(summary)


@pytest.mark.parametrize(
    ("keys", "figures"),
    [
        ({"relabel.tau": [0.05, 0.1, 0.2]}, ["accuracy", "moved"]),
        ({"relabel.preset": ["paper", "official"]}, ["accuracy", "moved"]),
        ({"relabel.tau": [0.05, 0.2], "relabel.start": [4, 5]}, ["map-1-1", "map-1-2", "map-1-3"]),
        ({"relabel.tau": [0.05], "relabel.start": [4], "relabel.period": [0, 1]}, []),
    ],
)
def test_the_page_of_a_sweep(swept, keys, figures):
    page = page_of(swept(keys, validation=0.2))
    assert [figure.name for figure in page.figures] == figures
    assert shown(page) == [
        "summary",
        *(["figures"] if figures else []),
        "points",
        *ENDING,
    ]
    assert "on the clients' validation samples is highest at" in words(page, "summary")
    if figures:
        check_figures(page)
    check_page(render(page))


def test_a_sweep_without_validation_says_why_it_chooses_nothing(swept):
    assert "clients hold out no samples" in words(page_of(swept({"relabel.tau": [0.05, 0.1]})), "summary")


def test_what_validation_would_choose_and_what_the_test_set_says():
    summary = sweep_summary(1)
    said = choice_sentence(summary, summary["choice"][0])
    assert "is highest at relabel.tau = 0.05 (70.0 %)" in said
    assert "On the test set: minority 50.0 % and overall 80.0 %." in said
    assert "Best on the test set itself is relabel.tau = 0.1, overall 81.0 %: 1.0 points more" in said
    summary["choice"][0]["best_test"] = 0.8
    assert choice_sentence(summary, summary["choice"][0]).endswith(
        "No other value is better on the test set (overall)."
    )


@pytest.fixture
def reproduced(compared, tmp_path):
    there = GridFolder.open(compared)
    record = {"kind": "reproduce", "name": "tab:step", "base": "", "config": "", "cells": there.cells, "facts": {}}
    folder = GridFolder.begin(tmp_path / "reproduced", record)
    shutil.copytree(compared / "runs", tmp_path / "reproduced" / "runs")
    folder.write_json("summary.json", reproduce_summary())
    return folder


def test_the_page_of_a_table_of_the_paper(reproduced):
    page = grid_page(reproduced)
    assert shown(page) == [
        "summary",
        "table",
        "gains",
        "reduced",
        "ours",
        "doubtful",
        *ENDING,
    ]
    assert page.title == "tab:step, scale smoke"
    assert "2 of the 4 entries measured over 3 seeds" in page.lead
    assert "cannot equal the paper's" in words(page, "summary")
    assert words(page, "gains") == "1 of 2 gains have the published sign; on average they lie 3.8 points apart."
    assert words(page, "doubtful") == "† F-MNIST, 10, FedAvg, 30%, +FedReLa: printed twice"
    check_figures(page)
    check_page(render(page))


def test_gains_that_the_paper_prints_as_such():
    summary = reproduce_summary()
    summary["metrics"] = [{"name": "gain", "of": "minority", "gain": True}]
    summary["entries"] = [entry for entry in summary["entries"] if entry["arm"] == "+FedReLa"]
    assert [(gain.published, gain.measured) for gain in table_gains(summary)] == [(0.77, 0.6)]


def test_without_gains_there_is_no_plot_of_them():
    summary = reproduce_summary()
    for entry in summary["entries"]:
        entry["measured"] = None
    assert table_gains(summary) == []
    assert section(reproduce_page(GridData([], [], summary), ""), "gains").blocks == []


def test_the_figure_of_tau():
    summary = reproduce_summary()
    assert sensitivity_figures(summary) == []  # several axes
    some = {**summary["entries"][1], "published": {}}
    entries = [{**some, "at": {"tau": tau}} for tau in ("Original", "1%", "3%", "5%")]
    summary |= {"entries": entries, "metrics": [*summary["metrics"], {"name": "Relabeled", "of": "moved"}]}
    drawn = sensitivity_figures(summary)
    assert [figure.name for figure in drawn] == ["measured-accuracy", "measured-moved"]
    assert "Minority: from 60.0 % at 1 to 60.0 % at 5" in describe_lines(new_figure(drawn[0].draw))
    summary["entries"] = entries[:3]
    assert sensitivity_figures(summary) == []  # two values make no line


def test_every_run_of_a_grid_has_a_page_of_its_own(compared):
    folder = GridFolder.open(compared)
    assert isinstance(folder.run_folder(folder.cells[0]), RunFolder)
    assert write_report(folder.place(folder.cells[0])).name == "report.html"


def printed(name: str) -> dict[str, Any]:
    """Return the summary of a table of which nothing was measured: what the paper prints."""
    table = paper_table(name)
    return {
        "entries": [asdict(cell) | {"measured": None} for cell in table.cells],
        "metrics": [{"name": metric.name, "of": metric.of} for metric in table.metrics],
    }


def test_tau_and_t_and_periods_have_curves_with_the_baseline_dashed():
    (accuracy, moved) = sensitivity_figures(printed("sensitivity"))
    over = "over tau, in per cent, published"
    assert (accuracy.title, moved.title) == (f"Test accuracy {over}", f"Labels moved {over}")
    ax = accuracy.draw()
    assert (ax.get_xlabel(), ax.get_legend().get_texts()[-1].get_text()) == ("tau, in per cent", "baseline")
    lines = ax.get_lines()
    dashed = [line for line in lines if line.get_marker() == "None"]
    whole = [line for line in lines if line not in dashed]
    assert (len(whole), len(dashed)) == (4, 4)
    (original,) = (cell for cell in paper_table("sensitivity").cells if cell.arm == "baseline")
    assert {line.get_ydata()[0] for line in dashed} == {original.published[of] / 100 for of in GROUPS}
    assert [line.get_color() for line in dashed] == [line.get_color() for line in whole]

    starts = sensitivity_figures(printed("trelabel_sensitivity"))
    assert [figure.name for figure in starts] == [f"published-accuracy-{k}" for k in (1, 2, 3, 4)]
    assert starts[0].title == "CIFAR-10, alpha 1: Test accuracy over T, in per cent of the rounds, published"
    found = starts[0].draw().get_lines()[0].get_xydata()
    assert found == pytest.approx(np.array([[40, 0.7555], [60, 0.7652], [80, 0.7665]]))

    (periods,) = sensitivity_figures(printed("period_sensitivity"))
    lines = periods.draw().get_lines()
    assert lines[0].get_xdata().tolist() == [0, 1, 2, 3, 4, 5]
    assert len(lines) == 4  # two places, and the baseline of each
    assert sensitivity_figures(printed("lt")) == []
