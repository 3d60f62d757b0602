"""What a disk may hold after a power loss, worked out from the verbs carried out before it.

Nothing is certain to be on disk but what was synced: the content of a file by `sync`, the names in a folder by
`sync_folder`. Each other change is there or not, whatever its order; of a write also the first half alone may be
there, and where a later one is there without it, zeros fill the gap.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = 0  # the number of the folder in which everything happens, there from the beginning
Names = dict[tuple[int, str], int | None]  # (folder, name) -> number of a file or folder, or nothing


@dataclass
class Change:
    """One change of names in a folder, or of the content of a file.

    Attributes
    ----------
    place
        The folder or file that a sync must name to make it certain.
    names
        New meanings of names, all or none of which are on disk.
    offset, data
        Bytes of a file; an offset of None replaces all it had.
    """

    place: int
    names: Names | None = None
    offset: int | None = None
    data: bytes = b""
    certain: bool = False

    @property
    def outcomes(self) -> tuple[float, ...]:
        """How much of it may be on disk."""
        return (1.0,) if self.certain else (0.0, 1.0) if self.names is not None else (0.0, 0.5, 1.0)


@dataclass
class Disk:
    """The changes so far, and how everything looks to running programs."""

    base: Path
    changes: list[Change] = field(default_factory=list)
    names: Names = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    folders: set[int] = field(default_factory=lambda: {ROOT})
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def apply(self, verb: str, arguments: tuple[Any, ...]) -> None:
        getattr(self, f"_{verb}")(*arguments)

    def find(self, path: Path) -> int | None:
        place: int | None = ROOT
        for part in path.relative_to(self.base).parts:
            place = None if place is None else self.names.get((place, part))
        return place

    def folder_of(self, path: Path) -> int:
        place = self.find(path.parent)
        assert place in self.folders, path
        return place

    def _name(self, *meanings: tuple[Path, int | None]) -> None:
        folder = self.folder_of(meanings[0][0])
        assert all(self.folder_of(path) == folder for path, _ in meanings)
        names: Names = {(folder, path.name): number for path, number in meanings}
        self.names |= names
        self.changes.append(Change(folder, names=names))

    def _make_folder(self, path: Path) -> None:
        if self.find(path) is None:
            number = next(self.numbers)
            self.folders.add(number)
            self._name((path, number))

    def _write_temporary(self, path: Path, data: bytes) -> None:
        assert self.find(path) is None
        self._append(path, data)

    def _append(self, path: Path, data: bytes) -> None:
        if self.find(path) is None:
            self._name((path, next(self.numbers)))
        number = self.find(path)
        size = self.sizes.get(number, 0)
        if data:
            self.changes.append(Change(number, offset=size, data=data))
        self.sizes[number] = size + len(data)

    def _overwrite(self, path: Path, data: bytes) -> None:
        number = self.find(path)
        self.changes.append(Change(number, data=data))
        self.sizes[number] = len(data)

    def _rename(self, source: Path, target: Path) -> None:
        self._name((source, None), (target, self.find(source)))

    def _remove(self, path: Path) -> None:
        self._name((path, None))

    def _sync(self, path: Path) -> None:
        self._settle(self.find(path), names=False)

    def _sync_folder(self, path: Path) -> None:
        self._settle(self.find(path), names=True)

    def _settle(self, place: int | None, *, names: bool) -> None:
        assert place is not None
        for change in self.changes:
            if change.place == place and (change.names is not None) == names:
                change.certain = True

    def after_loss(self, limit: int, rng: np.random.Generator) -> Iterator[dict[str, bytes | None]]:
        """Yield what may be on disk now, at most `limit` ways: content by path, None for a folder."""
        choices = [change.outcomes for change in self.changes]
        if np.prod([len(choice) for choice in choices], dtype=float) <= limit:
            yield from map(self._tree, itertools.product(*choices))
            return
        yield self._tree(choice[0] for choice in choices)
        yield self._tree(choice[-1] for choice in choices)
        for _ in range(limit - 2):
            yield self._tree(choice[rng.integers(len(choice))] for choice in choices)

    def _tree(self, kept: Any) -> dict[str, bytes | None]:
        names: Names = {}
        contents: dict[int, bytearray] = {}
        for change, share in zip(self.changes, kept, strict=True):
            if change.names is not None:
                names |= change.names if share else {}
                continue
            data = change.data[: int(len(change.data) * share)]
            content = contents.setdefault(change.place, bytearray())
            if data and change.offset is None:
                content[:] = data
            elif data:
                content.extend(bytes(max(0, change.offset + len(data) - len(content))))
                content[change.offset : change.offset + len(data)] = data
        return dict(self._walk(ROOT, "", names, contents))

    def _walk(self, folder: int, prefix: str, names: Names, contents: dict[int, bytearray]) -> Iterator[Any]:
        for (place, name), number in names.items():
            if place == folder and number in self.folders:
                yield f"{prefix}{name}", None
                yield from self._walk(number, f"{prefix}{name}/", names, contents)
            elif place == folder and number is not None:
                yield f"{prefix}{name}", bytes(contents.get(number, b""))
