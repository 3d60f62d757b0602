"""Foreign text in a figure: made printable, measured, cut and wrapped without a font at hand."""

from __future__ import annotations

import unicodedata

NARROW, WIDE = 0.6, 1.05  # advance of a character in units of the font size; sans-serif fonts stay below on average


def printable(text: object) -> str:
    r"""Return foreign text as one line that every XML reader accepts: what does not print is shown as an escape.

    Control characters are no XML, and formatting characters could turn the writing round.

    >>> print(printable("cat\x00\n"))
    cat\x00\n
    """
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in str(text))


def width(text: str, size: float) -> float:
    """Estimate how wide a line is at a font size.

    >>> width("client", 10) < width("client 1", 10) < width("客户客户客户客户", 10)
    True
    """
    return size * sum(WIDE if unicodedata.east_asian_width(ch) in "WF" else NARROW for ch in text)


def cut(text: str, size: float, longest: float) -> str:
    """Return the line, shortened with an ellipsis where it is wider than `longest`.

    >>> cut("a very long name", 10, 60)
    'a very lo…'
    """
    if width(text, size) <= longest:
        return text
    room = longest - width("…", size)
    kept = 0
    while kept < len(text) and width(text[: kept + 1], size) <= room:
        kept += 1
    return text[:kept].rstrip() + "…"


def wrapped(text: str, size: float, longest: float) -> list[str]:
    """Break text at its blanks into lines no wider than `longest`, as far as its words allow.

    >>> wrapped("one two three", 10, 50)
    ['one two', 'three']
    """
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size) <= longest:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def limited(text: str, longest: int) -> str:
    """Return the text, or its beginning and an ellipsis, of at most so many characters.

    >>> limited("a very long name", 8), limited("a name", 8)
    ('a very…', 'a name')
    """
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def short(number: float) -> str:
    """Write a number for people: thousands apart, one decimal where it is not whole.

    >>> short(12345.0), short(2.55), short(0.96)
    ('12,345', '2.5', '1')
    """
    return f"{number:,.1f}".removesuffix(".0")
