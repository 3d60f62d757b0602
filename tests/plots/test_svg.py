"""Plots inside a page: same bytes, the page's colours, words for readers who cannot see them, tooltips."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import partial

import pytest

from fedrela import plots
from fedrela.plots.style import LIGHT, new_figure
from fedrela.plots.svg import describe_lines, page_svg, save
from helpers.summaries import compare_summary, sweep_summary
from helpers.svg_checks import SVG, check_safe, texts, tips

DRAWN = {
    "bars": partial(plots.class_counts, ([90, 10], [80, 20]), names=["cat", "dog"]),
    "cells": partial(plots.confusion, [[3, 1], [0, 4]], names=["cat", "dog"]),
    "dots": partial(plots.client_classes, [[30, 0], [10, 20]], names=["cat", "dog"]),
    "gains": partial(plots.gains, compare_summary()),
    "lines": partial(plots.sensitivity, sweep_summary(1)),
}
TIPS = {
    "bars": ["cat, before: 90", "dog, before: 10", "cat, after: 80", "dog, after: 20"],
    "cells": ["cat, cat: 75", "cat, dog: 25", "dog, dog: 100"],
    "dots": ["client 0, cat: 30", "client 1, dog: 20", "client 1, cat: 10", "cat: 40", "dog: 20", "client 0: 30"],
    "gains": ["FedAvg, majority: -1.0 [-3.5, +1.5]"],
    "lines": ["minority, 0.05: 50.0 %", "overall, 0.1: 81.0 %"],
}


def drawn(kind: str, name: str = "plot") -> str:
    return page_svg(new_figure(DRAWN[kind]), name, "A title", "What it shows.")


@pytest.mark.parametrize("kind", DRAWN)
def test_a_plot_in_a_page(kind):
    root = check_safe(drawn(kind))
    assert [root[0].text, root[1].text] == ["A title", "What it shows."]
    assert root.get("aria-labelledby") == f"{root[0].get('id')} {root[1].get('id')}"
    assert set(TIPS[kind]) <= set(tips(root))
    assert drawn(kind) == drawn(kind)


@pytest.mark.parametrize("kind", DRAWN)
def test_every_colour_is_a_variable_of_the_page(kind):
    svg = drawn(kind)
    assert re.findall(r"(?:fill|stroke): (?!none|var)[^;\"]*", svg) == []
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", svg)) <= set(LIGHT)


def test_two_plots_of_a_page_share_no_id():
    ids = [re.findall(r' id="([^"]*)"', drawn("dots", name)) for name in ("one", "two")]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])


def test_text_stays_text():
    root = ET.fromstring(drawn("cells"))
    assert {"75", "25", "100", "cat", "dog", "true class"} <= set(texts(root))


def test_a_tooltip_is_on_its_mark():
    root = ET.fromstring(drawn("bars"))
    marks = [element for element in root.iter() if any(child.tag == SVG + "title" for child in element)][1:]
    assert [mark.tag for mark in marks] == [SVG + "path"] * 4


@pytest.mark.parametrize(("format", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files_have_the_same_bytes_and_name_no_date(format, start):
    first, second = (save(new_figure(DRAWN["lines"]), format) for _ in range(2))
    assert first == second
    assert first.startswith(start)
    assert b"Date" not in first


def test_lines_in_words():
    assert describe_lines(new_figure(partial(plots.accuracy_over_rounds, {"a": [0.1, 0.4, 0.2]}))) == (
        "a: from 10.0 % at 1 to 20.0 % at 3, at most 40.0 %."
    )
