"""Which image files make up a data set, and of which class each is: from folders, annotations or list files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrela.data.sources.labels import check_class_names
from fedrela.data.sources.places import inside, read_text, reading
from fedrela.errors import DataError

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm"))
ANNOTATIONS = "val_annotations.txt"


@dataclass(frozen=True)
class Listing:
    """Image files of training and test set with their labels, and the names of the classes."""

    train: list[tuple[Path, int]]
    test: list[tuple[Path, int]]
    class_names: tuple[str, ...]


def list_folders(root: Path, test: str | None) -> Listing:
    """List ``root/train/CLASS/*`` (or ``CLASS/images/*``, as Tiny-ImageNet has it) and the test images.

    Classes are the folders of ``root/train`` in the order of their names. Test images lie in ``root/TEST/CLASS/*``, or
    in ``root/TEST/images`` with a ``val_annotations.txt`` of name and class a line. TEST is `test`; by default it is
    "test" where that has folders of these classes, else "val".
    """
    names = check_class_names(_folders(root / "train"), str(root / "train"))
    if not names:
        raise DataError(f"{root / 'train'}: no class folder; put the images in {root / 'train'}/CLASS/")
    number = {name: c for c, name in enumerate(names)}
    train = [(path, number[name]) for name in names for path in _images(root / "train" / name, needed=True)]
    folder = root / (test or _test_folder(root, number))
    if (folder / ANNOTATIONS).is_file():
        return Listing(train, _annotated(folder, number), names)
    found = _folders(folder)
    for name in found:
        if name not in number:
            raise DataError(f"{folder / name}: {root / 'train'} has no class of this name")
    held_out = [(path, number[name]) for name in found for path in _images(folder / name)]
    if not held_out:
        raise DataError(
            f"{folder}: no test image; put them in {folder}/CLASS/, or name another folder with option test"
        )
    return Listing(train, held_out, names)


def list_files(root: Path, train_list: Path, test_list: Path) -> Listing:
    """List the images that two list files name, a path below `root` and a label a line.

    A class is called by the folder of its training images where each class has one of its own, else by its number.
    """
    train, test = _read_list(root, train_list), _read_list(root, test_list)
    classes = max(label for _, label in train) + 1
    for path, samples in ((train_list, train), (test_list, test)):
        for line, (_, label) in enumerate(samples, 1):
            if label >= classes:
                raise DataError(f"{path}: image {line}: label {label}, but training labels end at {classes - 1}")
    absent = set(range(classes)) - {label for _, label in train}
    if absent:
        raise DataError(
            f"{train_list}: no image of class {min(absent)}, but of class {classes - 1}; labels must be 0 to C - 1"
        )
    return Listing(train, test, _names_of(train, classes))


def _read_list(root: Path, path: Path) -> list[tuple[Path, int]]:
    samples = []
    for number, line in enumerate(read_text(path, "list of images").splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        fields = line.rsplit(maxsplit=1)
        if len(fields) != 2 or not (fields[1].isascii() and fields[1].isdigit() and len(fields[1]) < 7):
            raise DataError(f"{where}: expected a path and a label, got {line.strip()[:80]!r}")
        samples.append((inside(root, fields[0].strip(), where), int(fields[1])))
    if not samples:
        raise DataError(f"{path}: names no image; a path and a label a line are needed")
    return samples


def _names_of(samples: Sequence[tuple[Path, int]], classes: int) -> tuple[str, ...]:
    folders: list[set[str]] = [set() for _ in range(classes)]
    for path, label in samples:
        folders[label].add(path.parent.name)
    single = [min(names) for names in folders if len(names) == 1]
    own = len(single) == classes == len(set(single)) and all(name.isprintable() for name in single)
    return tuple(single) if own else tuple(str(c) for c in range(classes))


def _annotated(folder: Path, number: dict[str, int]) -> list[tuple[Path, int]]:
    samples = []
    annotations = folder / ANNOTATIONS
    for line_number, line in enumerate(read_text(annotations, "list of names and classes").splitlines(), 1):
        if not line.strip():
            continue
        where = f"{annotations}:{line_number}"
        fields = line.split("\t")
        if len(fields) < 2 or fields[1].strip() not in number:
            raise DataError(f"{where}: expected a file name, a tab and a class of the training set, got {line[:80]!r}")
        samples.append((inside(folder / "images", fields[0].strip(), where), number[fields[1].strip()]))
    if not samples:
        raise DataError(f"{annotations}: names no image")
    return samples


def _test_folder(root: Path, number: dict[str, int]) -> str:
    has_classes = any((root / "test" / name).is_dir() for name in number)
    return "test" if has_classes else "val"


def _folders(folder: Path) -> list[str]:
    with reading(folder, "folder of class folders"), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _images(folder: Path, needed: bool = False) -> list[Path]:
    nested = folder / "images"
    place = nested if nested.is_dir() else folder
    with reading(place, "folder of images"), os.scandir(place) as entries:
        names = sorted(entry.name for entry in entries if os.path.splitext(entry.name)[1].lower() in SUFFIXES)
    names = [name for name in names if not name.startswith(".")]
    if needed and not names:
        raise DataError(
            f"{place}: no image of this class; remove the folder or put {', '.join(sorted(SUFFIXES))} files in it"
        )
    return [place / name for name in names]
