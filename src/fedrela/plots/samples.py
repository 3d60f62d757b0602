"""Plots of samples: scores with thresholds, re-labelled samples, and the decision boundary in two dimensions."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError, DataError
from fedrela.plots import style
from fedrela.plots.folders import Floats, Ints, RunData, read_run
from fedrela.plots.style import Axes
from fedrela.text import probability

Model = Callable[[Floats], ArrayLike]
LARGEST = 96  # pixels per side; larger pictures are shrunk by an integer factor
DARKEST = 127  # the largest value of pictures that need stretching to be seen, like digits with 16 grey levels
FEATURES = 5  # of a table row
ACROSS = 6  # samples side by side
LINES = (("posterior", "posterior"), ("re-label", "rho"))
GRID = 160  # points per side of the grid for a boundary


@style.plot
def score_histogram(
    source: Any, *, group: str | None = None, thresholds: Sequence[float] = (), ax: Axes = style.NEW
) -> None:
    """Draw how the scores z are distributed, with the thresholds above which samples may move.

    Parameters
    ----------
    source
        A run, or scores of any shape.
    group
        Of a run: scores towards the classes of this group only.
    thresholds
        Of scores: the thresholds to mark.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = score_histogram([-1.0, 0.0, 0.1, 2.5], thresholds=[2.0])
    >>> sum(int(bar.get_height()) for bar in ax.patches)
    4
    """
    if run := read_run(source):
        edges, counts, marks = run_scores(run, group)
    else:
        scores = style.floats(source).ravel()
        if not np.isfinite(scores).all():
            raise ArgumentError("source: expected finite scores")
        counts, edges = np.histogram(scores, bins=49)
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
        at, label = float(np.clip(z, edges[0], edges[-1])), f"{words} threshold {z:.2f}".strip()
        ax.axvline(at, color=style.SERIES[1], linestyle=("-", "--", ":")[k % 3], linewidth=1.2, label=label)
    style.set_height(ax, 2.4)


def run_scores(run: RunData, group: str | None) -> tuple[Floats, Ints, list[tuple[str, float]]]:
    """Return bin edges and counts of a run's scores, the outermost bins open, and the spread of the thresholds."""
    record = run.label_moves
    if not record["clients"]:
        raise DataError("this run has no record of scores")
    members = np.arange(len(run.classes)) if group is None else run.groups.members(group)
    inner = style.floats(record["z"]["edges"])
    step = inner[1] - inner[0]
    counts = np.array(record["z"]["counts"], np.int64)[members].sum(axis=0)
    edges = np.concatenate([[inner[0] - step], inner, [inner[-1] + step]])
    found = [facts["threshold"][c] for facts in record["clients"].values() for c in members]
    z = [float(value) for value in found if value is not None]
    if not z or run.config["relabel"].get("normalize") != "zscore" or run.method != "fedrela":
        return edges, counts, []
    spread = [("lowest", min(z)), ("median", float(np.median(z))), ("highest", max(z))]
    return edges, counts, [("", z[0])] if min(z) == max(z) else spread


@style.plot
def gallery(
    source: Any, *, names: Sequence[str] | None = None, drawn: bool = False, most: int = 12, across: int = ACROSS,
    ax: Axes = style.NEW,
) -> None:  # fmt: skip
    """Draw re-labelled samples with their old and new label, and the model's probability of the new one.

    Parameters
    ----------
    source
        A run, or a mapping with ``samples`` (n, channels, height, width) uint8 or (n, features), ``old`` and ``new``
        class ids, and optionally ``posterior``, ``rho`` (the re-labelling probability) and ``feature_names``.
    names
        Of a mapping: names of the classes.
    drawn
        Of a run: moves drawn at random in place of the most probable ones.
    most, across
        How many samples to show in all, and side by side; fewer in a new figure that is too narrow.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> found = {"samples": np.zeros((1, 1, 8, 8), np.uint8), "old": [0], "new": [1], "posterior": [0.25]}
    >>> [text.get_text() for text in gallery(found, names=["cat", "dog"]).texts]
    ['cat → dog', 'posterior 0.250']
    """
    run = read_run(source)
    found: Mapping[str, Any] = source if run is None else (run.drawn if drawn else run.gallery) or {}
    features = run.manifest.data["feature_names"] if run else found.get("feature_names")
    if not len(found.get("old", ())):
        raise DataError("this run folder has no re-labelled samples")
    most_class = int(max(np.max(found["old"]), np.max(found["new"])))
    names = run.classes if run else names or style.class_names(None, most_class + 1)
    x = np.asarray(found["samples"])[:most]
    pitch, least = (1.6, 0.8) if x.ndim == 4 else (0.15 * (FEATURES + 3.5), 1.1)  # of a row; inches of a column
    columns, width = min(across, max(len(x), 1)), style.own_width(ax)
    columns = next(n for n in range(columns, 0, -1) if n == 1 or (columns % n == 0 and width >= least * n))
    for i, (image, unusual) in enumerate(looks(x, features)):
        row, column = divmod(i, columns)
        left, top = 1.15 * column, pitch * row
        lines = [f"{names[int(found['old'][i])]} → {names[int(found['new'][i])]}"]
        lines += [f"{words} {probability(found[key][i])}" for words, key in LINES if key in found]
        lines += [f"{feature} {value}" for feature, value in unusual]
        if image is not None:
            ax.imshow(image, extent=(left, left + 1, top + 1, top), cmap="gray", vmin=0, vmax=255)
        for k, line in enumerate(lines):
            at = top + (1.04 if image is not None else 0.0) + 0.15 * k
            ax.text(left, at, style.name(line, 22), va="top", fontsize=6.5, color=style.MUTED if k else style.INK)
    rows = -(-len(x) // columns)
    inches = (width - 0.2) / (1.15 * columns) if x.ndim == 4 else 0.7
    ax.set(xlim=(0, 1.15 * columns), ylim=(pitch * rows, -0.05), aspect="equal" if x.ndim == 4 else "auto")
    ax.axis("off")
    style.set_height(ax, 0.2 + inches * pitch * rows)


def looks(x: NDArray[Any], names: Sequence[str] | None, standardized: bool = False) -> list[tuple[Any, Any]]:
    """Return what to show of each sample: a picture, or the features that deviate most, with their values."""
    if x.ndim == 4:
        return [(image, ()) for image in visible(x)]
    x = x.astype(np.float64)
    deviation = x if standardized else (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    names = names or [f"feature {j}" for j in range(x.shape[1])]
    most = np.argsort(-np.abs(deviation), axis=1, kind="stable")[:, :FEATURES].tolist()
    return [(None, [(names[j], f"{x[i, j]:+.2f}".replace("-", "−")) for j in row]) for i, row in enumerate(most)]


def visible(samples: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Return samples, (n, channels, height, width), as pictures to look at.

    Three channels are colours; of any other number the mean is shown in grey. Pictures whose values stay low are
    stretched, all by the same factor, and large ones shrunk.
    """
    most = int(samples.max(initial=0))
    factor = 255 / most if 0 < most <= DARKEST else 1.0
    return [_picture(sample, factor) for sample in samples]


def _picture(sample: NDArray[Any], factor: float) -> NDArray[np.uint8]:
    seen = sample.transpose(1, 2, 0) if len(sample) == 3 else sample.mean(axis=0)
    step = -(-max(seen.shape[:2]) // LARGEST)
    high, wide = (max(side // step, 1) for side in seen.shape[:2])
    cut = seen[: high * step, : wide * step]
    blocks = cut.reshape(high, len(cut) // high, wide, cut.shape[1] // wide, *cut.shape[2:])
    return np.asarray(np.rint(blocks.mean(axis=(1, 3)) * factor), np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of a picture, (height, width) in grey or (height, width, 3) in colour."""
    from matplotlib.image import imsave

    buffer, nothing = io.BytesIO(), {"Software": None}  # no version of matplotlib in the file
    colours = pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=-1)
    imsave(buffer, colours, format="png", metadata=nothing)  # type: ignore[arg-type]  # stubs do not know None
    return buffer.getvalue()


@style.plot
def decision_boundary(
    posterior: Model | Mapping[str, Model], x: ArrayLike, labels: ArrayLike, *, moved: ArrayLike | None = None,
    names: Sequence[str] | None = None, ax: Axes = style.NEW,
) -> None:  # fmt: skip
    """Draw two-dimensional samples and where the model's decision changes, before and after re-labelling.

    Parameters
    ----------
    posterior
        A function from points, (n, 2), to posteriors, (n, classes); or several by name, such as ``before`` and
        ``after``, each drawn as a boundary of its own.
    x, labels
        The samples, (n, 2), and their classes.
    moved
        Indices of re-labelled samples, which get a ring.
    names
        Names of the classes.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> def posterior(points):
    ...     p = 1 / (1 + np.exp(-points[:, 0]))
    ...     return np.stack([1 - p, p], axis=1)
    >>> ax = decision_boundary(posterior, [[-1.0, 0.0], [1.0, 1.0]], [0, 1], moved=[1])
    >>> len(ax.collections) >= 3
    True
    """
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
    room = 0.06 * np.maximum(np.ptp(points, axis=0), 1e-9)
    low, high = points.min(axis=0) - room, points.max(axis=0) + room
    axes = np.linspace(low, high, GRID).T
    mesh = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    models = posterior if isinstance(posterior, Mapping) else {"boundary": posterior}
    for k, (words, model) in enumerate(models.items()):
        found = np.asarray(model(mesh)).reshape(GRID, GRID, -1)
        dashes: Any = "solid" if k == len(models) - 1 else ("dashed", "dotted")[k % 2]
        for c in range(found.shape[-1] if found.shape[-1] > 2 else 1):  # two classes have one boundary
            lead = found[..., c] - np.delete(found, c, axis=-1).max(axis=-1)
            if lead.min() < 0 < lead.max():
                ax.contour(*axes, lead, levels=[0], colors=style.INK, linewidths=1.4, linestyles=dashes)
        handles[style.name(words)] = style.key(style.INK, linestyle=dashes)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="first feature", ylabel="second feature")
    style.legend_above(ax, handles.values(), handles)
    style.set_height(ax, 3.6)
