"""Our own SVG: what is text stays text, and what could run or load anything cannot be written."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.report.figures.svg import figure, node, number, render
from fedrela.report.figures.text import cut, printable, width, wrapped
from helpers.batteries import examples

ANY_TEXT = st.text(st.characters(codec=None), max_size=40)


@examples(200, 5_000)
@given(ANY_TEXT, ANY_TEXT)
def test_any_text_is_well_formed_and_reads_back_as_shown(text, attribute):
    parsed = ET.fromstring(render(node("text", text, x=1, class_=attribute)))
    assert (parsed.text or "") == printable(text)
    assert parsed.get("class") == printable(attribute)
    assert len(parsed) == 0


@pytest.mark.parametrize("name", ["script", "image", "a", "use", "foreignObject", "iframe", "set", "animate", "b c"])
def test_elements_that_run_or_load_something_do_not_exist(name):
    with pytest.raises(ValueError, match="no element"):
        node(name)


@pytest.mark.parametrize("name", ["onclick", "onload", "href", "xlink:href", 'x" y', "<"])
def test_attributes_that_run_or_load_something_do_not_exist(name):
    with pytest.raises(ValueError, match="no attribute"):
        node("rect", **{name: "1"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(value):
    with pytest.raises(ValueError, match="finite"):
        node("circle", r=value)


@examples(100, 1_000)
@given(st.floats(-1e6, 1e6))
def test_numbers_are_short_and_near(value):
    assert abs(float(number(value)) - value) <= 0.0005000001
    assert len(number(value)) <= 12


def test_a_figure_has_a_text_alternative_and_keeps_its_styles_to_itself():
    looks = {"light": {".paper": "fill: #ffffff"}, "dark": {".paper": "fill: #000000"}}
    one, two = (
        figure(30, 20, [node("circle", r=r)], title="A <b> & \x00", description="two\nlines", **looks) for r in (1, 2)
    )
    root = ET.fromstring(one)
    names = root.get("aria-labelledby").split()
    told = {child.get("id"): child.text for child in root if child.get("id")}
    assert [told[name] for name in names] == ["A <b> & \\x00", "two\\nlines"]
    assert (root.get("role"), root.get("viewBox")) == ("img", "0 0 30 20")
    assert root.get("width") is None
    rules = [line for line in root.find("{*}style").text.splitlines() if "fill" in line]
    assert rules == [f"#{root.get('id')} .paper {{ fill: {colour} }}" for colour in ("#ffffff", "#000000")]
    assert root.get("id") != ET.fromstring(two).get("id")


@examples(100, 1_000)
@given(ANY_TEXT, st.floats(10, 200))
def test_cut_text_fits(text, longest):
    short = cut(text, 11, longest)
    assert width(short, 11) <= longest or short == "…"
    assert short == text or short.endswith("…")


@examples(100, 1_000)
@given(st.lists(st.text("abcdefg", min_size=1, max_size=12), max_size=12), st.floats(80, 200))
def test_wrapped_text_loses_no_word_and_fits(words, longest):
    lines = wrapped(" ".join(words), 11, longest)
    assert " ".join(lines).split() == words
    assert all(width(line, 11) <= longest for line in lines)
