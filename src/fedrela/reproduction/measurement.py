"""Measure what a table of the paper shows: its cells as runs of one grid, and what they say beside the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from fedrela.arguments import check_choice
from fedrela.data.cache import Progress as Reading
from fedrela.data.sources import SOURCES, load
from fedrela.errors import DataError, FedrelaError
from fedrela.experiment.arms import ARMS
from fedrela.experiment.grid import Cell, Grid
from fedrela.experiment.toml.writer import toml_text
from fedrela.files import digest
from fedrela.metrics.paired import Spread
from fedrela.reproduction.paper_table import SCALES, PaperCell, PaperMetric, PaperTable, paper_table
from fedrela.runfolder.records import Record

Runs = Mapping[str, list[dict[str, float | None]]]  # by arm, one per seed


def reproduce(
    name: str, *, out: str | Path, scale: str = "smoke", every: bool = False, seeds: int | None = None,
    root: str | Path | None = None, workers: int | str | None = None,
) -> Record:  # fmt: skip
    """Measure a table of the paper below the folder `out`, or what is left of it there, and return its summary.

    `name` is the paper's label, with or without ``tab:``; `scale` is ``paper``, ``cpu`` or ``smoke``. With `every` each
    cell is measured, and not only the scale's own choice; `seeds` is how many, from 1 on, in place of the scale's own.
    `root` is the folder that holds data sets.
    """
    folder = None if root is None else Path(root).absolute()
    plan = Reproduction(paper_table(name), scale, out, every=every, seeds=seeds, root=folder)
    plan.check_data()
    plan.grid.complete(workers)
    return plan.conclude()


class Reproduction:
    """A table of the paper that is to be measured below a folder; parameters as for `reproduce`."""

    def __init__(
        self, table: PaperTable, scale: str, out: str | Path, *, every: bool = False, seeds: int | None = None,
        root: Path | None = None,
    ) -> None:  # fmt: skip
        check_choice("scale", scale, SCALES)
        self.table, self.scale, self.root = table, scale, root
        self.seeds = table.scales[scale].seeds if seeds is None else tuple(range(1, seeds + 1))
        self._runs = {id(paper_cell): self._runs_of(paper_cell) for paper_cell in table.chosen(scale, every)}
        made_from = {"reproduce": table.label, "scale": scale, "sha256": table.sha256}
        self.grid = Grid(
            out, [cell for cells in self._runs.values() for cell in cells], kind="reproduce", name=table.label,
            base=digest(repr((made_from, root)).encode()), config=toml_text(made_from), facts={"scale": scale},
        )  # fmt: skip

    def _runs_of(self, paper_cell: PaperCell) -> list[Cell]:
        table, baseline = self.table, self.table.place(paper_cell)["method"]
        values = {axis: value for axis, value in paper_cell.at.items() if axis != "method"}
        return [
            Cell(table.config(paper_cell, arm, self.scale, seed, self.root), baseline, arm, seed, values)
            for arm in table.arms(paper_cell)
            for seed in self.seeds
        ]

    def check_data(self, progress: Reading | None = None) -> None:
        """Raise where files of a data set are missing, in one line that says how to get them.

        `progress` is called with (done, total, what) while files are decoded, which happens once.
        """
        wanted = {cell.config.data.source: cell.config.data.options for cell in self.grid.cells}
        for source in sorted(name for name in wanted if SOURCES[name].has_files):
            try:
                load(source, self.root, progress=progress, **wanted[source])
            except DataError as error:
                where = f"{self.table.label} at scale {self.scale}"
                raise DataError(f"{where}: {error}; --data DIR says where it lies") from None

    def conclude(self) -> Record:
        """Write ``summary.json`` and return what it says; each run must be done, or have failed."""
        return self.grid.conclude(self.summary())

    def summary(self) -> Record:
        """Return the table with what was published and measured in every cell."""
        table, failures = self.table, self.grid.failures
        if all(cell.name in failures for cell in self.grid.cells):
            raise FedrelaError(f"{self.grid.out}: no run could be done: {next(iter(failures.values()))}")
        return {
            "title": table.title,
            "caption": table.caption,
            "scale": self.scale,
            "seeds": list(self.seeds),
            "pair": list(table.pair),
            "metrics": [{"name": metric.name, "of": metric.of, "gain": metric.gain} for metric in table.metrics],
            "rows": list(table.rows),
            "columns": list(table.columns),
            "entries": [{**asdict(cell), "measured": self._measured(cell)} for cell in table.cells],
            "ours": list(table.ours),
            "reduction": list(table.scales[self.scale].reduction),
            "notes": [*table.notes, _about(table.pair), *(f"failed: {name}: {why}" for name, why in failures.items())],
        }

    def _measured(self, paper_cell: PaperCell) -> Record | None:
        """Return every metric over seeds; None where the cell was not run, or a run of it failed."""
        cells = self._runs.get(id(paper_cell))
        if cells is None or any(cell.name in self.grid.failures for cell in cells):
            return None
        results = [(cell.arm, self.grid.result(cell)) for cell in cells]
        scores = [(arm, {"overall": result.accuracy["overall"], **result.metrics()}) for arm, result in results]
        runs = {arm: [metrics for of, metrics in scores if of == arm] for arm in self.table.pair}
        return {metric.of: self._spread(metric, paper_cell, runs).as_record() for metric in self.table.metrics}

    def _spread(self, metric: PaperMetric, paper_cell: PaperCell, runs: Runs) -> Spread:
        names = metric.sum or (metric.of,)
        after = [_total(run, names) for run in runs[self.table.arm(paper_cell)]]
        if not metric.gain:
            return Spread.of(after)
        before = [_total(run, names) for run in runs[self.table.pair[0]]]
        pairs = zip(before, after, strict=True)
        return Spread.of([None if low is None or high is None else high - low for low, high in pairs])


def _total(run: Mapping[str, float | None], names: Sequence[str]) -> float | None:
    known = [value for name in names if (value := run.get(name)) is not None]
    return sum(known) if len(known) == len(names) else None


def _about(pair: tuple[str, str]) -> str:
    """Say which arms are shown, and how that differs from the official code."""
    dropped = any(ARMS[arm].drop for arm in pair)
    rate = "both with the learning rate lowered to a tenth" if dropped else "at the same learning rate"
    official = "The official code lowers it with FedReLa only, and reports the best test accuracy of all rounds."
    return f"Measured are the arms {pair[0]} and {pair[1]}, {rate}, after the last round. {official}"
