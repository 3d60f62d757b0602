"""A drawing as PNG or PDF, painted shape by shape by matplotlib, on a light page; same drawing, same bytes."""

from __future__ import annotations

import io
import itertools
import warnings
from typing import Any

from fedrela.report.figures.paints import Paint, paints
from fedrela.report.figures.palette import FONT_SIZE, HEADING_SIZE, LIGHT, STRONG_SIZE, channels
from fedrela.report.figures.shapes import Boxes, Disc, Drawing, Lines, Shape, Trace, Word

RESOLUTION = 144  # dots an inch; a unit of a drawing is a point, and an inch has 72 of them
ALIGNED = {"start": "left", "middle": "center", "end": "right"}
LETTERS = 0.9  # the font that matplotlib brings is wider than those of a browser


SIZES = {"heading": HEADING_SIZE, "strong": STRONG_SIZE}


def draw_png(drawing: Drawing) -> bytes:
    """Return the bytes of a PNG file."""
    return _saved(drawing, "png", {"Software": None})


def draw_pdf(drawing: Drawing) -> bytes:
    """Return the bytes of a PDF file whose letters are outlines of a font, as publishers ask."""
    return _saved(drawing, "pdf", {"Title": drawing.title, "Creator": None, "Producer": None, "CreationDate": None})


def _saved(drawing: Drawing, kind: str, metadata: dict[str, str | None]) -> bytes:
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with warnings.catch_warnings(), rc_context({"pdf.fonttype": 42}):
        warnings.filterwarnings("ignore", message="Glyph")  # what a font does not have is drawn as empty boxes
        _figure(drawing).savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _figure(drawing: Drawing) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    styles = paints(LIGHT, drawing.groups)
    size = (drawing.width / 72, drawing.height / 72)
    figure = Figure(figsize=size, dpi=RESOLUTION, facecolor=styles["paper"].fill)
    FigureCanvasAgg(figure)  # draws without a screen
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for layer, (kind, run) in enumerate(itertools.groupby(drawing.shapes, type)):
        if kind is Word:
            for word in run:
                _write(axes, word, styles, layer)  # type: ignore[arg-type]
        else:
            _paint(axes, list(run), styles, layer)
    return figure


def _write(axes: Any, word: Word, styles: dict[str, Paint], layer: int) -> None:
    axes.text(
        word.x,
        word.y,
        word.text,
        color=styles[word.style].fill,
        fontsize=LETTERS * SIZES.get(word.style, FONT_SIZE),
        fontweight="bold" if word.style in SIZES else "normal",
        ha=ALIGNED[word.anchor],
        va="baseline",
        rotation=90 if word.upright else 0,
        rotation_mode="anchor",
        parse_math=False,  # a dollar in a name begins no formula
        zorder=layer,
    )


def _paint(axes: Any, shapes: list[Shape], styles: dict[str, Paint], layer: int) -> None:
    """Paint shapes of one kind at once, in their order."""
    from matplotlib.collections import PatchCollection

    patches, looks = [], []
    for shape in shapes:
        made = _patches(shape)
        patches += made
        looks += [styles[shape.style]] * len(made)
    collection = PatchCollection(
        patches,
        facecolors=[_filling(look) for look in looks],
        edgecolors=[look.line or "none" for look in looks],
        linewidths=[look.width for look in looks],
        linestyles=[_dashes(look) for look in looks],
        antialiased=isinstance(shapes[0], Disc | Trace),
        zorder=layer,
    )
    axes.add_collection(collection, autolim=False)


def _filling(look: Paint) -> tuple[float, ...] | str:
    return (*(value / 255 for value in channels(look.fill)), look.opacity) if look.fill else "none"


def _dashes(look: Paint) -> tuple[float, list[float]] | str:
    return (0.0, [length / look.width for length in look.dash]) if look.dash else "solid"  # counted in line widths


def _patches(shape: Shape) -> list[Any]:
    from matplotlib.patches import Circle, Polygon, Rectangle

    if isinstance(shape, Disc):
        return [Circle((shape.x, shape.y), shape.radius)]
    if isinstance(shape, Boxes):
        return [Rectangle((x, y), width, height) for x, y, width, height in shape.places]
    if isinstance(shape, Trace):
        return [Polygon(shape.points, closed=shape.closed)]
    assert isinstance(shape, Lines)
    return [Polygon([(x, y), (to, down)], closed=False) for x, y, to, down in shape.segments]
