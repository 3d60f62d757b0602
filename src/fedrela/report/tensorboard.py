"""A run for TensorBoard: accuracy, loss and counts of every round as scalars, plots as images."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.plots.style import new_figure, styled
from fedrela.report.page import Figure
from fedrela.report.run_page import run_page
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder

EVENTS = "tfevents"  # TensorBoard reads every file with this in its name


class TensorBoardLog:
    """Events for TensorBoard, written by ``torch.utils.tensorboard.SummaryWriter``.

    Parameters
    ----------
    path
        Their folder, created with the first event. One that already holds events raises an `ArgumentError`: two runs in
        one folder would be drawn as one.

    Examples
    --------
    >>> import tempfile
    >>> record = {"round": 1, "accuracy": {"overall": 0.9}, "loss": None, "moved": 0, "excluded": []}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     TensorBoardLog(folder).add_round(record)
    ...     print(len(os.listdir(folder)))
    1
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._writer: Any = None
        if importlib.util.find_spec("tensorboard") is None:
            raise ArgumentError("tensorboard: is not installed; run `pip install fedrela[tensorboard]`")
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise ArgumentError(f"{self.path}: is a file; name a folder for TensorBoard")
        if self.path.is_dir() and any(EVENTS in name for name in os.listdir(self.path)):
            raise ArgumentError(f"{self.path}: already holds TensorBoard events; choose another folder")

    def add_round(self, record: Mapping[str, Any]) -> None:
        """Add a round, a line of ``rounds.jsonl``, as scalars."""
        with self._writing() as writer:
            for tag, value in scalars(record).items():
                writer.add_scalar(tag, value, record["round"])

    def add_figures(self, figures: Sequence[Figure], step: int) -> None:
        """Add plots by name as images; `step` is their round."""
        for figure in figures:  # without a description: TensorBoard would read names in it as Markdown
            with self._writing() as writer, styled():
                writer.add_figure(f"figures/{figure.name}", new_figure(figure.draw, figure.width), step, close=False)

    def close(self, folder: Path, rounds: int) -> None:
        """Add the plots of a run that has ended, and stop the writer."""
        self.add_figures(run_page(RunFolder.open(folder), samples=False).figures, rounds)
        self.stop()

    def stop(self) -> None:
        """Stop the writer and its thread."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """Yield the writer; what the block adds is on disk after it."""
        from torch.utils.tensorboard import SummaryWriter

        try:
            self._writer = self._writer or SummaryWriter(str(self.path))
            yield self._writer
            self._writer.flush()
        except OSError as error:
            raise ArgumentError(f"{self.path}: cannot be written: {error.strerror}; choose another place") from None
        except UnicodeEncodeError:
            raise ArgumentError(f"{self.path}: TensorBoard requires a name in UTF-8; choose another folder") from None


def write_tensorboard(folder: RunFolder | GridFolder, path: str | Path, *, figures: bool = True) -> None:
    """Write a run, finished or not, for TensorBoard, or every run of a grid into its own folder.

    Parameters
    ----------
    folder
        The run, or the grid of runs.
    path
        A folder for its events, new or without any.
    figures
        Whether the plots of a run's report are added; their step is its last round.

    Examples
    --------
    >>> import tempfile
    >>> from fedrela.experiment import begin
    >>> small = {"data": {"source": "gaussians", "partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with begin(small, out=folder + "/run", workers=1) as started:
    ...         _ = next(started.rounds())
    ...     write_tensorboard(RunFolder.open(folder + "/run"), folder + "/board", figures=False)
    ...     print(len(os.listdir(folder + "/board")))
    1
    """
    if isinstance(folder, RunFolder):
        log, records = TensorBoardLog(path), folder.rounds()
        for record in records:
            log.add_round(record)
        if figures:
            log.add_figures(run_page(folder, samples=False).figures, len(records))
        log.stop()
        return
    cells = {folder.place(cell): cell for cell in folder.cells}  # those of one configuration are one run
    for place, cell in cells.items():
        if place.exists():
            write_tensorboard(folder.run_folder(cell), Path(path) / place.name, figures=False)


def scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the known values of a round by tag.

    >>> scalars({"round": 3, "accuracy": None, "loss": None, "moved": 4, "excluded": [[0, "late"]]})
    {'labels/moved': 4.0, 'clients/lost': 1.0}
    """
    found: dict[str, float | None] = {}
    for kind in ("accuracy", "validation"):
        scores = record.get(kind) or {}
        named = {name: scores.get(name) for name in ("overall", "balanced", "macro_f1")} | scores.get("groups", {})
        found |= {f"{kind}/{name}": value for name, value in named.items()}
    found |= {"loss/test": record["loss"], "labels/moved": record["moved"], "clients/lost": len(record["excluded"])}
    return {tag: float(value) for tag, value in found.items() if value is not None}
