"""What a finished run says: the record in its folder, as an object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fedrela.core.views import data_frame
from fedrela.errors import DataError, FedrelaError
from fedrela.experiment.result_view import result_html, round_columns
from fedrela.models.layout import Entry, Layout
from fedrela.runfolder import RunFolder

WRAPPED = "module."  # what `fedrela.models.Plain` puts before the names of a module


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Attributes
    ----------
    folder
        Where it lies.
    record
        All of ``result.json``.
    """

    folder: Path
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read the result of a finished run; an unfinished one is a `DataError`."""
        there = RunFolder.open(folder)
        if there.status != "done":
            raise DataError(f"{folder}: {there.status}; resume it first")
        return cls(there.path, there.read_json("result.json"))

    @property
    def accuracy(self) -> dict[str, Any]:
        """Accuracy on the test set: ``overall``, ``balanced``, ``per_class``, ``groups``."""
        accuracy: dict[str, Any] = self.record["accuracy"]
        return accuracy

    @property
    def groups(self) -> dict[str, float]:
        """Accuracy of each group of classes."""
        groups: dict[str, float] = self.accuracy["groups"]
        return groups

    @property
    def moved(self) -> int | None:
        """Labels that were changed, over all clients; None where clients keep that to themselves."""
        moved: int | None = self.record["moved"]
        return moved

    @property
    def rounds(self) -> int:
        """Rounds that were done."""
        return int(self.record["rounds"])

    @property
    def weights_sha256(self) -> str:
        """Digest of the final shared arrays."""
        return str(self.record["weights_sha256"])

    @property
    def config_sha256(self) -> str:
        """Digest of the configuration without ``[engine]``."""
        return str(self.record["config_sha256"])

    def history(self) -> list[dict[str, Any]]:
        """Return the record of every round."""
        return RunFolder.open(self.folder).rounds()

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return the final shared arrays by name, for ``load_state_dict`` and the like.

        The names are those of a user's own module, also where that has no split and was wrapped in
        `fedrela.models.Plain`.
        """
        there = RunFolder.open(self.folder)
        saved = there.load_checkpoint()
        if saved is None:
            raise DataError(f"{self.folder}: holds no checkpoint")
        model = there.manifest["model"]
        entries, offset = [], 0
        for name, shape, kind in model["arrays"]:
            entries.append(Entry(name, tuple(shape), offset, kind))
            offset += entries[-1].size
        arrays = Layout(tuple(entries), model["dtype"]).split(saved.arrays["weights"])
        wrapped = all(name.startswith(WRAPPED) for name in arrays)  # else there is a head beside the other parts
        return {name.removeprefix(WRAPPED) if wrapped else name: array for name, array in arrays.items()}

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with a row for each round.

        Columns: ``round``; ``overall``, ``balanced``, ``macro_f1`` and each group, all on the test set; ``loss``;
        ``moved``, the labels changed in the round; how many clients were ``relabelled``, ``chosen``, ``admitted`` and
        ``lost``; whether the round was ``skipped``; ``validation_overall`` and ``validation_balanced`` where clients
        hold samples back. NaN stands for what was not scored or not told.
        """
        return data_frame(round_columns(self.history()))

    def _repr_html_(self) -> str:
        try:
            records = self.history()
        except FedrelaError:  # the folder is gone or damaged; what was read from it still stands
            records = []
        return result_html(self.record, self.folder, records)

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {value:.1%}" for name, value in self.groups.items() if value is not None)
        moved = "labels moved are not told" if self.moved is None else f"{self.moved} labels moved"
        return f"{self.accuracy['overall']:.1%} overall ({shares}), {moved}, in {self.folder}"
