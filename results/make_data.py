"""Make a data set of the studies from its public file: python results/make_data.py NAME FILE [FOLDER].

NAME is kdd (UCI's kddcup.data_10_percent.gz), pneumonia (MedMNIST's pneumoniamnist.npz), mammography or credit (a CSV
file with a header, the 6 or 23 features first and the class last, without an ID, the rows in their public order).
FOLDER/NAME.npz is written, by default in data, and compared with what the recorded runs used; another order of the
rows, for example, makes a difference.
"""

from __future__ import annotations

import csv
import gzip
import runpy
import sys
import tomllib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
TEXT = (1, 2, 3)  # columns of KDD: protocol, service and flag
Arrays = dict[str, NDArray[np.generic]]


def shuffled(x: NDArray[np.float64], classes: list[str]) -> Arrays:
    """Return the rows in the order of a fixed generator; the first four fifths are the training set."""
    names, y = np.unique(classes, return_inverse=True)
    order, cut = np.random.default_rng(0).permutation(len(y)), len(y) * 4 // 5
    x, y = x.astype(np.float32)[order], y.astype(np.int64)[order]
    return {"x_train": x[:cut], "y_train": y[:cut], "x_test": x[cut:], "y_test": y[cut:], "class_names": names}


def kdd(file: Path) -> Arrays:
    """Drop duplicates, and write words as codes in alphabetical order."""
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    rows = list(dict.fromkeys(tuple(line.rstrip(".").split(",")) for line in lines))
    *columns, classes = map(list, zip(*rows, strict=True))
    codes = {j: np.unique(columns[j], return_inverse=True)[1] for j in TEXT}
    return shuffled(np.column_stack([codes.get(j, np.array(c)).astype(float) for j, c in enumerate(columns)]), classes)


def table(file: Path) -> Arrays:
    """Read a table with a header, the class in its last column."""
    with file.open(newline="") as opened:
        _, *rows = csv.reader(opened)
    return shuffled(np.array([row[:-1] for row in rows], float), [row[-1].strip("'") for row in rows])


def pneumonia(file: Path) -> Arrays:
    """Take training and test images, without the validation images."""
    with np.load(file, allow_pickle=False) as arrays:
        parts = {part: (arrays[f"{part}_images"], arrays[f"{part}_labels"]) for part in ("train", "test")}
    images = {f"x_{part}": x.reshape(len(x), 1, 28, 28) for part, (x, _) in parts.items()}
    labels = {f"y_{part}": y.ravel().astype(np.int64) for part, (_, y) in parts.items()}
    return {**images, **labels, "class_names": np.array(["normal", "pneumonia"])}


MAKERS = {"kdd": kdd, "pneumonia": pneumonia, "mammography": table, "credit": table}


def main(name: str, file: Path, folder: Path) -> int:
    """Write the data set, and say whether it is the recorded one; return 1 if it is not.

    Another one does not replace a file that is there.
    """
    try:
        arrays = MAKERS[name](file)
    except (OSError, ValueError, KeyError, IndexError, EOFError) as error:
        sys.exit(f"{file}: is not the public file of {name}: {error}")
    folder.mkdir(parents=True, exist_ok=True)
    place, new = folder / f"{name}.npz", folder / f"{name}.new.npz"
    np.savez(new, **arrays)
    recorded = tomllib.loads((HERE / "data.toml").read_text())[name]
    same = runpy.run_path(str(HERE / "check_data.py"))["is_same"](new, recorded)
    if same or not place.exists():
        new.replace(place)
    else:
        new.unlink()
    print(f"{place}: {'as recorded' if same else f'{file} is DIFFERENT from what the recorded runs used'}")
    return 0 if same else 1


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in MAKERS:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path((*sys.argv, "data")[3])))
