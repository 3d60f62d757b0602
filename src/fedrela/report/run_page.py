"""The page of one run: accuracy, moved labels, the clients' classes, cost, and the configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedrela import plots
from fedrela.metrics.heterogeneity import measure_heterogeneity
from fedrela.plots.classes import confusion_shares
from fedrela.plots.clients import MOST_CLIENTS
from fedrela.plots.folders import RunData
from fedrela.plots.rounds import SPANS
from fedrela.plots.samples import looks, png, run_scores
from fedrela.report.page import Block, Facts, Figure, Page, Picture, Pictures, Section, Table, Text, change, say
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.text import duration, limited, percent, plural, points, probability, short, size

ABSOLUTE = re.compile(r'"(?:/|[A-Za-z]:\\\\|\\\\\\\\)[^"\n]*?([^"/\\\n]*)"')
MOST_ROWS = 30  # classes of a table; more are in the plot alone
SAMPLES = "Re-labelled samples"  # a section of comparison pages too
MOST_COUNTS, MOST_NOTES, MOST_LOST, SOME_ROUNDS = 30, 12, 40, 8
LONGEST_REASON = 160  # characters


def run_page(folder: RunFolder, *, samples: bool = True) -> Page:
    """Return the page of a run, finished or not, with `samples` or without.

    Nothing but the folder is read, and its location does not matter.
    """
    run = RunData(folder, samples=samples)
    sections = [
        Section("summary", "", opening(run)),
        Section("rounds", "Accuracy over rounds", over_rounds(run)),
        Section("classes", "Accuracy by class", by_class(run)),
        Section("confusion", "Confusion matrix", confusion(run)),
        Section("moves", "Where labels went", where_labels_went(run)),
        Section("samples", SAMPLES, gallery(run, samples=samples)),
        Section("clients", "Clients and classes", clients_and_classes(run)),
        Section("scores", "Scores and thresholds", scores(run)),
        Section("cost", "Cost", cost(run)),
        Section("lost", "Clients lost", lost_clients(run)),
        Section("configuration", "Configuration and versions", configuration(run)),
    ]
    foot = f"Made by fedrela {run.manifest.version} from the run folder alone."
    return Page(say("title", run), say("lead", run), sections, foot)


def opening(run: RunData) -> list[Block]:
    """Return what comes before the table of contents: the accuracies, and what they refer to."""
    blocks: list[Block] = []
    if run.status is not RunStatus.DONE:
        status = run.status.at_round(len(run.rounds))
        blocks.append(Text(f"This run is unfinished: {status} of {run.all_rounds}.", "warning"))
    if run.lost:
        blocks.append(Text(f"{run.lost[0].upper()}{run.lost[1:]}.", "warning"))
    accuracy = run.accuracy
    if accuracy is None:
        return [*blocks, *([Text("There is no test set, so this page shows no accuracy.")] if run.rounds else [])]
    shares = {run.headline: accuracy[run.headline], **accuracy["groups"]}
    pairs = [(limited(name), percent(share)) for name, share in shares.items()]
    rankings = {"auroc": "AUROC", "auprc": f"AUPRC of {limited(run.classes[1])}"}
    pairs += [(name, f"{accuracy[key]:.3f}") for key, name in rankings.items() if accuracy.get(key) is not None]
    if run.enabled:
        pairs.append(("labels moved", "private" if run.moved is None else f"{run.moved:,}"))
    return [*blocks, Facts(pairs, large=True), Text(say("accuracies", run), "muted")]


def over_rounds(run: RunData) -> list[Block]:
    """Return accuracy over rounds, overall and by group, with a mark at T."""
    if not any(record.accuracy for record in run.rounds):
        return [Text("No round was scored on a test set.")]
    said = say("course", run)
    return [Figure("accuracy", "Accuracy on the test set", partial(plots.accuracy_over_rounds, run), said), Text(said)]


def by_class(run: RunData) -> list[Block]:
    """Return the accuracy of every class before T and after the last round."""
    accuracy, before = run.accuracy, run.recalls_before
    if accuracy is None:
        return [Text("There is no test set.")]
    after = accuracy["per_class"]
    if before is None:
        why = [Text(f"Round {run.first}, where re-labelling begins, has not been reached.")] if run.enabled else []
        return [*why, *_class_table(run, None, after)]
    both = [(b, a) for b, a in zip(before, after, strict=True) if b is not None and a is not None]
    said = say("classes", run, sum(a > b for b, a in both), sum(a < b for b, a in both))
    title = f"Before round {run.first} and after round {run.last_scored}"
    figure = Figure("classes", title, partial(plots.class_changes, run), said)
    return [Text(said), figure, *_class_table(run, before, after)]


def _class_table(run: RunData, before: Sequence[float | None] | None, after: Sequence[float | None]) -> list[Block]:
    if len(run.classes) > MOST_ROWS:
        return []
    record, groups = run.relabelling or {}, run.groups
    columns: dict[str, Iterable[str]] = {"class": map(limited, run.classes)}
    columns["group"] = (limited(groups.names[g]) for g in groups.of_class)
    if samples := record.get("before") or run.manifest.data["class_counts"]:
        columns["samples"] = (f"{count:,}" for count in samples)
    if run.enabled and record.get("after"):
        columns["labels after"] = (f"{count:,}" for count in record["after"])
    if before:
        columns |= {"before": map(percent, before), "after": map(percent, after)}
        columns["points"] = map(change, before, after)
    else:
        columns["accuracy"] = map(percent, after)
    rows = list(zip(*columns.values(), strict=True))
    return [Table(list(columns), rows, ("class", "group"), "Training samples and accuracy on the test set")]


def confusion(run: RunData) -> list[Block]:
    """Return the confusion matrices before T and at the end, and their difference."""
    found = {"before": run.confusion_before, "after": (run.result or {}).get("confusion")}
    matrices = {panel: np.array(matrix, np.int64) for panel, matrix in found.items() if matrix is not None}
    if not matrices:
        private = "Each node keeps its own, and reports only the hits and number of its test samples."
        scored = private if (run.result or {}).get("accuracy") else "There is no test set."
        return [Text(scored if run.result else "Available once the run has finished.")]
    titles = {"before": f"Before round {run.first}", "after": f"After round {run.last_scored}"}
    said = {
        panel: say("errors", n.trace(), n.sum(), *largest(n - np.diag(n.diagonal()), run.classes))
        for panel, n in matrices.items()
    }
    if len(matrices) == 2:
        most, a, b = largest(confusion_shares(run, "difference"), run.classes)
        titles["difference"] = "The difference, in points"
        said["difference"] = f"The largest change is {points(most)} points: “{a}” predicted as “{b}”."
    figures = [
        Figure(f"confusion-{panel}", titles[panel], partial(plots.confusion, run, panel=panel), words)
        for panel, words in said.items()
    ]
    what = "Rows are true classes, columns predicted ones, in per cent of the row; the diagonal is correct."
    words = " ".join(f"{panel.capitalize()}: {said[panel]}" for panel in matrices)
    return [Text(what), *figures, Text(words)]


def largest(matrix: Any, classes: Sequence[str]) -> tuple[Any, str, str]:
    """Return the entry of a matrix of classes that is farthest from zero, and the names of its row and column."""
    found = np.asarray(matrix)
    a, b = divmod(int(np.abs(found).argmax()), len(classes))
    return found[a, b].item(), limited(classes[a]), limited(classes[b])


def where_labels_went(run: RunData) -> list[Block]:
    """Return the moves from class to class, and those into each class beside the expected ones."""
    if why := say("nothing_moved", run):
        return [Text(why)]
    record = run.relabelling or {}
    flow = np.array(record["flow"], np.int64)
    said = say("moves", run, flow.sum(axis=0), *largest(flow, run.classes))
    blocks: list[Block] = [Text(said)]
    if record["moved"]:
        caption = "How many labels of the class at the left became the class below."
        title = "Labels moved, from class to class"
        blocks.append(Figure("flow", title, partial(plots.label_flows, run), said, caption))
    words = f"{plural(int(flow.sum()), 'label')} moved; {sum(record['expected']):.1f} were expected."
    draw = partial(plots.moves_into_classes, run)
    blocks.append(Figure("targets", "Labels moved into each class", draw, words, say("targets", run)))
    title, draw = "Training samples per class, by the labels before and after", partial(plots.class_counts, run)
    counts = Figure("counts", title, draw, say("counts", run, MOST_COUNTS))
    return [*blocks, counts, *_notes(record["clients"])]


def _notes(clients: Mapping[str, Any]) -> list[Block]:
    """Return what clients refused or noted, each once."""
    said: dict[tuple[str, str], list[str]] = {}
    for client, facts in clients.items():
        notes = [("note", str(note)) for note in facts["notes"]]
        for key in notes + ([("refused", str(facts["refusal"]))] if facts["refusal"] is not None else []):
            said.setdefault(key, []).append(client)
    if not said:
        return []
    rows = [(kind, what[:LONGEST_REASON], f"{len(who):,}") for (kind, what), who in sorted(said.items(), reverse=True)]
    more = f"; {len(rows) - MOST_NOTES:,} more are in relabelling.json" if len(rows) > MOST_NOTES else ""
    caption = f"What clients reported when they re-labelled{more}"
    return [Table(("kind", "what", "clients"), rows[:MOST_NOTES], ("kind", "what"), caption)]


def scores(run: RunData) -> list[Block]:
    """Return the distribution of z for the classes of each group, with the thresholds."""
    if why := say("nothing_moved", run):
        return [Text(why)]
    blocks: list[Block] = [Text(say("scores", run))]
    for k, group in enumerate(run.groups.names):
        _, counts, marks = run_scores(run, group)
        draw, title = partial(plots.score_histogram, run, group=group), f"z towards {limited(group)} classes"
        blocks.append(Figure(f"scores-{k}", title, draw, say("histogram", counts.sum(), marks)))
    return blocks


def gallery(run: RunData, *, samples: bool = True) -> list[Block]:
    """Return moved samples of several clients, the most probable moves of each."""
    found, why = run.gallery, say("nothing_moved", run)
    if not samples:
        why = why or "Samples are left out of this page."
    elif not why and (found is None or not len(found["old"])):
        why = "No label moved." if run.moved == 0 else "Samples were not kept in this run folder."
    if why or found is None:
        return [Text(why)]
    said = say("gallery", len(found["old"]), len(set(found["client"].tolist())))
    caption = "" if found["samples"].ndim == 4 else say("features", run.manifest.data["standardized"])
    blocks: list[Block] = [Text(said), Pictures(_pictures(run, found), caption)]
    if run.drawn and (run.moved or 0) > len(found["old"]):
        blocks.append(Text("Drawn at random from all moves by the seed of the run, as in the paper's figure."))
        blocks.append(Pictures(_pictures(run, run.drawn), caption))
    return blocks


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


def clients_and_classes(run: RunData) -> list[Block]:
    """Return the clients by classes, with measures of imbalance and heterogeneity."""
    counts = run.client_counts
    if nodes := run.manifest.data.get("nodes"):
        return [Text(say("stayed", nodes))]
    if counts is None:
        return [Text(say("sizes", run.manifest.data["client_sizes"]))]
    said = say("clients", run, counts, np.median(counts.sum(axis=1)), MOST_CLIENTS)
    width = 6.6 if len(counts) > 12 else 5.0
    draw, caption = partial(plots.client_classes, run), f"Original labels, before any was moved. {said}"
    title = "Training samples by client and class"
    blocks: list[Block] = [Figure("clients", title, draw, said, caption, width)]
    if counts.sum():
        columns = ("measure", "value", "what it means")
        blocks.append(Table(columns, heterogeneity_facts(counts), ("measure", "what it means")))
    if note := run.manifest.data["note"]:
        blocks.append(Text(f"Partition: {note}", "muted"))
    return blocks


def effective_clients(client_counts: ArrayLike) -> list[str]:
    """Return for each class over how many clients it is effectively spread, with one decimal; 0.0 if it is absent.

    >>> effective_clients([[30, 0, 0], [10, 20, 0]])
    ['1.6', '1.0', '0.0']
    """
    return [f"{clients:,.1f}" for clients in measure_heterogeneity(client_counts).effective_clients]


def heterogeneity_facts(client_counts: ArrayLike) -> list[tuple[str, str, str]]:
    """Measure a (clients, classes) count matrix; return name, value and meaning of each measure.

    >>> [f"{name} {value}" for name, value, _ in heterogeneity_facts([[30, 0], [10, 20]])][:2]
    ['imbalance ratio 2', 'class absence 25.0 %']
    """
    found = measure_heterogeneity(client_counts)
    spread = np.array([clients for clients in found.effective_clients if clients > 0])
    spreads = " / ".join(map(short, (spread.min(), float(np.median(spread)), spread.max())))
    return [
        ("imbalance ratio", short(found.imbalance_ratio), "IR of the training set: largest class over smallest"),
        ("class absence", percent(found.absence_rate), "pairs of a client and a class without a sample"),
        ("local/global mismatch", percent(found.mismatch), "pairs of classes that a client has in reverse order"),
        ("effective clients", spreads, "clients a class is spread over: least, median, most"),
        ("total variation", probability(found.total_variation), "mean distance from the global class mix, 0 to 1"),
    ]


def lost_clients(run: RunData) -> list[Block]:
    """Return which updates did not count and why, and the rounds that had too few clients."""
    rounds: dict[tuple[int, str], list[int]] = {}
    for record in run.rounds:
        for client, reason in record.excluded:
            rounds.setdefault((-1 if client is None else client, reason), []).append(record.round)
    blocks: list[Block] = [Text(say("lost", sum(map(len, rounds.values())), len({client for client, _ in rounds})))]
    if rounds:
        rows = [
            ("unknown" if client < 0 else f"{client:,}", f"{len(when):,}", _some(when), reason[:LONGEST_REASON])
            for (client, reason), when in sorted(rounds.items())
        ]
        more = f", the first {MOST_LOST} of {len(rows):,}" if len(rows) > MOST_LOST else ""
        columns = ("client", "updates", "rounds", "why")
        blocks.append(Table(columns, rows[:MOST_LOST], columns[2:], f"Updates lost{more}"))
    if skipped := [record.round for record in run.rounds if record.skipped]:
        left = f"Too few clients were left in {plural(len(skipped), 'round')} ({_some(skipped)})"
        blocks.append(Text(f"{left}: the model did not change."))
    return blocks


def _some(rounds: list[int]) -> str:
    """Return round numbers, or only some of many.

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
        middle = duration(float(np.median(times[0] + times[1])))
        said = f"{plural(len(run.timing), 'round')} of {middle} each at the median."
        note = "Re-labelling is summed over clients, which may work in parallel: the part drawn is an upper bound."
        figure = Figure("time", "Seconds per round", partial(plots.cost, run), said, note if run.enabled else "")
        blocks += [Facts(_times(run, times)), figure]
    if run.machine:
        blocks.append(Text(say("machine", run.machine), "muted"))
    return blocks


def _bytes(run: RunData) -> list[tuple[str, str]]:
    pairs, whole = [], 0
    for direction in ("sends", "receives"):
        arrays = {
            name: math.prod(shape) * np.dtype(dtype).itemsize
            for name, (shape, dtype) in run.manifest.algorithm.get(direction, {}).items()
        }
        whole += sum(arrays.values())
        if arrays or direction == "sends":
            parts = ", ".join(f"{limited(name)} {size(number)}" for name, number in arrays.items())
            pairs.append((f"a client {direction}", f"{size(sum(arrays.values()))} per round ({parts})"))
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
    pairs = [("all rounds", duration(whole.sum())), ("per round", f"{duration(middle)} (median)")]
    if relabel.any():
        first = int(np.argmax(relabel > 0))
        took = f"{duration(whole[first])}, of which re-labelling, summed over clients, {duration(relabel[first])}"
        pairs.append((f"round {run.timing[first]['round']}, re-labelling", took))
        part = relabel.sum() / whole.sum()
        pairs.append(("FedReLa added", f"{duration(relabel.sum())} in the whole run, {percent(part)} of its time"))
    return pairs


def configuration(run: RunData) -> list[Block]:
    """Return the full configuration, versions and digests: what it takes to repeat the run."""
    text = without_paths(run.toml)
    said = "Every key, defaults included; [engine], which affects no result, is left out."
    if text != run.toml:
        said += " Absolute paths are cut to their last name."
    manifest, result = run.manifest, run.result or {}
    pairs = [*manifest.packages.items(), ("format", manifest.format), ("configuration, sha256", manifest.config_sha256)]
    if "weights_sha256" in result:
        pairs.append(("final weights, sha256", result["weights_sha256"]))
    return [Text(said), Text(text, "code"), Facts(pairs)]


def without_paths(toml: str) -> str:
    """Return a configuration whose absolute paths are cut to their last name, since pages are shared.

    >>> without_paths('root = "/home/ann/clinic data"')
    'root = "…/clinic data"'
    """
    return ABSOLUTE.sub(r'"…/\1"', toml)
