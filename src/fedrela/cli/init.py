"""``fedrela init``: a commented configuration to start from, with made-up data where a kind needs files."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from fedrela.cli.terminal import console, print_line
from fedrela.errors import ArgumentError
from fedrela.files import make_folders, new_folder, write_bytes, write_new
from fedrela.text import printable

STARTERS = files("fedrela.cli") / "starters"
NAME = re.compile(r"[\w.][\w.-]*")
GRIDS = ("compare", "sweep")  # starters that are not for fedrela run
OWN = {"tables": "your own table", "images": "your own images, one folder per class,"}  # what replaces made-up data
LOOK_ALIKE, TRAIN, TEST = {"three": 3, "eight": 8, "nine": 9}, {"three": 100, "eight": 100, "nine": 10}, 30


class Kind(StrEnum):
    """The starter configurations."""

    digits = "digits"
    tables = "tables"
    images = "images"
    compare = "compare"
    sweep = "sweep"
    flower = "flower"


File = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The file to write, .toml.", show_default="KIND.toml")
]
KindOption = Annotated[Kind, typer.Option("--kind", help="What to start from.")]


def init(file: File = None, kind: KindOption = Kind.digits) -> None:
    """Write a commented configuration to start from, which runs as it is.

    [bold]Example[/]: fedrela init; fedrela init --kind tables; fedrela init visits.toml --kind tables

    digits trains a federation on scikit-learn's digits; tables and images are for data of your own, and write made-up
    data beside the configuration for you to replace; compare and sweep are for several runs; flower is for nodes of a
    real federation. Nothing that exists is overwritten.
    """
    path = file or Path(f"{kind}.toml")
    if path.suffix != ".toml" or not NAME.fullmatch(path.stem):
        what = "expected a name of letters, digits, dots and dashes that ends in .toml and does not start with a dash"
        raise ArgumentError(f"{path}: {what}")
    written = [path, *_data_beside(path, kind)]
    for each in written:
        if os.path.lexists(each):
            raise ArgumentError(f"{each}: exists already; name another file: fedrela init FILE --kind {kind}")
    if kind is Kind.tables:
        write_bytes(written[1], sample_table(), overwrite=False)
    elif kind is Kind.images:
        _write_images(written[1])
    write_bytes(path, starter(kind, path.stem).encode(), overwrite=False)
    screen = console()
    shown = [f"{each}/" if each.is_dir() else str(each) for each in written]
    print_line(screen, f"wrote  {printable(', '.join(shown))}")
    if kind in OWN:
        print_line(screen, f"data   {printable(shown[1])} is an example: put {OWN[kind]} in its place")
    print_line(screen, f"next   fedrela {kind if kind in GRIDS else 'run'} {printable(path)}")


def starter(kind: str, name: str) -> str:
    """Return the text of a starter configuration for a file of that name."""
    return Template((STARTERS / f"{kind}.toml").read_text(encoding="utf-8")).substitute(name=name)


def _data_beside(path: Path, kind: Kind) -> list[Path]:
    """Return where the made-up data of a kind go."""
    places = {Kind.tables: path.with_suffix(".csv"), Kind.images: path.with_suffix("")}
    return [places[kind]] if kind in places else []


def sample_table() -> bytes:
    """Return a made-up table of visits to clinics, in which one diagnosis is rare."""
    import numpy as np

    rng = np.random.default_rng(1)
    names, shares = ("healthy", "flu", "sepsis"), (0.6, 0.35, 0.05)
    means = np.array([[36.8, 72, 120, 6.5], [38.3, 88, 116, 9.0], [38.9, 104, 104, 13.5]])
    spread = np.array([0.6, 11, 11, 2.8])
    tilt = rng.dirichlet(np.full(6, 2.0), size=3)  # how the visits with each diagnosis are spread over the clinics
    lines = ["clinic,age,sex,temperature,pulse,pressure,leukocytes,diagnosis"]
    for label in rng.choice(3, 1200, p=shares):
        temperature, pulse, pressure, cells = rng.normal(means[label], spread)
        clinic, age, sex = rng.choice(6, p=tilt[label]), rng.integers(18, 90), "fm"[rng.integers(2)]
        numbers = f"{temperature:.1f},{pulse:.0f},{pressure:.0f},{max(cells, 1):.1f}"
        lines.append(f"clinic-{clinic + 1},{age},{sex},{numbers},{names[label]}")
    return "\n".join([*lines, ""]).encode()


def _write_images(folder: Path) -> None:
    """Write small images of three digits that look alike, of which one is rare in training."""
    import numpy as np

    from fedrela.data.sources import load
    from fedrela.data.sources.image_folder import encode_png

    source = load("digits")
    parts = {"train": (source.x_train, source.y_train), "val": (source.x_test, source.y_test)}
    with new_folder(folder) as new:
        for part, (images, labels) in parts.items():
            for name, digit in LOOK_ALIKE.items():
                place = new / part / name
                make_folders(place)
                chosen = np.flatnonzero(labels == digit)[: TRAIN[name] if part == "train" else TEST]
                for index in chosen:
                    pixels = np.kron(images[index, 0], np.ones((4, 4), np.uint8))
                    write_new(place / f"{index:04}.png", [encode_png(pixels)])
