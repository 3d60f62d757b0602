"""Who has what: clients across, classes down, a dot in each cell as large as its number of samples."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from fedrela.metrics.groups import Groups
from fedrela.report.clients.axes import class_axis, class_bars, client_axis, client_bars, grid, heading
from fedrela.report.clients.frame import LINE, MARGIN, frame
from fedrela.report.clients.legend import legend
from fedrela.report.clients.marks import colours, dots
from fedrela.report.clients.view import view
from fedrela.report.figures.drawing import draw_svg
from fedrela.report.figures.shapes import Drawing


def client_class_picture(
    counts: ArrayLike, class_names: Sequence[str], *, groups: Groups | None = None, title: str = ""
) -> str:
    """Draw a count matrix as SVG, the way papers on heterogeneous clients do.

    Up to 60 classes are drawn as dots whose area is proportional to the number of samples, with a ring round those too
    small to see. More are drawn as coloured cells, from the most frequent class to the rarest. Of more than 60 clients,
    60 are shown, spread over their ranking by size, and the caption says so.

    Parameters
    ----------
    counts : (K, C) non-negative integers
        Samples of each class at each client.
    class_names
        C names; whatever is in them is shown as text.
    groups
        Colours the classes by group.
    title
        A line above the picture.

    Examples
    --------
    >>> picture = client_class_picture([[30, 0], [10, 20]], ["cat", "dog"])
    >>> "<title>client 1, dog: 20</title>" in picture
    True
    """
    return draw_svg(client_class_drawing(counts, class_names, groups=groups, title=title))


def client_class_drawing(
    counts: ArrayLike, class_names: Sequence[str], *, groups: Groups | None = None, title: str = ""
) -> Drawing:
    """Return the shapes of `client_class_picture`."""
    shown = view(counts, class_names, groups=groups, title=title)
    at = frame(shown)
    axis, end = client_axis(shown, at)
    key, end = legend(shown, at, end + LINE)
    cells = dots(shown, at) if shown.named else colours(shown, at)
    shapes = (
        *heading(at), *client_bars(shown, at), *grid(shown, at), *cells,
        *class_axis(shown, at), *class_bars(shown, at), *axis, *key,
    )  # fmt: skip
    return Drawing(at.width, end + MARGIN, shapes, len(shown.groups), shown.title, shown.description)
