"""Colours of our figures, for light and dark pages.

Colours that name something (groups, series, the two sides of a diverging scale) stay apart for readers with any of the
three kinds of colour blindness and have a contrast of at least 3 to 1 with their page; text has at least 4.5 to 1 with
what it stands on. A test measures all this.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 7  # colours of a scale
SIDE_STEPS = 4  # colours of each side of a diverging scale
SERIES = 6  # colours of series
FONT_SIZE, STRONG_SIZE, HEADING_SIZE = 11.0, 12.5, 16.0


@dataclass(frozen=True)
class Palette:
    """Colours on one kind of page.

    Attributes
    ----------
    paper, ink, muted, grid
        The page, text, less important text, and lines that only guide the eye.
    groups
        Head, medium and tail; of two groups the first and the last.
    scale
        Where a scale of numbers begins and ends.
    falls, rises
        The same for the two sides of a diverging scale, from little to much.
    series
        Colours of lines and stacked bars.
    """

    paper: str
    ink: str
    muted: str
    grid: str
    groups: tuple[str, str, str]
    scale: tuple[str, str]
    falls: tuple[str, str]
    rises: tuple[str, str]
    series: tuple[str, str, str, str, str, str]

    def group(self, index: int, number: int) -> str:
        """Return the colour of group `index` of `number`."""
        return self.groups[2 if number == 2 and index == 1 else index % 3]

    def step(self, index: int) -> str:
        """Return colour `index` of the scale.

        >>> LIGHT.step(0) == LIGHT.scale[0], LIGHT.step(STEPS - 1) == LIGHT.scale[1]
        (True, True)
        """
        return mixed(self.scale, index / (STEPS - 1))


def channels(colour: str) -> list[int]:
    """Return red, green and blue, from 0 to 255."""
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def mixed(ends: tuple[str, str], share: float) -> str:
    """Return the colour at a share of the way between two.

    >>> mixed(("#000000", "#ff8000"), 0.5)
    '#804000'
    """
    pairs = zip(channels(ends[0]), channels(ends[1]), strict=True)
    return "#" + "".join(f"{round(low + share * (high - low)):02x}" for low, high in pairs)


def on(colour: str) -> str:
    """Return black or white, whichever is easier to read on a colour.

    >>> on("#08264f"), on("#a9c8e6")
    ('#ffffff', '#000000')
    """
    light = sum(
        weight * (value / 3294.6 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4)  # sRGB to linear
        for weight, value in zip((0.2126, 0.7152, 0.0722), channels(colour), strict=True)
    )
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


LIGHT = Palette(
    "#ffffff", "#1f2328", "#57606a", "#e3e7ec", ("#08519c", "#2b9c8c", "#d1480f"), ("#a9c8e6", "#08264f"),
    ("#f2b48a", "#7d2600"), ("#a9c8e6", "#08264f"),
    ("#0944b4", "#c94910", "#178564", "#8e2174", "#5a3a00", "#5399d6"),
)  # fmt: skip
DARK = Palette(
    "#15191f", "#e6e9ed", "#a3adb8", "#2a323c", ("#4c9be8", "#7fe0c8", "#ff8a3d"), ("#2c5175", "#e3f1ff"),
    ("#6b3d1c", "#ffc48f"), ("#2c5175", "#cfe8ff"),
    ("#5877ff", "#ff9f38", "#5fd6b2", "#b19df2", "#f7fbbf", "#9e8130"),
)  # fmt: skip
