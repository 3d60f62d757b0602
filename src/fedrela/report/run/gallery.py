"""Re-labelled samples: the picture, or what is unusual in a table row, and what the model thought of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.report.page.parts import Picture, Pictures, Section, Text
from fedrela.report.run.moves import why_not
from fedrela.report.run.pixels import png, visible
from fedrela.report.run.story import Story
from fedrela.report.run.words import many, name

FEATURES = 5  # of a table row
HEADING = "Re-labelled samples"


def gallery(story: Story, *, samples: bool = True) -> Section:
    """Return moved samples of several clients, the most probable moves of each."""
    found = story.gallery
    why = why_not(story)
    if not samples:
        why = why or "Samples are left out of this page."
    elif not why and (found is None or not len(found["old"])):
        why = "No label moved." if story.moved == 0 else "Samples were not kept in this run folder."
    if why or found is None:
        return Section("samples", HEADING, [Text(why)])
    clients = len(set(found["client"].tolist()))
    said = (
        f"{many(len(found['old']), 'sample')} of {many(clients, 'client')}, taken from the clients in turn, each one's "
        "most probable moves first. Posterior is the model's probability of the new class, and re-labelling the "
        "probability with which FedReLa moves the label there."
    )
    return Section("samples", HEADING, [Text(said), Pictures(_pictures(story, found), _caption(story, found))])


def _pictures(story: Story, found: dict[str, NDArray[Any]]) -> list[Picture]:
    x = found["samples"]
    images = visible(x) if x.ndim == 4 else [None] * len(x)
    unusual = [()] * len(x) if x.ndim == 4 else _deviant(story, x)
    pictures = []
    for i, image in enumerate(images):
        old, new = (name(story.classes[int(found[key][i])]) for key in ("old", "new"))
        facts = [
            ("posterior", f"{found['posterior'][i]:.3f}"),
            ("re-labelling", f"{found['rho'][i]:.3f}"),
            ("client", f"{found['client'][i]:,}"),
        ]
        alt = f"Sample of client {found['client'][i]:,}, class {old}, re-labelled {new}"
        pictures.append(Picture(f"{old} → {new}", [*facts, *unusual[i]], None if image is None else png(image), alt))
    return pictures


def _deviant(story: Story, rows: NDArray[Any]) -> list[list[tuple[str, str]]]:
    """Return for each table row the features that deviate most, by name, with their values."""
    x = rows.astype(np.float64)
    deviation = x if story.manifest.data["standardized"] else (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    names = story.manifest.data["feature_names"] or [f"feature {j}" for j in range(x.shape[1])]
    most = np.argsort(-np.abs(deviation), axis=1, kind="stable")[:, :FEATURES]
    return [[(name(names[j]), f"{x[i, j]:+.2f}".replace("-", "−")) for j in row] for i, row in enumerate(most.tolist())]


def _caption(story: Story, found: dict[str, NDArray[Any]]) -> str:
    if found["samples"].ndim == 4:
        return ""
    if story.manifest.data["standardized"]:
        return "Below each: the features that deviate most from the mean, in standard deviations."
    return "Below each: the features that deviate most from those of the other samples shown, in their own units."
