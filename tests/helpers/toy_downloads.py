"""Small data sets to fetch from a local site, and what every failure has to say."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

import pytest

from fedrela.data.download import Progress, fetch
from fedrela.data.sources import SOURCES, Download, RemoteFile, SourceSpec, digits
from fedrela.errors import DataError, IntegrityError
from helpers.local_site import Site

DATA = bytes(range(256)) * 400
SHA256 = hashlib.sha256(DATA).hexdigest()
CUT = 30_000
PATH = "/toy.bin"
PART = ".toy.bin.part"


def add_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a source of one file to the registry."""
    add_source(monkeypatch, "toy", Download((RemoteFile(f"https://data.example{PATH}", len(DATA), SHA256),)))


def add_source(monkeypatch: pytest.MonkeyPatch, name: str, download: Download) -> None:
    """Add a source with a download to the registry."""
    monkeypatch.setitem(SOURCES, name, SourceSpec(digits.load, name, "a toy", "none", download))


def impatient(timeout: float = 10.0, retries: int = 0) -> AbstractContextManager[object]:
    """Downloads inside give up early."""
    return mock.patch.multiple("fedrela.data.download", TIMEOUT=timeout, RETRIES=retries)


def get(root: Path, site: Site, *, timeout: float = 10.0, retries: int = 0, progress: Progress | None = None) -> Path:
    """Fetch from the local site."""
    with impatient(timeout, retries):
        return fetch("toy", root, base_url=site.url, progress=progress)


def failure(
    root: Path, site: Site, kind: type[DataError | IntegrityError] = DataError, *, timeout: float = 10.0
) -> str:
    """The one line of a fetch that fails: it names the address and where to put the file by hand."""
    with pytest.raises(kind) as caught:
        get(root, site, timeout=timeout)
    line = str(caught.value)
    assert line.isprintable()
    assert f"{site.url}{PATH}" in line
    assert str(root / "toy.bin") in line
    assert caught.value.exit_code == (3 if kind is DataError else 4)
    assert not (root / "toy.bin").exists()
    return line
