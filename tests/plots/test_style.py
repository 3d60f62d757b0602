"""Colours that everybody can tell apart, on light and on dark pages."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

from fedrela.plots import use_style
from fedrela.plots.style import DARK, LIGHT, SERIES, STYLE, group_colours, name

# Simulation of full colour blindness on linear RGB: Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009, table 1.
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
# Linear RGB to Oklab: B. Ottosson, "A perceptual color space for image processing", 2020.
TO_CONES = [
    [0.41222147, 0.53633254, 0.05144599],
    [0.2119035, 0.68069955, 0.10739696],
    [0.08830246, 0.28171884, 0.6299787],
]
TO_LAB = [
    [0.21045426, 0.79361779, -0.00407205],
    [1.9779985, -2.42859221, 0.45059371],
    [0.02590404, 0.78277177, -0.80867577],
]
STEPS = 8  # of a scale
JUST_CLEAR = 0.1  # five times the distance in Oklab that is just noticeable


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, two: str) -> float:
    """The contrast ratio of WCAG 2."""
    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ rgb)


def distances(colours, sight) -> list[float]:
    seen = [lab(np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)) for colour in colours]
    return [float(np.linalg.norm(one - two)) for one, two in itertools.combinations(seen, 2)]


def colours(palette, kind: str) -> list[str]:
    return [colour for key, colour in palette.items() if key.startswith(f"{kind}-")]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("kind", ["group", "series"])
def test_colours_differ_whatever_the_eyes(palette, sight, kind):
    assert min(distances(colours(palette, kind), sight)) > JUST_CLEAR


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("sight", SIGHT)
def test_rises_and_falls_differ_whatever_the_eyes(palette, sight):
    for rise, fall in zip(colours(palette, "rise"), colours(palette, "fall"), strict=True):
        assert min(distances([rise, fall], sight)) > 0.05


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_contrast_with_the_page(palette):
    paper = palette["paper"]
    assert all(contrast(colour, paper) >= 3 for kind in ("group", "series") for colour in colours(palette, kind))
    assert contrast(palette["ink"], paper) >= 7
    assert contrast(palette["muted"], paper) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("side", ["rise", "fall"])
def test_a_scale_moves_away_from_the_page_step_by_step(palette, side):
    steps = [contrast(colour, palette["paper"]) for colour in colours(palette, side)]
    assert len(steps) == STEPS
    assert steps[0] >= 1.2
    assert all(after >= 1.1 * before for before, after in itertools.pairwise(steps))


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("side", ["rise", "fall"])
def test_text_in_a_cell_can_be_read(palette, side):
    for step, colour in enumerate(colours(palette, side)):
        assert contrast(colour, palette["on-high" if step >= STEPS // 2 else "on-low"]) >= 4.5, step


def test_every_colour_of_the_style_has_one_name():
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert set(LIGHT) == set(DARK)
    used = set(re.findall(r"\b[0-9A-F]{6}\b", STYLE.read_text()))
    assert {f"#{colour.lower()}" for colour in used} <= set(LIGHT.values())
    assert [f"#{found.lower()}" for found in re.findall(r"[0-9A-F]{6}", STYLE.read_text().split("cycler")[1])] == list(
        SERIES
    )


@pytest.mark.parametrize(("groups", "expected"), [(1, [0]), (2, [0, 2]), (3, [0, 1, 2])])
def test_two_groups_take_the_outer_colours(groups, expected):
    assert group_colours(groups) == [LIGHT[f"group-{at}"] for at in expected]


def test_use_style_sets_the_style_for_all_further_figures():
    with mpl.rc_context():
        use_style()
        assert mpl.rcParams["svg.fonttype"] == "none"
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"] == [colour.upper() for colour in SERIES]


def test_a_dollar_begins_no_formula_and_long_names_are_cut():
    assert name("$a$") == r"\$a\$"
    assert name("x" * 50) == "x" * 39 + "…"


def test_matplotlib_is_loaded_only_when_something_is_drawn():
    code = "import sys, fedrela.plots, fedrela.report; assert not {'matplotlib', 'torch'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
