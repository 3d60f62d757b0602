"""A run for TensorBoard: figures of every round as scalars, drawings as images, in one event file.

TensorBoard's own records and checksums are used, without its writer, which leaves the work to a thread and an error to
nobody; here a round is on disk when `add_round` returns, or it raises.
"""

from __future__ import annotations

import io
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.files import write_bytes
from fedrela.files.operations import append
from fedrela.report.figures.png import draw_png
from fedrela.report.figures.shapes import Drawing
from fedrela.report.run import run_page
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder

EVENTS = "events.out.tfevents.fedrela"
MARK = "tfevents"  # TensorBoard reads every file with this in its name
CHANNELS = {2: 3, 6: 4}  # of a PNG, by its type of colour: without and with transparency
ADVICE = "run `pip install fedrela[tensorboard]`"


class Board:
    """An event file in the folder `path`, which is begun with the first thing added.

    A folder that holds events already is an `ArgumentError`: two runs in one folder would be drawn as one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     board = Board(folder + "/tau-5")
    ...     board.add_round({"round": 1, "accuracy": {"overall": 0.5}, "loss": 1.2, "moved": 0, "excluded": []})
    ...     [place.name for place in board.path.iterdir()]
    ['events.out.tfevents.fedrela']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._begun = False
        _protocol()
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise ArgumentError(f"{self.path}: is a file; a folder for TensorBoard is needed")
        if self.path.is_dir() and any(MARK in name for name in os.listdir(self.path)):
            raise ArgumentError(f"{self.path}: holds TensorBoard events already; choose another folder")

    def add_round(self, record: Mapping[str, Any]) -> None:
        """Add what is known of a round, a line of ``rounds.jsonl``, as scalars."""
        summary, _, _ = _protocol()
        values = [summary.Value(tag=tag, simple_value=value) for tag, value in scalars(record).items()]
        self._add(summary(value=values), record["round"])

    def add_figures(self, drawings: Mapping[str, Drawing], step: int) -> None:
        """Add drawings by name as images; `step` is the round that they are of."""
        summary, _, _ = _protocol()
        for name, drawing in drawings.items():
            # No description: TensorBoard reads it as Markdown, and there are names of other people's in it.
            self._add(summary(value=[summary.Value(tag=f"figures/{name}", image=_image(drawing))]), step)

    def _add(self, summary: Any, step: int) -> None:
        _, event, _ = _protocol()
        now, place = time.time(), self.path / EVENTS
        try:
            if not self._begun:
                write_bytes(place, _framed(event(wall_time=now, file_version="brain.Event:2")), overwrite=False)
                self._begun = True
            append(place, _framed(event(wall_time=now, step=step, summary=summary)))
        except OSError as error:
            raise ArgumentError(f"{place}: cannot be written: {error.strerror}; choose another place") from None


def write_board(folder: RunFolder, path: str | Path, *, figures: bool = True) -> None:
    """Write a run, finished or not, for TensorBoard.

    Parameters
    ----------
    folder
        The run.
    path
        A folder for its events, new or without any.
    figures
        Whether to add the figures of its report; they stand at its last round.
    """
    board, records = Board(path), folder.rounds()
    for record in records:
        board.add_round(record)
    if figures:
        board.add_figures(run_figures(folder), len(records))


def write_boards(there: RunFolder | GridFolder, path: Path) -> None:
    """Write a run, or every run of a grid into a folder of its own, without figures."""
    if isinstance(there, RunFolder):
        write_board(there, path)
        return
    for cell in there.cells:
        place = there.place(cell)
        if place.exists() and not (path / place.name).exists():  # cells of one configuration are one run
            write_board(there.run_folder(cell), path / place.name, figures=False)


def run_figures(folder: RunFolder) -> dict[str, Drawing]:
    """Return the figures of a run's report by name."""
    return {figure.name: figure.drawing for figure in run_page(folder, samples=False).figures}


def scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """Return by tag what is known of a round.

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


def _protocol() -> tuple[Any, Any, Any]:
    """Return TensorBoard's messages Summary and Event, and its writer of records."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ModuleNotFoundError:
        raise ArgumentError(f"tensorboard: is not installed; {ADVICE}") from None
    return Summary, Event, RecordWriter


def _framed(event: Any) -> bytes:
    """Return an event with its length and checksums."""
    buffer = io.BytesIO()
    _protocol()[2](buffer).write(event.SerializeToString())
    return buffer.getvalue()


def _image(drawing: Drawing) -> Any:
    try:
        data = draw_png(drawing)
    except ModuleNotFoundError:
        raise ArgumentError(f"figures for TensorBoard: matplotlib is not installed; {ADVICE}") from None
    width, height, _, colour = struct.unpack(">IIBB", data[16:26])  # of the header that every PNG begins with
    return _protocol()[0].Image(width=width, height=height, colorspace=CHANNELS[colour], encoded_image_string=data)
