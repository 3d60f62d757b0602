"""The result of a finished run: the record in its folder as an object, and as a table for notebooks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fedrela.core.notebook import data_frame, safe, table
from fedrela.errors import DataError, FedrelaError
from fedrela.models.layout import Layout, LayoutEntry
from fedrela.records import lost_updates
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.names import RESULT, ROUNDS
from fedrela.text import percent

WRAPPED = "module."  # what `fedrela.models.Plain` puts before the names of a module


@dataclass(frozen=True)
class Result:
    """The result of a run: its folder, and all of ``result.json``.

    Attributes
    ----------
    folder
        The run folder.
    record
        The content of ``result.json``.

    Examples
    --------
    >>> import tempfile
    >>> from fedrela.experiment import run
    >>> small = {"train": {"rounds": 1, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run(small, out=folder + "/run", workers=1)
    ...     result = Result.load(folder + "/run")
    ...     shapes = {name: array.shape for name, array in result.weights().items()}
    >>> result.rounds, result.metric_names, shapes["head.weight"]
    (1, ['head', 'medium', 'tail', 'overall'], (10, 200))
    """

    folder: Path
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read the result of a finished run; raise a `DataError` if it is unfinished."""
        run_folder = RunFolder.open(folder)
        if run_folder.status is not RunStatus.DONE:
            raise DataError(f"{folder}: {run_folder.status_text}; resume it first")
        return cls(run_folder.path, run_folder.read_json(RESULT))

    @property
    def accuracy(self) -> dict[str, Any]:
        """Accuracy on the test set: ``overall``, ``balanced``, ``per_class``, ``groups``."""
        return dict(self.record["accuracy"])

    @property
    def groups(self) -> dict[str, float]:
        """Accuracy of each group of classes."""
        return dict(self.accuracy.get("groups", {}))

    @property
    def moved(self) -> int | None:
        """Labels that were changed, over all clients; None if clients do not report it."""
        return None if self.record["moved"] is None else int(self.record["moved"])

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.record["rounds"])

    @property
    def weights_sha256(self) -> str:
        """Digest of the final shared arrays."""
        return str(self.record["weights_sha256"])

    @property
    def config_sha256(self) -> str:
        """Digest of the configuration without ``[engine]``."""
        return str(self.record["config_sha256"])

    @property
    def metric_names(self) -> list[str]:
        """The metrics that tables show: each group of classes, and last the headline accuracy."""
        return [*self.accuracy.get("groups", {}), str(self.record["headline"])]

    def metrics(self, score: str = "last", more: Sequence[str] = (), since: int = 1) -> dict[str, float | None]:
        """Return metrics and `more` as shares, None if a group has no test sample, and how many labels ``moved``.

        `score` selects the final model (``last``), or the first round from `since` on with the largest balanced
        accuracy on validation samples (``best-validation``) or the largest accuracy on the test set (``best-test``).
        """
        accuracy = self.accuracy
        if score != "last":
            place, by = {"best-validation": ("validation", "balanced"), "best-test": ("accuracy", "overall")}[score]
            scored = [rec for rec in self.history() if rec["accuracy"] and rec[place] and rec["round"] >= since]
            accuracy = max(scored, key=lambda record: record[place][by], default={"accuracy": {}})["accuracy"]
        shares = {**accuracy, **accuracy.get("groups", {})}
        return {name: shares.get(name) for name in (*self.metric_names, *more)} | {"moved": self.moved}

    def history(self) -> list[dict[str, Any]]:
        """Return the record of every round; raise an `IntegrityError` if they are not those of the finished run."""
        folder = RunFolder.open(self.folder)
        folder.check(ROUNDS)
        return folder.rounds()

    def lost(self) -> str:
        """Return how many updates were excluded and why the last one was; empty if none was."""
        history = self.history()
        lost = [(record["round"], client, reason) for record in history for client, reason in record["excluded"]]
        return lost_updates(lost, sum(record["skipped"] for record in history))

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return the final shared arrays by name, for ``load_state_dict`` and the like; raise `IntegrityError` if lost.

        The names are those of a user's own module, also where that has no split and was wrapped in
        `fedrela.models.Plain`. These are the arrays that the server sends to clients. Some algorithms score another
        model, made from them: CReFF with its re-trained head, FedLoGe with its frame, FedDyn with the clients' average.
        """
        run_folder = RunFolder.open(self.folder)
        saved = run_folder.final_checkpoint()
        model = run_folder.manifest["model"]
        entries, offset = [], 0
        for name, shape, kind in model["arrays"]:
            entries.append(LayoutEntry(name, tuple(shape), offset, kind))
            offset += entries[-1].size
        arrays = Layout(tuple(entries), model["dtype"]).split(saved.arrays["weights"])
        wrapped = all(name.startswith(WRAPPED) for name in arrays)  # else there is a head beside the other parts
        return {name.removeprefix(WRAPPED) if wrapped else name: array for name, array in arrays.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of ``result.json`` as plain numbers, strings, lists and dictionaries."""
        return dict(json.loads(json.dumps(self.record)))

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with a row for each round.

        Columns: ``round``; ``overall``, ``balanced``, ``macro_f1`` and each group, all on the test set; ``loss``;
        ``moved``, the labels changed in the round; how many clients were ``relabelled``, ``chosen``, ``admitted`` and
        ``lost``; whether the round was ``skipped``; ``validation_overall`` and ``validation_balanced`` where clients
        hold samples out. NaN stands for values that were not scored or not reported.
        """
        return data_frame(round_columns(self.history()))

    def _repr_html_(self) -> str:
        try:
            records = self.history()
        except FedrelaError:  # the folder is gone or damaged; what was read from it remains valid
            records = []
        return result_html(self.record, self.folder, records)

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {percent(value)}" for name, value in self.groups.items() if value is not None)
        moved = "moved labels not reported" if self.moved is None else f"{self.moved} labels moved"
        overall = self.accuracy.get("overall")
        scored = (
            "not evaluated: there are no test samples" if overall is None else f"{percent(overall)} overall ({shares})"
        )
        return f"{scored}, {moved}, in {self.folder}"


WIDTH, HEIGHT, EDGE = 260, 56, 4  # of the line, in pixels
SCORES = ("overall", "balanced", "macro_f1")

Records = Sequence[Mapping[str, Any]]


def round_columns(records: Records) -> dict[str, list[Any]]:
    """Return the records of rounds as columns of numbers; NaN stands for unknown values.

    >>> columns = round_columns([])
    >>> list(columns)[:4]
    ['round', 'overall', 'balanced', 'macro_f1']
    """
    tests = [record["accuracy"] or {} for record in records]
    groups = dict.fromkeys(name for scores in tests for name in scores.get("groups", {}))
    validation = [record["validation"] or {} for record in records]
    validated = ("overall", "balanced") if any(validation) else ()
    return {
        "round": [record["round"] for record in records],
        **{name: [_known(scores.get(name)) for scores in tests] for name in SCORES},
        **{name: [_known(scores.get("groups", {}).get(name)) for scores in tests] for name in groups},
        "loss": [_known(record["loss"]) for record in records],
        "moved": [math.nan if record["moved"] is None else record["moved"] for record in records],
        **{name: [len(record[name]) for record in records] for name in ("relabelled", "chosen", "admitted")},
        "lost": [len(record["excluded"]) for record in records],
        "skipped": [record["skipped"] for record in records],
        **{f"validation_{name}": [_known(scores.get(name)) for scores in validation] for name in validated},
    }


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def result_html(record: Mapping[str, Any], folder: object, records: Records) -> str:
    """Return the view of a result; without the records of its rounds it has no line."""
    accuracy = record["accuracy"]
    shown = {name: accuracy[name] for name in ("overall", "balanced") if name in accuracy} | accuracy.get("groups", {})
    rows = [(name, percent(value)) for name, value in shown.items()]
    moved = "moved labels not reported" if record["moved"] is None else f"{record['moved']:,} labels moved"
    facts = f"{moved}; {record['rounds']:,} rounds"
    line = accuracy_line(records, record.get("headline", "overall"))
    return f"<div>{table(['test set', 'accuracy'], rows)}{line}<p>{facts}<br><code>{safe(folder)}</code></p></div>"


def accuracy_line(records: Records, metric: str) -> str:
    """Draw a metric of the test set over rounds, in the surrounding text's colour, with a mark at the first move."""
    known: list[tuple[int, float | None]] = [(r["round"], (r["accuracy"] or {}).get(metric)) for r in records]
    scored = [(number, value) for number, value in known if value is not None]
    if len(scored) < 2:
        return ""
    (first, start), (last, end) = scored[0], scored[-1]
    low, high = (choose(value for _, value in scored) for choose in (min, max))

    def across(number: int) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * (number - first) / (last - first)

    def down(value: float) -> float:
        return EDGE + (HEIGHT - 2 * EDGE) * ((high - value) / (high - low) if high > low else 0.5)

    points = " ".join(f"{across(number):.1f},{down(value):.1f}" for number, value in scored)
    marks = [r["round"] for r in records if r["relabelled"] and first <= r["round"] <= last][:1]
    words = f"{safe(metric)} accuracy from {percent(start)} in round {first} to {percent(end)} in round {last}"
    words += "".join(f", re-labelling in round {number}" for number in marks)
    lines = "".join(f'<path d="M{across(number):.1f} 0V{HEIGHT}" stroke-dasharray="2 3"/>' for number in marks)
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'fill="none" stroke="currentColor" stroke-width="1.5"><title>{words}</title>{lines}'
        f'<polyline points="{points}"/></svg><p>{words}</p>'
    )
