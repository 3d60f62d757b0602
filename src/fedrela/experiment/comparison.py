"""Compare baselines with and without re-labelling: matched arms, several seeds, shared rounds trained once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrela.arguments import check_choice
from fedrela.arms import ARMS, DROP, PAIRS
from fedrela.core.notebook import data_frame
from fedrela.engine.run_options import RelabelPlan
from fedrela.experiment.grid import Cell, Grid, GridSummary, prefix_rounds
from fedrela.experiment.load import config_sha256, config_toml
from fedrela.experiment.overlay import merge, nested, overlay
from fedrela.experiment.runner import Configuration, as_config
from fedrela.experiment.schema import Config, ReportConfig
from fedrela.experiment.schema.compare import BaselineConfig, CompareConfig
from fedrela.experiment.schema.config_table import Fault
from fedrela.experiment.schema.problems import WrongConfigError
from fedrela.experiment.schema.sweep import SweptKey, points_of
from fedrela.metrics.paired import Spread, in_words, paired
from fedrela.runfolder.json_records import Record

# The demonstration: three of the ten digits are rare in training (imbalance ratio 20), and ten clients hold different
# shares of each; the test set is balanced. ``fedrela init`` writes one run of it.
DEMO: Record = {
    "seed": 1,
    "data": {
        "source": "digits",
        "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]},
        "partition": {"kind": "dirichlet", "clients": 10, "alpha": 0.3, "min_size": 5},
    },
    "model": {"name": "mlp", "hidden": [64]},
    "algorithm": {"name": "fedavg"},
    "train": {"rounds": 60, "epochs": 2, "batch_size": 16, "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-5},
    "relabel": {"enabled": True, "start": 0.8, "tau": 0.05, "lr_scale": 1.0},
    "compare": {"seeds": 3},
}


class Comparison(GridSummary):
    """The results of a comparison.

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
    ...     _ = compare({**small, "compare": {"seeds": 1, "arms": ["baseline", "fedrela"]}}, out=folder, workers=1)
    ...     found = Comparison.load(folder)
    >>> [(label, base, treated) for label, base, treated, words in found.changes()], found.failures
    ([('FedAvg', 'baseline', 'fedrela')], {})
    """

    kind = "compare"

    def changes(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield label, base and treated arm of each matched pair, and a phrase on the difference and its noise."""
        note = ["one seed cannot tell this from noise"] if len(self.record["seeds"]) == 1 else []
        for baseline in self.record["baselines"]:
            for pair in baseline["pairs"]:
                words = [f"{name} {in_words(change)}" for name, change in pair["differences"].items()]
                yield baseline["label"], pair["base"], pair["treated"], "; ".join(words + note)

    def against(self, label: str) -> Iterator[tuple[str, str, str]]:
        """Yield for every other baseline and arm by how much it exceeds this baseline's same arm, paired by seed.

        >>> import tempfile
        >>> small = {"train": {"rounds": 1, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
        >>> chosen = {"seeds": 1, "arms": ["baseline"], "baselines": ["fedavg", {"name": "fedprox", "mu": 0.0}]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = compare({**small, "compare": chosen}, out=folder, workers=1)
        >>> [(label, arm, words[:15]) for label, arm, words in found.against("FedAvg")]
        [('FedProx', 'baseline', 'head 0.0 points')]
        """
        arms = {baseline["label"]: baseline["arms"] for baseline in self.record["baselines"]}
        base = arms.pop(check_choice("against", label, arms))
        for other, theirs in arms.items():
            for arm in filter(base.__contains__, theirs):
                both = [(name, base[arm][name]["values"], theirs[arm][name]["values"]) for name in theirs[arm]]
                words = [f"{name} {in_words(paired(*of).as_record())}" for name, *of in both if name != "moved"]
                yield other, arm, "; ".join(words)

    @property
    def failures(self) -> dict[str, str]:
        """Why a baseline could not be run, by its label."""
        return {baseline["label"]: baseline["failed"] for baseline in self.record["baselines"] if "failed" in baseline}

    def lost(self) -> Iterator[str]:
        """Yield for each baseline and arm whose clients were lost a sentence on the first seed in which they were."""
        for baseline in self.record["baselines"]:
            for arm, words in baseline.get("lost", {}).items():
                yield f"{baseline['label']}, {arm}, {words}"

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with a row for each baseline, arm and metric: mean, deviation, values."""
        rows = [
            {"baseline": baseline["label"], "arm": arm, "metric": metric, **spread}
            for baseline in self.record["baselines"]
            for arm, metrics in baseline["arms"].items()
            for metric, spread in metrics.items()
        ]
        return data_frame({key: [row[key] for row in rows] for key in (rows[0] if rows else ())})

    def __str__(self) -> str:
        score = "" if self.record["score"] == "last" else f" ({self.record['score']} round)"
        lines = [f"{label}, {treated} against {base}{score}: {words}" for label, base, treated, words in self.changes()]
        failed = [f"{label}: failed: {why}" for label, why in self.failures.items()]
        return "\n".join([*lines, *self.lost(), *failed])


def compare(config: Configuration, *, out: str | Path, workers: int | str | None = None) -> Comparison:
    """Run a comparison in a folder; runs that are finished there are not repeated.

    The table ``[compare]`` says what is compared. It is an error if every baseline failed; if only some did, the
    summary has the reasons.

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
    >>> small = {"train": {"rounds": 1, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> chosen = {"seeds": 1, "arms": ["baseline", "fedrela"], "baselines": ["fedavg", "fedprox"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = compare({**small, "compare": chosen}, out=folder, workers=1)
    >>> [(baseline["label"], list(baseline["arms"])) for baseline in found.record["baselines"]]
    [('FedAvg', ['baseline', 'fedrela']), ('FedProx', ['baseline', 'fedrela'])]
    """
    plan = Compare(as_config(config), out)
    plan.grid.complete(workers)
    return plan.conclude()


class Compare:
    """A comparison to be run below a folder.

    The table ``[compare]`` says what is compared; without it, the algorithm, in four arms with three seeds. `name`
    is its name in tables, by default that of the file, or of the folder if there is no file.
    """

    def __init__(self, config: Config, out: str | Path, name: str | None = None) -> None:
        if config.relabel.lr_scale not in (1.0, DROP):
            what = f"the arms of a comparison set it: 1, or {DROP} in those with -drop; leave it out"
            raise WrongConfigError([Fault(("relabel", "lr_scale"), what)], config.origin)
        self.table = config.compare or CompareConfig()
        self.baselines = self.table.baselines or (BaselineConfig.of(config.algorithm.as_table()),)
        changes = {baseline.label: baseline.changes() for baseline in self.baselines}
        cells = cells_of(config, changes, self.table.arms, self.table.seeds)
        self.grid = grid_of(config, out, cells, kind="compare", facts={"score": self.table.score}, name=name)

    def summary(self) -> Record:
        """Return the summary of all runs, each of which is done or has failed."""
        failures: dict[str, str] = {}
        for cell in self.grid.cells:
            if cell.name in self.grid.failures:
                failures.setdefault(cell.baseline, str(self.grid.failures[cell.name]))
        sound = [cell for cell in self.grid.cells if cell.baseline not in failures]
        if not sound:
            raise self.grid.failure("no baseline could be run")
        first = self.grid.result(sound[0])
        return {
            "score": self.table.score,
            "headline": first.record["headline"],
            "metrics": first.metric_names,
            "seeds": list(self.table.seeds),
            "baselines": [self._baseline(baseline, failures.get(baseline.label)) for baseline in self.baselines],
        }

    def conclude(self) -> Comparison:
        """Write ``summary.json`` and return it."""
        return Comparison(self.grid.out, self.grid.conclude(self.summary()))

    def _baseline(self, baseline: BaselineConfig, failure: str | None) -> Record:
        record: Record = {"label": baseline.label, "algorithm": baseline.name, "arms": {}, "pairs": []}
        if failure is not None:
            return record | {"failed": failure}
        found: dict[str, list[dict[str, float | None]]] = {arm: [] for arm in self.table.arms}
        for cell in (cell for cell in self.grid.cells if cell.baseline == baseline.label):
            result = self.grid.result(cell)
            since = prefix_rounds(cell.config) + 1 if self.table.score == "best-validation" else 1
            found[cell.arm].append(result.metrics(self.table.score, since=since))
            if said := result.lost():
                record.setdefault("lost", {}).setdefault(cell.arm, f"seed {cell.seed}: {said}")
        record["arms"] = {arm: spreads(runs, runs[0]) for arm, runs in found.items()}
        record["pairs"] = [
            {"base": base, "treated": treated, "differences": _differences(found[base], found[treated])}
            for base, treated in self.table.pairs or PAIRS
            if base in found and treated in found
        ]
        return record


def grid_of(config: Config, out: str | Path, cells: Iterable[Cell], *, name: str | None = None, **about: Any) -> Grid:
    """Return cells made from a configuration as a grid, by default named after its file, else after the folder."""
    if name is None:
        name = Path(config.origin.name).stem if config.origin.places else Path(out).name
    return Grid(out, cells, name=name, base=base_digest(config), config=config_toml(config), **about)


def base_digest(config: Config) -> str:
    """Return the digest of what all runs of a folder share: seeds, baselines and arms may be added to it later."""
    return config_sha256(overlay(config, {"seed": 1, "report": ReportConfig().model_dump()}))


ALWAYS_ACTIVE = ("enabled", "lr_scale", "collected")  # keys of [relabel] that affect even a run that re-labels nothing


def cells_of(
    config: Config, baselines: Mapping[str, Record], arms: Iterable[str], seeds: Iterable[int],
    keys: Sequence[SweptKey] = (),
) -> Iterator[Cell]:  # fmt: skip
    """Yield every run: each baseline, by label what it changes, with each point of `keys`, in each arm, with each seed.

    An arm that is not in `ARMS` leaves ``[relabel]`` as it is.
    """
    for (label, changes), (_, values), arm, seed in itertools.product(baselines.items(), points_of(keys), arms, seeds):
        last = {"seed": seed, **({"relabel": ARMS[arm].relabel()} if arm in ARMS else {})}
        made = overlay(config, merge(merge(changes, nested(values)), last))
        yield Cell(_without_idle_keys(made, keys), label, arm, seed, values)


def _without_idle_keys(config: Config, keys: Sequence[SweptKey]) -> Config:
    """Reset swept keys that have no effect on a run without re-labelling, so that all their values share one run."""
    active = {*ALWAYS_ACTIVE, *(() if config.relabel.lr_scale == 1 else ("start",))}
    paths = [swept.target for swept in keys if len(swept.target) > 1]
    idle = {path[1] for path in paths if path[0] == "relabel"} - active
    if config.relabel.enabled or not idle:
        return config
    return overlay(config, {"relabel": {name: getattr(RelabelPlan(), name) for name in idle}})


Runs = Sequence[Mapping[str, float | None]]


def spreads(runs: Runs, names: Iterable[str]) -> Record:
    """Return the spread over seeds of each metric."""
    return {name: Spread.of([run.get(name) for run in runs]).as_record() for name in names}


def _differences(base: Runs, treated: Runs) -> Record:
    names = [name for name in base[0] if name != "moved"]
    return {name: paired([run[name] for run in base], [run[name] for run in treated]).as_record() for name in names}
