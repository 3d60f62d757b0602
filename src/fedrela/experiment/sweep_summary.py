"""What all runs of a sweep say together, which values validation would choose, and what the test set says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.errors import FedrelaError
from fedrela.experiment.comparing import FORMAT
from fedrela.experiment.grid import Cell, Grid
from fedrela.experiment.result import Result
from fedrela.experiment.summary import figure_names, figures_of
from fedrela.metrics.paired import Spread
from fedrela.runfolder.text import Record

HELD_BACK = "balanced accuracy on what clients hold back"
NO_VALIDATION = (
    "No values can be chosen without the test set, since clients hold nothing back: data.validation is 0, and with 0.1 "
    "they hold back a tenth of their samples."
)
ONE_RUN = "There is nothing to choose: the values change no run."
FAILED = "No values can be chosen: no combination has all its runs."


def sweep_summary(grid: Grid, values: Mapping[str, Sequence[Any]]) -> Record:
    """Return what ``summary.json`` says of swept keys and their values; each run must be done, or have failed."""
    results = {cell.name: grid.result(cell) for cell in grid.cells if cell.name not in grid.failures}
    if not results:
        raise FedrelaError(f"{grid.out}: no run could be done: {next(iter(grid.failures.values()))}")
    headline = str(next(iter(results.values())).record["headline"])
    groups = dict.fromkeys(name for result in results.values() for name in figure_names(result)[:-1])
    figures = [*groups, headline]
    families: dict[tuple[str, str], list[list[Cell]]] = {}
    for cells in _by_point(grid.cells):
        families.setdefault((cells[0].baseline, cells[0].arm), []).append(cells)
    points = {family: [_point(cells, grid, results, figures) for cells in all] for family, all in families.items()}
    several = {family: points[family] for family, all in families.items() if len({c[0].name for c in all}) > 1}
    choice = [found for family in several if (found := choice_of(several[family], headline))]
    return {
        "format": FORMAT,
        "kind": "sweep",
        "name": grid.name,
        "headline": headline,
        "figures": figures,
        "seeds": list(dict.fromkeys(cell.seed for cell in grid.cells)),
        "keys": list(values),
        "values": dict(values),
        "points": [point for family in points.values() for point in family],
        "choice": choice,
        "why_no_choice": "" if choice else _why_none(several.values()),
    }


def _by_point(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the seeds of each combination together."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.baseline, cell.arm, repr(cell.values)), []).append(cell)
    return list(found.values())


def _point(cells: Sequence[Cell], grid: Grid, results: Mapping[str, Result], figures: Sequence[str]) -> Record:
    done = [results.get(cell.name) for cell in cells]
    runs = [{} if result is None else {**result.accuracy, **figures_of(result)} for result in done]
    validation = [None if result is None else result.record.get("validation", {}).get("balanced") for result in done]
    failure = next((grid.failures[cell.name] for cell in cells if cell.name in grid.failures), None)
    return {
        "baseline": cells[0].baseline,
        "arm": cells[0].arm,
        "values": dict(cells[0].values),
        "figures": {name: Spread.of([run.get(name) for run in runs]).as_record() for name in [*figures, "moved"]},
        "validation": None if all(value is None for value in validation) else Spread.of(validation).as_record(),
        **({} if failure is None else {"failed": failure}),
    }


def choice_of(points: Sequence[Record], headline: str) -> Record | None:
    """Return what validation would choose among points of one baseline and arm; None where no point was validated.

    Of equal ones it is the one that moved fewer labels, then the one that comes first.
    """
    candidates = [point for point in points if point["validation"] and point["validation"]["mean"] is not None]
    scored = [point for point in points if point["figures"][headline]["mean"] is not None]
    if not candidates or not scored:
        return None
    chosen = max(candidates, key=lambda point: (point["validation"]["mean"], -(point["figures"]["moved"]["mean"] or 0)))
    best = max(scored, key=lambda point: point["figures"][headline]["mean"])
    return {
        "baseline": chosen["baseline"],
        "arm": chosen["arm"],
        "by": HELD_BACK,
        "values": chosen["values"],
        "validation": chosen["validation"]["mean"],
        "test": {name: spread["mean"] for name, spread in chosen["figures"].items() if name != "moved"},
        "best_test_values": best["values"],
        "best_test": best["figures"][headline]["mean"],
    }


def _why_none(several: Any) -> str:
    points = [point for family in several for point in family]
    if not points:
        return ONE_RUN
    return FAILED if any(point["validation"] for point in points) else NO_VALIDATION
