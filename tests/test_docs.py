"""Pages made from the code are up to date; paths and counts that pages name are those of the code."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment.registries import traffic
from fedrela.theory import printed_error

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts), *sorted(ROOT.glob("*.md"))]
GUARANTEES = (DOCS / "explanation" / "guarantees.md").read_text()
PATH = re.compile(r"[`(]((?:src|tests|docs|examples|benchmarks)/[\w./-]+)[`)]")


def test_the_page_of_algorithms_is_up_to_date():
    made = runpy.run_path(str(DOCS / "algorithms.py"))
    assert (DOCS / "reference" / "algorithms.md").read_text() == made["page"](), "run python docs/algorithms.py"


def test_the_numbers_of_the_claims_are_up_to_date():
    made = runpy.run_path(str(DOCS / "claims.py"))
    assert (DOCS / "explanation" / "claims.md").read_text() == made["page"](), "run python docs/claims.py"


def test_the_pages_of_results_are_what_the_records_say():
    pages, pictures = runpy.run_path(str(DOCS / "make_results.py"))["pages"]()
    there = {path.name: path.read_text() for path in (DOCS / "results").glob("*.md")}
    assert there == pages, "run make results"
    assert {path.stem for path in (DOCS / "results").glob("*.svg")} == set(pictures), "run make results"


def test_the_last_nightly_run_on_the_page_is_that_of_the_counts():
    made = runpy.run_path(str(DOCS / "guarantees.py"))
    assert made["page"]() == GUARANTEES, "run python docs/guarantees.py"


def test_the_page_shows_the_counts_of_a_nightly_run(tmp_path):
    made = runpy.run_path(str(DOCS / "guarantees.py"))["part"]
    counts = tmp_path / "nightly.json"
    made.__globals__["COUNTS"] = counts
    assert made() == "No full nightly run has been recorded yet.\n"
    row = {"inputs": 12_000, "faults": 30, "violations": 1, "passed": 4, "failed": 1, "skipped": 0, "seconds": 7}
    late = {"problem": "stopped after 90 minutes", "reached": {"tests/a.py::test_b": 1234}}
    run = {
        "commit": "0123456789abcdef", "uncommitted_changes": False, "kept_from": [], "complete": False, "minutes": 93,
        "date": "2026-01-02", "batteries": {"B1": row}, "failures": ["tests/a.py::test_a"], "not_ended": {"a": late},
    }  # fmt: skip
    counts.write_text(json.dumps(run))
    text = made()
    assert text.startswith("Run in part on 2026-01-02, 93 minutes, commit `0123456789ab`.\n")
    assert "Failed: `tests/a.py::test_a`." in text
    assert "Not ended: a, stopped after 90 minutes; `tests/a.py::test_b` reached 1,234 inputs." in text
    assert "| B1 | 12,000 | 30 | 1 | 4 | 1 | 0 | 7 |" in text


PUBLIC = (
    "fedrela", "fedrela.algorithms", "fedrela.core", "fedrela.data", "fedrela.data.sources", "fedrela.experiment",
    "fedrela.flower", "fedrela.metrics", "fedrela.models", "fedrela.plots", "fedrela.plugin", "fedrela.report",
    "fedrela.reproduction", "fedrela.testing", "fedrela.theory",
)  # fmt: skip
INNER = {  # exported for other packages of fedrela, not for users
    "begin", "open_executor", "start_early", "check_picture_path", "heterogeneity_facts", "DataSize", "Download",
    "RemoteFile",
}  # fmt: skip


@pytest.mark.parametrize("package", PUBLIC)
def test_the_page_of_the_api_has_what_a_package_offers(package):
    page = (DOCS / "reference" / "api.md").read_text()
    listed = {name.rpartition(".")[2] for name in re.findall(r"^\.\. auto\w+:: (fedrela\S+)$", page, re.M)}
    module = importlib.import_module(package)
    offered = {name for name in module.__all__ if callable(getattr(module, name))}
    assert offered - listed - INNER == set()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_is_sent_is_what_the_algorithm_names(name):
    assert ("weights", *traffic(name).up) == ALGORITHMS[name].uploads


def test_sizes_of_the_specification():
    """Twice FedAvg's traffic for SCAFFOLD; C blocks of C (d + 1) for CReFF, and the head down."""
    scaffold = traffic("scaffold", "simple_cnn")
    assert scaffold.weights == scaffold.up["control"] == scaffold.down["control"] == 4 * 62_006
    creff = traffic("creff", "resnet8")
    assert sum(creff.down.values()) == 10_280
    assert creff.up["gradient_weight"] + creff.up["gradient_bias"] == 10 * 10_280


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_that_a_page_names_exist(page):
    missing = [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: page.name)
def test_examples_of_a_page_give_what_it_says(page):
    done = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (done.failed, done.attempted > 0) == (0, True)


def test_the_errors_of_lemma_3_are_those_of_the_page():
    rows = re.findall(r"^\| (0\.\d+) \| ([\d,]+) \| (.*) \|$", (DOCS / "explanation" / "theory.md").read_text(), re.M)
    assert len(rows) == 4
    for minority, samples, errors in [row for row in rows if row[1] != "3,200"]:  # that one is what the command prints
        setting = {"minority": float(minority), "samples": int(samples.replace(",", "")), "rho": 0.3, "draws": 1000}
        assert errors == " | ".join(f"{printed_error(20, alpha, **setting):.3g}" for alpha in (100, 1, 0.3, 0.1))


def test_the_pictures_can_be_made_and_their_numbers_are_those_of_the_page(tmp_path, capsys):
    runpy.run_path(str(DOCS / "make_theory.py"))["make"](tmp_path)
    assert capsys.readouterr().out in (DOCS / "explanation" / "pictures.md").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (DOCS / "pictures").iterdir()}


def batteries() -> list[list[str]]:
    """Return the rows of the table of batteries: battery, what, test, everyday, nightly."""
    table = GUARANTEES.partition("## The last nightly run")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [row for row in rows if re.fullmatch(r"B\d+", row[0])]


def test_every_promise_and_every_battery_is_listed():
    assert re.findall(r"^\| (G\d+) ", GUARANTEES, re.M) == [f"G{number}" for number in range(1, 13)]
    assert list(dict.fromkeys(row[0] for row in batteries())) == [f"B{number}" for number in range(1, 26)]


def test_batteries_that_tests_name_are_listed_with_their_test():
    listed = {(path, row[0]) for row in batteries() for path in PATH.findall(row[2])}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name, text = path.relative_to(ROOT).as_posix(), ast.get_docstring(ast.parse(path.read_text())) or ""
        for battery in re.findall(r"\bB\d+\b", text):
            assert (name, battery) in listed, f"{name} says {battery}; guarantees.md does not name it there"


def counts(path: Path) -> set[tuple[int, int]]:
    """Return the pairs (everyday, nightly) of all calls of `count` and `examples` in a test file."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    counted = [call for call in calls if ast.unparse(call.func).split(".")[-1] in ("count", "examples")]
    pairs = [tuple(getattr(value, "value", None) for value in call.args) for call in counted]
    return {pair for pair in pairs if len(pair) == 2}


@pytest.mark.parametrize("row", [row for row in batteries() if row[4][0].isdigit()], ids=lambda row: row[1][:40])
def test_counts_are_those_of_the_tests(row):
    everyday, nightly = (int(re.match(r"[\d,]+", cell)[0].replace(",", "")) for cell in row[3:5])
    assert (everyday, nightly) in set().union(*(counts(ROOT / path) for path in PATH.findall(row[2])))


def stops(heading: str) -> list[str]:
    """Return the files of a numbered walk of docs/explanation/architecture.md."""
    part = (DOCS / "explanation" / "architecture.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `(\S+)`", part, re.M)


def walked(folder: Path, how: str) -> dict[str, list[str]]:
    """Run `fedrela run` on a small configuration and return the files it passes through; see `helpers.walks`."""
    config = folder / "tiny.toml"
    config.write_text("train.rounds = 2\ntrain.epochs = 1\nrelabel.start = 2\nengine.workers = 1\n")
    command = [sys.executable, ROOT / "tests/helpers/walks.py", how, "run", config, "--out", folder / "run"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_command_takes_at_most_18_stops_to_its_first_sgd_step(tmp_path):
    named, found = stops("From `fedrela run` to the first SGD step"), walked(tmp_path, "step")
    assert len(named) <= 18
    assert set(named) <= set(found["passed"])
    assert [stop for stop in named if stop in found["stack"]] == found["stack"]


def test_a_sample_takes_at_most_25_stops_to_the_report(tmp_path):
    named, found = stops("From a sample in a source to the report"), walked(tmp_path, "all")
    assert len(named) <= 25
    assert set(named) <= set(found["passed"])
