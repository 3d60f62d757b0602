"""Reports and plots as files, of one run or of a grid of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedrela import plots
from fedrela.arguments import check_choice
from fedrela.errors import ArgumentError
from fedrela.files import write_bytes
from fedrela.plots.folders import RunData, open_folder
from fedrela.plots.samples import ACROSS
from fedrela.plots.style import COLUMN, PAGE, name, new_figure
from fedrela.plots.svg import save
from fedrela.report.grid_page import grid_page
from fedrela.report.page import Figure, Page, render
from fedrela.report.run_page import run_page
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder
from fedrela.runfolder.names import REPORT

FORMATS = ("svg", "png", "pdf")
LONGEST_TITLE = 100  # characters
SIZES = {"column": COLUMN, "page": PAGE}


def page_of(folder: RunFolder | GridFolder, *, samples: bool = True) -> Page:
    """Return the page of a run, or of a grid of runs."""
    if isinstance(folder, RunFolder):
        return run_page(folder, samples=samples)
    return grid_page(folder, samples=samples)


def write_report(path: str | Path, *, samples: bool = True) -> Path:
    """Write ``report.html`` into a folder and return where it is.

    Parameters
    ----------
    path
        A run folder, finished or not, or the folder of a comparison, a sweep or a reproduction.
    samples
        Whether samples are shown.

    Examples
    --------
    >>> import tempfile
    >>> from fedrela.experiment import begin
    >>> small = {"data": {"source": "gaussians", "partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with begin(small, out=folder + "/run", workers=1) as started:
    ...         _ = next(started.rounds())
    ...     print(write_report(folder + "/run").name)
    report.html
    """
    folder = open_folder(path)
    folder.write(REPORT, render(page_of(folder, samples=samples)).encode())
    return folder.path / REPORT


def check_formats(formats: Sequence[str]) -> None:
    """Raise if a format is unknown."""
    for format in formats:
        check_choice("format", format, FORMATS)


def write_figures(
    path: str | Path, out: str | Path, formats: Sequence[str] = ("svg",), *, overwrite: bool = False
) -> list[Path]:
    """Write every plot of a folder's page at the widths of a paper's column and page, and return where they are.

    For a run, they include its samples: the most probable moves and some drawn at random.

    Parameters
    ----------
    path
        As for `write_report`.
    out
        The folder for the files, created if missing.
    formats
        ``svg``, ``png`` or ``pdf``, one or several.
    overwrite
        Whether existing files are replaced; else they are an error.

    Examples
    --------
    >>> import tempfile
    >>> from fedrela.experiment import begin
    >>> small = {"data": {"source": "gaussians", "partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with begin(small, out=folder + "/run", workers=1) as started:
    ...         _ = next(started.rounds())
    ...     print([path.name for path in write_figures(folder + "/run", folder + "/figures")][:2])
    ['accuracy-column.svg', 'accuracy-page.svg']
    """
    check_formats(formats)
    folder = open_folder(path)
    samples = sample_figures(RunData(folder)) if isinstance(folder, RunFolder) else []
    figures = [*page_of(folder).figures, *samples]
    places = {
        (f.name, size): [Path(out) / f"{f.name}-{size}.{format}" for format in formats]
        for f in figures
        for size in SIZES
    }
    written = [place for several in places.values() for place in several]
    for place in written:
        if not overwrite and os.path.lexists(place):
            raise ArgumentError(f"{place}: exists already; allow overwriting (--force), or choose another folder")
    for figure in figures:
        for size, width in SIZES.items():
            drawn = new_figure(figure.draw, width)
            for format, place in zip(formats, places[figure.name, size], strict=True):
                _write(place, save(drawn, format, figure.name), overwrite=overwrite)
    return written


def sample_figures(run: RunData) -> list[Figure]:
    """Return the paper's figure of samples: the most probable moves above, moves drawn at random below."""
    if not run.gallery or not run.drawn or not len(run.gallery["old"]):
        return []
    features = run.manifest.data["feature_names"]
    draw = partial(_draw_samples, run.gallery, run.drawn, run.classes, features)
    return [Figure("samples", "Re-labelled samples", draw)]


def _draw_samples(
    likely: Mapping[str, Any], drawn: Mapping[str, Any], names: Sequence[str], features: Sequence[str] | None, ax: Any
) -> None:
    narrow = ax.figure.get_figwidth() < 4.8  # inches that ACROSS samples take
    number = min(ACROSS // 2 if narrow else ACROSS, len(likely["old"]))
    both: dict[str, Any] = {"feature_names": features}
    both |= {name: np.concatenate([likely[name][:number], drawn[name][:number]]) for name in likely}
    plots.gallery(both, names=names, across=number, ax=ax)
    ax.set_title("above: the most probable moves\nbelow: moves drawn at random", fontsize="small", loc="left")


def check_picture_path(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise if `write_plot` could not write to `path`, before any long work."""
    path = Path(path)
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise ArgumentError(f"{path}: a picture ends in .svg, .png or .pdf")
    if path.is_dir():
        raise ArgumentError(f"{path}: is a folder; name a file")
    if os.path.lexists(path) and not overwrite:
        raise ArgumentError(f"{path}: exists already; allow overwriting, or choose another name")


def write_plot(path: str | Path, draw: Callable[..., object], *, title: str = "", overwrite: bool = False) -> None:
    """Draw one plot into a file that ends in .svg, .png or .pdf.

    Parameters
    ----------
    path
        The file.
    draw
        A plot that needs only its keyword `ax`, such as ``functools.partial(fedrela.plots.client_classes, counts)``.
    title
        A line above the plot.
    overwrite
        Whether an existing file is replaced; else it is an error.

    Examples
    --------
    >>> import tempfile
    >>> draw = partial(plots.client_classes, [[30, 0], [10, 20]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_plot(folder + "/clients.svg", draw, title="Two clients")
    ...     print([path.name for path in Path(folder).iterdir()])
    ['clients.svg']
    """
    check_picture_path(path, overwrite=overwrite)

    def titled(ax: Any) -> None:
        draw(ax=ax)
        if title:
            ax.get_figure(root=True).suptitle(name(title, LONGEST_TITLE), x=0.02, ha="left", fontsize="medium")

    format = Path(path).suffix.lower().removeprefix(".")
    _write(Path(path), save(new_figure(titled, PAGE), format), overwrite=overwrite)


def _write(place: Path, data: bytes, overwrite: bool = True) -> None:
    try:
        write_bytes(place, data, overwrite=overwrite)
    except OSError as error:
        raise ArgumentError(f"{place}: cannot be written: {error.strerror}; choose another place") from None
