"""The page to review before labels are changed: how many would move, which ones, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela import plots
from fedrela.plots.samples import png
from fedrela.report.page import Block, Facts, Figure, Page, Picture, Pictures, Section, Table, Text
from fedrela.report.run_page import MOST_ROWS, largest
from fedrela.text import limited, listed, percent, plural, probability

ADVICE = (
    "Nothing has been changed. Review the rows below with someone who knows the data. A move does not mean that a "
    "label was wrong: it lends a rarer class a training sample that the model finds similar. fedrela relabel draws "
    "which rows move, each with its own probability, and every move can be undone."
)


@dataclass(frozen=True, eq=False)
class Audit:
    """What the page shows, as plain numbers."""

    name: str  # of the file
    classes: Sequence[str]
    settings: Sequence[tuple[str, str]]
    taus: NDArray[np.float64]
    flow: NDArray[np.float64]  # expected moves (taus, classes, classes)
    at: int  # index of the tau that flows and rows are shown for
    taken_for: NDArray[np.int64]  # labels by the model's first choices (classes, classes)
    kappa: float
    warnings: Sequence[str]
    moves: Mapping[str, Sequence[Any]]  # the most probable: id, old, new, posterior, rho
    candidates: int  # rows that may move
    pictures: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)  # id to (height, width, 3)
    with_pictures: bool = False  # whether pictures were requested

    @property
    def counts(self) -> NDArray[np.int64]:
        """Samples of each class."""
        return np.asarray(self.taken_for.sum(axis=1))

    @property
    def tau(self) -> str:
        """The tau that flows and rows are shown for."""
        return f"{self.taus[self.at]:g}"


def audit_page(found: Audit, version: str) -> Page:
    """Return the page of a posterior file."""
    n = int(found.counts.sum())
    sections = [
        Section("summary", "", _opening(found, n)),
        Section("taus", "How many labels would move", _taus(found, n)),
        Section("flows", "From class to class", _flows(found)),
        Section("agreement", "Where model and labels agree", _agreement(found)),
        Section("moves", "The most probable moves", _moves(found)),
        Section("settings", "Settings", [Facts(found.settings)]),
    ]
    lead = f"{plural(n, 'sample')} of {plural(len(found.classes), 'class')}: what re-labelling would do."
    return Page(f"Audit of {found.name}", lead, sections, f"Made by fedrela {version}. No label was changed.")


def _opening(found: Audit, n: int) -> list[Block]:
    moves = float(found.flow[found.at].sum())
    agreement = percent(float(found.taken_for.trace()) / n) if n else "-"
    pairs = [
        (f"labels would move at tau {found.tau}", f"{moves:,.1f}"),
        ("of all labels", percent(moves / max(n, 1))),
        ("labels that the model confirms", agreement),
        ("kappa, corrected for chance", "-" if np.isnan(found.kappa) else f"{found.kappa:.2f}"),
    ]
    return [Facts(pairs, large=True), *(Text(words, "warning") for words in found.warnings), Text(ADVICE, "muted")]


def _taus(found: Audit, n: int) -> list[Block]:
    rows = []
    for tau, flow in zip(found.taus, found.flow, strict=True):
        into = flow.sum(axis=0)
        top = [
            f"{limited(found.classes[c])} {into[c]:,.1f}" for c in np.argsort(-into, kind="stable")[:3] if into[c] > 0
        ]
        rows.append((f"{tau:g}", f"{flow.sum():,.1f}", percent(flow.sum() / max(n, 1), 2), ", ".join(top) or "-"))
    said = "Expected numbers: what happens on average over the draws. The paper advises a tau from 0.03 to 0.05."
    return [Text(said), Table(("tau", "expected moves", "share", "mostly to"), rows, ("tau", "mostly to"))]


def _flows(found: Audit) -> list[Block]:
    flow, names = found.flow[found.at], found.classes
    if not flow.any():
        return [Text(f"At tau {found.tau} no label would move.")]
    most, a, b = largest(flow, names)
    said = f"At tau {found.tau}. The largest flow is {most:,.1f} labels from “{a}” to “{b}”."
    before, after = found.counts, found.counts - flow.sum(axis=1) + flow.sum(axis=0)
    counts = f"{limited(names[int(np.argmin(before))])} is the smallest class, with {before.min():,} samples."
    return [
        Text(said),
        Figure("flow", "Expected moves, from class to class", partial(plots.label_flows, flow, names=names), said),
        Figure(
            "counts",
            "Samples per class, now and as expected after",
            partial(plots.class_counts, (before, after), names=names),
            counts,
        ),
    ]


def _agreement(found: Audit) -> list[Block]:
    n, names = found.taken_for, found.classes
    wrong = n - np.diag(n.diagonal())
    shares = n.diagonal() / np.maximum(found.counts, 1)
    order = np.argsort(shares, kind="stable")[:MOST_ROWS]
    rows = [
        (limited(names[c]), f"{found.counts[c]:,}", percent(shares[c]) if found.counts[c] else "-",
         limited(names[int(wrong[c].argmax())]) if wrong[c].any() else "-")
        for c in order
    ]  # fmt: skip
    most, a, b = largest(wrong, names)
    said = (
        f"To the model, {plural(most, 'sample')} of “{a}” look like “{b}”."
        if most
        else "The model confirms every label."
    )
    never = [limited(names[c]) for c in range(len(names)) if found.counts[c] and not n[c, c]]
    if never and most:
        said += f" It confirms no label of {listed(never)}."
    draw = partial(plots.confusion, n, names=names)
    caption = "Rows are labels, columns the model's first choice, in per cent of the row."
    columns = ("class", "samples", "confirmed", "otherwise mostly")
    left = f", {MOST_ROWS} of {len(names):,}" if len(names) > MOST_ROWS else ""
    return [
        Text(said),
        Table(columns, rows, (columns[0], columns[3]), f"The classes that the model confirms least come first{left}"),
        Figure("agreement", "What labels look like to the model", draw, said, caption),
    ]


def _moves(found: Audit) -> list[Block]:
    moves = found.moves
    if not len(moves["id"]):
        return [
            Text(
                f"{plural(found.candidates, 'row')} may move; none is shown."
                if found.candidates
                else "No row can move."
            )
        ]
    shown, rows, pictures = len(moves["id"]), [], []
    for row, old, new, posterior, rho in zip(
        *(moves[key] for key in ("id", "old", "new", "posterior", "rho")), strict=True
    ):
        a, b, which = limited(found.classes[old]), limited(found.classes[new]), limited(row)
        rows.append((which, a, b, probability(posterior), probability(rho)))
        if row in found.pictures:
            facts = [("posterior", probability(posterior)), ("re-labelling", probability(rho))]
            pictures.append(Picture(f"{which}: {a} → {b}", facts, png(found.pictures[row]), f"Row {which}, label {a}"))
    said = f"At tau {found.tau}, {plural(found.candidates, 'row')} may move; here are the {shown:,} most probable."
    blocks: list[Block] = [Text(said)]
    if found.with_pictures:
        missing = shown - len(pictures)
        blocks += [Pictures(pictures)] if pictures else []
        blocks += [Text(f"{plural(missing, 'row')} of them have no picture with their id.", "muted")] if missing else []
    columns = ("id", "label", "would become", "posterior", "rho")
    caption = "Posterior: the model's probability of the new class. rho: the probability that the row is drawn for it."
    return [*blocks, Table(columns, rows, columns[:3], caption)]
