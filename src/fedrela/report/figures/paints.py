"""Styles that shapes name: what fills them and what lines they have, in the colours of a palette."""

from __future__ import annotations

from dataclasses import dataclass

from fedrela.report.figures.palette import SERIES, SIDE_STEPS, STEPS, Palette, mixed, on

# A line is known by its dashes as well as by its colour: lengths of stroke and gap, none for a solid line.
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2.5), (9, 3, 2, 3), (14, 3), (5, 2, 1.5, 2, 1.5, 2))
LINE_WIDTH = 1.8
BAND = 0.2  # opacity of a band round a line


@dataclass(frozen=True)
class Paint:
    """What fills a shape, and the line round it; None for nothing."""

    fill: str | None = None
    line: str | None = None
    width: float = 1.0
    dash: tuple[float, ...] = ()
    opacity: float = 1.0  # of the filling


def paints(palette: Palette, groups: int) -> dict[str, Paint]:
    """Return all styles of a figure with that many groups.

    ``g0 g1 g2`` fill in the colour of a group, ``c0`` to ``c5`` in that of a series and ``ink`` in that of text; with
    ``-edged`` also with an edge in the colour of the page, with ``-open`` and ``-ring`` they draw round, with
    ``-stroke`` and ``-leader`` solid lines, with ``-line`` a line with dashes of its own (``c0-line1`` and on: with
    those of other series), and with ``-band`` they tint. ``s0`` to ``s6`` are the steps of a scale, ``n0`` to ``n3``
    and ``p0`` to ``p3`` those of the falling and rising side of a diverging one; ``on-s0`` is text on ``s0``.
    """
    styles = {
        "paper": Paint(palette.paper),
        "heading": Paint(palette.ink),
        "strong": Paint(palette.ink),
        "muted": Paint(palette.muted),
        "ring": Paint(line=palette.muted, width=0.8),
        "grid": Paint(line=palette.grid),
        "border": Paint(line=palette.muted),
        "axis": Paint(line=palette.muted, width=1.2),
        "mark": Paint(line=palette.ink, width=1.2, dash=(4, 3)),
        "halo": Paint(line=palette.paper, width=3.2),
    }
    styles |= _coloured("ink", palette.ink, palette, ())
    for index in range(max(groups, 1)):
        styles |= _coloured(f"g{index}", palette.group(index, groups), palette, DASHES[index % len(DASHES)])
    for index in range(SERIES):
        styles |= _coloured(f"c{index}", palette.series[index], palette, DASHES[index])
        for turn in range(1, SERIES):  # a colour comes again with other dashes
            dash = DASHES[(index + turn) % SERIES]
            styles[f"c{index}-line{turn}"] = Paint(line=palette.series[index], width=LINE_WIDTH, dash=dash)
    for index in range(STEPS):
        styles |= _step(f"s{index}", palette.step(index))
    for index in range(SIDE_STEPS):
        styles |= _step(f"n{index}", mixed(palette.falls, index / (SIDE_STEPS - 1)))
        styles |= _step(f"p{index}", mixed(palette.rises, index / (SIDE_STEPS - 1)))
    return styles


def _coloured(name: str, colour: str, palette: Palette, dash: tuple[float, ...]) -> dict[str, Paint]:
    return {
        name: Paint(colour),
        f"{name}-edged": Paint(colour, palette.paper),
        f"{name}-ring": Paint(line=colour, width=0.8),
        f"{name}-open": Paint(palette.paper, colour, 1.6),
        f"{name}-line": Paint(line=colour, width=LINE_WIDTH, dash=dash),
        f"{name}-stroke": Paint(line=colour, width=LINE_WIDTH),
        f"{name}-leader": Paint(line=colour, width=0.8),
        f"{name}-band": Paint(colour, opacity=BAND),
    }


def _step(name: str, colour: str) -> dict[str, Paint]:
    return {name: Paint(colour), f"on-{name}": Paint(on(colour)), f"on-{name}-line": Paint(line=on(colour))}
