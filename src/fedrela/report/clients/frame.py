"""Where things lie in a client-by-class picture."""

from __future__ import annotations

from dataclasses import dataclass

from fedrela.report.clients.view import View
from fedrela.report.figures.palette import FONT_SIZE, HEADING_SIZE
from fedrela.report.figures.text import cut, width, wrapped

LINE = 15.0
MARGIN = 16.0
LEAST_WIDTH = 540.0
LONGEST_NAME = 150.0
TOP_BARS, RIGHT_BARS = 36.0, 84.0


@dataclass(frozen=True)
class Frame:
    """The grid of cells, with its margins.

    Attributes
    ----------
    left, top
        Corner of the grid.
    column, row
        Width and height of a cell.
    width
        Of the whole picture.
    labels
        Names of the rows, cut to fit.
    heading, caption
        Lines above the grid.
    """

    left: float
    top: float
    column: float
    row: float
    columns: int
    rows: int
    width: float
    labels: tuple[str, ...]
    heading: tuple[str, ...]
    caption: tuple[str, ...]

    def x(self, column: int) -> float:
        """Return the middle of a column."""
        return self.left + (column + 0.5) * self.column

    def y(self, row: int) -> float:
        """Return the middle of a row."""
        return self.top + (row + 0.5) * self.row

    @property
    def right(self) -> float:
        """Right end of the grid."""
        return self.left + self.columns * self.column

    @property
    def bottom(self) -> float:
        """Lower end of the grid."""
        return self.top + self.rows * self.row


def frame(shown: View) -> Frame:
    """Lay out a picture: cells as large as fits on a page, but no smaller than can be read."""
    columns, rows = len(shown.clients), len(shown.rows)
    column = min(max(720 / columns, 14.0), 40.0)
    row = min(max(480 / rows, 15.0), 36.0) if shown.named else max(600 / rows, 5.0)
    labels = tuple(cut(r.label, FONT_SIZE, LONGEST_NAME) for r in shown.rows) if shown.named else ()
    left = MARGIN + max([40.0, *(width(label, FONT_SIZE) for label in labels)]) + 10
    numbers = max(width(f"{total:,.1f}", FONT_SIZE) for total in shown.totals)
    whole = max(left + columns * column + 10 + RIGHT_BARS + 6 + numbers + MARGIN, LEAST_WIDTH)
    room = whole - 2 * MARGIN
    heading = tuple(cut(line, HEADING_SIZE, room) for line in wrapped(shown.title, HEADING_SIZE, room))
    caption = tuple(wrapped(" ".join(shown.caption), FONT_SIZE, room))
    top = MARGIN + len(heading) * 1.4 * LINE + len(caption) * LINE + 2 * LINE + TOP_BARS + 6
    return Frame(left, top, column, row, columns, rows, whole, labels, heading, caption)
