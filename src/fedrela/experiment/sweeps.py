"""Sweep keys of a configuration over values: every combination is a run, and no run is repeated."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fedrela.arms import AS_GIVEN
from fedrela.errors import ArgumentError
from fedrela.experiment.comparison import cells_of, grid_of, spreads
from fedrela.experiment.grid import Cell, Grid, GridSummary
from fedrela.experiment.result import Result
from fedrela.experiment.runner import Configuration, as_config
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.sweep import compared, swept_keys
from fedrela.metrics.paired import Spread
from fedrela.runfolder.json_records import Record


class Sweep(GridSummary):
    """The results of a sweep.

    Attributes
    ----------
    folder
        Where its runs are.
    record
        The content of ``summary.json``.

    Examples
    --------
    >>> import tempfile
    >>> small = {"train": {"rounds": 1, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = sweep({**small, "sweep": {"train.lr": [0.05, 0.1]}}, out=folder, workers=1)
    ...     found = Sweep.load(folder)
    >>> [point["values"] for point in found.points], found.choice
    ([{'train.lr': 0.05}, {'train.lr': 0.1}], [])
    """

    kind = "sweep"

    @property
    def points(self) -> list[Record]:
        """Baseline, arm, values, metrics over seeds and validation of every combination."""
        return list(self.record["points"])

    @property
    def choice(self) -> list[Record]:
        """For each baseline and arm the values that validation would choose, with their test accuracy."""
        return list(self.record["choice"])

    def rows(self) -> list[Record]:
        """Return a long table, one row per combination and seed, which `pandas.DataFrame` accepts.

        Keys: ``baseline``, ``arm``, ``seed``, the swept keys with their dots, each metric as a share, ``moved`` and
        ``validation``; None stands for unknown values.
        """
        return [
            {"baseline": point["baseline"], "arm": point["arm"], "seed": seed, **point["values"]}
            | {name: spread["values"][i] for name, spread in point["metrics"].items()}
            | {"validation": point["validation"]["values"][i] if point["validation"] else None}
            for point in self.points
            for i, seed in enumerate(self.record["seeds"])
        ]


def sweep(config: Configuration, *, out: str | Path, workers: int | str | None = None) -> Sweep:
    """Run a sweep in a folder; runs that are finished there are not repeated.

    Keys and values are in the table ``[sweep]``, seeds, baselines and arms in ``[compare]``. It is an error if every
    run failed; if only some did, the summary has the reasons.

    Parameters
    ----------
    config
        A TOML file, or the same as a dictionary.
    out
        The folder of all its runs.
    workers
        As for `run`.

    Examples
    --------
    >>> import tempfile
    >>> small = {"train": {"rounds": 2, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = sweep({**small, "sweep": {"relabel.tau": [0.05, 0.2]}}, out=folder, workers=1)
    >>> [(row["seed"], row["relabel.tau"], row["overall"] > 0.5) for row in found.rows()]
    [(1, 0.05, True), (1, 0.2, True)]
    """
    plan = SweepPlan(as_config(config), out)
    plan.grid.complete(workers)
    return plan.conclude()


SWEPT_BASELINE = "as swept"  # the baseline where the algorithm itself is swept


class SweepPlan:
    """A sweep to be run below a folder: the values of each swept key, and all runs."""

    def __init__(self, config: Config, out: str | Path) -> None:
        entries = swept_keys(config.sweep)
        if not entries:
            example = '[sweep] "relabel.tau" = [0.01, 0.05]'
            raise ArgumentError(f"{config.origin.name}: sweep: expected keys with values to try, such as {example}")
        self.values = {entry.key: list(entry.values) for entry in entries}
        baselines = {baseline.label: baseline.changes() for baseline in compared(config, "baselines")}
        if not baselines:
            chosen = any(entry.target in (("algorithm",), ("algorithm", "name")) for entry in entries)
            baselines = {SWEPT_BASELINE if chosen else config.algorithm.kind().label: {}}
        arms, seeds = compared(config, "arms") or (AS_GIVEN,), compared(config, "seeds") or (config.seed,)
        cells = cells_of(config, baselines, arms, seeds, entries)
        self.grid = grid_of(config, out, cells, kind="sweep")

    def conclude(self) -> Sweep:
        """Write ``summary.json`` and return it; each run must be done, or have failed."""
        return Sweep(self.grid.out, self.grid.conclude(sweep_summary(self.grid, self.values)))


CRITERION = "balanced accuracy on the clients' validation samples"
NO_VALIDATION = (
    "No values can be chosen without the test set, since clients hold out no samples; data.validation = 0.1 would hold "
    "out a tenth of them."
)
ONE_RUN = "There is nothing to choose: these values do not affect any run."
ONLY_DATA = "There is nothing to choose: these keys say what the data are."
INPUTS = ("data.scaling", "data.standardize")  # keys of [data] that do not say what the data are
FAILED = "No values can be chosen: no combination has all its runs."


def sweep_summary(grid: Grid, values: Mapping[str, Sequence[Any]]) -> Record:
    """Return the content of ``summary.json`` for swept keys and values; each run must be done, or have failed."""
    results = {cell.name: grid.result(cell) for cell in grid.cells if cell.name not in grid.failures}
    if not results:
        raise grid.failure("no run succeeded")
    headline = str(next(iter(results.values())).record["headline"])
    groups = dict.fromkeys(name for result in results.values() for name in result.metric_names[:-1])
    metrics = [*groups, headline]
    families = [
        _groups(family, lambda cell: repr(cell.values))
        for family in _groups(grid.cells, lambda cell: (cell.baseline, cell.arm))
    ]
    points = {id(cells): _point(cells, grid, results, metrics) for family in families for cells in family}
    alike = [group for family in families for group in _groups(family, lambda cells: repr(_data(cells[0].values)))]
    several = [[points[id(cells)] for cells in group] for group in alike if _runs(group) > 1]
    choice = [found for group in several if (found := choice_of(group, headline))]
    return {
        "headline": headline,
        "metrics": metrics,
        "seeds": list(dict.fromkeys(cell.seed for cell in grid.cells)),
        "keys": list(values),
        "values": dict(values),
        "points": list(points.values()),
        "choice": choice,
        "why_no_choice": "" if choice else _why_none(several, any(_runs(family) > 1 for family in families)),
    }


T = TypeVar("T")


def _runs(points: Sequence[Sequence[Cell]]) -> int:
    """Return how many of these points differ in their runs."""
    return len({cells[0].name for cells in points})


def _groups(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Group items by key, in the order in which the keys first appear."""
    found: dict[Hashable, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def _data(values: Mapping[str, Any]) -> Record:
    """Return the values that say what the data are, among which nobody chooses."""
    return {key: value for key, value in values.items() if key.startswith("data.") and key not in INPUTS}


def _point(cells: Sequence[Cell], grid: Grid, results: Mapping[str, Result], metrics: Sequence[str]) -> Record:
    done = [results.get(cell.name) for cell in cells]
    runs = [{} if result is None else {**result.accuracy, **result.metrics()} for result in done]
    validation = [None if result is None else result.record.get("validation", {}).get("balanced") for result in done]
    failure = next((str(grid.failures[cell.name]) for cell in cells if cell.name in grid.failures), None)
    return {
        "baseline": cells[0].baseline,
        "arm": cells[0].arm,
        "values": dict(cells[0].values),
        "metrics": spreads(runs, [*metrics, "moved"]),
        "validation": None if all(value is None for value in validation) else Spread.of(validation).as_record(),
        **({} if failure is None else {"failed": failure}),
    }


def choice_of(points: Sequence[Record], headline: str) -> Record | None:
    """Return what validation would choose among points of one baseline and arm; None if no point was validated.

    The points have the same data, whose values among the swept ones are ``at``. Ties go to the one that moved fewer
    labels, then to the first.
    """
    candidates = [point for point in points if point["validation"] and point["validation"]["mean"] is not None]
    scored = [point for point in points if point["metrics"][headline]["mean"] is not None]
    if not candidates or not scored:
        return None
    chosen = max(candidates, key=lambda point: (point["validation"]["mean"], -(point["metrics"]["moved"]["mean"] or 0)))
    best = max(scored, key=lambda point: point["metrics"][headline]["mean"])
    at = _data(chosen["values"])
    return {
        "baseline": chosen["baseline"],
        "arm": chosen["arm"],
        "by": CRITERION,
        "at": at,
        "values": {key: value for key, value in chosen["values"].items() if key not in at},
        "validation": chosen["validation"]["mean"],
        "test": {name: spread["mean"] for name, spread in chosen["metrics"].items() if name != "moved"},
        "best_test_values": {key: value for key, value in best["values"].items() if key not in at},
        "best_test": best["metrics"][headline]["mean"],
    }


def _why_none(several: Sequence[Sequence[Record]], differ: bool) -> str:
    if not several:
        return ONLY_DATA if differ else ONE_RUN
    return FAILED if any(point["validation"] for family in several for point in family) else NO_VALIDATION
