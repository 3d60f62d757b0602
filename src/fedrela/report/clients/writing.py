"""A picture as a file: SVG, or PNG where matplotlib is there."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from fedrela.errors import ArgumentError
from fedrela.files import write_bytes
from fedrela.metrics.groups import Groups
from fedrela.report.clients.picture import client_class_drawing
from fedrela.report.figures.drawing import draw_svg
from fedrela.report.figures.png import draw_png


def check_picture_path(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise where `write_picture` could not write to `path`, so that a slip does not wait for long work."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".svg", ".png"):
        raise ArgumentError(f"{path}: a picture ends in .svg or .png")
    if ending == ".png" and importlib.util.find_spec("matplotlib") is None:
        raise ArgumentError(f"{path}: PNG needs matplotlib; run `pip install fedrela[plots]`, or choose .svg")
    if path.is_dir():
        raise ArgumentError(f"{path}: is a folder; a file is needed")
    if os.path.lexists(path) and not overwrite:
        raise ArgumentError(f"{path}: exists already; allow overwriting, or choose another name")


def write_picture(
    path: str | Path,
    counts: ArrayLike,
    class_names: Sequence[str],
    *,
    groups: Groups | None = None,
    title: str = "",
    overwrite: bool = False,
) -> None:
    """Draw `fedrela.report.client_class_picture` into a file.

    Parameters
    ----------
    path
        Ends in .svg, or in .png, which the extra ``plots`` draws from the same numbers.
    counts, class_names, groups, title
        See `fedrela.report.client_class_picture`.
    overwrite
        With False an existing file is an error.
    """
    check_picture_path(path, overwrite=overwrite)
    drawing = client_class_drawing(counts, class_names, groups=groups, title=title)
    data = draw_svg(drawing).encode() if Path(path).suffix.lower() == ".svg" else draw_png(drawing)
    try:
        write_bytes(path, data, overwrite=overwrite)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be written: {error.strerror}; choose another place") from None
