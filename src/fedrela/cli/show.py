"""How the command line writes: foreign text made inert, tables, and plain output where nobody looks on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 100
LONGEST_NAME = 40  # characters of a class name in a table


def inert(text: object, longest: int | None = None) -> str:
    r"""Return foreign text as one harmless line: whatever does not print is shown as an escape.

    Control and formatting characters could drive a terminal or turn its writing round. Markup needs no care here,
    since `console` never interprets any.

    Parameters
    ----------
    text
        A class name, a file name, the text of an error.
    longest
        Cut longer text after that many characters.

    Examples
    --------
    >>> print(inert("cat\x1b[31m\n"))
    cat\x1b[31m\n
    >>> inert("a very long name", 8)
    'a ver...'
    """
    line = str(text)
    if longest is not None and len(line) > longest:
        line = line[: longest - 3] + "..."
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in line)


def paragraphs(text: str) -> str:
    r"""Join the lines of every paragraph, so that a help page wraps at the width of the reader's terminal.

    >>> paragraphs("One sentence over\ntwo lines.\n\nAnother.")
    'One sentence over two lines.\n\nAnother.'
    """
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def console() -> Console:
    """Return a console on standard output: plain and 100 wide unless that is a terminal, and never with markup."""
    if sys.stdout.isatty():
        return Console(markup=False, emoji=False, highlight=False)
    return Console(
        markup=False, emoji=False, highlight=False, width=PLAIN_WIDTH, color_system=None,
        force_terminal=False, force_jupyter=False, force_interactive=False, legacy_windows=False,
    )  # fmt: skip


def draw(out: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[str] = ()) -> None:
    """Write a table; the columns in `words` are text and stand left, all others are numbers and stand right."""
    grid = Table(
        header_style="dim", box=None, pad_edge=False, padding=(0, 3, 0, 0)
    )  # fmt: skip
    for column in columns:
        grid.add_column(column, justify="left" if column in words else "right", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    if out.is_terminal:
        out.print(grid)
        return
    with out.capture() as drawn:
        out.print(grid)
    for line in drawn.get().splitlines():
        out.print(line.rstrip(), soft_wrap=True)  # no blanks at the end, for those who compare or cut


def say(out: Console, text: str = "", style: str | None = None) -> None:
    """Write a line: wrapped at words on a terminal, whole elsewhere, so that it can be searched for."""
    out.print(text, style=style, soft_wrap=not out.is_terminal)


def complain(text: object) -> None:
    """Write one line about what went wrong to standard error."""
    print(f"fedrela: {inert(text)}", file=sys.stderr)
