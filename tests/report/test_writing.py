"""Pictures as files: the ending decides, nothing is overwritten unasked, and what is missing is said in one line."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import evaluation_groups
from fedrela.report import client_class_picture, write_picture
from fedrela.report.facts import heterogeneity_facts

COUNTS, NAMES = np.array([[30, 0, 2], [10, 20, 1]]), ("cat", "dog", "$\\frac{owl 名")
GROUPS = evaluation_groups(COUNTS, minority=[2])


def test_svg_is_what_the_function_returns(tmp_path):
    write_picture(tmp_path / "new" / "a.SVG", COUNTS, NAMES, groups=GROUPS, title="Pets")
    expected = client_class_picture(COUNTS, NAMES, groups=GROUPS, title="Pets")
    assert (tmp_path / "new" / "a.SVG").read_text("utf-8") == expected


@pytest.mark.parametrize("name", ["a.pdf", "a", "svg", "a.svg.txt"])
def test_other_endings(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"a picture ends in \.svg or \.png"):
        write_picture(tmp_path / name, COUNTS, NAMES)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path):
    old = tmp_path / "a.svg"
    old.write_text("precious")
    with pytest.raises(ArgumentError, match="exists already"):
        write_picture(old, COUNTS, NAMES)
    assert old.read_text() == "precious"
    write_picture(old, COUNTS, NAMES, overwrite=True)
    assert old.read_text().startswith("<svg")


def test_a_folder_in_the_way_and_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(ArgumentError, match="is a folder"):
        write_picture(tmp_path / "a.svg", COUNTS, NAMES, overwrite=True)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArgumentError, match="cannot be written: "):
        write_picture(tmp_path / "file" / "a.svg", COUNTS, NAMES)


def test_png_without_matplotlib_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError) as caught:
        write_picture(tmp_path / "a.png", COUNTS, NAMES)
    needs = "PNG needs matplotlib; run `pip install fedrela[plots]`, or choose .svg"
    assert str(caught.value) == f"{tmp_path}/a.png: {needs}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("classes", [3, 90])
def test_png_with_matplotlib(tmp_path, classes):
    pytest.importorskip("matplotlib", reason="PNG is drawn by matplotlib, the extra plots, which is not installed")
    counts = np.random.default_rng(0).integers(0, 300, (70, classes))
    names = [*NAMES, *map(str, range(classes - 3))]
    for name in ("a.png", "b.png"):
        write_picture(tmp_path / name, counts, names, title="a $ and a \x00")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    wide, high = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert min(wide, high) > 600
    assert data == (tmp_path / "b.png").read_bytes()


def test_facts_are_the_figures_in_words():
    facts = {fact.name: fact.value for fact in heterogeneity_facts([[30, 0, 0], [10, 20, 0]])}
    assert facts == {
        "imbalance ratio": "2",
        "class absence": "25.0%",
        "local/global mismatch": "16.7%",
        "effective clients": "1 / 1.3 / 1.6",
        "total variation": "0.333",
    }
    assert all(len(fact.meaning) < 60 for fact in heterogeneity_facts([[1]]))
