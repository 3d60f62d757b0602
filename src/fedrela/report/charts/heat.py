"""Heat maps: a number for each row and column, in colours, and written where there is room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.report.charts.canvas import head, label, labels, page, sentence
from fedrela.report.charts.heat_cells import MOST, cells, diagonal, grid, names
from fedrela.report.charts.heat_scale import colour_bar, scale
from fedrela.report.charts.numbers import Floats, Number, bands, figure, floats, percentage
from fedrela.report.figures.shapes import Drawing


def heat_map(
    matrix: Sequence[Sequence[Number]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    description: str = "",
    row_label: str = "",
    column_label: str = "",
    percent: bool = False,
    diverging: bool = False,
    mark_diagonal: bool = False,
) -> Drawing:
    """Draw a matrix as coloured cells.

    Beyond 64 rows or columns a cell is a block of neighbours: its sum, or, of shares of a row, the mean over the rows
    of the sum over the columns; a sentence says so.

    Parameters
    ----------
    matrix
        A number for each row and column, None where there is none.
    rows, columns
        Their names.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    row_label, column_label
        What rows and columns are.
    percent
        Whether numbers are shares, to be written as percentages.
    diverging
        Whether numbers are differences, coloured on two sides of zero.
    mark_diagonal
        Whether cells with the same row and column get a border.

    Examples
    --------
    >>> heat_map([[3, 1], [0, 4]], ["cat", "dog"], ["cat", "dog"], title="Confusion").description
    '2 rows, 2 columns. Highest: 4 (dog, dog); lowest: 0 (dog, cat).'
    """
    found = np.array([floats(row) for row in matrix], np.float64) if len(matrix) else np.empty((0, 0))
    if found.size and found.shape != (len(rows), len(columns)):
        raise ArgumentError(f"matrix: expected {len(rows)} rows of {len(columns)} numbers, got {found.shape}")
    said = description or _in_words(found, rows, columns, percent)
    if not found.size or np.isnan(found).all():
        return sentence(title, said, "There are no values to draw.")
    shown, caption = _blocks(found, percent)
    axes = [f"{label(text)} {arrow}" for text, arrow in ((row_label, "↓"), (column_label, "→")) if text]
    shapes, y = head(title, caption, ", ".join(axes))
    at = grid(shown.shape, (len(rows), len(columns)), labels(rows), labels(columns), y)
    chosen = scale(shown, percent=percent, diverging=diverging)
    shapes += cells(at, shown, chosen, percent=percent, diverging=diverging)
    square = mark_diagonal and len(rows) == len(columns)
    below, end = names(at)
    shapes += [*(diagonal(at) if square else []), *below]
    bar, end = colour_bar(chosen, at.left, end)
    return page([*shapes, *bar], end, title, said)


def _blocks(found: Floats, percent: bool) -> tuple[Floats, list[str]]:
    """Return a matrix small enough to draw, and the sentence that it needs."""
    down, across = (bands(size, MOST) for size in found.shape)
    tall, wide = down[0][1], across[0][1]
    if tall == wide == 1:
        return found, []
    sums = np.add.reduceat(np.nan_to_num(found), [start for start, _ in across], axis=1)
    sums = np.add.reduceat(sums, [start for start, _ in down], axis=0)
    heights = np.array([end - start for start, end in down], np.float64)
    what = f"{tall} rows and {wide} columns" if tall != wide else f"{tall} by {wide}"
    how = "the mean over its rows of the sum over its columns" if percent else "their sum"
    return sums / heights[:, None] if percent else sums, [f"Each cell is a block of {what}: {how}."]


def _in_words(found: Floats, rows: Sequence[str], columns: Sequence[str], percent: bool) -> str:
    if not found.size or np.isnan(found).all():
        return ""
    said = []
    for place in (np.nanargmax(found), np.nanargmin(found)):
        r, c = divmod(int(place), found.shape[1])
        value = percentage(found[r, c]) if percent else figure(found[r, c])
        said.append(f"{value} ({label(rows[r])}, {label(columns[c])})")
    return f"{len(rows):,} rows, {len(columns):,} columns. Highest: {said[0]}; lowest: {said[1]}."
