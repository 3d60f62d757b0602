"""Checkpoints in generations: the newest two are kept, each complete and verified, or absent.

A generation is a folder that is renamed to its final name once all of it is on disk. Its manifest, written last, has
the size and digest of every file and of the log of rounds at that time, and identifies the run and the round: a file
that was damaged, swapped or taken from another run is detected, and the previous generation is used instead.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from fedrela.errors import ArgumentError, IntegrityError
from fedrela.files import digest, new_folder, read_plain, size_and_digest, write_new
from fedrela.files.atomic import remove_atomically
from fedrela.files.operations import sync_folder
from fedrela.runfolder import names
from fedrela.runfolder.json_records import Record, json_file, parse, sealed, unsealed

FORMAT = "fedrela-checkpoint-1"
ARRAYS, RECORD, MANIFEST = "arrays.safetensors", "record.json", "manifest.json"
GENERATION = re.compile(r"([0-9]{6,})(?:-([0-9]+))?")  # round, and the number of the attempt after the first


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run after `round` (0 before the first): arrays by name, in the order of their names, and a record.

    `path` is its folder; `note` says why a newer checkpoint was skipped, and is empty if none was.
    """

    round: int
    arrays: dict[str, NDArray[Any]]
    record: Record
    path: Path
    note: str = ""


class Checkpoints:
    """The checkpoints of one run, in `folder`.

    `run` distinguishes the run from others. A checkpoint holds the digest of `log`, the log of rounds, at that time.
    """

    def __init__(self, folder: Path, run: str, log: Path) -> None:
        self.folder = folder
        self.run = run
        self.log = log

    def __len__(self) -> int:
        return len(self._generations())

    def save(self, round: int, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Write a generation, then remove all others except the previous one; the log is on disk already."""
        if round < 0:
            raise ArgumentError(f"checkpoint: rounds count from 0, got {round}")
        parts: dict[str, Iterable[bytes | memoryview]] = {ARRAYS: tensor_chunks(arrays), RECORD: [json_file(record)]}
        manifest: Record = {"format": FORMAT, "round": round, "run": self.run, "log": _file_record(self.log)}
        target = self._free_path(round)
        with new_folder(target) as folder:
            for name, part in parts.items():
                write_new(folder / name, part)
            manifest["files"] = {name: _file_record(folder / name) for name in parts}
            write_new(folder / MANIFEST, [json_file(sealed(manifest))])
        self._prune(target, round)

    def load(self) -> Checkpoint | None:
        """Return the newest valid checkpoint, or None if there is none at all."""
        problems: list[str] = []
        for (round, _), path in reversed(self._generations()):
            try:
                checkpoint = self._read(path, round)
            except (OSError, ValueError, KeyError, TypeError) as error:
                problems.append(f"{path.name}: {_reason(error)}")
            else:
                return replace(checkpoint, note="; ".join(problems))
        if problems:
            raise IntegrityError(f"no checkpoint is valid: {'; '.join(problems[:3])}", path=self.folder)
        return None

    def prune(self) -> None:
        """Remove what was left behind by a kill between writing the last generation and removing older ones."""
        if len(self) > 2 and (newest := self.load()) is not None:
            self._prune(newest.path, newest.round)

    def _read(self, path: Path, round: int) -> Checkpoint:
        manifest = unsealed(parse(read_plain(path / MANIFEST, names.LIMIT), json_file))
        if [manifest[key] for key in ("format", "round", "run")] != [FORMAT, round, self.run]:
            raise ValueError("it belongs to another run, round or format")
        _check_file(self.log, manifest["log"], grows=True)
        for name in (ARRAYS, RECORD):
            _check_file(path / name, manifest["files"][name])
        record = parse(read_plain(path / RECORD, names.LIMIT), json_file)
        return Checkpoint(round, read_tensors(path / ARRAYS), record, path)

    def _generations(self) -> list[tuple[tuple[int, int], Path]]:
        """Return round, attempt and path of every generation, oldest first."""
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        named = [(GENERATION.fullmatch(path.name), path) for path in paths]
        return sorted(((int(name[1]), int(name[2] or 0)), path) for name, path in named if name)

    def _free_path(self, round: int) -> Path:
        """Return a path that no generation has, damaged or not, so that there is a checkpoint at every instant."""
        attempts = [attempt for (other, attempt), _ in self._generations() if other == round]
        return self.folder / (f"{round:06}-{max(attempts) + 1}" if attempts else f"{round:06}")

    def _prune(self, newest: Path, round: int) -> None:
        """Keep the newest generation and the one of the latest round before it, and remove all others."""
        generations = self._generations()
        before = [path for (other, _), path in generations if other < round]
        unused = [path for _, path in generations if path not in (newest, *before[-1:])]
        for path in unused:
            remove_atomically(path)
        if unused:
            sync_folder(self.folder)


def _file_record(path: Path) -> Record:
    size, sha256 = size_and_digest(path) if path.exists() else (0, digest(b""))
    return {"bytes": size, "sha256": sha256}


def _check_file(path: Path, record: Record, *, grows: bool = False) -> None:
    """Raise if a file is not what was recorded; a growing file may have more at its end."""
    expected, actual = record["bytes"], path.stat().st_size if path.exists() else 0
    if not isinstance(expected, int) or not (0 <= expected <= actual if grows else expected == actual):
        raise ValueError(f"{path.name}: expected {expected!r:.40} bytes, as recorded, got {actual}")
    if expected and size_and_digest(path, expected) != (expected, record["sha256"]):
        raise ValueError(f"{path.name} does not match its digest")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return str(error.strerror)
    return str(error) if isinstance(error, ValueError) else "its manifest is incomplete"


def tensor_chunks(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """Return the bytes of a safetensors file in chunks; raise at once if an array cannot be stored.

    Larger items come first, so that each array begins at a multiple of its item size.
    """
    named = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {}
    end = 0
    for name, array in named:
        kind, size = array.dtype.kind, array.dtype.itemsize
        if kind not in "fiub" or size > 8 or name == "__metadata__":
            raise ArgumentError(f"array {name!r}: expected integers, floats or booleans, got {array.dtype}")
        code = "BOOL" if kind == "b" else f"{kind.upper()}{8 * size}"
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": (end, end + array.nbytes)}
        end += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return chain([len(text).to_bytes(8, "little") + text], (_content(array) for _, array in named))


def _content(array: NDArray[Any]) -> memoryview:
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


def vector_digest(arrays: Iterable[tuple[str, Sequence[int]]], dtype: str, vector: NDArray[Any]) -> str:
    """Digest names, shapes and values of consecutive arrays in a vector, little-endian."""
    stored = np.ascontiguousarray(vector, np.dtype(dtype).newbyteorder("<"))
    hasher, start = hashlib.sha256(), 0
    for name, shape in arrays:
        stop = start + math.prod(shape)
        hasher.update(f"{name} {list(shape)} {dtype}\n".encode())
        hasher.update(stored[start:stop].data)
        start = stop
    return hasher.hexdigest()


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read a safetensors file as arrays by name, as copies; raise a `ValueError` if it is not one."""
    try:
        arrays = load_file(path)
    except Exception as error:  # the reader raises many kinds of exception for forged bytes
        raise ValueError(f"not a safetensors file: {type(error).__name__}") from None
    return {name: arrays[name] for name in sorted(arrays)}
