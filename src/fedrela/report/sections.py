"""Sections of a run's page on re-labelling, clients and cost: where labels went, who has what, time and bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedrela import plots
from fedrela.metrics.heterogeneity import measure_heterogeneity
from fedrela.plots.clients import describe_clients
from fedrela.plots.rounds import SPANS
from fedrela.plots.runs import RunData
from fedrela.plots.samples import looks, png, run_scores
from fedrela.plots.style import limited, short
from fedrela.report.page import Block, Facts, Figure, Picture, Pictures, Table, Text
from fedrela.text import listed, plural, probability, seconds, size

MOST_NOTES, MOST_LOST, SOME_ROUNDS = 12, 40, 8
LONGEST_REASON = 160  # characters
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
    whole = f"{record['moved']:,} of {plural(run.samples, 'label')} moved ({share:.1%})"
    said = [f"{whole}, at {plural(len(record['clients']), 'client')}."]
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
    rows = [(kind, what[:LONGEST_REASON], f"{len(who):,}") for (kind, what), who in sorted(said.items(), reverse=True)]
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
    own = "those of the other samples shown, in their own units"
    how = "the mean, in standard deviations" if run.manifest.data["standardized"] else own
    caption = "" if found["samples"].ndim == 4 else f"Below each: the features that deviate most from {how}."
    return [Text(said), Pictures(_pictures(run, found), caption)]


def _pictures(run: RunData, found: dict[str, Any]) -> list[Picture]:
    data, pictures = run.manifest.data, []
    for i, (image, unusual) in enumerate(looks(found["samples"], data["feature_names"], data["standardized"])):
        old, new = (limited(run.classes[int(found[key][i])]) for key in ("old", "new"))
        facts = [
            ("posterior", probability(found["posterior"][i])),
            ("re-labelling", probability(found["rho"][i])),
            ("client", f"{found['client'][i]:,}"),
            *((limited(feature), value) for feature, value in unusual),
        ]
        alt = f"Sample of client {found['client'][i]:,}, class {old}, re-labelled {new}"
        pictures.append(Picture(f"{old} → {new}", facts, None if image is None else png(image), alt))
    return pictures


def who_has_what(run: RunData) -> list[Block]:
    """Return the clients by classes, with measures of imbalance and heterogeneity."""
    counts = run.client_counts
    if counts is None:
        sizes = np.array(run.manifest.data["client_sizes"])
        said = f"{plural(sizes.size, 'client')} have from {sizes.min():,} to {sizes.max():,} training samples. "
        return [Text(said + "Their classes are written when a run has finished.")]
    said = describe_clients(counts, run.classes, run.groups)
    width = 6.6 if len(counts) > 12 else 5.0
    draw, caption = partial(plots.client_classes, run), f"Original labels, before any was moved. {said}"
    title = "Training samples by client and class"
    blocks: list[Block] = [Figure("clients", title, draw, said, caption, width)]
    if counts.sum():
        columns = ("measure", "here", "what it means")
        blocks.append(Table(columns, heterogeneity_facts(counts), ("measure", "what it means")))
    if note := run.manifest.data["note"]:
        blocks.append(Text(f"Partition: {note}", "muted"))
    return blocks


def effective_clients(client_counts: ArrayLike) -> list[str]:
    """Return for each class over how many clients it is effectively spread, with one decimal; 0.0 where it is absent.

    >>> effective_clients([[30, 0, 0], [10, 20, 0]])
    ['1.6', '1.0', '0.0']
    """
    return [f"{clients:,.1f}" for clients in measure_heterogeneity(client_counts).effective_clients]


def heterogeneity_facts(client_counts: ArrayLike) -> list[tuple[str, str, str]]:
    """Measure a (clients, classes) count matrix: what each measure is called, what it is here, what it means.

    Examples
    --------
    >>> [f"{name} {value}" for name, value, _ in heterogeneity_facts([[30, 0], [10, 20]])][:2]
    ['imbalance ratio 2', 'class absence 25.0%']
    """
    found = measure_heterogeneity(client_counts)
    spread = np.array([clients for clients in found.effective_clients if clients > 0])
    spreads = " / ".join(map(short, (spread.min(), float(np.median(spread)), spread.max())))
    return [
        ("imbalance ratio", short(found.imbalance_ratio), "IR of the training set: largest class over smallest"),
        ("class absence", f"{found.absence_rate:.1%}", "pairs of a client and a class without a sample"),
        ("local/global mismatch", f"{found.mismatch:.1%}", "pairs of classes that a client has in reverse order"),
        ("effective clients", spreads, "clients a class is spread over: least, median, most"),
        ("total variation", probability(found.total_variation), "mean distance from the global class mix, 0 to 1"),
    ]


def lost_clients(run: RunData) -> list[Block]:
    """Return whose updates did not count and why, and the rounds that had too few clients."""
    turns: dict[tuple[int, str], list[int]] = {}
    for record in run.rounds:
        for client, reason in record.excluded:
            turns.setdefault((-1 if client is None else client, reason), []).append(record.round)
    blocks: list[Block] = []
    if not turns:
        blocks.append(Text("No client was lost: every update counted."))
    else:
        number, clients = sum(map(len, turns.values())), len({client for client, _ in turns})
        rows = [
            ("unknown" if client < 0 else f"{client:,}", f"{len(when):,}", _some(when), reason[:LONGEST_REASON])
            for (client, reason), when in sorted(turns.items())
        ]
        more = f", the first {MOST_LOST} of {len(rows):,}" if len(rows) > MOST_LOST else ""
        columns = ("client", "updates", "rounds", "why")
        said = Text(f"{plural(number, 'update')} of {plural(clients, 'client')} did not count.")
        blocks += [said, Table(columns, rows[:MOST_LOST], columns[2:], f"Updates lost{more}")]
    if skipped := [record.round for record in run.rounds if record.skipped]:
        left = f"Too few clients were left in {plural(len(skipped), 'round')} ({_some(skipped)})"
        blocks.append(Text(f"{left}: the model stayed."))
    return blocks


def _some(rounds: list[int]) -> str:
    """Return round numbers, some of them where they are many.

    >>> _some([1, 2, 5]), _some(list(range(1, 60)))
    ('1, 2, 5', '1, 2, 3, 4, 5, 6, 7, 8 … 59')
    """
    shown = ", ".join(map(str, rounds[:SOME_ROUNDS]))
    return shown if len(rounds) <= SOME_ROUNDS else f"{shown} … {rounds[-1]}"


def cost(run: RunData) -> list[Block]:
    """Return time and bytes per round, and what FedReLa added: the only section that differs between machines."""
    blocks: list[Block] = [Facts(_bytes(run))]
    if run.timing:
        times = [np.array([record.get(span, 0.0) for record in run.timing]) for span in SPANS.values()]
        middle = seconds(float(np.median(times[0] + times[1])))
        said = f"{plural(len(run.timing), 'round')} of {middle} each at the median."
        note = "Re-labelling is summed over clients, which may work side by side: the part drawn is the most it can be."
        figure = Figure("time", "Seconds per round", partial(plots.cost, run), said, note if run.enabled else "")
        blocks += [Facts(_times(run, times)), figure]
    if run.machine:
        blocks.append(Text(f"This section alone depends on the machine. {_machine(run.machine)}", "muted"))
    return blocks


def _bytes(run: RunData) -> list[tuple[str, str]]:
    pairs, whole = [], 0
    for way in ("sends", "receives"):
        arrays = {
            name: math.prod(shape) * np.dtype(dtype).itemsize
            for name, (shape, dtype) in run.manifest.algorithm.get(way, {}).items()
        }
        whole += sum(arrays.values())
        if arrays or way == "sends":
            parts = ", ".join(f"{limited(name)} {size(number)}" for name, number in arrays.items())
            pairs.append((f"a client {way}", f"{size(sum(arrays.values()))} per round ({parts})"))
    if run.rounds:
        clients = sum(len(record.chosen) for record in run.rounds) / len(run.rounds)
        pairs.append(("a round moves", f"{size(clients * whole)} with {clients:.4g} clients"))
    if run.enabled:
        pairs.append(("FedReLa adds", "0 B: it sends nothing, and uploads keep their names, shapes and types"))
    return pairs


def _times(run: RunData, times: list[Any]) -> list[tuple[str, str]]:
    train, score, relabel = times
    whole = train + score
    plain = whole[relabel == 0]
    middle = float(np.median(plain if plain.size else whole))
    pairs = [("all rounds", seconds(whole.sum())), ("per round", f"{seconds(middle)} (median)")]
    if relabel.any():
        first = int(np.argmax(relabel > 0))
        took = f"{seconds(whole[first])}, of which re-labelling, summed over clients, {seconds(relabel[first])}"
        pairs.append((f"round {run.timing[first]['round']}, re-labelling", took))
        part = relabel.sum() / whole.sum()
        pairs.append(("FedReLa added", f"{seconds(relabel.sum())} in the whole run, {part:.1%} of its time"))
    return pairs


def _machine(machine: Mapping[str, Any]) -> str:
    workers = (machine.get("engine") or {}).get("workers")
    said = [f"{machine.get('system', '')} {machine.get('machine', '')}".strip(), f"Python {machine.get('python', '?')}"]
    said += [plural(machine["cores"], "core")] if machine.get("cores") else []
    said += [f"workers {workers}"] if workers is not None else []
    return f"{', '.join(said)}; begun {machine.get('started', 'at an unknown time')}."
