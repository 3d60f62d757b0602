"""The tables of the paper: layout, published numbers, and the configuration behind each cell at each scale."""

from __future__ import annotations

import csv
import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from fedrela.arguments import check_choice
from fedrela.experiment.arms import ARMS
from fedrela.experiment.load import parse_config
from fedrela.experiment.overlay import nested
from fedrela.experiment.schema import Config
from fedrela.files import digest


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Attributes
    ----------
    at
        Where it stands: the value of every axis, as the paper writes it.
    arm
        ``baseline`` or ``+FedReLa``.
    published
        Figures that the paper has there, by name: accuracies and gains in per cent, labels as a number.
    doubtful
        Why it is doubtful, or nothing.
    """

    at: Mapping[str, str]
    arm: str
    published: Mapping[str, float]
    doubtful: str


def read_entries(text: str, figures: Sequence[str]) -> list[Entry]:
    r"""Read the entries of a table.

    Parameters
    ----------
    text
        CSV with a header: axes, ``arm``, figures, ``doubtful``. An empty figure was not published.
    figures
        Names of the figures.

    Examples
    --------
    >>> read_entries("method,arm,overall,doubtful\nFedAvg,baseline,84.84,\n", ["overall"])
    [Entry(at={'method': 'FedAvg'}, arm='baseline', published={'overall': 84.84}, doubtful='')]
    """
    rows = csv.DictReader(text.splitlines(), strict=True)
    axes = [name for name in rows.fieldnames or () if name not in (*figures, "arm", "doubtful")]
    return [
        Entry(
            at={axis: row[axis] for axis in axes},
            arm=row["arm"],
            published={name: float(row[name]) for name in figures if row[name]},
            doubtful=row["doubtful"],
        )
        for row in rows
    ]


PUBLISHED_ARMS = ("baseline", "+FedReLa")
# A key that chooses -> the keys that belonged to the former choice.
CHOOSERS = {
    "algorithm.name": "algorithm.",
    "data.imbalance.kind": "data.imbalance.",
    "data.partition.kind": "data.partition.",
    "data.source": "data.options.",
    "model.name": "model.",
}


@dataclass(frozen=True)
class Overlay:
    """Settings by dotted key, and where they hold: at every place whose axes have one of the values in `at`."""

    at: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Overlay:
        """Return the overlay that a TOML table states: its key ``at``, and tables of a configuration.

        >>> Overlay.of({"at": {"method": "FedAvg"}, "train": {"lr": 0.1}})
        Overlay(at={'method': ('FedAvg',)}, values={'train.lr': 0.1})
        """
        at = {axis: (value,) if isinstance(value, str) else tuple(value) for axis, value in table.get("at", {}).items()}
        return cls(at, dict(_flat({key: value for key, value in table.items() if key != "at"})))

    def holds(self, place: Mapping[str, str]) -> bool:
        """Whether it holds at a place."""
        return all(place.get(axis) in values for axis, values in self.at.items())


def settled(overlays: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a configuration's tables from settings by dotted key, later ones over earlier ones.

    A key that makes another choice, such as ``model.name``, clears what was set for the former one.

    >>> settled([{"model.name": "mlp", "model.hidden": [9], "seed": 1}, {"model.name": "cnn"}, {"seed": 2}])
    {'seed': 2, 'model': {'name': 'cnn'}}
    """
    found: dict[str, Any] = {}
    for overlay in overlays:
        for key, value in overlay.items():
            if key in CHOOSERS and found.get(key, value) != value:
                found = {other: v for other, v in found.items() if not other.startswith(CHOOSERS[key])}
        found |= overlay
    return nested(found)


def number(text: str) -> float | int | None:
    """Return the number that an axis states, or None for a word.

    >>> number("10"), number("0.3"), number("5%"), number("Original")
    (10, 0.3, 0.05, None)
    """
    digits = text.removesuffix("%")
    if not digits.replace(".", "", 1).isdecimal():
        return None
    if digits != text:
        return float(digits) / 100
    return float(digits) if "." in digits else int(digits)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


SCALES = ("paper", "cpu", "smoke")
NO_FILES = ("digits",)  # sources that come with a package


@dataclass(frozen=True)
class Figure:
    """A figure of a table.

    Attributes
    ----------
    name, of
        What the paper calls it, and its name in our results: ``overall``, a group of classes, or ``moved``.
    sum, gain
        Where it is derived: the figures it is the sum of, and whether it is what FedReLa adds to them.
    """

    name: str
    of: str
    sum: tuple[str, ...] = ()
    gain: bool = False


@dataclass(frozen=True)
class Scale:
    """How large a table is run: seeds, the places that are run unless all are asked for, and what is reduced."""

    seeds: tuple[int, ...]
    only: tuple[Overlay, ...]
    reduction: tuple[str, ...]
    settings: tuple[Overlay, ...]


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A table of the paper.

    Attributes
    ----------
    label, title, caption
        The paper's label, and what the table shows, in our words.
    rows, columns
        Axes that run down and across.
    figures, entries
        What stands at each place, and all places with the numbers published there.
    fixed
        Axes with one value, which the table does not show.
    keys
        Axes that are numbers of a configuration: axis -> dotted key.
    pair
        The arms behind ``baseline`` and ``+FedReLa``.
    ours, notes
        Settings that the paper does not state, with what we chose and why; and what else one should know.
    settings, scales
        The published setting, and what each scale changes in it.
    sha256
        Of the files that state all this.
    """

    label: str
    title: str
    caption: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[Figure, ...]
    entries: tuple[Entry, ...]
    fixed: Mapping[str, str]
    keys: Mapping[str, str]
    pair: tuple[str, str]
    ours: tuple[str, ...]
    notes: tuple[str, ...]
    settings: tuple[Overlay, ...]
    scales: Mapping[str, Scale]
    sha256: str

    def place(self, entry: Entry) -> dict[str, str]:
        """Return every axis with its value at an entry, those that the table does not show included."""
        return {**self.fixed, **entry.at}

    def chosen(self, scale: str, every: bool = False) -> list[Entry]:
        """Return the entries that are run at a scale: its own choice, or every one."""
        only = self.scales[scale].only
        return [e for e in self.entries if every or not only or any(at.holds(self.place(e)) for at in only)]

    def arms(self, entry: Entry) -> tuple[str, ...]:
        """Return the arms that an entry is measured from: its own, or both where it is a gain."""
        return self.pair if any(figure.gain for figure in self.figures) else (self.arm(entry),)

    def arm(self, entry: Entry) -> str:
        """Return the arm that an entry shows."""
        return self.pair[0] if entry.arm == "baseline" else self.pair[1]

    def config(self, entry: Entry, arm: str, scale: str, seed: int, root: Path | None = None) -> Config:
        """Return the configuration behind one arm of an entry.

        Parameters
        ----------
        entry, arm, scale, seed
            What is run.
        root
            The folder that holds data sets; by default where every source looks by itself.
        """
        place = self.place(entry)
        overlays = [overlay.values for overlay in self.settings if overlay.holds(place)]
        overlays.append({key: value for key, value in self._numbers(place) if value is not None})
        overlays += [overlay.values for overlay in self.scales[scale].settings if overlay.holds(place)]
        overlays.append({"seed": seed, **{f"relabel.{key}": value for key, value in ARMS[arm].items()}})
        table = settled(overlays)
        if root is not None and table["data"]["source"] not in NO_FILES:
            table["data"]["root"] = root
        return parse_config(table, name=f"{self.label} at scale {scale}, {', '.join(place.values())}")

    def _numbers(self, place: Mapping[str, str]) -> Iterator[tuple[str, float | int | None]]:
        for axis, value in place.items():
            if axis in self.keys:
                yield self.keys[axis], number(value)


# In the order of the paper; the label is `fig:` for the figure, `tab:` for all others.
NAMES = (
    "step", "lt", "imagenet_lt", "norm_ablation", "lr_step", "ir10_50percent", "cifar100_lt_clients",
    "tail_improvement", "sensitive", "sensitivity", "trelabel_sensitivity", "zscore", "period_sensitivity", "ablation",
)  # fmt: skip


def paper_tables() -> Iterator[PaperTable]:
    """Yield every table, in the order of the paper."""
    return map(paper_table, NAMES)


@functools.cache
def paper_table(name: str) -> PaperTable:
    """Return a table by its label, with or without ``tab:`` or ``fig:``.

    >>> paper_table("tab:step").title
    'Step imbalance, five baselines'
    """
    stem = name.removeprefix("tab:").removeprefix("fig:")
    check_choice("table", stem, NAMES)
    sheet, text = _toml(f"{stem}.toml")
    family, shared = _toml(f"families/{sheet.pop('family')}.toml")
    numbers = _read(f"{stem}.csv")
    figures = tuple(
        Figure(figure["name"], figure["of"], tuple(figure.get("sum", ())), figure.get("gain", False))
        for figure in sheet["figures"]
    )
    return PaperTable(
        label=sheet["label"], title=sheet["title"], caption=sheet["caption"],
        rows=tuple(sheet["rows"]), columns=tuple(sheet["columns"]), figures=figures,
        entries=tuple(read_entries(numbers, [figure.of for figure in figures])),
        fixed=sheet.get("fixed", {}), keys={**family.get("keys", {}), **sheet.get("keys", {})},
        pair=tuple(sheet.get("pair", ("baseline", "fedrela"))),
        ours=_both(family, sheet, "ours"), notes=_both(family, sheet, "notes"),
        settings=_overlays(family, sheet, "base"),
        scales={scale: _scale(family["scale"][scale], sheet.get("scale", {}).get(scale, {})) for scale in SCALES},
        sha256=digest("\n".join((text, shared, numbers)).encode()),
    )  # fmt: skip


def _scale(family: dict[str, Any], sheet: dict[str, Any]) -> Scale:
    return Scale(
        seeds=tuple(sheet.get("seeds", family["seeds"])),
        only=tuple(Overlay.of({"at": at}) for at in sheet.get("only", ())),
        reduction=_both(family, sheet, "reduction"),
        settings=_overlays(family, sheet, "set"),
    )


def _overlays(family: dict[str, Any], sheet: dict[str, Any], everywhere: str) -> tuple[Overlay, ...]:
    """Return what holds everywhere, and then what holds at some places; the family's before the table's own."""
    tables = [part.get(everywhere, {}) for part in (family, sheet)]
    return tuple(map(Overlay.of, [*tables, *family.get("when", ()), *sheet.get("when", ())]))


def _both(family: dict[str, Any], sheet: dict[str, Any], key: str) -> tuple[str, ...]:
    return (*family.get(key, ()), *sheet.get(key, ()))


def _toml(name: str) -> tuple[dict[str, Any], str]:
    text = _read(name)
    return tomllib.loads(text), text


def _read(name: str) -> str:
    return resources.files("fedrela").joinpath("reproduction", "tables", name).read_text(encoding="utf-8")
