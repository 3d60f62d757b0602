"""Plots of the theory for two Gaussians: posteriors and boundaries of clients, alone, aggregated and re-labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrela.plots import style
from fedrela.plots.folders import Floats
from fedrela.plots.style import Axes
from fedrela.text import percent, plural
from fedrela.theory import Clients, TwoGaussians, aggregated_threshold, margin, posterior, printed_threshold

MAJORITY, MINORITY, TRUE = style.SERIES[0], style.SERIES[1], style.SERIES[3]
POINTS = 161
REACH = 3.2  # standard deviations beyond the means


@style.plot
def boundaries(clients: Clients, rho: float = 0.0, *, distance: float = 2.0, ax: Axes = style.NEW) -> None:
    """Draw where clients and their aggregated model decide for the minority: open before, filled after re-labelling.

    Parameters
    ----------
    clients
        Priors and weights.
    rho
        Probability of re-labelling the majority to the minority class.
    distance
        Between the means of the two classes, in standard deviations.
    ax
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> ax = boundaries(Clients.of([[40, 10], [5, 400]]), 0.3)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['2 clients', 'aggregated, as printed', 'aggregated, corrected']
    """
    from matplotlib.patches import Patch

    gaussians, handles = TwoGaussians(distance), []
    x = _line(ax, distance)
    for density, colour in zip(gaussians.densities(x), (MINORITY, MAJORITY), strict=True):
        look: dict[str, Any] = {"color": colour, "alpha": 0.16, "linewidth": 0, "zorder": 0.5}
        ax.fill_between(x, 0, 2.2 * density, transform=ax.get_xaxis_transform(), **look)
        handles.append(Patch(color=colour, alpha=0.3))
    own, strengths = clients.thresholds, [0.0, rho] if rho else [0.0]
    rows = [
        ("aggregated, as printed", MAJORITY, [printed_threshold(clients, each) for each in strengths]),
        ("aggregated, corrected", TRUE, [aggregated_threshold(clients, each) for each in strengths]),
    ]
    aside = {"never": int(np.isinf(own).sum()), "always": int((own == 0).sum())}
    names, texts = [plural(len(own), "client")], [", ".join(f"{n} {word}" for word, n in aside.items() if n)]
    for k, each in enumerate(strengths):
        _dots(ax, [gaussians.point(t) for t in (1 - 2 * each) * own], 0.26 * k - 0.13, style.MUTED, k > 0, 4)
    for y, (name, colour, found) in enumerate(rows, start=1):
        at = [gaussians.point(each) for each in found]
        if np.isfinite(at).all() and len(at) > 1:
            ax.annotate("", (at[1], y), (at[0], y), arrowprops={"arrowstyle": "->", "color": colour, "shrinkB": 4})
        for k, each in enumerate(at):
            _dots(ax, [each], y, colour, k > 0, 7)
        names.append(name)
        texts.append("recall " + " → ".join(percent(gaussians.recalls(each)[0], 0) for each in found))
    style.name_rows(ax, names, texts)
    ax.set_ylim(len(names) - 0.3, -0.5)
    style.mark(ax, 0.0, "equal classes")
    handles += [style.dot(style.INK, k > 0) for k in range(len(strengths))]
    style.legend_above(ax, handles, ["minority class", "majority class", "before", "re-labelled"][: len(handles)])
    style.set_height(ax, 2.6)


@style.plot
def posteriors(clients: Clients, rho: float = 0.0, *, distance: float = 2.0, ax: Axes = style.NEW) -> None:
    """Draw the posterior of the minority class: of every client, of their average, and of that after re-labelling.

    A model decides for the minority class where its curve is above 1/2.

    Parameters
    ----------
    clients, rho, distance, ax
        As for `boundaries`.

    Examples
    --------
    >>> ax = posteriors(Clients.of([[40, 10], [5, 400]]), 0.3)
    >>> len(ax.lines)
    5
    """
    x = _line(ax, distance)
    ratio = TwoGaussians(distance).ratio(x)
    for k, priors in enumerate(zip(clients.minority, clients.majority, strict=True)):
        look: dict[str, Any] = {"color": style.MUTED, "linewidth": 0.6, "linestyle": "-"}
        ax.plot(x, posterior(ratio, *priors), label="clients" if k == 0 else None, **look)
    for strength, dashes, label in [(0.0, "--", "average"), (rho, "-", "average, re-labelled")][: 2 if rho else 1]:
        ax.plot(x, (1 + margin(ratio, clients, strength)) / 2, color=TRUE, linestyle=dashes, label=label)
    ax.axhline(0.5, color=style.MUTED, linestyle=(0, (2, 2)), linewidth=1, zorder=1.5)
    ax.set(ylim=(-0.01, 1.01), ylabel="posterior of the minority class")


def _line(ax: Axes, distance: float) -> Floats:
    """Return points that cover both classes, and let the axes end with them."""
    end = distance / 2 + REACH
    ax.set(xlim=(-end, end), xlabel="feature x")
    return np.linspace(-end, end, POINTS)


def _dots(ax: Axes, x: Sequence[float], y: float, colour: str, filled: bool, size: float) -> None:
    face = colour if filled else style.PAPER
    ax.plot(x, np.full(len(x), y), "o", color=colour, markerfacecolor=face, markersize=size, zorder=3)
