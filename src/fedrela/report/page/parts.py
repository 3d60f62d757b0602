"""What a page is made of. Every string is text, whatever is in it: only `render` writes markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from fedrela.report.figures.shapes import Drawing


@dataclass(frozen=True)
class Text:
    """A paragraph; `warning` is for what a reader must not miss."""

    kind: ClassVar = "text"
    text: str
    tone: Literal["plain", "muted", "warning"] = "plain"


@dataclass(frozen=True)
class Figure:
    """A drawing with words below it; `name` is that of its file where figures are written out."""

    kind: ClassVar = "figure"
    name: str
    drawing: Drawing
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of text under `columns`; the columns in `words` stand left, all others are numbers and stand right."""

    kind: ClassVar = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A sample with what there is to say of it.

    Attributes
    ----------
    title
        In a few words, below the picture.
    facts
        Pairs of name and value.
    png
        The picture, or None where there is nothing to see.
    alt
        What a reader hears who does not see it.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    png: bytes | None = None
    alt: str = ""


@dataclass(frozen=True)
class Pictures:
    """Samples side by side."""

    kind: ClassVar = "pictures"
    items: Sequence[Picture]
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Lines in which every blank counts."""

    kind: ClassVar = "code"
    text: str


@dataclass(frozen=True)
class Facts:
    """Pairs of name and value; `large` for the few that a page begins with."""

    kind: ClassVar = "facts"
    pairs: Sequence[tuple[str, str]]
    large: bool = False


Block = Text | Figure | Table | Pictures | Code | Facts


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    Attributes
    ----------
    key
        Its address in the page: letters, digits and hyphens.
    title
        Its heading; sections without one stand before all others and are not in the table of contents.
    blocks
        From top to bottom.
    print_break
        Whether it begins on a new sheet.
    """

    key: str
    title: str
    blocks: Sequence[Block]
    print_break: bool = False


@dataclass(frozen=True)
class Page:
    """A page: its title, what it is about in a sentence or two, its sections, and a line at its end."""

    title: str
    lead: str
    sections: Sequence[Section]
    foot: str = ""

    @property
    def figures(self) -> list[Figure]:
        """All figures, from top to bottom."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]
