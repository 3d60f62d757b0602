"""What stands round the cells of a client-by-class picture: title, grid, names, and bars with sums."""

from __future__ import annotations

import numpy as np

from fedrela.report.clients.frame import LINE, MARGIN, RIGHT_BARS, TOP_BARS, Frame
from fedrela.report.clients.view import View
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.scales import round_numbers
from fedrela.report.figures.shapes import Boxes, Lines, Shape, Word
from fedrela.report.figures.text import short, width

HALF = 4.0  # from the middle of a line of text down to its base line


def heading(at: Frame) -> list[Shape]:
    """Write title and caption."""
    y, words = MARGIN, []
    for line in at.heading:
        y += 1.4 * LINE
        words.append(Word(MARGIN, y - 0.4 * LINE, line, "heading"))
    for line in at.caption:
        y += LINE
        words.append(Word(MARGIN, y - 0.2 * LINE, line, "muted"))
    return list(words)


def grid(shown: View, at: Frame) -> list[Shape]:
    """Draw guiding lines through the middles of cells with dots, or a border round cells with colours."""
    if not shown.named:
        return [Boxes(((at.left, at.top, at.right - at.left, at.bottom - at.top),), "border")]
    across = [(at.left, at.y(i), at.right, at.y(i)) for i in range(at.rows)]
    down = [(at.x(k), at.top, at.x(k), at.bottom) for k in range(at.columns)]
    return [Lines((*across, *down), "grid")]


def client_axis(shown: View, at: Frame) -> tuple[list[Shape], float]:
    """Write the clients' numbers below the grid, upright where they are wide; also return where that ends."""
    widest = max(width(str(client), FONT_SIZE) for client in shown.clients)
    upright = widest > at.column - 3
    words: list[Shape] = []
    for k, client in enumerate(shown.clients):
        x, y = (at.x(k) + HALF, at.bottom + 6) if upright else (at.x(k), at.bottom + LINE)
        words.append(Word(x, y, str(client), anchor="end" if upright else "middle", upright=upright))
    end = at.bottom + (6 + widest if upright else LINE) + LINE
    words.append(Word((at.left + at.right) / 2, end, "client", "muted", "middle"))
    return words, end


def class_axis(shown: View, at: Frame) -> list[Shape]:
    """Write the names of the classes, or the ranks of some rows and a stripe in the colours of the groups."""
    edge = at.left - (8 if shown.named else 14)
    title = Word(edge, at.top - 8, "class" if shown.named else "rank", "muted", "end")
    signs = at.labels if shown.named else rank_labels(shown, at)
    words = [Word(edge, at.y(i) + HALF, sign, anchor="end") for i, sign in enumerate(signs) if sign]
    stripe = [] if shown.named else [_stripe(shown, at, group) for group in sorted({row.group for row in shown.rows})]
    return [title, *words, *stripe]


def _stripe(shown: View, at: Frame, group: int) -> Boxes:
    rows = [i for i, row in enumerate(shown.rows) if row.group == group]
    place = (at.left - 9, at.top + rows[0] * at.row, 5.0, len(rows) * at.row)
    return Boxes((place,), f"g{group}", list(shown.groups)[group] if shown.groups else "")


def rank_labels(shown: View, at: Frame) -> tuple[str, ...]:
    """Return what stands beside each row: rank 1, and round ranks with room between them, else nothing."""
    heights = np.array([len(row.classes) for row in shown.rows])
    last = np.cumsum(heights)
    first = last - heights + 1
    room = last[-1] / at.rows * 30 / at.row
    step = next(number for number in round_numbers(10 * last[-1], (1, 2, 5)) if number >= room)
    marked = np.where(first == 1, 1, last // step * step)
    return tuple(f"{rank:,}" if rank >= low else "" for rank, low in zip(marked, first, strict=True))


def class_bars(shown: View, at: Frame) -> list[Shape]:
    """Draw a bar with the samples of each row, over all clients; its number where there is room."""
    left, most = at.right + 10, max(float(shown.totals.max()), 1.0)
    height = min(at.row * 0.6, 10.0) if shown.named else at.row
    signs = at.labels if shown.named else rank_labels(shown, at)
    groups = list(shown.groups) or [""]
    drawn: list[Shape] = [Word(left, at.top - 8, "samples a class", "muted")]
    for i, row in enumerate(shown.rows):
        length, total = RIGHT_BARS * float(shown.totals[i]) / most, short(shown.totals[i])
        place = (left, at.y(i) - height / 2, length, height)
        drawn.append(Boxes((place,), f"g{row.group}", f"{row.label}: {total} {groups[row.group]}".rstrip()))
        if signs[i] or shown.named:
            drawn.append(Word(left + length + 6, at.y(i) + HALF, total))
    return drawn


def client_bars(shown: View, at: Frame) -> list[Shape]:
    """Draw a bar with the size of each client above the grid."""
    most, base = max(int(shown.client_sizes.max()), 1), at.top - 6
    drawn: list[Shape] = [Word(at.left, base - TOP_BARS - 6, f"samples a client, at most {most:,}", "muted")]
    for k, size in enumerate(shown.client_sizes.tolist()):
        height = TOP_BARS * size / most
        place = (at.x(k) - 0.3 * at.column, base - height, 0.6 * at.column, height)
        drawn.append(Boxes((place,), "muted", f"client {shown.clients[k]}: {size:,}"))
    return drawn
