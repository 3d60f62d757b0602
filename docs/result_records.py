"""The records in results/ as make_results.py shows them: studies, rows of arms, paired differences, tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrela.metrics.paired import Interval, Spread, paired
from fedrela.report.tables import spread_text
from fedrela.text import points

RESULTS = Path(__file__).parent.parent / "results"
SHORT = {"fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10-LT"}  # by page: its data set
Cell = dict[str, Any]
Arms = dict[str, list[Cell]]  # the same seeds in each arm


@dataclass(frozen=True)
class Study:
    """What is recorded of one study."""

    name: str
    title: str
    page: str
    minutes: float
    short: str  # its title in pictures

    @cached_property
    def question(self) -> str:
        """The comment at the head of its configuration; an empty line in it begins a paragraph."""
        lines = (RESULTS / self.name / "study.toml").read_text().splitlines()
        head = lines[: next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)]
        return " ".join(line.removeprefix("#").strip() or "\n\n" for line in head).replace(" \n\n ", "\n\n")

    @cached_property
    def summary(self) -> dict[str, Any]:
        place = RESULTS / self.name / "summary.json"
        return json.loads(place.read_text()) if place.exists() else {"cells": [], "runs": None}

    @cached_property
    def cells(self) -> list[Cell]:
        """Its records; where there are two classes, each is a group."""
        cells, counts = self.summary["cells"], self.class_counts
        if len(counts) != 2:
            return cells
        one, other = sorted(range(2), key=lambda k: -counts[k])
        by_class = [{"common class": cell["per_class"][one], "rare class": cell["per_class"][other]} for cell in cells]
        return [cell | {"groups": groups} for cell, groups in zip(cells, by_class, strict=True)]

    @property
    def class_counts(self) -> list[int]:
        """The training samples of each class, where results/data.toml has them."""
        data = tomllib.loads((RESULTS / self.name / "study.toml").read_text()).get("data", {})
        file = data.get("options", {}).get("file", "")
        return tomllib.loads((RESULTS / "data.toml").read_text()).get(Path(file).stem, {}).get("train_counts", [])

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

    def setting(self, row: Arms) -> str:
        """Write the values of a row by which the rows of this study differ."""
        values = next(iter(row.values()))[0]["values"]
        differ = [key for key in values if len({repr(cell["values"].get(key)) for cell in self.cells}) > 1]
        return values_text({key: values[key] for key in differ})

    @cached_property
    def metrics(self) -> list[str]:
        first = self.cells[0]
        groups = [name for name, value in first["groups"].items() if value is not None]
        return [*groups, first["headline"], *(["auroc"] if "auroc" in first else [])]


def queue() -> list[Study]:
    """Return every study, in the order of the queue."""
    found: dict[str, Study] = {}
    for each in tomllib.loads((RESULTS / "queue.toml").read_text())["study"]:
        short = each.get("short", SHORT.get(each["page"], each["title"]))
        found.setdefault(each["name"], Study(each["name"], each["title"], each["page"], each["minutes"], short))
    return list(found.values())


WORDS = {"data.imbalance.ratio": "IR {}", "data.imbalance.factor": "IF {}", "relabel.start": "T at {} of the rounds"}


def values_text(values: dict[str, Any]) -> str:
    """Write the values of swept keys in the words of the paper.

    >>> values_text({"data.imbalance.minority": [0, 2, 4], "data.imbalance.ratio": 20, "relabel.late": True})
    'classes 0, 2 and 4 rare, IR 20, late true'
    """
    return ", ".join(_value_text(key, value) for key, value in values.items())


def _value_text(key: str, value: Any) -> str:
    if key in WORDS:
        return WORDS[key].format(value)
    if key == "data.imbalance.minority" and isinstance(value, list):
        *first, last = map(str, value)
        return f"classes {', '.join(first)} and {last} rare" if first else f"class {last} rare"
    if key == "data.imbalance.minority":
        return f"last {value:.0%} of classes rare"
    return f"{key.split('.')[-1]} {str(value).lower() if isinstance(value, bool) else value}"


def value(cell: Cell, metric: str) -> float | None:
    return cell.get("groups", {}).get(metric, cell.get(metric))


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


def spread(cells: Sequence[Cell], metric: str) -> Spread:
    """Return a metric over seeds."""
    return Spread.of([value(cell, metric) for cell in cells])


def validation(cells: Sequence[Cell]) -> float | None:
    """Return the mean balanced accuracy on validation samples; None where there are none."""
    return Spread.of([cell.get("validation", {}).get("balanced") for cell in cells]).mean


def cell_text(cells: Sequence[Cell], metric: str) -> str:
    """Write a metric over seeds."""
    return spread_text(spread(cells, metric).as_record(), metric)


def rare(study: Study) -> str:
    """Return the group of the rarest classes."""
    return [name for name, value in study.cells[0]["groups"].items() if value is not None][-1]


def common(study: Study) -> str:
    """Return the group of common classes."""
    return study.metrics[0]


def headline(study: Study) -> str:
    """Return the headline accuracy: balanced where the test set is not."""
    return study.cells[0]["headline"]
