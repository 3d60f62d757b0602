"""``fedrela audit FILE``: a page to review before any label is changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fedrela import __version__, core
from fedrela.cli.posterior_options import File, Forbid, read_file, reading_flags, take_reading
from fedrela.cli.relabel import FORCE, OUT, Taus, expected_moves, flags, parsed, rules_of
from fedrela.cli.terminal import console, print_line, refuse_existing
from fedrela.core.relabel_options import PreviewKeywords, RelabelOptions, show_keywords
from fedrela.data.posteriors import PosteriorFile
from fedrela.data.sources.image_folder import SUFFIXES, check_files, decode_image, quiet_about_size
from fedrela.errors import ArgumentError, DataError
from fedrela.files import digest_file, safe_path, write_bytes
from fedrela.text import percent, printable

SIDE = 96  # pixels of a thumbnail
Images = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder with a picture per row, named by its id: DIR/ID, or DIR/ID.png.", show_default=False
    ),
]
Rows = Annotated[
    int, typer.Option(metavar="NUMBER", min=0, max=1000, help="Rows shown, the most probable moves first.")
]


@show_keywords([*flags(*PreviewKeywords.__annotations__), *reading_flags()], evaluate=True)
def audit(
    file: File,
    out: Annotated[Path | None, OUT] = None,
    *,
    tau: Taus = None,
    forbid: Forbid = None,
    images: Images = None,
    rows: Rows = 24,
    force: Annotated[bool, FORCE] = False,
    **flags: Any,
) -> None:
    """Write a page that shows what re-labelling would do, to review before anything is changed.

    [bold]Example[/]: fedrela audit clinic.csv --images scans --forbid disease:healthy

    STEM.audit.html has the expected moves at several tau, flows from class to class, the agreement of model and labels
    by class, warnings, and the most probable moves by id, with thumbnails if --images names a folder. Flows and rows
    use the first --tau given, or 0.05. The page is one file that needs no network. It shows your ids, so it is readable
    by you alone. No label is changed; fedrela relabel with the same options does that.
    """
    taus, reading = tau or core.TAUS, take_reading(flags)
    keywords = parsed(flags, taus)
    path = (file.parent if out is None else out) / f"{file.stem}.audit.html"
    refuse_existing([path], force, ", --out chooses another folder")
    if images is not None and not images.is_dir():
        raise ArgumentError(f"expected a folder, got {images}", argument="--images")
    data = read_file(file, reading)
    at = 0 if tau else taus.index(RelabelOptions.tau)
    page, expected = _page(data, taus, at, images, rows, keywords, forbid)
    try:
        write_bytes(path, page.encode(), overwrite=force, private=True)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be written: {error.strerror}; --out chooses another folder") from None
    screen = console()
    share = percent(expected.share[at], 2)
    print_line(screen, f"{expected.total[at]:,.1f} labels would move at tau {taus[at]:g} ({share})", "bold")
    for text in expected.warnings:
        print_line(screen, f"warning: {printable(text)}", "yellow")
    screen.print(f"page  {printable(path)}", soft_wrap=True)


def _page(
    data: PosteriorFile,
    taus: tuple[float, ...] | list[float],
    at: int,
    images: Path | None,
    rows: int,
    keywords: dict[str, Any],
    forbid: list[str] | None,
) -> tuple[str, core.Preview]:
    from fedrela.report.audit_page import Audit, audit_page
    from fedrela.report.page import render

    rules = rules_of(data, forbid) | keywords
    expected = expected_moves(data, taus, rules)
    C, y = len(data.class_names), data.labels.astype(np.int64)
    taken_for = np.zeros((C, C), np.int64)
    np.add.at(taken_for, (y, data.posterior.argmax(axis=1)), 1)
    found = core.relabel(data.posterior, data.labels, tau=taus[at], **rules).candidates
    moves = _most_probable(data, found, rows)
    settings = [("file", data.path.name), ("file, sha256", digest_file(data.path)), ("tau", f"{taus[at]:g}")]
    given = {name: value for name, value in keywords.items() if value not in (None, ()) and value is not True}
    settings += [(name, str(value)) for name, value in given.items()]
    settings += [("moves that must not happen", rule) for rule in forbid or ()]
    shown = Audit(
        data.path.name, data.class_names, settings, expected.taus, expected.flow, at, taken_for, expected.kappa,
        expected.warnings, moves, np.unique(found.sample).size,
        {} if images is None else _thumbnails(images, moves["id"]), images is not None,
    )  # fmt: skip
    return render(audit_page(shown, __version__)), expected


def _most_probable(data: PosteriorFile, found: core.Candidates, most: int) -> dict[str, list[Any]]:
    """Return the moves with the largest rho, one per row."""
    order = np.lexsort((found.sample, -found.rho))
    _, first = np.unique(found.sample[order], return_index=True)
    order = order[np.sort(first)][:most]
    sample, new = found.sample[order], found.target[order]
    return {
        "id": [data.ids[row] if data.ids else str(row) for row in sample],
        "old": data.labels[sample].tolist(),
        "new": new.tolist(),
        "posterior": data.posterior[sample, new].tolist(),
        "rho": found.rho[order].tolist(),
    }


def _thumbnails(folder: Path, ids: list[str]) -> dict[str, NDArray[np.uint8]]:
    """Return the pictures of rows, by id; rows without one are left out, links out of `folder` refused."""
    found = {}
    for name in ids:
        for ending in ("", *sorted(SUFFIXES)):
            try:
                path = safe_path(folder, name + ending)
            except DataError:
                break
            if os.path.lexists(path) and not path.is_dir():
                check_files(folder, [path])
                with quiet_about_size():
                    found[name] = decode_image(path, SIDE, 3).transpose(1, 2, 0)
                break
    return found
