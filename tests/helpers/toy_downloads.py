"""Small data sets to fetch from a local site, and what every failure has to say."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fedrela.data.catalogue import CATALOGUE, Dataset, RemoteFile
from fedrela.data.fetch import fetch
from fedrela.errors import DataError, IntegrityError
from helpers.local_site import Site

DATA = bytes(range(256)) * 400
SHA256 = hashlib.sha256(DATA).hexdigest()
CUT = 30_000
PATH = "/toy.bin"
PART, TAG = ".toy.bin.part", ".toy.bin.part.tag"


def add_toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add four data sets to the catalogue that differ in what is known about their one file."""
    url = f"https://data.example{PATH}"
    toys = {
        "toy": RemoteFile(url, len(DATA), SHA256),
        "toy_digest": RemoteFile(url, None, SHA256, limit=200_000),
        "toy_size": RemoteFile(url, len(DATA), None),
        "toy_unknown": RemoteFile(url, None, None, limit=200_000),
    }
    for name, file in toys.items():
        monkeypatch.setitem(CATALOGUE, name, Dataset(name, (file,)))


def get(name: str, root: Path, site: Site, *, timeout: float = 10.0, **options: object) -> Path:
    """Fetch from the local site."""
    return fetch(name, root, base_url=site.url, timeout=timeout, **options)  # type: ignore[arg-type]


def failure(
    name: str, root: Path, site: Site, kind: type[DataError | IntegrityError] = DataError, *, timeout: float = 10.0
) -> str:
    """The one line of a fetch that fails: it names the address and where to put the file by hand."""
    with pytest.raises(kind) as caught:
        get(name, root, site, timeout=timeout)
    line = str(caught.value)
    assert line.isprintable()
    assert f"{site.url}{PATH}" in line
    assert str(root / "toy.bin") in line
    assert caught.value.exit_code == (3 if kind is DataError else 4)
    assert not (root / "toy.bin").exists()
    return line
