"""The page of one run: what was run, its sections in their order, those on accuracy, and the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.plots.runs import RunData
from fedrela.plots.style import limited
from fedrela.report.page import Block, Code, Facts, Figure, Page, Section, Table, Text
from fedrela.report.sections import cost, gallery, lost_clients, scores, where_labels_went, who_has_what
from fedrela.runfolder import RunFolder
from fedrela.text import listed, percent, plural, points

ABSOLUTE = re.compile(r'"(?:/|[A-Za-z]:\\\\|\\\\\\\\)[^"\n]*?([^"/\\\n]*)"')
MOST_ROWS = 30  # classes of a table; more are in the plot alone
KINDS = {"dirichlet": "Dirichlet", "iid": "IID"}
NAMED = ("ratio", "factor", "alpha")  # of imbalance and partition, where they have them
SAMPLES = "Re-labelled samples"  # the section that pages of comparisons have too


def run_page(folder: RunFolder, *, samples: bool = True) -> Page:
    """Return the page of a run, finished or not, with `samples` or without.

    Nothing but the folder is read, and where it lies does not matter.
    """
    run = RunData.read(folder, samples=samples)
    sections = [
        Section("summary", "", opening(run)),
        Section("rounds", "Accuracy over rounds", over_rounds(run)),
        Section("classes", "Accuracy by class", by_class(run)),
        Section("confusion", "What was taken for what", confusion(run)),
        Section("moves", "Where labels went", where_labels_went(run)),
        Section("samples", SAMPLES, gallery(run, samples=samples)),
        Section("clients", "Who has what", who_has_what(run)),
        Section("scores", "Scores and thresholds", scores(run)),
        Section("cost", "Cost", cost(run)),
        Section("lost", "Clients lost", lost_clients(run)),
        Section("configuration", "Configuration and versions", configuration(run), print_break=True),
    ]
    foot = f"Made by fedrela {run.manifest.version} from the run folder alone."
    return Page(title(run), lead(run), sections, foot)


def title(run: RunData) -> str:
    """Return a title: the data, the baseline, and whether it was helped."""
    helped = ""
    if run.enabled:
        helped = " with FedReLa" if run.config["relabel"]["moves"] == "fedrela" else " with random moves"
    return f"{limited(run.manifest.data['source'])}: {_algorithm(run)}{helped}"


def lead(run: RunData) -> str:
    """Return what was run, in one sentence."""
    share = run.config["train"]["participation"]
    part = f" with {share:.3g} of the clients per round" if share < 1 else ""
    baseline = f"{_algorithm(run)} with {model_words(run)}{part}"
    return f"{data_words(run)}: {baseline}; {_relabelling(run)}; seed {run.config['seed']}."


def data_words(run: RunData) -> str:
    """Return what clients train on."""
    data = run.manifest.data
    samples = f"{plural(run.samples, 'training sample')} of {plural(len(run.classes), 'class')}"
    how = "; ".join(_kind(data["recipe"], what) for what in ("imbalance", "partition"))
    return f"{limited(data['source'])}, {samples} at {plural(data['clients'], 'client')} ({how})"


def model_words(run: RunData) -> str:
    """Return the model, and for how long it is trained."""
    return f"{limited(run.config['model']['name'])} for {plural(run.all_rounds, 'round')}"


def _algorithm(run: RunData) -> str:
    algorithm = run.manifest.algorithm
    return limited(algorithm.get("label", algorithm["name"]))


def _kind(recipe: Mapping[str, Any], what: str) -> str:
    table = recipe[what]
    numbers = [f"{key} {table[key]:g}" for key in NAMED if isinstance(table.get(key), int | float)]
    kind = KINDS.get(table["kind"], limited(table["kind"]).replace("_", " "))
    return ", ".join([f"{kind} {what}", *numbers])


def _relabelling(run: RunData) -> str:
    table = run.config["relabel"]
    rate = "" if table["lr_scale"] == 1 else f", with the learning rate times {table['lr_scale']:g}"
    if not run.enabled:
        return f"nobody re-labelled{rate and f'{rate} from round {run.first} on'}"
    tau = table["tau"]
    level = f"tau {tau:g}" if isinstance(tau, int | float) else "a tau of each client's own"
    again = f" and every {plural(table['period'], 'round')}" if table["period"] else ""
    what = "re-labelled" if table["moves"] == "fedrela" else "moved as many labels of random samples, as a control,"
    return f"clients {what} from round {run.first}{again} on ({level}){rate}"


def opening(run: RunData) -> list[Block]:
    """Return what stands above the table of contents: the accuracies, and what they are of."""
    blocks: list[Block] = []
    if run.status != "done":
        blocks.append(Text(f"This run is unfinished: {run.status} of {run.all_rounds}.", "warning"))
    accuracy = run.accuracy
    if accuracy is None:
        return [*blocks, *([Text("There is no test set, so this page tells no accuracy.")] if run.rounds else [])]
    shares = {run.headline: accuracy[run.headline], **accuracy["groups"]}
    pairs = [(limited(name), percent(share)) for name, share in shares.items()]
    pairs += [(key.upper(), f"{accuracy[key]:.3f}") for key in ("auroc", "auprc") if accuracy.get(key) is not None]
    if run.enabled:
        pairs.append(("labels moved", "private" if run.moved is None else f"{run.moved:,}"))
    return [*blocks, Facts(pairs, large=True), Text(_meaning(run, accuracy["groups"]), "muted")]


def _meaning(run: RunData, groups: Mapping[str, float | None]) -> str:
    result = run.result or {}
    which = "Balanced accuracy (the mean over classes)" if run.headline == "balanced" else "Accuracy"
    said = [f"{which} on the test set after round {run.last_scored}."]
    if empty := [limited(group) for group, share in groups.items() if share is None]:
        said.append(f"The test set has no sample of {listed(empty)} classes.")
    if run.enabled and run.moved is None:
        said.append("How many labels moved is known to the clients alone.")
    elif run.enabled:
        said.append(f"{run.moved:,} of {plural(run.samples, 'label')} of training samples were changed.")
    if "validation" in result:
        said.append(f"On what clients hold back, balanced accuracy is {percent(result['validation']['balanced'])}.")
    if "local" in result:
        said.append(f"The mean of the clients' own accuracies is {percent(result['local']['mean'])}.")
    return " ".join(said)


def over_rounds(run: RunData) -> list[Block]:
    """Return accuracy over rounds, overall and by group, with a mark at T."""
    if not any(record.accuracy for record in run.rounds):
        return [Text("No round was scored on a test set.")]
    said = _course(run)
    return [Figure("accuracy", "Accuracy on the test set", partial(plots.accuracy_over_rounds, run), said), Text(said)]


def _course(run: RunData) -> str:
    """Say what the curves say: where each stood before T, and where at the end."""
    before, after = (
        of and {run.headline: of[run.headline], **of["groups"]} for of in (run.accuracy_before, run.accuracy)
    )
    if after is None:
        return ""
    if before is None:
        parts = [f"{limited(key)} {percent(share)}" for key, share in after.items()]
        return f"After round {run.last_scored}: {listed(parts)}."
    parts = [
        f"{limited(key)} went from {percent(before[key])} to {percent(share)} ({_change(before[key], share)} points)"
        for key, share in after.items()
    ]
    return f"From round {run.first - 1} to round {run.last_scored}, {listed(parts)}."


def _change(before: float | None, after: float | None) -> str:
    return points(None if before is None or after is None else after - before)


def by_class(run: RunData) -> list[Block]:
    """Return the accuracy of every class before T and after the last round."""
    accuracy, before = run.accuracy, run.recalls_before
    if accuracy is None:
        return [Text("There is no test set.")]
    after = accuracy["per_class"]
    if before is None:
        why = f"Round {run.first}, before which accuracy would be compared, has not been reached."
        return [Text(why), *_class_table(run, None, after)]
    both = [(b, a) for b, a in zip(before, after, strict=True) if b is not None and a is not None]
    risen, fallen = sum(a > b for b, a in both), sum(a < b for b, a in both)
    said = f"{plural(risen, 'class')} rose and {fallen:,} fell, of {len(after):,}."
    if run.first == 1:
        said += " Round 1 is the first of re-labelling: before it the model was untrained."
    title = f"Before round {run.first} and after round {run.last_scored}"
    figure = Figure("classes", title, partial(plots.class_changes, run), said)
    return [Text(said), figure, *_class_table(run, before, after)]


def _class_table(run: RunData, before: Sequence[float | None] | None, after: Sequence[float | None]) -> list[Block]:
    if len(run.classes) > MOST_ROWS:
        return []
    record, groups = run.relabelling or {}, run.groups
    columns: dict[str, Iterable[str]] = {"class": map(limited, run.classes)}
    columns["group"] = (limited(groups.names[g]) for g in groups.of_class)
    columns["samples"] = (f"{count:,}" for count in record.get("before") or run.manifest.data["class_counts"])
    if run.enabled and record.get("after"):
        columns["labels after"] = (f"{count:,}" for count in record["after"])
    if before:
        columns |= {"before": map(percent, before), "after": map(percent, after)}
        columns["points"] = map(_change, before, after)
    else:
        columns["accuracy"] = map(percent, after)
    return [Table.of_columns(columns, ("class", "group"), "Training samples and accuracy on the test set")]


def confusion(run: RunData) -> list[Block]:
    """Return what the model took for what, before T, at the end, and the difference."""
    found = {"before": run.confusion_before, "after": (run.result or {}).get("confusion")}
    there = {panel: np.array(matrix, np.float64) for panel, matrix in found.items() if matrix is not None}
    if not there:
        return [Text("There is no test set." if run.result else "It is written when a run has finished.")]
    titles = {"before": f"Before round {run.first}", "after": f"After round {run.last_scored}"}
    said = {panel: _errors(run, matrix) for panel, matrix in there.items()}
    if len(there) == 2:
        titles["difference"], said["difference"] = "The difference, in points", _largest_change(run, there)
    figures = [
        Figure(f"confusion-{panel}", titles[panel], partial(plots.confusion, run, panel=panel), words)
        for panel, words in said.items()
    ]
    what = "Rows are true classes, columns predicted ones, in per cent of the row; the diagonal is what was right."
    words = " ".join(f"{panel.capitalize()}: {said[panel]}" for panel in there)
    return [Text(what), *figures, Text(words)]


def _errors(run: RunData, n: Any) -> str:
    wrong, total = n - np.diag(n.diagonal()), int(n.sum())
    if not wrong.any():
        return f"All of {plural(total, 'answer')} are right."
    a, b = divmod(int(wrong.argmax()), len(n))
    classes = f"“{limited(run.classes[a])}” taken for “{limited(run.classes[b])}”"
    most = f"{plural(int(wrong[a, b]), 'sample')} of {classes}"
    return f"{int(n.diagonal().sum()):,} of {plural(total, 'answer')} are right; the most frequent error is {most}."


def _largest_change(run: RunData, there: dict[str, Any]) -> str:
    before, after = (n / np.maximum(n.sum(axis=1, keepdims=True), 1) for n in there.values())
    a, b = divmod(int(np.abs(after - before).argmax()), len(run.classes))
    change = points(float(after[a, b] - before[a, b]))
    return f"The largest change is {change} points: “{limited(run.classes[a])}” taken for “{limited(run.classes[b])}”."


def configuration(run: RunData) -> list[Block]:
    """Return the full configuration, versions and digests: what it takes to run the same again."""
    text = without_paths(run.toml)
    said = "Every key, defaults included; [engine], on which no result depends, is left out."
    if text != run.toml:
        said += " Of paths on the machine only the last name is shown."
    manifest, result = run.manifest, run.result or {}
    pairs = [*manifest.packages.items(), ("format", manifest.format), ("configuration, sha256", manifest.config_sha256)]
    if "weights_sha256" in result:
        pairs.append(("final weights, sha256", result["weights_sha256"]))
    return [Text(said), Code(text), Facts(pairs)]


def without_paths(toml: str) -> str:
    """Return a configuration whose absolute paths are cut to their last name: a page is for showing to others.

    >>> without_paths('root = "/home/ann/clinic data"')
    'root = "…/clinic data"'
    """
    return ABSOLUTE.sub(r'"…/\1"', toml)
