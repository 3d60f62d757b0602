"""Reports and figures of a folder: of one run, or of runs that belong together."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from fedrela.errors import ArgumentError, DataError
from fedrela.files import write_bytes
from fedrela.report.figures.drawing import draw_svg
from fedrela.report.figures.png import draw_pdf, draw_png
from fedrela.report.figures.shapes import Drawing
from fedrela.report.page.parts import Page
from fedrela.report.page.render import render
from fedrela.report.run import run_page
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder
from fedrela.runfolder.records import MANIFEST, REPORT

FORMATS = ("svg", "png", "pdf")


def open_folder(path: str | Path) -> RunFolder | GridFolder:
    """Open what is at `path`, a run or runs that belong together."""
    if GridFolder.is_one(path):
        return GridFolder.open(path)
    if not (Path(path) / MANIFEST).exists():
        raise DataError(f"{path}: no run found; name a folder that has a {MANIFEST} or a grid.json")
    return RunFolder.open(path)


def page_of(folder: RunFolder | GridFolder, *, samples: bool = True) -> Page:
    """Return the page of a run, or of runs that belong together."""
    if isinstance(folder, RunFolder):
        return run_page(folder, samples=samples)
    from fedrela.report.grid import grid_page

    return grid_page(folder, samples=samples)


def write_report(path: str | Path, *, samples: bool = True) -> Path:
    """Write ``report.html`` into a folder and return where it is.

    Parameters
    ----------
    path
        A run folder, finished or not, or the folder of a comparison, a sweep or a reproduction.
    samples
        With False no sample is shown.
    """
    folder = open_folder(path)
    folder.write(REPORT, render(page_of(folder, samples=samples)).encode())
    return folder.path / REPORT


def check_formats(formats: Sequence[str]) -> None:
    """Raise where a format is unknown, or needs what is not installed."""
    for format in formats:
        if format not in FORMATS:
            raise ArgumentError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
        if format != "svg" and importlib.util.find_spec("matplotlib") is None:
            what = f"{format.upper()} needs matplotlib; run `pip install fedrela[plots]`, or choose svg"
            raise ArgumentError(f"format: {what}")


def write_figures(path: str | Path, out: str | Path, formats: Sequence[str] = ("svg",)) -> list[Path]:
    """Write every figure of a folder's page into files of their own and return where they are.

    Parameters
    ----------
    path
        As for `write_report`.
    out
        The folder for the figures, made where it is missing; figures of an earlier call are replaced.
    formats
        Of ``svg``, ``png`` and ``pdf``; the last two need the extra ``plots``.
    """
    check_formats(formats)
    page, written = page_of(open_folder(path)), []
    for figure in page.figures:
        for format in formats:
            place = Path(out) / f"{figure.name}.{format}"
            try:
                write_bytes(place, _drawn(figure.drawing, format))
            except OSError as error:
                raise ArgumentError(f"{place}: cannot be written: {error.strerror}; choose another place") from None
            written.append(place)
    return written


def _drawn(drawing: Drawing, format: str) -> bytes:
    if format == "svg":
        return draw_svg(drawing).encode()
    return draw_png(drawing) if format == "png" else draw_pdf(drawing)
