"""One study as a section of a page in docs/results: tables, paired differences, pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from result_records import Cell, Study, cell_text, common, difference, gain_text, headline, rare, spread, table

from fedrela import plots
from fedrela.arms import ARMS
from fedrela.metrics.paired import Interval, Spread
from fedrela.report.tables import spread_text
from fedrela.reproduction.paper_table import paper_table
from fedrela.text import listed, plural, points

Pictures = dict[str, Callable[..., object]]
PAIRS = (  # what is compared, and what the difference shows
    ("baseline", "fedrela", "FedReLa"),
    ("baseline-drop", "fedrela-drop", "FedReLa, both arms with the drop"),
    ("baseline", "baseline-drop", "the learning-rate drop alone"),
    ("random", "fedrela", "which samples move: FedReLa against random moves"),
)

LONG = 12  # rows of a table that is shown on request
SWEPT = {  # of plots over a swept key, where its last part is not the word to use
    "data.imbalance.ratio": "IR",
    "data.options.noise": "share of wrong labels",
    "relabel.start": "T as a share of the rounds",
}


def arms_rows(study: Study) -> Iterator[list[str]]:
    for (baseline, values), arms in study.rows.items():
        for arm in (arm for arm in ARMS if arm in arms):
            shown = [cell_text(arms[arm], metric) for metric in (*study.metrics, "moved")]
            yield [baseline, values, arm, str(len(arms[arm])), *shown]


def gains_rows(study: Study) -> Iterator[list[str]]:
    for base, treated, words in PAIRS:
        for (baseline, values), arms in study.rows.items():
            if base in arms and treated in arms:
                gains = [gain_text(difference(arms, base, treated, metric)) for metric in study.metrics]
                yield [words, baseline, values, *gains]


def convergence(study: Study) -> str:
    """Say whether the baselines have converged: what the last ten rounds gained."""
    cells = [cell for arms in study.rows.values() for cell in arms.get("baseline", [])]
    once = {cell["weights_sha256"]: cell["last_ten"] for cell in cells}  # several rows may have one run
    known = [gain for gain in once.values() if gain is not None]
    if not known:
        return ""
    more = sum(gain >= 0.01 for gain in known)
    ends = dict.fromkeys(map(points, (min(known), max(known))))
    verdict = f"{more or 'none'} of {plural(len(known), 'run')} gained a point or more"
    return f"Change of the baselines over their last ten rounds: {' to '.join(ends)} points; {verdict}."


def choice(study: Study) -> Iterator[str]:
    """Write the validation accuracies of a selection, and mark the highest."""
    rows = []
    for baseline in dict.fromkeys(row[0] for row in study.rows):
        found = {
            values: Spread.of([cell["validation"]["balanced"] for cell in arms["baseline"]])
            for (label, values), arms in study.rows.items()
            if label == baseline and "baseline" in arms
        }
        best = max(found, key=lambda values: found[values].mean or 0)
        for values, validation in found.items():
            mark = "highest" if values == best else ""
            rows.append([baseline, values, str(len(validation.values)), spread_text(validation.as_record()), mark])
    yield from table(["baseline", "setting", "seeds", "balanced accuracy on validation samples", ""], rows)


SCORED_OTHERWISE = ("FedLoGe",)  # by its frame, which FedReLa needs, and not by its own realigned head
IF_100 = {"data.imbalance.factor": 100, "data.partition.alpha": 0.3}
PLAIN: dict[str, tuple[str, dict[str, Any] | None]] = {
    # by study of other remedies: the one that has FedAvg with FedReLa, and its setting there; None: in every setting
    "fmnist-peers": ("fmnist-fedavg", {"data.imbalance.minority": [0, 2, 4], "data.imbalance.ratio": 20}),
    "cifar10-lt": ("cifar10-lt", None),
    "cifar10-more": ("cifar10-lt", IF_100),
    "cifar100-k10": ("cifar100-k10", None),
    "cifar100-k50": ("cifar100-k50", None),
    "cifar100-k100": ("cifar100-k100", None),
}


def unlike(studies: Sequence[Study]) -> str:
    """Say which methods are left out of such comparisons, if any of them is there."""
    there = {name for study in studies if study.name in PLAIN for name, _ in study.rows}
    left_out = listed([name for name in SCORED_OTHERWISE if name in there])
    return f"; {left_out} is left out, since it is scored by its frame in place of its own head" if left_out else ""


def beside(
    study: Study, studies: Sequence[Study], arm: str = "fedrela"
) -> Iterator[tuple[tuple[str, str], dict[str, Interval]]]:
    """Yield for every row of another remedy what this arm of FedAvg gains over it, by metric."""
    name, values = PLAIN.get(study.name, ("", None))
    plain = {
        (cell["seed"], str(cell["values"])): cell
        for other in studies
        if other.name == name
        for cell in other.cells
        if (cell["baseline"], cell["arm"]) == ("FedAvg", arm)
    }
    for row, arms in study.rows.items():
        at = [(cell, plain.get((cell["seed"], str(values or cell["values"])))) for cell in arms.get("baseline", ())]
        both = [(cell, other) for cell, other in at if other is not None]
        if both and row[0] not in ("FedAvg", *SCORED_OTHERWISE):
            pair = {"remedy": [cell for cell, _ in both], "FedAvg": [other for _, other in both]}
            yield row, {metric: difference(pair, "remedy", "FedAvg", metric) for metric in study.metrics}


def section(study: Study, pictures: Pictures, studies: Sequence[Study] = ()) -> Iterator[str]:
    """Yield the lines of one study, and add its pictures."""
    yield f"## {study.title}"
    yield ""
    yield study.question
    yield ""
    if not study.cells:
        yield f"*Not run yet*: about {study.minutes:g} minutes of one core, `fedrela results run results/{study.name}`."
        yield ""
        return
    if not study.is_done:
        so_far = f"{len(study.cells)} of {study.summary['runs']} runs are recorded so far"
        yield f"*{so_far}*; each row uses only the seeds that all its arms have."
        yield ""
    if study.name.startswith("select-"):
        yield from choice(study)
    else:
        yield from measured(study, pictures)
    if rows := [[*row, *map(gain_text, gains.values())] for row, gains in beside(study, studies)]:
        yield f"FedAvg with FedReLa against each of them alone, paired by seed, in points{unlike([study])}:"
        yield ""
        yield from table(["against", "setting", *study.metrics], rows)
    yield f"Records: [results/{study.name}](../../results/{study.name}/summary.json)."
    yield ""


PRINTED = {  # by study: the table of the paper, and axes that all its rows have
    "fmnist-fedavg": ("step", {"dataset": "F-MNIST", "IR": "20", "minority share": "30%"}),
    "fmnist-baselines": ("step", {"dataset": "F-MNIST", "IR": "20", "minority share": "30%"}),
    "fmnist-climb": ("step", {"dataset": "F-MNIST", "IR": "20", "minority share": "30%"}),
    "fmnist-published": ("step", {"dataset": "F-MNIST", "IR": "20", "minority share": "30%"}),
    "fmnist-alpha": ("ablation", {}),
    "cifar10-lt": ("lt", {"dataset": "CIFAR-10", "IF": "100", "alpha": "0.3"}),
    "cifar-protocols": ("lt", {}),
    "cifar100-k10": ("lt", {"dataset": "CIFAR-100", "IF": "100", "alpha": "0.1"}),
    "cifar100-k50": ("cifar100_lt_clients", {"clients": "50"}),
    "cifar100-k100": ("cifar100_lt_clients", {"clients": "100"}),
}
PUBLISHED_ROUNDS = 500
AXES: dict[str, tuple[str, Callable[[Any], str]]] = {  # by swept key: the axis, and how the paper writes its values
    "data.imbalance.ratio": ("IR", "{:g}".format),
    "data.imbalance.minority": ("minority share", lambda classes: f"{len(classes) / 10:.0%}"),
    "data.imbalance.factor": ("IF", "{:g}".format),
    "data.partition.alpha": ("alpha", "{:g}".format),
}


COMPARED = (  # arms whose difference stands beside the paper's, and whether it is that of their best test rounds
    ("measured, the drop with FedReLa alone, best test round", "baseline", "fedrela-drop", True),
    ("measured, the drop with FedReLa alone", "baseline", "fedrela-drop", False),
    ("measured, no drop", "baseline", "fedrela", False),
    ("measured, the drop in both arms", "baseline-drop", "fedrela-drop", False),
)


def printed(study: Study) -> Iterator[list[str]]:
    """Yield accuracies without and with FedReLa: as the paper prints them, and as measured at the same place."""
    name, fixed = PRINTED[study.name]
    cells = paper_table(name).cells
    published = {(_place(cell.at), cell.arm): {} if cell.doubtful else cell.published for cell in cells}
    for (baseline, text), arms in study.rows.items():
        values = next(iter(arms.values()))[0]["values"]
        axes = {key: AXES.get(key, (key, str)) for key in values if key != "protocol"}
        at = {**fixed, **{axis: write(values[key]) for key, (axis, write) in axes.items()}, "method": baseline}
        if (_place(at), "baseline") not in published:
            continue
        pair = [published.get((_place(at), arm), {}) for arm in ("baseline", "+FedReLa")]
        shares = [[each[metric] / 100 if metric in each else None for each in pair] for metric in study.metrics]
        yield [baseline, text, "printed", *(change(*each) for each in shares)]
        for words, base, treated, best in COMPARED:
            scored = [best_rounds(arms.get(arm, [])) if best else arms.get(arm, []) for arm in (base, treated)]
            if all(scored):
                means = [[spread(cells, metric).mean for cells in scored] for metric in study.metrics]
                yield [baseline, text, words, *(change(*each) for each in means)]


def _place(at: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((axis, value.lower()) for axis, value in at.items())  # FedLoGe is also printed as FedLOGE


def best_rounds(cells: list[Cell]) -> list[Cell]:
    """Return the accuracies of each run's best test round of those scored; nothing if a record lacks them."""
    return [cell["best_test"] for cell in cells] if all("best_test" in cell for cell in cells) else []


def change(before: float | None, after: float | None) -> str:
    """Write two accuracies and their difference.

    >>> change(0.505, 0.757), change(0.5, None)
    ('50.5 to 75.7 (+25.2)', '-')
    """
    if before is None or after is None:
        return "-"
    return f"{100 * before:.1f} to {100 * after:.1f} ({points(after - before)})"


def measured(study: Study, pictures: Pictures) -> Iterator[str]:
    """Yield the pictures of a study, what FedReLa changes, the accuracies, and what the paper prints."""
    if lines := curves(study):
        (key,) = {key for cell in study.cells for key in cell["values"]}
        pictures[f"{study.name}-curves"] = partial(plots.sensitivity, lines, over=SWEPT.get(key, key.split(".")[-1]))
        yield f"![accuracy at each value, {study.title}]({study.name}-curves.svg)"
        yield ""
    if drawn := picture_rows(study):
        pictures[study.name] = partial(plots.gains, drawn)
        yield f"![gains by FedReLa over its baseline, {study.title}]({study.name}.svg)"
        yield ""
    title = "Test accuracy after the last round in per cent, mean and standard deviation over seeds"
    columns = ["baseline", "setting", "arm", "seeds", *study.metrics, "labels moved"]
    yield from folded(title, columns, list(arms_rows(study)))
    if rows := list(gains_rows(study)):
        title = "Paired differences in points with 95 % intervals; bold where the interval excludes zero"
        yield from folded(title, ["what differs", "baseline", "setting", *study.metrics], rows)
    if study.name in PRINTED and (rows := list(printed(study))):
        size = f", after {PUBLISHED_ROUNDS} rounds" if study.cells[0]["rounds"] < PUBLISHED_ROUNDS else ""
        heads = {cell["baseline"] for cell in study.cells if "protocol" not in cell["values"]} & {*SCORED_OTHERWISE}
        yield "The official code lowers the learning rate with FedReLa alone and reports the best test round of each"
        every = "" if study.name.endswith("-protocols") else "; here it is the best of every tenth round"
        yield f"arm{size}{every}."
        if heads:
            yield f"It also scores the two arms of {', '.join(heads)} with different heads, which is not done here."
        yield ""
        title = "Without and with FedReLa, as printed in the paper and as measured here"
        yield from folded(title, ["baseline", "setting", "", *study.metrics], rows)
    if words := convergence(study):
        yield words
        yield ""


def folded(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table below its title, to be unfolded if it is long."""
    if len(rows) <= LONG:
        yield from (f"{title}:", "", *table(columns, rows))
    else:
        yield from (
            f"<details><summary>{title} ({len(rows)} rows)</summary>",
            "",
            *table(columns, rows),
            "</details>",
            "",
        )


def curves(study: Study) -> dict[str, tuple[list[float], list[Any], list[Any]]]:
    """Return the rare group and the headline over the values of one swept number, with and without FedReLa."""
    keys = {key for cell in study.cells for key in cell["values"]}
    numbers = [each for cell in study.cells for each in cell["values"].values()]
    if len(keys) != 1 or len(study.rows) < 3 or any(isinstance(each, bool | str) for each in numbers):
        return {}
    lines: dict[str, tuple[list[float], list[Any], list[Any]]] = {}
    models = {baseline for baseline, _ in study.rows}
    compared = {"baseline", "fedrela"} <= {arm for arms in study.rows.values() for arm in arms}
    for (baseline, _), arms in study.rows.items():
        for arm in (arm for arm in ("baseline", "fedrela") if arm in arms):
            for metric in dict.fromkeys((rare(study), headline(study))):
                found = spread(arms[arm], metric)
                at = next(iter(arms[arm][0]["values"].values()))
                name = ", ".join([arm] * compared + [metric] + [baseline] * (len(models) > 1))
                line = lines.setdefault(name, ([], [], []))
                for part, each in zip(line, (at, found.mean, found.deviation), strict=True):
                    part.append(each)
    return lines


def picture_rows(study: Study) -> list[tuple[str, str, Any, Any, Any]]:
    """Return the gains by FedReLa of the common and rare groups and of the headline, for a plot."""
    rows = []
    for (baseline, values), arms in study.rows.items():
        if {"baseline", "fedrela"} <= arms.keys():
            for metric in dict.fromkeys((common(study), rare(study), headline(study))):
                found = difference(arms, "baseline", "fedrela", metric)
                name = ", ".join(filter(None, (baseline, values)))
                rows.append((name, metric, found.mean, found.low, found.high))
    return rows
