"""The page on performance shows what `make bench` measured."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("benchmark_engine", ROOT / "benchmarks/engine.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in (spec.name, "engine_sides", "sides"):
        sys.modules.pop(name, None)


def test_the_page_shows_the_results(benchmark):
    shown = benchmark.PAGE.read_text().partition(benchmark.BEGIN)[2].partition(benchmark.END)[0].strip()
    assert shown == benchmark.table(json.loads(benchmark.RESULTS.read_text()))


def test_parts_that_are_not_run_keep_their_rows(benchmark, tmp_path, monkeypatch):
    page, results = tmp_path / "performance.md", tmp_path / "results.json"
    page.write_text(f"before\n{benchmark.BEGIN}\nold\n{benchmark.END}\nafter\n")
    results.write_text('{"machines": {}, "rows": []}')
    monkeypatch.setattr(benchmark, "PAGE", page)
    monkeypatch.setattr(benchmark, "RESULTS", results)
    benchmark.write([benchmark.Row.of("start", "help", [0.2, 0.1, 0.3], 0.35, "s")], ["start"])
    benchmark.write([benchmark.Row.of("rounds", "round", [0.5, 0.6])], ["rounds"])
    benchmark.write([benchmark.Row.of("rounds", "round", [0.7, 0.7])], ["rounds"])
    rows = json.loads(results.read_text())["rows"]
    assert [(row["part"], row["median"]) for row in rows] == [("rounds", 0.7), ("start", 0.2)]
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| help | 0.20 s | 0.15 to 0.25 | 0.35 | 3 |" in text
