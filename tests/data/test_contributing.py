"""A new data source is one file and one line in the registry; everything else reads what it says of itself."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

from fedrela.cli.main import main
from fedrela.data.sources import SOURCES, load
from fedrela.errors import ArgumentError
from fedrela.experiment.build import build_data
from fedrela.experiment.load import parse_config
from fedrela.testing import check_source

DOCS = Path(__file__).parents[2] / "docs" / "sources.py"
NEW_FILE = '''
"""Coin throws: one feature, two classes."""

import numpy as np

from fedrela.data.sources.arrays import from_arrays
from fedrela.data.sources.base import Source, SourceSpec


def load(throws: int = 40) -> Source:
    """Return `throws` samples."""
    return from_arrays(np.arange(throws)[:, np.newaxis] / 7, np.arange(throws) % 2, class_names=("heads", "tails"))


SPEC = SourceSpec(load, "Coins", "throws of a coin, 2 classes", "none: they are thrown")
'''


@pytest.fixture
def coins(tmp_path, monkeypatch) -> None:
    (tmp_path / "coins.py").write_text(NEW_FILE)
    found = importlib.util.spec_from_file_location("coins", tmp_path / "coins.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setitem(SOURCES, "coins", module.SPEC)


@pytest.mark.usefixtures("coins")
@pytest.mark.parametrize("command", [("data", "list"), ("list", "sources")])
def test_the_command_line_lists_it(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedrela", *command])
    assert main() == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "Coins: throws of a coin, 2 classes" in words
    assert "throws" in words.split("coins")[-1]


@pytest.mark.usefixtures("coins")
def test_the_schema_knows_its_name_and_its_options():
    config = parse_config('[data]\nsource = "coins"\noptions = { throws = 60 }\npartition = { kind="iid", clients=3 }')
    assert build_data(config).class_counts.sum() == 48
    with pytest.raises(ArgumentError, match="nearest: coins"):
        parse_config('data.source = "coin"')
    with pytest.raises(ArgumentError, match="nearest: throws"):
        parse_config('data.source = "coins"\ndata.options = { throw = 1 }')
    with pytest.raises(ArgumentError, match=r"data\.options\.throws: expected an integer, got 'many'"):
        parse_config('data.source = "coins"\ndata.options = { throws = "many" }')


@pytest.mark.usefixtures("coins")
def test_it_passes_the_battery_and_enters_the_documentation():
    assert "the same twice" in check_source(lambda: load("coins"))
    row = "| `coins` | Coins: throws of a coin, 2 classes | none: they are thrown | - | `throws` |"
    assert row in runpy.run_path(str(DOCS))["table"]()


def test_the_page_of_sources_is_up_to_date():
    page = DOCS.with_name("reference") / "data.md"
    assert page.read_text() == runpy.run_path(str(DOCS))["page"](), "run python docs/sources.py"
