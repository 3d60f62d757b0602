"""Colours that everybody can tell apart, on light and on dark pages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedrela.report.figures.paints import paints
from fedrela.report.figures.palette import DARK, LIGHT, SERIES, SIDE_STEPS, STEPS

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


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("kind", ["groups", "series"])
def test_colours_differ_whatever_the_eyes(palette, sight, kind):
    assert min(distances(getattr(palette, kind), sight)) > JUST_CLEAR


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("sight", SIGHT)
def test_rises_and_falls_differ_whatever_the_eyes(palette, sight):
    styles = paints(palette, 0)
    for one, two in itertools.product(range(SIDE_STEPS), repeat=2):
        least = JUST_CLEAR if one == two else 0.06
        assert min(distances([styles[f"n{one}"].fill, styles[f"p{two}"].fill], sight)) > least


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_contrast_with_the_page(palette):
    assert all(contrast(colour, palette.paper) >= 3 for colour in (*palette.groups, *palette.series))
    assert contrast(palette.ink, palette.paper) >= 7
    assert contrast(palette.muted, palette.paper) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_a_scale_moves_away_from_the_page_step_by_step(palette):
    steps = [contrast(palette.step(s), palette.paper) for s in range(STEPS)]
    assert steps[0] >= 1.6
    assert all(after >= 1.2 * before for before, after in itertools.pairwise(steps))


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("side", ["n", "p"])
def test_a_diverging_scale_moves_away_from_the_page_step_by_step(palette, side):
    styles = paints(palette, 0)
    steps = [contrast(styles[f"{side}{s}"].fill, palette.paper) for s in range(SIDE_STEPS)]
    assert steps[0] >= 1.6
    assert all(after >= 1.2 * before for before, after in itertools.pairwise(steps))


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_text_in_a_cell_can_be_read(palette):
    styles = paints(palette, 0)
    cells = [name for name in styles if f"on-{name}" in styles]
    assert len(cells) == STEPS + 2 * SIDE_STEPS
    assert all(contrast(styles[name].fill, styles[f"on-{name}"].fill) >= 4.5 for name in cells)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_no_line_is_known_by_its_colour_alone(palette):
    styles = paints(palette, 3)
    assert len({styles[f"c{k}-line"].dash for k in range(SERIES)}) == SERIES
    assert len({styles[f"g{k}-line"].dash for k in range(3)}) == 3
    looks = [(p.line, p.dash) for name, p in styles.items() if name[0] == "c" and "-line" in name]
    assert len(set(looks)) == len(looks) == SERIES * SERIES


@pytest.mark.parametrize(("groups", "expected"), [(0, [0]), (2, [0, 2]), (3, [0, 1, 2])])
def test_two_groups_take_the_outer_colours(groups, expected):
    styles = paints(LIGHT, groups)
    assert [styles[f"g{g}"].fill for g in range(max(groups, 1))] == [LIGHT.groups[at] for at in expected]
