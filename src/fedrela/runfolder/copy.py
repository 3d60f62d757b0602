"""A copy of a run folder, or of runs that belong together, without samples: for sharing.

Left out are the gallery, the report that shows it, shared prefixes, and of a checkpoint all but the weights: some
algorithms keep mixtures of samples in their state. A finished run is as sound in the copy as before; an unfinished one
has no checkpoint there, so it can be looked at but not resumed.
"""

from __future__ import annotations

from pathlib import Path

from fedrela.errors import ArgumentError, BusyError
from fedrela.files import digest, make_folders, new_folder, read_plain, write_new
from fedrela.runfolder import names
from fedrela.runfolder.checkpoints import Checkpoints
from fedrela.runfolder.folder import RunFolder
from fedrela.runfolder.grids import GRID, SUMMARY, TABLES, GridFolder
from fedrela.runfolder.records import digests_page

FROM_RUN = (names.MACHINE, names.CONFIG, names.MANIFEST, names.RELABELLING, *names.LOGS)
FROM_GRID = (names.CONFIG, SUMMARY, *TABLES)


def copy_without_samples(source: RunFolder | GridFolder, target: str | Path) -> None:
    """Make a copy of `source`, on which no other process works, without samples.

    The new folder `target` is there wholly or not at all.
    """
    if source.running:
        raise BusyError(f"{source.path}: {source.status} in another process; wait until that has ended")
    try:
        with new_folder(target) as folder:
            if isinstance(source, RunFolder):
                _copy_run(source, folder)
                return
            _copy_files(source.path, folder, FROM_GRID)
            own = {
                key: value for key, value in source.record.items() if key != "shared"
            }  # its runs lie inside the copy
            write_new(folder / GRID, [digests_page(own, {})])
            for name in dict.fromkeys(str(cell["folder"]) for cell in source.cells):
                place = source.place({"folder": name})
                if (place / names.MANIFEST).exists():
                    make_folders(folder / name)
                    _copy_run(RunFolder.open(place), folder / name)
    except OSError as error:
        raise ArgumentError(f"{target}: cannot be written: {error.strerror}; choose another path") from None


def _copy_files(source: Path, target: Path, wanted: tuple[str, ...]) -> None:
    for name in wanted:
        if (source / name).exists():
            write_new(target / name, [read_plain(source / name, names.LIMIT)])


def _copy_run(source: RunFolder, target: Path) -> None:
    _copy_files(source.path, target, FROM_RUN)
    if found := source.ledgers():
        make_folders(target / names.LEDGERS)
        for _, place in found:
            _copy_files(source.path, target, (f"{names.LEDGERS}/{place.name}",))
    if (source.path / names.RESULT).exists():
        source.check()
        result = source.read_json(names.RESULT)
        files = {name: sha256 for name, sha256 in result.pop("files").items() if name != names.GALLERY}
        _copy_weights(source, target)
        write_new(target / names.RESULT, [digests_page(result, files)])


def _copy_weights(source: RunFolder, target: Path) -> None:
    saved = source.load_checkpoint()
    if saved is not None:
        manifest = read_plain(target / names.MANIFEST, names.LIMIT)
        checkpoints = Checkpoints(target / names.CHECKPOINT, digest(manifest), target / names.ROUNDS)
        checkpoints.save(saved.round, {"weights": saved.arrays["weights"]}, {})
