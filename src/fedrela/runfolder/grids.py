"""A folder of many runs that belong together: a comparison, a sweep, a table of the paper.

``grid.json`` lists the runs and has their common configuration; the runs are in ``runs/`` under names that end with
their address, the digest of their configuration, so that none is done twice. ``summary.json`` summarises all of them;
tables and the report are made from it. This module also copies such a folder, or one run, for sharing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.files import digest, is_locked, make_folders, new_folder, read_plain, safe_path, write_bytes, write_new
from fedrela.files.atomic import TEMPORARY, remove_if_exists
from fedrela.runfolder import names
from fedrela.runfolder.checkpoints import Checkpoints
from fedrela.runfolder.folder import RunFolder, RunStatus
from fedrela.runfolder.json_records import Record, RecordFolder, json_with_digests, read_manifest, writing

GRID, SUMMARY, FORMAT = "grid.json", "summary.json", "fedrela-grid-1"
TABLES = ("table.md", "table.csv", "table.tex", "table.json")
WRITABLE = (names.CONFIG, SUMMARY, names.REPORT, *TABLES)
# What a copy without samples contains.
FROM_RUN = (names.MACHINE, names.CONFIG, names.MANIFEST, names.RELABELLING, *names.LOGS)
FROM_GRID = (names.CONFIG, SUMMARY, *TABLES)


class GridFolder(RecordFolder):
    """A folder of runs; `begin` creates or continues one, `open` opens one. `record` is what ``grid.json`` holds."""

    writable, readable = WRITABLE, (GRID, *WRITABLE)

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        record, _ = read_manifest(self.path, GRID, "grid of runs")
        if record.get("format") != FORMAT:
            raise IntegrityError(f"{self.path / GRID}: was written by another version of fedrela")
        self.record: Record = {key: value for key, value in record.items() if key != "files"}

    @classmethod
    def is_one(cls, path: str | Path) -> bool:
        """Whether `path` holds such a folder, damaged or not."""
        return os.path.lexists(Path(path) / GRID)

    @classmethod
    def begin(cls, path: str | Path, record: Mapping[str, Any]) -> GridFolder:
        """Start in a new or an empty folder, or continue the same grid there, possibly with other cells.

        The record has ``kind``; ``name``; ``base``, which must be the same to continue; ``config``, a TOML text;
        ``cells``, each with the ``folder`` of its run; ``facts``; and ``shared``, true if runs lie in the folder
        above, beside other grids.
        """
        path, whole = Path(path), {"format": FORMAT, **record}
        with writing(path):
            existing = _existing(path)
            if existing is not None and (existing["kind"], existing["base"]) != (record["kind"], record["base"]):
                what = f"contains a {existing['kind']} of another configuration"
                raise ArgumentError(f"{path}: {what}; choose another folder or remove this one")
            if existing != whole or not (path / names.CONFIG).exists():
                make_folders(path)
                remove_if_exists(path / SUMMARY)  # it summarises other cells
                write_bytes(path / GRID, json_with_digests(whole, {}))
                write_bytes(path / names.CONFIG, str(record["config"]).encode())
        return cls(path)

    @property
    def cells(self) -> list[Record]:
        """All cells, in their order."""
        cells: list[Record] = self.record["cells"]
        return cells

    def place(self, cell: Mapping[str, Any]) -> Path:
        """Return the path of a cell's run, which may not exist yet."""
        store = self.path.absolute().parent if self.record.get("shared") else self.path
        return safe_path(store, str(cell["folder"]))

    def run_folder(self, cell: Mapping[str, Any]) -> RunFolder:
        """Open the run of a cell."""
        return RunFolder.open(self.place(cell))

    @property
    def done(self) -> int:
        """How many cells have a finished run."""
        return sum((self.place(cell) / names.RESULT).exists() for cell in self.cells)

    @property
    def status(self) -> RunStatus:
        """How far the grid has come: ``RUNNING``, ``INTERRUPTED`` or ``DONE``."""
        if self.done == len(self.cells) and (self.path / SUMMARY).exists():
            return RunStatus.DONE
        return RunStatus.RUNNING if is_locked(self.path / names.LOCK) else RunStatus.INTERRUPTED

    @property
    def status_text(self) -> str:
        """The status as it is shown, with the number of runs that are done if not all are."""
        status = self.status
        return str(status) if status is RunStatus.DONE else f"{status}, {self.done} of {len(self.cells)} runs done"

    def summary(self, kind: str) -> Record:
        """Return the summary of a finished grid of that kind; raise a `DataError` for any other."""
        if self.record["kind"] != kind:
            raise DataError(f"{self.path}: expected a {kind}, got a {self.record['kind']}")
        if not (self.path / SUMMARY).exists():
            raise DataError(f"{self.path}: {self.status_text}; finish it first, with the command that started it")
        return self.read_json(SUMMARY)


def _existing(path: Path) -> Record | None:
    """Return the record of the grid at `path`, if there is one; raise an `ArgumentError` for unrelated files."""
    if GridFolder.is_one(path):
        return GridFolder(path).record
    if not os.path.lexists(path):
        return None
    if not path.is_dir():
        raise ArgumentError(f"{path}: expected a folder; choose another path")
    existing = {name for name in os.listdir(path) if not TEMPORARY.fullmatch(name)} - {names.LOCK}
    if names.MANIFEST in existing:
        raise ArgumentError(f"{path}: contains a run; choose a new or an empty folder")
    if existing:
        raise ArgumentError(f"{path}: contains other files; choose a new or an empty folder")
    return None


def copy_without_samples(source: RunFolder | GridFolder, target: str | Path) -> None:
    """Make a copy of `source`, on which no other process works, without samples: for sharing.

    The copy omits the gallery, the report that shows it, shared prefixes, and all of a checkpoint except the weights:
    some algorithms keep mixtures of samples in their state. A finished run is as valid in the copy as before; an
    unfinished one has no checkpoint there, so it can be viewed but not resumed. The new folder `target` is complete or
    absent.
    """
    if source.status is RunStatus.RUNNING:
        raise BusyError(f"{source.path}: {source.status_text} in another process; wait until it has ended")
    try:
        with new_folder(target) as folder:
            if isinstance(source, RunFolder):
                _copy_run(source, folder)
                return
            _copy_files(source.path, folder, FROM_GRID)
            # The copy contains its runs, so it is not marked as shared.
            record = {key: value for key, value in source.record.items() if key != "shared"}
            write_new(folder / GRID, [json_with_digests(record, {})])
            for name in dict.fromkeys(str(cell["folder"]) for cell in source.cells):
                path = source.place({"folder": name})
                if (path / names.MANIFEST).exists():
                    make_folders(folder / name)
                    _copy_run(RunFolder.open(path), folder / name)
    except OSError as error:
        raise ArgumentError(f"{target}: cannot be written: {error.strerror}; choose another path") from None


def _copy_files(source: Path, target: Path, files: tuple[str, ...]) -> None:
    for name in files:
        if (source / name).exists():
            write_new(target / name, [read_plain(source / name, names.LIMIT)])


def _copy_run(source: RunFolder, target: Path) -> None:
    _copy_files(source.path, target, FROM_RUN)
    if ledgers := source.ledgers():
        make_folders(target / names.LEDGERS)
        _copy_files(source.path, target, tuple(f"{names.LEDGERS}/{path.name}" for _, path in ledgers))
    if (source.path / names.RESULT).exists():
        source.check()
        result = source.read_json(names.RESULT)
        files = {name: sha256 for name, sha256 in result.pop("files").items() if name != names.GALLERY}
        _copy_weights(source, target)
        write_new(target / names.RESULT, [json_with_digests(result, files)])


def _copy_weights(source: RunFolder, target: Path) -> None:
    saved = source.final_checkpoint()
    manifest = read_plain(target / names.MANIFEST, names.LIMIT)
    checkpoints = Checkpoints(target / names.CHECKPOINT, digest(manifest), target / names.ROUNDS)
    checkpoints.save(saved.round, {"weights": saved.arrays["weights"]}, {})
