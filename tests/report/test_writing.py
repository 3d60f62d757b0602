"""Pictures as files: the ending decides, nothing is overwritten unasked, and what is missing is said in one line."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import evaluation_groups
from fedrela.plots import client_classes
from fedrela.report import write_plot
from fedrela.report.run_page import heterogeneity_facts

COUNTS, NAMES = np.array([[30, 0, 2], [10, 20, 1]]), ("cat", "dog", "$\\frac{owl 名")
DRAW = partial(client_classes, COUNTS, names=NAMES, groups=evaluation_groups(COUNTS, minority=[2]))


@pytest.mark.parametrize(("name", "start"), [("a.SVG", b"<?xml"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_the_ending_decides_and_the_same_plot_gives_the_same_bytes(tmp_path, name, start):
    for folder in ("one", "two"):
        write_plot(tmp_path / folder / name, DRAW, title="a $ and a \x00")
    data = (tmp_path / "one" / name).read_bytes()
    assert data.startswith(start)
    assert data == (tmp_path / "two" / name).read_bytes()
    assert name != "a.SVG" or b"a $ and a \\x00" in data


@pytest.mark.parametrize("name", ["a.gif", "a", "svg", "a.svg.txt"])
def test_other_endings(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"a picture ends in \.svg, \.png or \.pdf"):
        write_plot(tmp_path / name, DRAW)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path):
    old = tmp_path / "a.svg"
    old.write_text("precious")
    with pytest.raises(ArgumentError, match="exists already"):
        write_plot(old, DRAW)
    assert old.read_text() == "precious"
    write_plot(old, DRAW, overwrite=True)
    assert old.read_text().startswith("<?xml")


def test_a_folder_in_the_way_and_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(ArgumentError, match="is a folder"):
        write_plot(tmp_path / "a.svg", DRAW, overwrite=True)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArgumentError, match="cannot be written: "):
        write_plot(tmp_path / "file" / "a.svg", DRAW)


def test_facts_are_the_metrics_in_words():
    facts = {name: value for name, value, _ in heterogeneity_facts([[30, 0, 0], [10, 20, 0]])}
    assert facts == {
        "imbalance ratio": "2",
        "class absence": "25.0 %",
        "local/global mismatch": "16.7 %",
        "effective clients": "1 / 1.3 / 1.6",
        "total variation": "0.333",
    }
    assert all(len(meaning) < 60 for _, _, meaning in heterogeneity_facts([[1]]))
