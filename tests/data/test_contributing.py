"""A new data source is one file and one line of the table; everything else reads what it says of itself."""

from __future__ import annotations

import runpy

import pytest

from helpers.contributed import COMMAND, DOCS, contributed

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
PARSED = """
from fedrela.errors import ArgumentError
from fedrela.experiment.build import build_data
from fedrela.experiment.load import parse_config
config = parse_config('[data]\\nsource = "coins"\\noptions = { throws = 60 }\\npartition = { kind="iid", clients=3 }')
print(build_data(config).class_counts.sum())
for text in ('"coin"', '"coins"\\noptions = { throw = 1 }', '"coins"\\noptions.throws = "many"'):
    try:
        parse_config("[data]\\nsource = " + text)
    except ArgumentError as error:
        print(error)
"""
CHECKED = """
from fedrela.data.sources import load
from fedrela.testing import check_source
print(check_source(lambda: load("coins")))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run Python with a copy of the package that has one source more."""
    root = tmp_path_factory.mktemp("contributed")
    return contributed(
        root, "data/sources/coins.py", NEW_FILE, '"coins": "coins:SPEC",', '"cifar100": "cifar:CIFAR100_SPEC",'
    )


@pytest.mark.parametrize("command", [("data", "list"), ("list", "sources")])
def test_the_command_line_lists_it(command, run):
    words = " ".join(run("-c", COMMAND, *command).split())
    assert "Coins: throws of a coin, 2 classes" in words
    assert "throws" in words.split("coins")[-1]


def test_the_schema_knows_its_name_and_its_options(run):
    samples, name, option, value = run("-c", PARSED).splitlines()
    assert samples == "48"
    assert name.endswith("nearest: coins")
    assert "nearest: throws" in option
    assert "data.options.throws: expected an integer, got 'many'" in value


def test_the_public_battery_takes_it(run):
    assert "the same twice" in run("-c", CHECKED)


def test_the_documentation_table_has_it(run):
    row = "| `coins` | Coins: throws of a coin, 2 classes | none: they are thrown | - | `throws` |"
    assert row in run("-c", f"import runpy; print(runpy.run_path({str(DOCS / 'sources.py')!r})['page']())").splitlines()


def test_the_page_of_sources_is_up_to_date():
    page = DOCS / "reference" / "data.md"
    assert page.read_text() == runpy.run_path(str(DOCS / "sources.py"))["page"](), "run python docs/sources.py"
