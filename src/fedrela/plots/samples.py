"""Plots of samples: scores with thresholds, re-labelled samples, and the decision boundary in two dimensions."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.runs import Floats, Ints, RunData, is_source, read_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST = 96  # pixels a side; larger pictures are shrunk to a whole fraction
DARKEST = 127  # the largest value of pictures that need stretching to be seen, like digits with 16 grey levels
FEATURES = 5  # of a table row
ACROSS = 6  # samples side by side
GRID = 160  # points a side at which a boundary is looked for


@style.plot
def score_histogram(
    source: Any, *, group: str | None = None, thresholds: Sequence[float] = (), ax: Axes = style.NEW
) -> Axes:
    """Draw how the scores z are distributed, with the thresholds above which samples may move.

    `source` is a run, of which `group` chooses scores towards the classes of one group, or scores of any shape, for
    which `thresholds` are given here.

    Examples
    --------
    >>> import fedrela.plots as plots
    >>> ax = plots.score_histogram([-1.0, 0.0, 0.1, 2.5], thresholds=[2.0])
    >>> sum(int(bar.get_height()) for bar in ax.patches)
    4
    """
    if is_source(source):
        edges, counts, marks = run_scores(read_run(source), group)
    else:
        counts, edges = np.histogram(style.floats(source).ravel(), bins=49)
        marks = [("", float(z)) for z in thresholds]
    look: dict[str, Any] = {"align": "edge", "color": style.SERIES[0], "edgecolor": style.PAPER, "linewidth": 0.3}
    bars = ax.bar(edges[:-1], counts, np.diff(edges), **look)
    ranges = zip(edges[:-1], edges[1:], counts, strict=True)
    style.tooltips(bars, [f"{low:.3g} to {high:.3g}: {count:,}" for low, high, count in ranges])
    if np.any(counts):
        ax.set_yscale("log")
        ax.set_ylim(0.7, None)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.minorticks_off()
    ax.set(xlabel="score z", ylabel="number of scores")
    for k, (words, z) in enumerate(marks):
        ax.axvline(float(np.clip(z, edges[0], edges[-1])), color=style.SERIES[1], linestyle=("-", "--", ":")[k % 3],
                   linewidth=1.2, label=f"{words} threshold {z:.2f}".strip())  # fmt: skip
    style.legend_above(ax)
    style.set_height(ax, 2.4)
    return ax


def run_scores(run: RunData, group: str | None) -> tuple[Floats, Ints, list[tuple[str, float]]]:
    """Return bin edges and counts of a run's scores, the outermost bins open, and the spread of the thresholds."""
    record = run.label_moves
    if not record["clients"]:
        raise DataError("this run says nothing about scores")
    members = np.arange(len(run.classes)) if group is None else run.groups.members(group)
    inner = style.floats(record["z"]["edges"])
    step = inner[1] - inner[0]
    counts = np.array(record["z"]["counts"], np.int64)[members].sum(axis=0)
    edges = np.concatenate([[inner[0] - step], inner, [inner[-1] + step]])
    if run.config["relabel"]["normalize"] != "zscore":
        return edges, counts, []
    found = [facts["threshold"][c] for facts in record["clients"].values() for c in members]
    z = np.array([value for value in found if value is not None], np.float64)
    if not z.size:
        return edges, counts, []
    spread = [("lowest", z.min()), ("median", np.median(z)), ("highest", z.max())]
    marks = [("", float(z[0]))] if z.min() == z.max() else [(word, float(value)) for word, value in spread]
    return edges, counts, marks


@style.plot
def gallery(source: Any, *, names: Sequence[str] | None = None, most: int = 12, ax: Axes = style.NEW) -> Axes:
    """Draw re-labelled samples with their old and new label, and the model's probability of the new one.

    Parameters
    ----------
    source
        A run, or a mapping with ``samples`` (n, channels, height, width) uint8 or (n, features), ``old`` and ``new``
        class ids, and where known ``posterior`` and ``rho``, the re-labelling probability.
    names, most
        Of the classes, for plain arrays; how many samples to draw.

    Examples
    --------
    >>> import numpy as np
    >>> import fedrela.plots as plots
    >>> found = {"samples": np.zeros((1, 1, 8, 8), np.uint8), "old": [0], "new": [1], "posterior": [0.25]}
    >>> [text.get_text() for text in plots.gallery(found, names=["cat", "dog"]).texts]
    ['cat → dog', 'posterior 0.250']
    """
    features: Sequence[str] | None = None
    if is_source(source):
        run = read_run(source)
        if run.gallery is None or not len(run.gallery["old"]):
            raise DataError("no re-labelled samples were kept in this run folder")
        found: Mapping[str, Any] = run.gallery
        names, features = run.classes, run.manifest.data["feature_names"]
    else:
        found = source
        names = names or [str(c) for c in range(1 + int(max(np.max(found["old"]), np.max(found["new"]))))]
    x = np.asarray(found["samples"])[:most]
    columns = min(ACROSS, max(len(x), 1))
    pitch = 1.6 if x.ndim == 4 else 0.15 * (FEATURES + 3.5)
    for i, (image, unusual) in enumerate(looks(x, features)):
        row, column = divmod(i, columns)
        left, top = 1.15 * column, pitch * row
        lines = [f"{names[int(found['old'][i])]} → {names[int(found['new'][i])]}"]
        lines += [f"{words} {found[key][i]:.3f}" for words, key in LINES if key in found]
        lines += [f"{feature} {value}" for feature, value in unusual]
        if image is not None:
            ax.imshow(image, extent=(left, left + 1, top + 1, top), cmap="gray", vmin=0, vmax=255)
        for k, line in enumerate(lines):
            at = top + (1.04 if image is not None else 0.0) + 0.15 * k
            ax.text(left, at, style.name(line, 22), va="top", fontsize=6.5, color=style.MUTED if k else style.INK)
    rows = -(-len(x) // columns)
    ax.set(xlim=(0, 1.15 * columns), ylim=(pitch * rows, -0.05), aspect="equal")
    ax.axis("off")
    style.set_height(ax, 0.2 + 4.8 / 1.15 / ACROSS * pitch * rows)
    return ax


LINES = (("posterior", "posterior"), ("re-labelling", "rho"))


def looks(x: NDArray[Any], names: Sequence[str] | None, standardized: bool = False) -> list[tuple[Any, Any]]:
    """Return what there is to see of each sample: a picture, or the features that deviate most, with their values."""
    if x.ndim == 4:
        return [(image, ()) for image in visible(x)]
    x = x.astype(np.float64)
    deviation = x if standardized else (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    names = names or [f"feature {j}" for j in range(x.shape[1])]
    most = np.argsort(-np.abs(deviation), axis=1, kind="stable")[:, :FEATURES].tolist()
    return [(None, [(names[j], f"{x[i, j]:+.2f}".replace("-", "−")) for j in row]) for i, row in enumerate(most)]


def visible(samples: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Return samples, (n, channels, height, width), as pictures that can be looked at.

    Three channels are colours; of any other number the mean is shown in grey. Pictures whose values stay low are
    stretched, all by the same factor, and large ones shrunk.
    """
    if not samples.size:
        return []
    most = int(samples.max())
    factor = 255 / most if 0 < most <= DARKEST else 1.0
    return [_picture(sample, factor) for sample in samples]


def _picture(sample: NDArray[Any], factor: float) -> NDArray[np.uint8]:
    seen = sample.transpose(1, 2, 0) if len(sample) == 3 else sample.mean(axis=0)
    step = -(-max(seen.shape[:2]) // LARGEST)
    high, wide = (max(side // step, 1) for side in seen.shape[:2])
    cut = seen[: high * step, : wide * step]
    blocks = cut.reshape(high, len(cut) // high, wide, cut.shape[1] // wide, *cut.shape[2:])
    grey: NDArray[np.uint8] = np.rint(blocks.mean(axis=(1, 3)) * factor).astype(np.uint8)
    return grey


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of a picture, (height, width) in grey or (height, width, 3) in colour."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    nothing: Any = {"Software": None}  # no version of matplotlib in the file
    colours = pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=-1)
    imsave(buffer, colours, format="png", metadata=nothing)
    return buffer.getvalue()


@style.plot
def decision_boundary(
    posterior: Callable[[Floats], ArrayLike] | Mapping[str, Callable[[Floats], ArrayLike]],
    x: ArrayLike,
    labels: ArrayLike,
    *,
    moved: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    ax: Axes = style.NEW,
) -> Axes:
    """Draw two-dimensional samples and where the model's decision changes, before and after re-labelling.

    Parameters
    ----------
    posterior
        A function from points, (n, 2), to posteriors, (n, classes); or several by name, such as ``before`` and
        ``after``, each drawn as a boundary of its own.
    x, labels
        Samples, (n, 2), and their classes.
    moved
        Indices of samples to ring: those that were re-labelled.
    names
        Of the classes; by default their ids.

    Examples
    --------
    >>> import numpy as np
    >>> import fedrela.plots as plots
    >>> def posterior(points):
    ...     p = 1 / (1 + np.exp(-points[:, 0]))
    ...     return np.stack([1 - p, p], axis=1)
    >>> ax = plots.decision_boundary(posterior, [[-1.0, 0.0], [1.0, 1.0]], [0, 1], moved=[1])
    >>> len(ax.collections) >= 3
    True
    """
    from matplotlib.lines import Line2D

    points, y = style.floats(x), np.asarray(labels)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(y):
        raise ArgumentError(f"x: expected {len(y)} points in two dimensions, got {points.shape}")
    handles: dict[str, Any] = {}
    for c in np.unique(y).tolist():
        colour = style.SERIES[c % len(style.SERIES)]
        label = style.name(names[c] if names is not None else f"class {c}")
        handles[label] = ax.scatter(points[y == c, 0], points[y == c, 1], s=12, color=colour, alpha=0.7, linewidths=0)
    if moved is not None:
        ringed = points[np.asarray(moved, np.int64)]
        look: dict[str, Any] = {"s": 36, "facecolors": "none", "edgecolors": style.INK, "linewidths": 0.8}
        handles["re-labelled"] = ax.scatter(*ringed.T, **look)
    margin = 0.06 * np.maximum(np.ptp(points, axis=0), 1e-9)
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    axes = [np.linspace(low[k], high[k], GRID) for k in range(2)]
    mesh = np.stack(np.meshgrid(*axes), axis=-1)
    models = posterior if isinstance(posterior, Mapping) else {"boundary": posterior}
    for k, (words, model) in enumerate(models.items()):
        found = np.asarray(model(mesh.reshape(-1, 2))).reshape(GRID, GRID, -1)
        dashes: Any = "solid" if k == len(models) - 1 else ("dashed", "dotted")[k % 2]
        for c in range(found.shape[-1] - 1 if found.shape[-1] == 2 else found.shape[-1]):
            margin_of = found[..., c] - np.delete(found, c, axis=-1).max(axis=-1)
            if margin_of.min() < 0 < margin_of.max():
                ax.contour(*axes, margin_of, levels=[0], colors=style.INK, linewidths=1.4, linestyles=dashes)
        handles[style.name(words)] = Line2D([], [], color=style.INK, linestyle=dashes)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="first feature", ylabel="second feature")
    style.legend_above(ax, list(handles.values()), list(handles))
    style.set_height(ax, 3.6)
    return ax
