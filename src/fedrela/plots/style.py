"""The look of all plots: colours, the style sheet, new axes, and untrusted names as harmless text.

Colours that name something (groups, series, the two sides of a diverging scale) stay apart for readers with any of the
three kinds of colour blindness and have a contrast of at least 3 to 1 with their page; text has at least 4.5 to 1 with
its background. A test measures all this. matplotlib is loaded when something is drawn, not before.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import Groups
from fedrela.text import LONGEST, limited

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure
else:
    Axes = Any  # for the annotations of all plots

STYLE = Path(__file__).with_name("fedrela.mplstyle")
WIDTH = 5.0  # inches of a new figure
COLUMN, PAGE = 3.25, 6.75  # inches of a paper's column and page
LONGEST_LABEL = 34  # characters of a legend's label
LEGEND_ROW = 0.16  # inches
NEW: Any = None  # `ax` of a plot: a new figure
OURS = "fedrela_made"  # marks a figure whose height a plot may set

P = ParamSpec("P")


def _palette(ground: str, **kinds: str) -> dict[str, str]:
    found = dict(zip(("paper", "ink", "muted", "grid", "on-low", "on-high"), ground.split(), strict=True))
    return found | {f"{kind}-{k}": colour for kind, all_ in kinds.items() for k, colour in enumerate(all_.split())}


LIGHT = _palette(
    "#ffffff #1f2328 #57606a #e3e7ec #010101 #fefefe",
    group="#08519c #2b9c8c #d1480f",
    series="#0944b4 #c94910 #178564 #8e2174 #5a3a00 #5399d6",
    rise="#cfe1f2 #bbcee2 #a7bcd1 #93a9c1 #4a6485 #344f73 #1e3b61 #08264f",  # without the middle: no text is legible
    fall="#f7d3ba #ebc2a7 #dfb095 #d29f82 #a55f3d #984c29 #8a3914 #7d2600",  # on it, neither dark nor light
)
DARK = _palette(
    "#15191f #e6e9ed #a3adb8 #2a323c #fefefe #010101",
    group="#4c9be8 #7fe0c8 #ff8a3d",
    series="#5877ff #ff9f38 #5fd6b2 #b19df2 #f7fbbf #9e8130",
    rise="#23405c #36526c #49637d #5d758d #a4b7c9 #b9cadb #cedeed #e3f1ff",
    fall="#573217 #684123 #794f2f #895e3b #c89467 #daa475 #edb482 #ffc48f",
)
INK, MUTED, PAPER, LINE = (LIGHT[name] for name in ("ink", "muted", "paper", "grid"))
SERIES, RISES, FALLS = (
    [colour for name, colour in LIGHT.items() if name.startswith(f"{kind}-")] for kind in ("series", "rise", "fall")
)


def use_style() -> None:
    """Use fedrela's style for all further figures, as ``matplotlib.pyplot.style.use`` does.

    Examples
    --------
    Here inside a block that restores the style after it:

    >>> from matplotlib import pyplot
    >>> with pyplot.rc_context():
    ...     use_style()
    """
    from matplotlib import style

    style.use(STYLE)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in fedrela's style inside the block, and as before after it."""
    from matplotlib import style

    with style.context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="constrained_layout not applied")  # names too long for the figure
        yield


def plot(function: Callable[P, None]) -> Callable[P, Axes]:
    """Let a plot that is given no `ax` draw onto a new figure of ``matplotlib.pyplot``, in fedrela's style.

    A plot whose artists have labels, and which sets no legend itself, gets one above its axes.
    """

    @functools.wraps(function)
    def drawn(*args: Any, ax: Axes | None = None, **options: Any) -> Axes:
        if ax is not None:
            before = ax.get_legend()
            function(*args, ax=ax, **options)  # type: ignore[arg-type]  # P cannot say that there is an ax
            if ax.get_legend() is before:
                rows, figure = legend_above(ax, *ax.get_legend_handles_labels()), ax.get_figure(root=True)
                assert figure is not None
                set_height(ax, figure.get_figheight() + LEGEND_ROW * max(rows - 1, 0))
            return ax
        from matplotlib import pyplot

        with styled():
            figure, ax = pyplot.subplots()
            setattr(figure, OURS, True)
            try:
                drawn(*args, ax=ax, **options)
            except BaseException:
                pyplot.close(figure)
                raise
            figure.draw_without_rendering()  # ticks take the style in use when they are first needed
        return ax

    # Functions do not declare the attribute that inspect reads, and P cannot say that `ax` may be left out.
    drawn.__signature__ = inspect.signature(function).replace(return_annotation="Axes")  # type: ignore[attr-defined]
    return drawn  # type: ignore[return-value]


def new_figure(draw: Callable[..., object], width: float = WIDTH) -> Figure:
    """Return a figure of `width` inches that pyplot does not know of; `draw` gets its axes as keyword `ax`."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width, 0.6 * width))
        setattr(figure, OURS, True)
        draw(ax=figure.add_subplot())
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # left in place, it would lay out again whenever the figure is saved
    return figure


def set_height(ax: Axes, inches: float) -> None:
    """Give a figure the height that its rows need, unless the caller supplied it."""
    figure = ax.get_figure(root=True)
    if figure is not None and getattr(figure, OURS, False):
        figure.set_figheight(inches)


def own_width(ax: Axes) -> float:
    """Return the width of a new figure in inches; infinity for the caller's own axes."""
    figure = ax.get_figure(root=True)
    return figure.get_figwidth() if figure is not None and getattr(figure, OURS, False) else float("inf")


def name(text: object, longest: int = LONGEST) -> str:
    r"""Return an untrusted name as a short line of text in which a dollar starts no formula.

    >>> print(name("a$b\n"))
    a\$b\n
    """
    return limited(text, longest).replace("$", r"\$")


def group_colours(number: int) -> list[str]:
    """Return the colours of `number` groups, from the most frequent classes to the rarest; of two the outer ones."""
    at = [0, 2] if number == 2 else [k % 3 for k in range(number)]
    return [LIGHT[f"group-{k}"] for k in at]


def class_colours(groups: Groups | None, classes: int) -> list[str]:
    """Return the colour of each class: that of its group, or one for all."""
    colours = [SERIES[0]] if groups is None else group_colours(len(groups.names))
    return [colours[g] for g in ([0] * classes if groups is None else groups.of_class)]


def class_names(names: Sequence[str] | None, classes: int) -> Sequence[str]:
    """Return the names of classes, by default their ids; raise an `ArgumentError` for a wrong number of names."""
    if names is not None and len(names) != classes:
        raise ArgumentError(f"names: expected {classes}, one per class, got {len(names)}")
    return [str(c) for c in range(classes)] if names is None else names


def floats(values: Any) -> NDArray[np.float64]:
    """Return numbers as an array, with NaN for None."""
    return np.array(values, np.float64)


def bins(number: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Group positions into at most `most` bins of neighbours; return the start and length of each.

    >>> [found.tolist() for found in bins(5, 2)]
    [[0, 3], [3, 2]]
    """
    length = max(-(-number // most), 1)
    starts = np.arange(0, number, length)
    return starts, np.minimum(length, number - starts)


def tooltips(artist: Any, texts: Iterable[str]) -> None:
    """Set the tooltips of an artist in a page: a text for each of its marks, cells or bars."""
    if isinstance(artist, tuple):  # a container of bars
        for bar, text in zip(artist, texts, strict=True):
            bar.fedrela_tooltips = (text,)
    else:
        artist.fedrela_tooltips = tuple(texts)


def name_rows(
    ax: Axes, names: Sequence[str], texts: Sequence[str], longest: int = LONGEST, places: Sequence[float] = ()
) -> None:
    """Name rows at the left, from the top down, and write a text at the right of each; equal neighbours share one."""
    look: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
    places = places or range(len(names))
    for y, text in zip(places, texts, strict=True):
        ax.annotate(text, (1, y), (4, 0), xycoords=("axes fraction", "data"), annotation_clip=False, **look)
    shared = [list(rows) for _, rows in groupby(range(len(names)), names.__getitem__)]
    middles = [(places[rows[0]] + places[rows[-1]]) / 2 for rows in shared]
    ax.set_yticks(middles, [name(names[rows[0]], longest) for rows in shared])
    ax.set_ylim((places[-1] if names else 0) + 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")


def percent_axis(axis: Any, decimals: int | None = None) -> None:
    """Write shares along an axis in per cent; without decimals if its ticks are 5 points or more apart."""
    from matplotlib.ticker import PercentFormatter

    low, high = axis.get_view_interval()
    whole = 0 if abs(high - low) > 0.25 else None
    axis.set_major_formatter(PercentFormatter(1.0, decimals=whole if decimals is None else decimals))


def round_axis(ax: Axes) -> None:
    """Set ticks at whole rounds only, with thousands separators."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("round")
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.xaxis.set_major_formatter("{x:,.0f}")


def colour_bar(ax: Axes, mesh: Any, **place: Any) -> Any:
    """Draw the colour bar of a mesh, without a frame, and return it."""
    bar = ax.figure.colorbar(mesh, ax=ax, **place)
    bar.outline.set_visible(False)
    bar.ax.grid(False)
    return bar


def key(colour: str, **look: Any) -> Any:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, **look)


def dot(colour: str, filled: bool) -> Any:
    """Return a dot for a legend, filled or open."""
    return key(colour, linestyle="none", marker="o", markerfacecolor=colour if filled else PAPER)


def line(ax: Axes, x: Any, mean: Any, deviation: Any, most: float = 1.0, **look: Any) -> Any:
    """Draw a line with a band of one standard deviation on either side, if any, cut at 0 and `most`."""
    (drawn,) = ax.plot(x, mean, **look)
    if not np.isnan(deviation).all():
        low, high = np.maximum(mean - deviation, 0), np.minimum(mean + deviation, most)
        ax.fill_between(x, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
    return drawn


def mark(ax: Axes, x: float, words: str) -> None:
    """Draw a dashed line down through the axes, with words beside it at the lowest place clear of the named lines."""
    ax.axvline(x, color=MUTED, linestyle=(0, (2, 2)), linewidth=1, zorder=1.5)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    side = -1 if x - left > 0.5 * (right - left) else 1
    beside = np.linspace(x, x + side * 0.4 * (right - left), 9)
    named = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    drawn = np.array([np.interp(beside, *np.asarray(line.get_xydata()).T) for line in named])
    heights = np.linspace(0, 0.9, 10)
    apart = np.abs((drawn.reshape(-1, 1) - low) / (high - low) - heights - 0.05)
    y = heights[np.argmax(np.minimum(np.fmin.reduce(apart, axis=0, initial=1.0), 0.1))]
    look: dict[str, Any] = {"ha": "right" if side < 0 else "left", "va": "bottom", "color": MUTED, "fontsize": "small"}
    ax.annotate(words, (x, y), (4 * side, 3), xycoords=("data", "axes fraction"), textcoords="offset points", **look)


def legend_above(ax: Axes, handles: Iterable[Any], labels: Iterable[str]) -> int:
    """Set the legend above the axes, in as many columns as fit; return how many rows it has."""
    labels = [limited(label, LONGEST_LABEL) for label in labels]
    if not labels:
        return 0
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = figure.get_figwidth()
    columns = max(1, min(len(labels), int(width * 12 // (max(map(len, labels)) + 6))))
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    ax.legend(list(handles), labels, ncols=columns, columnspacing=1.2, **place)
    return -(-len(labels) // columns)
