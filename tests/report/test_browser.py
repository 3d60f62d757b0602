"""Pages in a real browser: nothing breaks, nothing is fetched, nothing is too wide, all has words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrela.experiment import compare, sweep
from fedrela.experiment import run as run_experiment
from fedrela.report.audit_page import Audit, audit_page
from fedrela.report.page import Page, Section, Text, render
from fedrela.report.writing import write_report
from fedrela.reproduction import reproduce
from helpers.browser import Browser
from helpers.small_runs import small

torch.set_num_threads(1)
LONG = "a_name_without_a_blank_" * 20


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(run_experiment(digits(), out=tmp_path_factory.mktemp("digits") / "run").folder)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_of_a_run(browser, report, width, dark):
    seen = browser.look(report, width, dark=dark)
    seen.check()
    assert seen.title == "digits: FedAvg with FedReLa"
    assert (seen.svgs, seen.images) == (12, 48)  # 24 of the most probable moves, 24 drawn at random
    assert seen.paper == ("rgb(21, 25, 31)" if dark else "rgb(255, 255, 255)")
    assert "Where labels went" in seen.text


def digits(**tables):
    data = {"source": "digits", "options": {}, "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]}}
    return small(**{"data": data, "train": {"rounds": 4, "epochs": 1}, "relabel": {"start": 3, "tau": 0.1}} | tables)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A comparison, a sweep of one key and of two, and a table of the paper, all really run."""
    place = tmp_path_factory.mktemp("grids")
    table = {
        "seeds": 2,
        "baselines": ["fedavg", {"name": "fedprox", "mu": 0.1}],
        "arms": ["baseline", "fedrela", "random"],
    }
    compare(digits(compare=table), out=place / "compare", workers=1)
    sweep(digits(sweep={"relabel.tau": [0.01, 0.1, 0.3]}), out=place / "sweep", workers=1)
    two = {"relabel.tau": [0.1, 0.3], "relabel.start": [2, 3]}
    sweep(digits(sweep=two), out=place / "sweep of two", workers=1)
    reproduce("tab:imagenet_lt", out=place / "reproduce", seeds=1, workers=1)
    return {path.name: write_report(path) for path in place.iterdir()}


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
@pytest.mark.parametrize("kind", ["compare", "sweep", "sweep of two", "reproduce"])
def test_the_pages_of_several_runs(browser, pages, kind, width, dark):
    seen = browser.look(pages[kind], width, dark=dark)
    seen.check()
    assert seen.svgs > 0


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_the_page_of_an_audit(browser, tmp_path, width, dark):
    flow = np.array([[[0.0, 2.5], [0.0, 0.0]], [[0.0, 7.5], [0.0, 0.0]]])
    moves = {"id": ["scan-1", LONG], "old": [0, 0], "new": [1, 1], "posterior": [0.2, 0.1], "rho": [0.9, 4e-5]}
    found = Audit(
        "clinic.csv", ("healthy", LONG), [("sha256", "a" * 64)], np.array([0.03, 0.05]), flow, 1,
        np.array([[80, 4], [6, 10]]), 0.6, ["the model agrees with few labels"], moves, 12,
        {"scan-1": np.zeros((96, 96, 3), np.uint8)}, True,
    )  # fmt: skip
    (tmp_path / "page.html").write_text(render(audit_page(found, "0.1.0")))
    seen = browser.look(tmp_path / "page.html", width, dark=dark)
    seen.check()
    assert (seen.title, seen.svgs, seen.images) == ("Audit of clinic.csv", 3, 1)
    assert "1 row of them have no picture" in seen.text


def test_long_words_do_not_widen_a_page(browser, tmp_path):
    page = Page(LONG, LONG, [Section("part", LONG, [Text(LONG), Text(LONG, "warning")])], LONG)
    (tmp_path / "page.html").write_text(render(page))
    browser.look(tmp_path / "page.html", 390).check()


BAD = {
    "errors": "<script>console.error('no')</script>",
    "requests": "<img src='other.png' alt='x'>",
    "scroll_width": "<div style='width: 500px'>x</div>",
    "svgs_without_words": "<svg></svg>",
    "images_without_words": "<img src='data:,'>",
    "same_ids": "<p id='a'></p><p id='a'></p>",
    "dead_links": "<a href='#nowhere'>x</a>",
    "least_contrast": "<p style='color: #ccc'>x</p>",
}


@pytest.mark.parametrize("what", BAD)
def test_the_browser_would_notice(browser, tmp_path, what):
    looks = []
    for more in ("", BAD[what]):
        (tmp_path / "page.html").write_text(f"<!DOCTYPE html><body style='background: #fff'><p>x</p>{more}")
        looks.append(browser.look(tmp_path / "page.html", 390))
    good, bad = looks
    good.check()
    assert getattr(bad, what) != getattr(good, what)
    with pytest.raises(AssertionError):
        bad.check()
