"""The paper's tables: layout, published numbers, and the configuration of each cell at each scale."""

from __future__ import annotations

import csv
import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from fedrela.arguments import check_choice
from fedrela.arms import ARMS, BASELINE, TREATED
from fedrela.data.sources import find_source
from fedrela.experiment.load import parse_config
from fedrela.experiment.overlay import merge, nested
from fedrela.experiment.schema import Config
from fedrela.files import digest
from fedrela.reproduction.entries import matching
from fedrela.text import stated_number

# In the order of the paper; the label is `fig:` for the figure, `tab:` for all others.
NAMES = (
    "step", "lt", "imagenet_lt", "norm_ablation", "lr_step", "ir10_50percent", "cifar100_lt_clients",
    "tail_improvement", "sensitive", "sensitivity", "trelabel_sensitivity", "zscore", "period_sensitivity", "ablation",
)  # fmt: skip
SCALES = ("paper", "cpu", "smoke")
PROTOCOLS = ("matched", "published")


@dataclass(frozen=True)
class PaperCell:
    """One cell of a table, at the value of every axis, as the paper writes it."""

    at: Mapping[str, str]
    arm: str  # `BASELINE` or `TREATED`
    published: Mapping[str, float]  # by name: accuracies and gains in per cent, labels as a number
    doubtful: str  # why it is doubtful, or empty


def read_cells(text: str, metrics: Sequence[str]) -> list[PaperCell]:
    r"""Read the cells of a table: CSV with a header of axes, ``arm``, metrics and ``doubtful``.

    A metric that is empty was not published.

    >>> read_cells("method,arm,overall,doubtful\nFedAvg,baseline,84.84,\n", ["overall"])
    [PaperCell(at={'method': 'FedAvg'}, arm='baseline', published={'overall': 84.84}, doubtful='')]
    """
    rows = csv.DictReader(text.splitlines(), strict=True)
    axes = [name for name in rows.fieldnames or () if name not in (*metrics, "arm", "doubtful")]
    return [
        PaperCell(
            at={axis: row[axis] for axis in axes},
            arm=row["arm"],
            published={name: float(row[name]) for name in metrics if row[name]},
            doubtful=row["doubtful"],
        )
        for row in rows
    ]


@dataclass(frozen=True)
class Setting:
    """Tables of a configuration, and where they apply: to every cell whose axes have one of the values in `at`."""

    at: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Any]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Setting:
        """Return the setting that a TOML table states: its key ``at``, and tables of a configuration.

        >>> Setting.of({"at": {"method": "FedAvg"}, "train": {"lr": 0.1}})
        Setting(at={'method': ('FedAvg',)}, tables={'train': {'lr': 0.1}})
        """
        at = {axis: (value,) if isinstance(value, str) else tuple(value) for axis, value in table.get("at", {}).items()}
        return cls(at, {key: value for key, value in table.items() if key != "at"})

    def applies(self, place: Mapping[str, str]) -> bool:
        """Whether it applies to a cell, given the values of its axes."""
        return all(place.get(axis) in values for axis, values in self.at.items())


@dataclass(frozen=True)
class PaperMetric:
    """A metric of a table: what the paper calls it, and its name in our results.

    A derived metric is the `sum` of others, or the `gain` of FedReLa in them.
    """

    name: str
    of: str
    sum: Sequence[str] = ()
    gain: bool = False


@dataclass(frozen=True)
class TableScale:
    """How large the experiment is: seeds, the cells that are run unless all are requested, and what is reduced."""

    seeds: tuple[int, ...]
    only: tuple[Setting, ...]
    reduction: tuple[str, ...]
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Protocol:
    """What is compared, and how: the arms, the round that counts, and the settings that go with it.

    ``matched`` treats both arms alike; ``published`` does what the official code does.
    """

    pair: tuple[str, str] = ("baseline", "fedrela")  # the arms behind baseline and +FedReLa
    score: str = "last"
    settings: tuple[Setting, ...] = ()  # their axes may be those of a table, and ``arm``
    unlike: tuple[str, ...] = ()  # what the official code does and this does not

    def arm(self, cell: PaperCell) -> str:
        """Return the arm that a cell shows."""
        return self.pair[cell.arm != BASELINE]


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A table of the paper: axes, cells with the published numbers, and the settings behind them."""

    label: str
    title: str
    caption: str
    rows: tuple[str, ...]  # axes that run down
    columns: tuple[str, ...]  # axes that run across
    metrics: tuple[PaperMetric, ...]
    cells: tuple[PaperCell, ...]
    fixed: Mapping[str, str]  # axes with one value, which the table does not show
    keys: Mapping[str, str]  # axes that are numbers of a configuration: axis -> dotted key
    protocols: Mapping[str, Protocol]
    best_test: bool  # whether it has numbers of the best test round
    ours: tuple[str, ...]  # settings that the paper does not state, with what we chose and why
    notes: tuple[str, ...]
    settings: tuple[Setting, ...]  # the published setting
    scales: Mapping[str, TableScale]  # what each scale changes in it
    sha256: str  # of the files that state all this

    def place(self, cell: PaperCell) -> dict[str, str]:
        """Return the value of every axis at a cell, also of those that the table does not show."""
        return {**self.fixed, **cell.at}

    def chosen(self, scale: str, every: bool = False) -> list[PaperCell]:
        """Return the cells that are run at a scale: its own selection, or every one."""
        only = self.scales[scale].only
        return [each for each in self.cells if every or not only or any(at.applies(self.place(each)) for at in only)]

    def matching(self, only: str) -> list[PaperCell]:
        """Return the cells that `only` asks for; see `fedrela.reproduction.entries.matching`."""
        asked = matching(only, [self.place(each) for each in self.cells])
        return [each for each, is_asked in zip(self.cells, asked, strict=True) if is_asked]

    def arms(self, cell: PaperCell, protocol: str = "matched") -> tuple[str, ...]:
        """Return the arms that a cell needs: its own, or both if it is a gain."""
        found = self.protocols[protocol]
        return found.pair if any(metric.gain for metric in self.metrics) else (found.arm(cell),)

    def source(self, cell: PaperCell) -> str:
        """Return the data source of a cell in the published setting.

        >>> table = paper_table("zscore")
        >>> table.source(table.cells[0]), table.config(table.cells[0], "fedrela", "smoke", seed=1).data.source
        ('cifar10', 'digits')
        """
        place = self.place(cell)
        layers = [setting.tables for setting in self.settings if setting.applies(place)]
        table: dict[str, Any] = functools.reduce(merge, layers, {})
        return str(table["data"]["source"])

    def config(
        self, cell: PaperCell, arm: str, scale: str, seed: int, root: Path | None = None, protocol: str = "matched"
    ) -> Config:
        """Return the configuration of one arm of a cell; `root` is the folder that holds data sets."""
        chosen = self.protocols[protocol]
        place = {**self.place(cell), "arm": BASELINE if arm == chosen.pair[0] else TREATED}
        numbers = {self.keys[axis]: stated_number(value) for axis, value in place.items() if axis in self.keys}
        layers = [setting.tables for setting in (*self.settings, *chosen.settings) if setting.applies(place)]
        layers.append(nested({key: value for key, value in numbers.items() if value is not None}))
        layers += [setting.tables for setting in self.scales[scale].settings if setting.applies(place)]
        if self.best_test or chosen.score == "best-test":
            layers.append({"train": {"evaluate_every": 1}})
        table: dict[str, Any] = functools.reduce(merge, layers, {})
        if arm == BASELINE:  # nothing else in [relabel] affects it, and so more tables share its run
            table["relabel"] = {"start": table["relabel"]["start"]}
        table = merge(table, {"seed": seed, "relabel": ARMS[arm].relabel()})
        if root is not None and find_source(table["data"]["source"]).has_files:
            table = merge(table, {"data": {"root": root}})
        return parse_config(table, name=f"{self.label} at scale {scale}, {', '.join(place.values())}")


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
    text, numbers = _read(f"{stem}.toml"), _read(f"{stem}.csv")
    sheet = tomllib.loads(text)
    shared = _read(f"families/{sheet['family']}.toml")
    family = tomllib.loads(shared)
    metrics = tuple(PaperMetric(**metric) for metric in sheet["metrics"])
    return PaperTable(
        label=sheet["label"], title=sheet["title"], caption=sheet["caption"],
        rows=tuple(sheet["rows"]), columns=tuple(sheet["columns"]), metrics=metrics,
        cells=tuple(read_cells(numbers, [metric.of for metric in metrics])),
        fixed=sheet.get("fixed", {}), keys={**family.get("keys", {}), **sheet.get("keys", {})},
        protocols={"matched": Protocol(), "published": _published(family["published"], sheet.get("published", {}))},
        best_test=sheet.get("best_test", False),
        ours=_both(family, sheet, "ours"), notes=_both(family, sheet, "notes"),
        settings=_settings(family, sheet, "base"),
        scales={scale: _scale(family["scale"][scale], sheet.get("scale", {}).get(scale, {})) for scale in SCALES},
        sha256=digest("\n".join((text, shared, numbers)).encode()),
    )  # fmt: skip


def _scale(family: dict[str, Any], sheet: dict[str, Any]) -> TableScale:
    return TableScale(
        seeds=tuple(sheet.get("seeds", family["seeds"])),
        only=tuple(Setting.of({"at": at}) for at in sheet.get("only", ())),
        reduction=_both(family, sheet, "reduction"),
        settings=_settings(family, sheet, "set"),
    )


def _published(family: dict[str, Any], sheet: dict[str, Any]) -> Protocol:
    settings = _settings(family, sheet, "set")
    return Protocol(("baseline", "fedrela-drop"), "best-test", settings, _both(family, sheet, "unlike"))


def _settings(family: dict[str, Any], sheet: dict[str, Any], everywhere: str) -> tuple[Setting, ...]:
    """Return settings for all cells, then those for some; the family's before the table's own."""
    tables = [part.get(everywhere, {}) for part in (family, sheet)]
    return tuple(map(Setting.of, [*tables, *family.get("when", ()), *sheet.get("when", ())]))


def _both(family: dict[str, Any], sheet: dict[str, Any], key: str) -> tuple[str, ...]:
    return (*family.get(key, ()), *sheet.get(key, ()))


def _read(name: str) -> str:
    return resources.files("fedrela").joinpath("reproduction", "tables", name).read_text(encoding="utf-8")
