"""Make the pages of docs/results from the records in results/: python docs/make_results.py, or make results."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from fedrela import plots
from fedrela.experiment.arms import ARMS
from fedrela.metrics.paired import Interval, Spread, paired
from fedrela.report import write_plot
from fedrela.report.tables import spread_text
from fedrela.text import points

DOCS = Path(__file__).parent
RESULTS, PAGES = DOCS.parent / "results", DOCS / "results"
PAIRS = (  # what is compared, and what the difference shows
    ("baseline", "fedrela", "FedReLa"),
    ("baseline-drop", "fedrela-drop", "FedReLa, both arms with the drop"),
    ("baseline", "baseline-drop", "the learning-rate drop alone"),
    ("random", "fedrela", "which samples move: FedReLa against random moves"),
)
ABOUT = {  # by page: its title, and what all its studies share
    "fashion-mnist": (
        "Fashion-MNIST with step imbalance",
        "The paper's `tab:step`, first block: 100 clients, all of the data, `simple_cnn`; one or three of ten classes "
        "are rare. Rounds and epochs are cut (scale `cpu`), but for the study at the published size.",
    ),
    "tables": (
        "Tables and medical images",
        "Beyond the paper. The question of a practitioner: on the same model, when is FedReLa worth it against a "
        "class-weighted loss, oversampling, SMOTE or balanced softmax? Balanced accuracy counts, since the test sets "
        "are imbalanced; `tail` is the accuracy on the rare class, its recall.",
    ),
    "harm": (
        "Where it does not help, or hurts",
        "Fashion-MNIST with 20 clients and 1,000 samples of a majority class: a setting where FedReLa helps, and then "
        "one thing changed at a time.",
    ),
    "sensitivity": (
        "Sensitivity",
        "The same small setting as for [harm](harm.md), with a tenth of every client's samples held back: what tau, T, "
        "the period, the normalisation, the preset and late clients do. Values are chosen on what clients hold back, "
        "never on the test set.",
    ),
    "cifar-10": (
        "Long-tailed CIFAR-10",
        "The paper's `tab:lt`: 40 clients, all samples of the long tail, `cnn_small` in place of ResNet-18, and fewer "
        "rounds.",
    ),
    "selection": (
        "How learning rates and epochs were chosen",
        "On the accuracy of the *baseline* alone, on what clients hold back, with seeds that no result uses. No option "
        "of FedReLa was chosen here.",
    ),
}
RARE = ("minority", "tail")  # groups of rare classes
Cell = dict[str, Any]
KEPT = """## How it is kept

`results/` has a folder per study: `study.toml`, what was run, and `summary.json`, a record per run with its accuracies,
labels moved, digests of configuration and weights, and versions. These pages are made from those files alone
(`make results`).

```sh
fedrela results list     # the queue: what is recorded, and what is left
fedrela results run      # run what is left, in the order of results/queue.toml; resumable
fedrela results verify results/mammography --cells 2 --seed 7   # run two recorded runs again, and compare
```

On the same machine with the same versions a run that is done again has the same weights, bit by bit; elsewhere
accuracies must agree within two points. Data sets are looked for in the folder `data`: Fashion-MNIST and CIFAR as
`fedrela data fetch` puts them, the others as `.npz` files, see [data](../reference/data.md). Seconds in the records
were measured while the machine did other work, so no page quotes them.

""".splitlines()
MISSING = (
    "- CIFAR-100-LT with 10, 50 and 100 clients, the Tiny-ImageNet long tail, and FedYoYo, FedLC, CReFF, FedROD and "
    "Fed-GraB on CIFAR-10-LT are not in the queue yet.",
)


@dataclass(frozen=True)
class Study:
    """What is recorded of one study."""

    name: str
    title: str
    page: str
    minutes: float

    @cached_property
    def config(self) -> dict[str, Any]:
        return tomllib.loads((RESULTS / self.name / "study.toml").read_text())

    @cached_property
    def question(self) -> str:
        """The comment at the head of its configuration."""
        lines = (RESULTS / self.name / "study.toml").read_text().splitlines()
        head = lines[: next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)]
        return " ".join(line.removeprefix("#").strip() for line in head)

    @cached_property
    def summary(self) -> dict[str, Any]:
        place = RESULTS / self.name / "summary.json"
        return json.loads(place.read_text()) if place.exists() else {"cells": [], "runs": None}

    @property
    def cells(self) -> list[Cell]:
        return self.summary["cells"]

    @property
    def is_done(self) -> bool:
        return len(self.cells) == self.summary["runs"]

    @cached_property
    def rows(self) -> dict[tuple[str, str], dict[str, list[Cell]]]:
        """Cells by baseline and values, then by arm; of a row only the seeds that all its arms have."""
        found: dict[tuple[str, str], dict[str, list[Cell]]] = {}
        for cell in self.cells:
            arms = found.setdefault((cell["baseline"], values_text(cell["values"])), {})
            arms.setdefault(cell["arm"], []).append(cell)
        for arms in found.values():
            common = set.intersection(*({cell["seed"] for cell in cells} for cells in arms.values()))
            for arm in arms:
                arms[arm] = [cell for cell in arms[arm] if cell["seed"] in common]
        return {row: arms for row, arms in found.items() if all(arms.values())}

    @cached_property
    def metrics(self) -> list[str]:
        first = self.cells[0]
        groups = [name for name, value in first["groups"].items() if value is not None]
        return [*groups, first["headline"], *(["auroc"] if "auroc" in first else [])]


def values_text(values: dict[str, Any]) -> str:
    """Write the values of swept keys, by the last word of each key."""
    return ", ".join(
        f"{key.split('.')[-1]} {str(value).lower() if value in (True, False) else value}"
        for key, value in values.items()
    )


def value(cell: Cell, metric: str) -> float | None:
    return cell["groups"].get(metric, cell.get(metric))


def difference(arms: dict[str, list[Cell]], base: str, treated: str, metric: str) -> Interval:
    return paired(*([value(cell, metric) for cell in arms[arm]] for arm in (base, treated)))


def gain_text(found: Interval) -> str:
    """Write a gain with its interval; bold where that excludes zero.

    >>> gain_text(Interval(0.1, 0.01, (0.1,), 0.05, 0.15)), gain_text(Interval(0.1, None, (0.1,)))
    ('**+10.0** [+5.0, +15.0]', '+10.0')
    """
    if found.low is None or found.high is None:
        return points(found.mean)
    clear = found.low > 0 or found.high < 0
    mean = f"**{points(found.mean)}**" if clear else points(found.mean)
    return f"{mean} [{points(found.low)}, {points(found.high)}]"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table; columns that are empty throughout are left out."""
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row[i] for i in kept)} |"
    yield ""


def arms_rows(study: Study) -> Iterator[list[str]]:
    for (baseline, values), arms in study.rows.items():
        for arm in (arm for arm in ARMS if arm in arms):
            cells = arms[arm]
            shown = [spread_text(Spread.of([value(cell, m) for cell in cells]).as_record()) for m in study.metrics]
            moved = spread_text(Spread.of([cell["moved"] for cell in cells]).as_record(), "moved")
            yield [baseline, values, arm, str(len(cells)), *shown, moved]


def gains_rows(study: Study) -> Iterator[list[str]]:
    shown = [metric for metric in study.metrics if metric != "auroc"]
    for base, treated, words in PAIRS:
        for (baseline, values), arms in study.rows.items():
            if base in arms and treated in arms:
                gains = [gain_text(difference(arms, base, treated, metric)) for metric in shown]
                yield [words, baseline, values, *gains]


def learnt(study: Study) -> str:
    """Say whether the baselines had learnt what they could: what the last ten rounds gained."""
    arms = [arms["baseline"] for arms in study.rows.values() if "baseline" in arms]
    gained = [Spread.of([cell["last_ten"] for cell in cells]).mean for cells in arms]
    known = [gain for gain in gained if gain is not None]
    if not known:
        return ""
    more = sum(gain >= 0.01 for gain in known)
    verdict = (
        "all count as learnt"
        if not more
        else f"{more} of {len(known)} gained a point or more and do not count as learnt"
    )
    return f"Last ten rounds of the baselines: {points(min(known))} to {points(max(known))} points; {verdict}."


def choice(study: Study) -> Iterator[str]:
    """Write the validation accuracies of a selection, and mark what they chose."""
    rows = []
    for baseline in dict.fromkeys(row[0] for row in study.rows):
        found = {
            values: Spread.of([cell["validation"]["balanced"] for cell in arms["baseline"]])
            for (label, values), arms in study.rows.items()
            if label == baseline and "baseline" in arms
        }
        best = max(found, key=lambda values: found[values].mean or 0)
        for values, spread in found.items():
            mark = "chosen" if values == best else ""
            rows.append([baseline, values, str(len(spread.values)), spread_text(spread.as_record()), mark])
    yield from table(["baseline", "values", "seeds", "balanced accuracy on what clients hold back", ""], rows)


def section(study: Study, pictures: dict[str, Callable[..., object]]) -> Iterator[str]:
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
        yield f"*{so_far}*; a row has the seeds that all its arms have."
        yield ""
    if study.name.startswith("select-"):
        yield from choice(study)
    else:
        yield from measured(study, pictures)
    yield f"Records: [results/{study.name}](../../results/{study.name}/summary.json)."
    yield ""


def measured(study: Study, pictures: dict[str, Callable[..., object]]) -> Iterator[str]:
    yield "Test accuracy after the last round in per cent, mean and standard deviation over seeds:"
    yield ""
    yield from table(["baseline", "values", "arm", "seeds", *study.metrics, "labels moved"], list(arms_rows(study)))
    if rows := list(gains_rows(study)):
        yield "Paired differences in points with 95 % intervals; bold where the interval excludes zero:"
        yield ""
        shown = [metric for metric in study.metrics if metric != "auroc"]
        yield from table(["what differs", "baseline", "values", *shown], rows)
    if drawn := picture_rows(study):
        pictures[study.name] = partial(plots.gains, drawn)
        yield f"![gains by FedReLa over its baseline, {study.title}]({study.name}.svg)"
        yield ""
    if words := learnt(study):
        yield words
        yield ""


def picture_rows(study: Study) -> list[tuple[str, Any, Any, Any]]:
    """Return the gains by FedReLa of the rare group and of the headline, for a plot."""
    rows = []
    for (baseline, values), arms in study.rows.items():
        if {"baseline", "fedrela"} <= arms.keys():
            for metric in dict.fromkeys((rare(study), headline(study))):
                found = difference(arms, "baseline", "fedrela", metric)
                name = f"{baseline}{', ' if values else ''}{values}: {metric}"
                rows.append((name, found.mean, found.low, found.high))
    return rows


Gain = tuple[Study, str, dict[str, list[Cell]]]


def all_gains(studies: Sequence[Study], pages: Sequence[str]) -> list[Gain]:
    """Return every row of the pages that has FedReLa and its baseline: study, name and arms."""
    return [
        (study, f"{baseline}{', ' if values else ''}{values}", arms)
        for study in studies
        if study.page in pages and study.cells
        for (baseline, values), arms in study.rows.items()
        if {"baseline", "fedrela"} <= arms.keys()
    ]


def tally(gains: Sequence[Gain], base: str, treated: str, metric: Callable[[Study], str]) -> str:
    """Say what a pair of arms gains over all rows: the mean, the range, and in how many rows beyond noise."""
    found = [
        difference(arms, base, treated, metric(study)) for study, _, arms in gains if {base, treated} <= arms.keys()
    ]
    means = [each.mean for each in found if each.mean is not None]
    if not means:
        return "not measured yet"
    up, down = (
        sum(each.low is not None and (sign * each.low > 0 and sign * each.high > 0) for each in found)
        for sign in (1, -1)
    )
    return (
        f"{points(sum(means) / len(means))} points on average over {len(means)} settings (from {points(min(means))} to "
        f"{points(max(means))}; beyond noise: {up} up, {down} down)"
    )


def rare(study: Study) -> str:
    """Return the group of rare classes."""
    return next((name for name in study.metrics if name in RARE), study.metrics[-1])


def common(study: Study) -> str:
    """Return the group of common classes."""
    return study.metrics[0]


def headline(study: Study) -> str:
    """Return the accuracy that counts most: balanced where the test set is not."""
    return study.cells[0]["headline"]


def index(studies: Sequence[Study], pictures: dict[str, Callable[..., object]]) -> Iterator[str]:
    """Yield the lines of the first page: the answer, the studies, advice, what is missing."""
    main = all_gains(studies, ("fashion-mnist", "cifar-10", "tables"))
    harm = all_gains(studies, ("harm",))
    rows = []
    for study, name, arms in main:
        if arms is not None:
            for metric in dict.fromkeys((rare(study), headline(study))):
                found = difference(arms, "baseline", "fedrela", metric)
                rows.append((f"{study.title}, {name}: {metric}", found.mean, found.low, found.high))
    yield "# What FedReLa does, measured"
    yield ""
    if rows:
        pictures["overview"] = partial(plots.gains, rows)
        yield "![gains by FedReLa in points, with 95 % intervals](overview.svg)"
        yield ""

    def told(base: str, treated: str, metric: Callable[[Study], str], gains: Sequence[Gain] = main) -> str:
        return tally(gains, base, treated, metric)

    yield f"- **How much?** The rare classes gain {told('baseline', 'fedrela', rare)}."
    yield f"- **At what price?** The common classes gain {told('baseline', 'fedrela', common)}."
    yield f"- **Altogether?** The headline accuracy gains {told('baseline', 'fedrela', headline)}."
    alone, beside = told("baseline", "baseline-drop", rare), told("baseline-drop", "fedrela-drop", rare)
    yield f"- **How much of it is the learning-rate drop?** Alone it gives the rare classes {alone}."
    yield f"  With the drop in both arms FedReLa adds {beside}."
    where = told("baseline", "fedrela", headline, harm)
    yield f"- **Where not?** In the settings of [harm](harm.md) the headline accuracy gains {where}."
    yield ""
    yield from contents(studies)


def contents(studies: Sequence[Study]) -> Iterator[str]:
    """Yield the list of pages, how the records are kept, and what is missing."""
    yield "## The studies"
    yield ""
    yield "```{toctree}"
    yield from ABOUT
    yield "```"
    yield ""
    rows = [
        [study.title, f"[{study.page}]({study.page}.md)", f"{len(study.cells)} of {study.summary['runs'] or '-'}"]
        for study in studies
    ]
    yield from table(["study", "page", "runs recorded"], rows)
    yield from KEPT
    if missing := [study for study in studies if not study.is_done]:
        yield "## What is missing"
        yield ""
        for study in missing:
            runs = f"{len(study.cells)} of {study.summary['runs']} runs" if study.cells else "not begun"
            yield f"- {study.title}: {runs}; about {study.minutes:g} minutes of one core in all."
        yield from MISSING
        yield ""


def queue() -> list[Study]:
    found: dict[str, Study] = {}
    for each in tomllib.loads((RESULTS / "queue.toml").read_text())["study"]:
        found.setdefault(each["name"], Study(each["name"], each["title"], each["page"], each["minutes"]))
    return list(found.values())


def pages() -> tuple[dict[str, str], dict[str, Callable[..., object]]]:
    """Return every page by its file name, and every picture by its name."""
    studies, pictures = queue(), {}
    made: dict[str, str] = {}
    for page, (title, about) in ABOUT.items():
        lines = [f"# {title}", "", about, ""]
        for study in (study for study in studies if study.page == page):
            lines += section(study, pictures)
        made[f"{page}.md"] = "\n".join(lines)
    made["index.md"] = "\n".join(index(studies, pictures))
    return {name: page.rstrip("\n") + "\n" for name, page in made.items()}, pictures


def main() -> None:
    made, pictures = pages()
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.*"):
        if old.name not in made and old.stem not in pictures:
            old.unlink()
    for name, page in made.items():
        (PAGES / name).write_text(page)
    for name, draw in pictures.items():
        write_plot(PAGES / f"{name}.svg", draw, overwrite=True)
    print(f"{len(made)} pages and {len(pictures)} pictures in {PAGES}")


if __name__ == "__main__":
    main()
