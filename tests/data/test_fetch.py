"""Fetching: what is there is used, what is not known is recorded, and nobody needs the network twice."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrela.data.fetch import fetch
from fedrela.data.sources import SOURCES, Download, RemoteFile
from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.files import Part
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import DATA, PATH, SHA256, add_source, add_toy, get


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    add_toy(monkeypatch)
    with running_site() as running:
        yield running


def test_good_file(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.whole(DATA))
    calls: list[tuple[int, int | None]] = []
    root = tmp_path / "new" / "root"
    assert get(root, site, progress=lambda *call: calls.append(call)) == root
    assert (root / "toy.bin").read_bytes() == DATA
    assert os.listdir(root) == ["toy.bin"]
    assert calls == sorted(calls)
    assert calls[-1] == (len(DATA), len(DATA))
    get(root, site)
    assert len(site.asked) == 1, "a file that is there is not asked for again"


def test_file_put_by_hand_is_checked_and_never_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "toy.bin").write_bytes(DATA)
    assert get(tmp_path, site) == tmp_path
    (tmp_path / "toy.bin").write_bytes(b"something else")
    with pytest.raises(IntegrityError, match=f"{SHA256} is published"):
        get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == b"something else"
    assert site.asked == []


def test_refused_connection(site: Site, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(DataError, match=r"Connection refused; .* put it at") as caught:
        fetch("fashion_mnist", tmp_path, base_url=url, timeout=0.3)
    assert str(tmp_path / "FashionMNIST" / "raw" / "train-images-idx3-ubyte.gz") in str(caught.value)


@pytest.mark.parametrize("base_url", ["file:///etc", "http://data.example", "ftp://127.0.0.1", "data.example", ""])
def test_base_url_of_another_scheme_is_a_wrong_argument(base_url: str, site: Site, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="an https address is needed"):
        fetch("toy", tmp_path, base_url=base_url)


def packed_toy() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("toy-bin/batch.bin")
        info.size = len(DATA)
        tar.addfile(info, io.BytesIO(DATA))
    return gzip.compress(buffer.getvalue(), mtime=0)


def test_archive_is_unpacked_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = packed_toy()
    file = RemoteFile("https://data.example/toy.tar.gz", len(packed), hashlib.sha256(packed).hexdigest())
    add_source(monkeypatch, "packed", Download((file,), folder="toy-bin"))
    (tmp_path / "toy.tar.gz").write_bytes(packed)
    folder = fetch("packed", tmp_path, base_url=site.url)
    assert folder == tmp_path / "toy-bin"
    assert (folder / "batch.bin").read_bytes() == DATA
    (tmp_path / "toy.tar.gz").unlink()
    assert fetch("packed", tmp_path, base_url=site.url) == folder
    assert site.asked == [], "put by hand, or unpacked already: no network is needed"


def test_two_at_once(site: Site, tmp_path: Path) -> None:
    with Part(tmp_path / "toy.bin"), pytest.raises(BusyError, match="another process"):
        get(tmp_path, site)


def test_place_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(DataError, match="cannot be written: ") as caught:
        get(tmp_path / "file", site)
    assert str(caught.value).isprintable()
    (tmp_path / "toy.bin").mkdir()
    with pytest.raises(DataError, match="Is a directory"):
        get(tmp_path, site)


def test_proxy_of_the_environment_is_used(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", site.url)
    with pytest.raises(DataError, match=r"data\.example/toy\.bin: Tunnel connection failed: 501"):
        fetch("toy", tmp_path, timeout=10)


def test_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"expected one of cifar10, .*, got 'digits'"):
        fetch("digits", tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "fashion_mnist", "tiny_imagenet"])
def test_published_files(name: str) -> None:
    dataset = SOURCES[name].download
    assert dataset
    for file in dataset.files:
        assert file.url.startswith("https://")
        assert "python" not in file.name, "the pickled edition is never fetched"
        assert file.size
        assert len(bytes.fromhex(file.sha256)) == 32
    assert len({file.sha256 for file in dataset.files}) == len(dataset.files)
