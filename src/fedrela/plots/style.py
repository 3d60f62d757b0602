"""The look of all plots: colours, the style sheet, new axes, and other people's names as harmless text.

Colours that name something (groups, series, the two sides of a diverging scale) stay apart for readers with any of the
three kinds of colour blindness and have a contrast of at least 3 to 1 with their page; text has at least 4.5 to 1 with
what it stands on. A test measures all this. matplotlib is loaded when something is drawn, not before.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import Groups
from fedrela.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("fedrela.mplstyle")
WIDTH = 5.0  # inches of a new figure
COLUMN, PAGE = 3.25, 6.75  # inches of a paper's column and page
PLACES = (0.0, 0.1, 0.2, 0.3, 0.67, 0.78, 0.89, 1.0)  # of a scale's colours between its ends
STEPS = len(PLACES)
SERIES = ("#0944b4", "#c94910", "#178564", "#8e2174", "#5a3a00", "#5399d6")
LONGEST_NAME, LONGEST_LABEL = 40, 34  # characters of a name, and of a legend's label
NEW: Any = None  # `ax` of a plot: a new figure
OURS = "fedrela_made"  # marks a figure whose height a plot may set

Drawn = TypeVar("Drawn", bound=Callable[..., Any])


def _scale(first: str, last: str) -> list[str]:
    """Return colours on the way from one to another, but for the middle, on which no text can be read."""
    ends = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (first, last)], np.float64)
    between = ends[0] + np.array(PLACES)[:, None] * (ends[1] - ends[0])
    return ["#" + "".join(f"{round(value):02x}" for value in row) for row in between]


def _palette(
    ground: Sequence[str], groups: Sequence[str], series: Sequence[str], scales: Sequence[str]
) -> dict[str, str]:
    names = ("paper", "ink", "muted", "grid", "on-low", "on-high")
    found = dict(zip(names, ground, strict=True))
    found |= {f"group-{k}": colour for k, colour in enumerate(groups)}
    found |= {f"series-{k}": colour for k, colour in enumerate(series)}
    found |= {f"rise-{k}": colour for k, colour in enumerate(_scale(*scales[:2]))}
    return found | {f"fall-{k}": colour for k, colour in enumerate(_scale(*scales[2:]))}


LIGHT = _palette(
    ("#ffffff", "#1f2328", "#57606a", "#e3e7ec", "#010101", "#fefefe"),
    ("#08519c", "#2b9c8c", "#d1480f"),
    SERIES,
    ("#cfe1f2", "#08264f", "#f7d3ba", "#7d2600"),
)
DARK = _palette(
    ("#15191f", "#e6e9ed", "#a3adb8", "#2a323c", "#fefefe", "#010101"),
    ("#4c9be8", "#7fe0c8", "#ff8a3d"),
    ("#5877ff", "#ff9f38", "#5fd6b2", "#b19df2", "#f7fbbf", "#9e8130"),
    ("#23405c", "#e3f1ff", "#573217", "#ffc48f"),
)
INK, MUTED, PAPER, LINE = (LIGHT[name] for name in ("ink", "muted", "paper", "grid"))
RISES, FALLS = ([LIGHT[f"{side}-{k}"] for k in range(STEPS)] for side in ("rise", "fall"))


def use_style() -> None:
    """Make fedrela's style that of all further figures, as ``matplotlib.pyplot.style.use`` does."""
    from matplotlib import style

    style.use(STYLE)


@functools.cache
def _parameters() -> Any:
    from matplotlib import rc_params_from_file

    return rc_params_from_file(STYLE, use_default_template=False)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in fedrela's style inside the block, and as before after it."""
    from matplotlib import rc_context

    with rc_context(_parameters()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="constrained_layout not applied")  # names too long for the figure
        yield


def plot(function: Drawn) -> Drawn:
    """Let a plot make its own figure, in fedrela's style, where it is given no `ax`.

    The function draws onto the keyword `ax`; called without one, or with None, it gets the axes of a new figure of
    ``matplotlib.pyplot``.
    """

    @functools.wraps(function)
    def drawn(*args: Any, ax: Axes | None = None, **options: Any) -> Axes:
        if ax is not None:
            function(*args, ax=ax, **options)
            return ax
        from matplotlib import pyplot

        with styled():
            figure, made = pyplot.subplots()
            setattr(figure, OURS, True)
            try:
                function(*args, ax=made, **options)
            except BaseException:
                pyplot.close(figure)
                raise
            figure.draw_without_rendering()  # ticks take the style that is in force when they are first needed
        return made

    return cast(Drawn, drawn)


def new_figure(draw: Callable[..., object], width: float = WIDTH) -> Figure:
    """Return a figure of `width` inches that pyplot does not know of; `draw` gets its axes as keyword `ax`."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width, 0.6 * width))
        FigureCanvasAgg(figure)
        setattr(figure, OURS, True)
        draw(ax=figure.add_subplot())
        engine = figure.get_layout_engine()
        if engine is not None:  # once; left in place, it would lay out again whenever the figure is saved
            engine.execute(figure)
            with rc_context({"figure.constrained_layout.use": False}):
                figure.set_layout_engine(None)
    return figure


def set_height(ax: Axes, inches: float) -> None:
    """Give a figure the height that its rows need, unless it is somebody else's."""
    figure = ax.get_figure(root=True)
    if figure is not None and getattr(figure, OURS, False):
        figure.set_figheight(inches)


def name(text: object, longest: int = LONGEST_NAME) -> str:
    r"""Return somebody else's name as a short line of text in which a dollar begins no formula.

    >>> print(name("a$b\n"))
    a\$b\n
    """
    return limited(text, longest).replace("$", r"\$")


def limited(text: object, longest: int = LONGEST_NAME) -> str:
    """Return text as one printable line of at most so many characters.

    >>> limited("a very long name", 8), limited("a name", 8)
    ('a very…', 'a name')
    """
    line = printable(text)
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def short(number: float) -> str:
    """Write a number for people: thousands apart, one decimal where it is not whole.

    >>> short(12345.0), short(2.55), short(0.96)
    ('12,345', '2.5', '1')
    """
    return f"{number:,.1f}".removesuffix(".0")


def group_colours(number: int) -> list[str]:
    """Return the colours of so many groups, from the most frequent classes to the rarest; of two the outer ones."""
    at = [0, 2] if number == 2 else [k % 3 for k in range(number)]
    return [LIGHT[f"group-{k}"] for k in at]


def class_colours(groups: Groups | None, classes: int) -> list[str]:
    """Return the colour of each class: that of its group, or one for all."""
    if groups is None:
        return [SERIES[0]] * classes
    colours = group_colours(len(groups.names))
    return [colours[g] for g in groups.of_class]


def tooltips(artist: Any, texts: Iterable[str]) -> None:
    """Say what a page shows where a reader points at an artist: a text for each of its marks, cells or bars."""
    if isinstance(artist, tuple):  # a container of bars
        for bar, text in zip(artist, texts, strict=True):
            bar.fedrela_tooltips = (text,)
    else:
        artist.fedrela_tooltips = tuple(texts)


def name_rows(ax: Axes, names: Sequence[str], texts: Sequence[str], longest: int = LONGEST_NAME) -> None:
    """Name rows at the left, from the top down, and write a text at the right of each."""
    for y, text in enumerate(texts):
        ax.annotate(
            text, (1, y), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
            fontsize="small", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(range(len(names)), [name(row, longest) for row in names])
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")


def class_names(names: Sequence[str] | None, classes: int) -> Sequence[str]:
    """Return the names of classes, by default their ids; another number of names is an `ArgumentError`."""
    if names is not None and len(names) != classes:
        raise ArgumentError(f"names: expected {classes}, one per class, got {len(names)}")
    return [str(c) for c in range(classes)] if names is None else names


def percent_axis(axis: Any, decimals: int | None = None) -> None:
    """Write shares along an axis in per cent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=decimals))


def colour_bar(ax: Axes, mesh: Any, **place: Any) -> Any:
    """Draw the colour bar of a mesh, without a frame, and return it."""
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(mesh, ax=ax, **place)
    bar.outline.set_visible(False)
    bar.ax.grid(False)
    return bar


def dot(colour: str, filled: bool) -> Any:
    """Return a dot for a legend, filled or open."""
    from matplotlib.lines import Line2D

    face = colour if filled else PAPER
    return Line2D([], [], linestyle="none", marker="o", color=colour, markerfacecolor=face)


def whole_axis(axis: Any) -> None:
    """Set ticks at integers only, with thousands apart."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator("auto", integer=True))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def mark(ax: Axes, x: float, words: str) -> None:
    """Draw a dashed line down through the axes, with words at its lower end."""
    ax.axvline(x, color=MUTED, linestyle=(0, (2, 2)), linewidth=1, zorder=1.5)
    low, high = ax.get_xlim()
    left = x - low > 0.5 * (high - low)
    ax.annotate(
        words, (x, 0), (-4 if left else 4, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
        ha="right" if left else "left", va="bottom", color=MUTED, fontsize="small",
    )  # fmt: skip


def legend_above(ax: Axes, handles: Sequence[Any] | None = None, labels: Sequence[str] | None = None) -> None:
    """Set the legend above the axes, in as many columns as fit."""
    if handles is None or labels is None:
        handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    width = ax.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    labels = [label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…" for label in labels]
    columns = max(1, min(len(labels), int(width * 12 // (max(map(len, labels)) + 6))))
    ax.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, columnspacing=1.2
    )


def floats(values: Any) -> NDArray[np.float64]:
    """Return numbers as an array, NaN where one is missing.

    >>> floats([1, None]).tolist()
    [1.0, nan]
    """
    return np.array(values, np.float64)  # None becomes NaN


def bands(number: int, most: int) -> list[tuple[int, int]]:
    """Cut positions into at most so many stretches of neighbours, each from the first to before the last.

    >>> bands(3, 10), bands(5, 2)
    ([(0, 1), (1, 2), (2, 3)], [(0, 3), (3, 5)])
    """
    height = max(-(-number // most), 1)
    return [(start, min(start + height, number)) for start in range(0, number, height)]
