"""A table of the paper: its layout, its numbers, and the configuration behind each entry at each scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fedrela.experiment.arms import ARMS
from fedrela.experiment.load import parse_config
from fedrela.experiment.schema import Config
from fedrela.reproduction.published import Entry
from fedrela.reproduction.settings import Overlay, number, settled

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
