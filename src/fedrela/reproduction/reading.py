"""The tables of the paper as they lie in the package: a TOML and a CSV file each, and what a family of them shares."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from fedrela.core.checks import check_choice
from fedrela.files import digest
from fedrela.reproduction.published import read_entries
from fedrela.reproduction.settings import Overlay
from fedrela.reproduction.table import SCALES, Figure, PaperTable, Scale

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
