"""Colours of our figures, for light and dark pages.

The three group colours stay apart for readers with any of the three kinds of colour blindness and have a contrast of
at least 3 to 1 with their page; text has at least 4.5 to 1. A test measures both.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 7  # colours of a scale
FONT_SIZE, HEADING_SIZE = 11.0, 16.0


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
    """

    paper: str
    ink: str
    muted: str
    grid: str
    groups: tuple[str, str, str]
    scale: tuple[str, str]

    def group(self, index: int, number: int) -> str:
        """Return the colour of group `index` of `number`."""
        return self.groups[2 if number == 2 and index == 1 else index % 3]

    def step(self, index: int) -> str:
        """Return colour `index` of the scale.

        >>> LIGHT.step(0) == LIGHT.scale[0], LIGHT.step(STEPS - 1) == LIGHT.scale[1]
        (True, True)
        """
        share = index / (STEPS - 1)
        ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in self.scale]
        return "#" + "".join(f"{round(low + share * (high - low)):02x}" for low, high in zip(*ends, strict=True))


LIGHT = Palette("#ffffff", "#1f2328", "#57606a", "#e3e7ec", ("#08519c", "#2b9c8c", "#d1480f"), ("#a9c8e6", "#08264f"))
DARK = Palette("#15191f", "#e6e9ed", "#a3adb8", "#2a323c", ("#4c9be8", "#7fe0c8", "#ff8a3d"), ("#2c5175", "#e3f1ff"))


@dataclass(frozen=True)
class Paint:
    """What fills a shape, and the line round it; None for nothing."""

    fill: str | None = None
    line: str | None = None
    width: float = 1.0


def paints(palette: Palette, groups: int) -> dict[str, Paint]:
    """Return all styles of a figure with that many groups.

    ``g0 g1 g2`` fill in the colour of a group, with ``-edged`` also with an edge in the colour of the page, with
    ``-ring`` they only draw round; ``s0`` to ``s6`` are the steps of a scale.
    """
    styles = {
        "paper": Paint(palette.paper),
        "ink": Paint(palette.ink),
        "heading": Paint(palette.ink),
        "muted": Paint(palette.muted),
        "ring": Paint(line=palette.muted, width=0.8),
        "grid": Paint(line=palette.grid),
        "border": Paint(line=palette.muted),
    }
    for index in range(max(groups, 1)):
        colour = palette.group(index, groups)
        styles[f"g{index}"] = Paint(colour)
        styles[f"g{index}-edged"] = Paint(colour, palette.paper)
        styles[f"g{index}-ring"] = Paint(line=colour, width=0.8)
    for index in range(STEPS):
        styles[f"s{index}"] = Paint(palette.step(index))
    return styles
