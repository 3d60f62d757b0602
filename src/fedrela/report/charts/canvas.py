"""The page of a chart: its width, its title, and what stands there where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedrela.report.figures.palette import FONT_SIZE, STRONG_SIZE
from fedrela.report.figures.shapes import Drawing, Shape, Word
from fedrela.report.figures.text import cut, limited, printable, wrapped

WIDTH = 440.0  # narrow, so that letters stay legible where a page is 360 pixels wide
MARGIN = 12.0
LINE = 15.0
HALF = 4.0  # from the middle of a line of text down to its base line
ROOM = WIDTH - 2 * MARGIN
LONGEST_NAME, LONGEST_TEXT, LONGEST_DESCRIPTION = 40, 240, 2_000  # characters


def label(text: object, longest: float = ROOM) -> str:
    r"""Return foreign text as a short line of print.

    >>> label("cat\n"), label("a very long name", 60)
    ('cat\\n', 'a very l…')
    """
    return cut(limited(printable(text), LONGEST_NAME), FONT_SIZE, longest)


def labels(texts: Iterable[object], longest: float = ROOM) -> list[str]:
    """Return several lines of print."""
    return [label(text, longest) for text in texts]


def head(title: str, caption: Sequence[str] = (), axis_label: str = "") -> tuple[list[Shape], float]:
    """Write a title, sentences below it, and what the axis upwards is; also return where that ends."""
    y, words = MARGIN - 2, []
    for line in wrapped(limited(printable(title), LONGEST_TEXT), STRONG_SIZE, ROOM):
        y += 1.2 * LINE
        words.append(Word(MARGIN, y - 0.3 * LINE, cut(line, STRONG_SIZE, ROOM), "strong"))
    for line in [*wrapped(" ".join(caption), FONT_SIZE, ROOM), *filter(None, [label(axis_label)])]:
        y += LINE
        words.append(Word(MARGIN, y - 0.2 * LINE, cut(line, FONT_SIZE, ROOM), "muted"))
    return list(words), y + 4


def page(shapes: Iterable[Shape], bottom: float, title: str, description: str, *, groups: int = 0) -> Drawing:
    """Return shapes that end at `bottom` as a drawing with its text alternative."""
    name = limited(printable(title), LONGEST_TEXT).strip() or "A chart"
    said = limited(printable(description), LONGEST_DESCRIPTION)
    return Drawing(WIDTH, bottom + MARGIN, tuple(shapes), groups, name, said)


def sentence(title: str, description: str, said: str) -> Drawing:
    """Return a chart without numbers: a sentence stands in its place."""
    shapes, y = head(title, [said])
    return page(shapes, y, title, f"{description} {said}".strip())
