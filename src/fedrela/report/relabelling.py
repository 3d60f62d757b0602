"""Sections of a run's page on re-labelling: where labels went, the scores that decided it, and moved samples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.plots.runs import RunData
from fedrela.plots.samples import looks, png, run_scores
from fedrela.plots.style import limited
from fedrela.report.page import Block, Figure, Picture, Pictures, Table, Text
from fedrela.text import listed, plural

MOST_NOTES, LONGEST_NOTE = 12, 160
PRIVATE = (
    "In this run clients keep to themselves which labels they change: counts, ledgers and class histograms stay where "
    "the samples are, unless a client's own policy opts in. So this page cannot show where labels went."
)


def why_not(run: RunData) -> str:
    """Return why there is nothing to show of re-labelling; empty where there is."""
    if not run.enabled:
        return "Re-labelling was off in this run."
    if run.moved is None or (run.relabelling or {"moved": 0}).get("moved") is None:
        return PRIVATE
    if run.relabelling is None:
        so_far = f"{plural(run.moved, 'label')} moved so far" if run.moved else "No label has moved so far"
        return f"{so_far}. Where labels went is written when a run has finished."
    return "" if run.relabelling["clients"] else "No client was chosen at or after the first round of re-labelling."


def where_labels_went(run: RunData) -> list[Block]:
    """Return the moves from class to class, and those into each class beside what was expected."""
    if why := why_not(run):
        return [Text(why)]
    record, said = run.relabelling or {}, _moves(run)
    blocks: list[Block] = [Text(said)]
    if record["moved"]:
        caption = "How many labels of the class at the left became the class below."
        title = "Labels moved, from class to class"
        blocks.append(Figure("flow", title, partial(plots.label_flows, run), said, caption))
    blocks.append(_into_each(run, record))
    counts = Figure(
        "counts", "Training samples per class, by the labels before and after", partial(plots.class_counts, run),
        f"Labels before: {_counted(run, record['before'])}. After: {_counted(run, record['after'])}.",
    )  # fmt: skip
    return [*blocks, counts, *_notes(record["clients"])]


def _counted(run: RunData, counts: list[int]) -> str:
    shown = [f"{limited(label)} {count:,}" for label, count in zip(run.classes, counts, strict=True)]
    return ", ".join(shown[:30]) + (" and so on" if len(shown) > 30 else "")


def _moves(run: RunData) -> str:
    record = run.relabelling or {}
    flow = np.array(record["flow"], np.int64)
    share = record["moved"] / max(run.samples, 1)
    said = [f"{record['moved']:,} of {plural(run.samples, 'label')} moved ({share:.1%}),"]
    said.append(f"at {plural(len(record['clients']), 'client')}.")
    into = [(limited(group), int(flow[:, run.groups.members(group)].sum())) for group in run.groups.names]
    said.append(f"{listed([f'{number:,} into {group} classes' for group, number in into])}.".capitalize())
    if flow.any():
        a, b = divmod(int(flow.argmax()), len(flow))
        most = f"from “{limited(run.classes[a])}” to “{limited(run.classes[b])}”"
        said.append(f"The most frequent move is {most}, {plural(int(flow[a, b]), 'label')}.")
    return " ".join(said)


def _into_each(run: RunData, record: Mapping[str, Any]) -> Figure:
    said = "Expected: the sum of all re-labelling probabilities towards a class. "
    if run.config["relabel"]["moves"] == "random":
        said = "Expected is what FedReLa's probabilities say; this run moved as many labels of random samples. "
    known = run.config["relabel"].get("threshold") in (None, "higher", "order")
    bound = plural(record["bound"], "label")
    budget = f"No more than {bound}, tau times each client's samples, can move into one class."
    said += budget if known else "The threshold chosen sets no limit by itself."
    words = f"{plural(int(np.sum(record['flow'])), 'label')} moved; {sum(record['expected']):.1f} were expected."
    return Figure("targets", "Labels moved into each class", partial(plots.moves_into_classes, run), words, said)


def _notes(clients: Mapping[str, Any]) -> list[Block]:
    """Tell what clients refused or noted, each thing once."""
    said: dict[tuple[str, str], list[str]] = {}
    for client, facts in clients.items():
        told = [("note", str(note)) for note in facts["notes"]]
        for key in told + ([("refused", str(facts["refusal"]))] if facts["refusal"] is not None else []):
            said.setdefault(key, []).append(client)
    if not said:
        return []
    rows = [(kind, what[:LONGEST_NOTE], f"{len(who):,}") for (kind, what), who in sorted(said.items(), reverse=True)]
    more = f"; {len(rows) - MOST_NOTES:,} more are in relabelling.json" if len(rows) > MOST_NOTES else ""
    caption = f"What clients said when they re-labelled{more}"
    return [Table(("kind", "what", "clients"), rows[:MOST_NOTES], ("kind", "what"), caption)]


def scores(run: RunData) -> list[Block]:
    """Return the distribution of z for the classes of each group, with the thresholds."""
    if why := why_not(run):
        return [Text(why)]
    normalize = run.config["relabel"]["normalize"]
    said = (
        "For each sample and each class that it might move to, z is how much the model's probability of that class "
        "exceeds the mean over samples with the same label, in standard deviations. Only samples above a client's "
        "threshold for the class may move."
    )
    blocks: list[Block] = [Text(said)]
    if normalize != "zscore":
        blocks.append(Text(f"With normalize = {normalize}, as here, thresholds are no z values, and not drawn."))
    for k, group in enumerate(run.groups.names):
        _, counts, marks = run_scores(run, group)
        above = f" Thresholds lie between {marks[0][1]:.2f} and {marks[-1][1]:.2f}." if marks else ""
        words = f"{plural(int(counts.sum()), 'score')}.{above} The outermost bars hold all that is beyond."
        draw = partial(plots.score_histogram, run, group=group)
        blocks.append(Figure(f"scores-{k}", f"z towards {limited(group)} classes", draw, words))
    return blocks


def gallery(run: RunData, *, samples: bool = True) -> list[Block]:
    """Return moved samples of several clients, the most probable moves of each."""
    found, why = run.gallery, why_not(run)
    if not samples:
        why = why or "Samples are left out of this page."
    elif not why and (found is None or not len(found["old"])):
        why = "No label moved." if run.moved == 0 else "Samples were not kept in this run folder."
    if why or found is None:
        return [Text(why)]
    clients = len(set(found["client"].tolist()))
    said = (
        f"{plural(len(found['old']), 'sample')} of {plural(clients, 'client')}, taken from the clients in turn, each "
        "one's most probable moves first. Posterior is the model's probability of the new class, and re-labelling the "
        "probability with which FedReLa moves the label there."
    )
    caption = ""
    if found["samples"].ndim != 4:
        how = "the mean, in standard deviations" if run.manifest.data["standardized"] else (
            "those of the other samples shown, in their own units"
        )  # fmt: skip
        caption = f"Below each: the features that deviate most from {how}."
    return [Text(said), Pictures(_pictures(run, found), caption)]


def _pictures(run: RunData, found: dict[str, Any]) -> list[Picture]:
    data, pictures = run.manifest.data, []
    for i, (image, unusual) in enumerate(looks(found["samples"], data["feature_names"], data["standardized"])):
        old, new = (limited(run.classes[int(found[key][i])]) for key in ("old", "new"))
        facts = [
            ("posterior", f"{found['posterior'][i]:.3f}"),
            ("re-labelling", f"{found['rho'][i]:.3f}"),
            ("client", f"{found['client'][i]:,}"),
            *((limited(feature), value) for feature, value in unusual),
        ]
        alt = f"Sample of client {found['client'][i]:,}, class {old}, re-labelled {new}"
        pictures.append(Picture(f"{old} → {new}", facts, None if image is None else png(image), alt))
    return pictures
