"""Reproduce a table of the paper: its cells as the runs of one grid, and the results beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrela.arguments import check_choice, check_integer
from fedrela.arms import BASELINE, TREATED
from fedrela.data.cache import Progress as Reading
from fedrela.data.sources import find_source, load
from fedrela.errors import DataError
from fedrela.experiment.grid import Cell, Grid
from fedrela.experiment.runner import run_status
from fedrela.experiment.toml.writer import leaves, toml_text
from fedrela.files import digest
from fedrela.metrics.paired import Spread
from fedrela.reproduction.baselines import with_baselines, with_changes
from fedrela.reproduction.paper_table import (
    PROTOCOLS,
    SCALES,
    PaperCell,
    PaperMetric,
    PaperTable,
    Protocol,
    paper_table,
)
from fedrela.runfolder import RunStatus
from fedrela.runfolder.grids import GridFolder
from fedrela.runfolder.json_records import Record

CHOICES = (*PROTOCOLS, "both")
WORDS = ("arm", "dataset", "method")  # axes whose values need no explanation
Place = dict[str, str]  # value by axis
Runs = Mapping[str, list[dict[str, float | None]]]  # by arm, one per seed


def reproduce(
    name: str, *, out: str | Path, scale: str = "smoke", protocol: str = "matched", every: bool = False,
    seeds: int | None = None, root: str | Path | None = None, workers: int | str | None = None, shared: bool = False,
    baselines: Sequence[Any] = (), changes: Mapping[str, Any] | None = None, only: str = "",
) -> Record:  # fmt: skip
    """Reproduce a table of the paper in the folder `out`, without repeating finished runs; return its summary.

    Parameters
    ----------
    name
        The paper's label, with or without ``tab:``.
    scale
        ``paper``, ``cpu`` or ``smoke``.
    protocol
        ``matched``: both arms alike; ``published``: what the official code does; or ``both``, side by side.
    every
        Whether every cell is run, not only the scale's own selection.
    seeds
        Number of seeds, from 1 on, in place of the scale's own.
    root
        The folder that holds data sets.
    workers
        As for `fedrela.experiment.run`.
    shared
        Whether runs are stored in the folder above `out`, so that tables beside each other share them.
    baselines
        More baselines, also your own, as in ``[compare] baselines``; see `with_baselines`.
    changes
        Tables of a configuration that override those of every run, such as your own model; see `with_changes`.
    only
        The entries to run, by values of the table's axes, such as ``"FedETF,IF=100"``, in place of the scale's own
        selection.

    Examples
    --------
    One round with two clients, to try it:

    >>> import tempfile
    >>> quick = {"train": {"rounds": 1, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce("tab:norm_ablation", out=folder + "/table", seeds=1, workers=1, changes=quick)
    >>> found["name"], found["scale"], [entry["arm"] for entry in found["entries"]]
    ('tab:norm_ablation', 'smoke', ['baseline', '+FedReLa', '+FedReLa'])
    """
    folder = None if root is None else Path(root).absolute()
    table = with_changes(with_baselines(paper_table(name), baselines), changes or {})
    plan = Reproduction(
        table, scale, out, protocol=protocol, every=every, seeds=seeds, root=folder, shared=shared, only=only
    )
    plan.check_data()
    plan.grid.complete(workers)
    return plan.conclude()


class Reproduction:
    """A table of the paper to be reproduced below a folder; parameters as for `reproduce`."""

    def __init__(
        self, table: PaperTable, scale: str, out: str | Path, *, protocol: str = "matched", every: bool = False,
        seeds: int | None = None, root: Path | None = None, shared: bool = False, only: str = "",
    ) -> None:  # fmt: skip
        check_choice("scale", scale, SCALES)
        check_choice("protocol", protocol, CHOICES)
        self.table, self.scale, self.root, self.protocol = table, scale, root, protocol
        self.protocols = PROTOCOLS if protocol == "both" else (protocol,)
        self.seeds = table.scales[scale].seeds if seeds is None else tuple(range(1, check_integer("seeds", seeds) + 1))
        self.chosen = self._asked(only, out) if only else table.chosen(scale, every)
        self._runs = {(id(cell), each): self._runs_of(cell, each) for each in self.protocols for cell in self.chosen}
        made_from = {"reproduce": table.label, "scale": scale, "sha256": table.sha256}
        self.grid = Grid(
            out, [cell for cells in self._runs.values() for cell in cells], kind="reproduce", name=table.label,
            base=digest(repr((made_from, root)).encode()), config=toml_text(made_from), facts={"scale": scale},
            shared=shared,
        )  # fmt: skip

    def _runs_of(self, paper_cell: PaperCell, protocol: str) -> list[Cell]:
        table, baseline = self.table, self.table.place(paper_cell)["method"]
        values = {axis: value for axis, value in paper_cell.at.items() if axis != "method"}
        if protocol != "matched":
            values["protocol"] = protocol
        return [
            Cell(table.config(paper_cell, arm, self.scale, seed, self.root, protocol), baseline, arm, seed, values)
            for arm in table.arms(paper_cell, protocol)
            for seed in self.seeds
        ]

    def check_data(self, progress: Reading | None = None) -> None:
        """Raise if files of a data set are missing, in one line that says how to get them.

        `progress` is called with (done, total, what) while files are decoded, which happens once.
        """
        configs = [cell.config.data for cell in self.grid.cells]
        wanted = {repr((data.source, data.root, data.options)): data for data in configs}
        for _, data in sorted(wanted.items()):
            if not find_source(data.source).has_files:
                continue
            try:
                load(data.source, data.root, progress=progress, **data.options)
            except DataError as error:
                where = f"{self.table.label} at scale {self.scale}"
                raise DataError(f"{where}: {error}; name its folder with --data") from None

    def conclude(self) -> Record:
        """Write ``summary.json`` and return what it says; each run must be done, or have failed."""
        return self.grid.conclude(self.summary())

    def summary(self) -> Record:
        """Return the table with the published and measured values of every cell."""
        table, failures = self.table, self.grid.failures
        if all(cell.name in failures for cell in self.grid.cells):
            raise self.grid.failure("no run succeeded")
        rows, several = self._rows(), self.protocol != "matched"
        return {
            "title": table.title,
            "caption": table.caption,
            "scale": self.scale,
            "seeds": list(self.seeds),
            "protocol": self.protocol,
            "pairs": {each: list(table.protocols[each].pair) for each in self.protocols},
            "metrics": [{"name": metric.name, "of": metric.of, "gain": metric.gain} for metric in table.metrics],
            "rows": list(table.rows),
            "columns": list(table.columns),
            "measured": {name: words for name, (words, _, _) in rows.items()},
            "stand_in": self._stand_in,
            "entries": [
                asdict(cell)
                | {"measured_on": self._source(cell)}
                | {name: self._measured(cell, *of) for name, (_, *of) in rows.items()}
                for cell in table.cells
            ],
            "differences": differences(table, self.scale, self.chosen) if several else [],
            "unlike": list(table.protocols["published"].unlike) if several else [],
            "ours": list(table.ours),
            "reduction": list(table.scales[self.scale].reduction),
            "notes": [
                *table.notes,
                *(_about(table.protocols[each]) for each in self.protocols),
                *(f"failed: {name}: {why}" for name, why in failures.items()),
            ],
        }

    def _asked(self, only: str, out: str | Path) -> list[PaperCell]:
        """Return the entries that `only` asks for, and those that earlier calls have finished in the folder."""
        asked, finished = self.table.matching(only), list[Record]()
        if GridFolder.is_one(out):
            folder = GridFolder.open(out)
            finished = [cell for cell in folder.cells if run_status(folder.place(cell)) is RunStatus.DONE]

        def is_there(cell: PaperCell) -> bool:
            runs = [run.as_record() for protocol in self.protocols for run in self._runs_of(cell, protocol)]
            return all(run in finished for run in runs)

        return [cell for cell in self.table.cells if cell in asked or (finished and is_there(cell))]

    def _rows(self) -> dict[str, tuple[str, str, str]]:
        """Return what is measured of every entry: by name, its label in tables, the protocol and the round."""
        protocols, on = self.table.protocols, f" on {self._stand_in}" if self._stand_in else ""
        best = f"measured{on}, best-test"
        if self.protocol == "published":
            rows = {"measured": (best, "published", "best-test")}
        else:
            rows = {"measured": (f"measured{on}", "matched", protocols["matched"].score)}
            if self.table.best_test:
                rows["best_test"] = (best, "matched", "best-test")
        if self.protocol == "both":
            words = f"published protocol{on}, best-test"
            rows["published_protocol"] = (words, "published", protocols["published"].score)
        return rows

    def _source(self, paper_cell: PaperCell) -> str | None:
        """Return the data source that a cell is measured on; None if it is not run."""
        cells = self._runs.get((id(paper_cell), self.protocols[0]))
        return cells[0].config.data.source if cells else None

    @cached_property
    def _stand_in(self) -> str:
        """Return the data sources that stand in for those of the paper; empty if none does."""
        cells = self.table.cells
        read = {found for cell in cells if (found := self._source(cell)) not in (None, self.table.source(cell))}
        return " and ".join(sorted(map(str, read)))

    def _measured(self, paper_cell: PaperCell, protocol: str, score: str) -> Record | None:
        """Return every metric over seeds; None if the cell was not run, or a run of it failed."""
        cells, chosen = self._runs.get((id(paper_cell), protocol)), self.table.protocols[protocol]
        if cells is None or any(cell.name in self.grid.failures for cell in cells):
            return None
        runs: Runs = {arm: [] for arm in chosen.pair}
        for cell in cells:
            runs[cell.arm].append(self.grid.result(cell).metrics(score, ("overall",)))
        return {m.of: _spread(m, runs, chosen, chosen.arm(paper_cell)).as_record() for m in self.table.metrics}


def _spread(metric: PaperMetric, runs: Runs, protocol: Protocol, arm: str) -> Spread:
    names = metric.sum or (metric.of,)
    after = [_total(run, names) for run in runs[arm]]
    if not metric.gain:
        return Spread.of(after)
    pairs = zip([_total(run, names) for run in runs[protocol.pair[0]]], after, strict=True)
    return Spread.of([None if low is None or high is None else high - low for low, high in pairs])


def _total(run: Mapping[str, float | None], names: Sequence[str]) -> float | None:
    known = [value for name in names if (value := run.get(name)) is not None]
    return sum(known) if len(known) == len(names) else None


def _about(protocol: Protocol) -> str:
    """Describe which arms are shown, and how that differs from the official code."""
    base, treated = protocol.pair
    if protocol.score == "last":
        official = "The official code lowers it with FedReLa only, and reports the best test accuracy of all rounds."
        return (
            f"The measured arms are {base} and {treated}, at the same learning rate, after the last round. {official}"
        )
    return (
        f"The published protocol compares the arms {base} and {treated}: the learning rate is lowered to a tenth with "
        "FedReLa only. Every number is from the round that is best on the test set itself, which flatters both arms."
    )


def differences(table: PaperTable, scale: str, cells: Iterable[PaperCell]) -> list[dict[str, str]]:
    """Return a row for each setting that differs: ``setting``, and its value by protocol.

    A setting that differs at some places only has them in brackets.
    """
    found: dict[tuple[str, str, str], list[Place]] = {}
    everywhere: list[Place] = []
    for cell in cells:
        for k, arm in enumerate((BASELINE, TREATED)):
            place = {**table.place(cell), "arm": arm}
            everywhere.append(place)
            arms = {protocol: table.protocols[protocol].pair[k] for protocol in PROTOCOLS}
            pair = [table.config(cell, name, scale, 1, protocol=each).as_table() for each, name in arms.items()]
            if arm == BASELINE:  # it uses nothing in [relabel]
                pair = [{**config, "relabel": {}} for config in pair]
            matched, published = (dict(leaves(config)) for config in pair)
            for key in dict.fromkeys([*matched, *published]):
                values = matched.get(key, "-"), published.get(key, "-")
                if values[0] != values[1]:
                    found.setdefault((key, *values), []).append(place)
    rows = [("round that counts", *(table.protocols[protocol].score for protocol in PROTOCOLS))]
    rows += [(f"{key}{_where(places, everywhere)}", *values) for (key, *values), places in found.items()]
    return [dict(zip(("setting", *PROTOCOLS), row, strict=True)) for row in rows]


def _where(places: list[Place], everywhere: list[Place]) -> str:
    """Describe places by their values along each axis, except axes along which they have all values.

    >>> _where([{"arm": "+FedReLa", "IF": "50"}], [{"arm": "baseline", "IF": "50"}, {"arm": "+FedReLa", "IF": "50"}])
    ' (+FedReLa)'
    """
    words = []
    for axis in everywhere[0]:
        here, all_values = (list(dict.fromkeys(place[axis] for place in of)) for of in (places, everywhere))
        if len(here) < len(all_values):
            words.append(" and ".join(here) if axis in WORDS else f"{axis} {' and '.join(here)}")
    return f" ({', '.join(words)})" if words else ""
