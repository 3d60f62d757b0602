"""Where the ledgers of a run lie."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from fedrela.errors import ArgumentError
from fedrela.files.verbs import remove, sync_folder

LEDGER = re.compile(r"client-([0-9]{6,})\.json")


def ledger_path(folder: Path, client: int) -> Path:
    """Return where the ledger of a client lies.

    >>> ledger_path(Path("ledgers"), 3).as_posix()
    'ledgers/client-000003.json'
    """
    if client < 0:
        raise ArgumentError(f"ledger: clients count from 0, got {client}")
    return folder / f"client-{client:06}.json"


def find_ledgers(folder: Path) -> list[tuple[int, Path]]:
    """Return client and place of every ledger, by client."""
    places = folder.iterdir() if folder.is_dir() else ()
    named = [(LEDGER.fullmatch(place.name), place) for place in places]
    return sorted((int(name[1]), place) for name, place in named if name)


def clear_ledgers(folder: Path, clients: Iterable[int]) -> None:
    """Remove the ledgers of `clients`, where there are any."""
    unwanted = set(clients)
    gone = [place for client, place in find_ledgers(folder) if client in unwanted]
    for place in gone:
        remove(place)
    if gone:
        sync_folder(folder)
