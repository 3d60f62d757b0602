"""Fetching: what is there is used, what is not known is recorded, and nobody needs the network twice."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrela.data.catalogue import CATALOGUE, Dataset, RemoteFile
from fedrela.data.fetch import RECORD, fetch
from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.files import Part
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import DATA, PATH, SHA256, add_toys, failure, get


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    add_toys(monkeypatch)
    with running_site() as running:
        yield running


def test_good_file(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.whole(DATA))
    calls: list[tuple[int, int | None]] = []
    root = tmp_path / "new" / "root"
    assert get("toy", root, site, progress=lambda *call: calls.append(call)) == root
    assert (root / "toy.bin").read_bytes() == DATA
    assert os.listdir(root) == ["toy.bin"]
    assert calls == sorted(calls)
    assert calls[-1] == (len(DATA), len(DATA))
    get("toy", root, site)
    assert len(site.asked) == 1, "a file that is there is not asked for again"


def test_file_put_by_hand_is_checked_and_never_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "toy.bin").write_bytes(DATA)
    assert get("toy", tmp_path, site) == tmp_path
    (tmp_path / "toy.bin").write_bytes(b"something else")
    with pytest.raises(IntegrityError, match=f"{SHA256} is published"):
        get("toy", tmp_path, site)
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


def test_unknown_digest_is_recorded_and_compared(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.whole(DATA))
    said: list[str] = []
    get("toy_unknown", tmp_path, site, notice=said.append)
    assert len(said) == 1
    assert "no public source states a digest" in said[0]
    assert json.loads((tmp_path / RECORD).read_bytes()) == {"toy.bin": SHA256}
    get("toy_unknown", tmp_path, site, notice=said.append)
    (tmp_path / "toy.bin").unlink()
    site.put(PATH, answers.whole(DATA[::-1]))
    assert f"{SHA256} was expected" in failure("toy_unknown", tmp_path, site, IntegrityError)
    (tmp_path / "toy.bin").write_bytes(DATA[::-1])
    with pytest.raises(IntegrityError, match="recorded in"):
        get("toy_unknown", tmp_path, site)
    assert len(said) == 1


def test_without_a_listener_the_notice_is_logged(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "toy.bin").write_bytes(DATA)
    get("toy_unknown", tmp_path, site)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert SHA256 in caplog.text


@pytest.mark.parametrize("content", [b"", b"[]", b'{"toy.bin": 1}', b"[" * 100_000])
def test_damaged_record(content: bytes, site: Site, tmp_path: Path) -> None:
    (tmp_path / RECORD).write_bytes(content)
    with pytest.raises(IntegrityError, match="not a list of digests"):
        get("toy_unknown", tmp_path, site)


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
    monkeypatch.setitem(CATALOGUE, "packed", Dataset("packed", (file,), folder="toy-bin"))
    (tmp_path / "toy.tar.gz").write_bytes(packed)
    folder = get("packed", tmp_path, site)
    assert folder == tmp_path / "toy-bin"
    assert (folder / "batch.bin").read_bytes() == DATA
    (tmp_path / "toy.tar.gz").unlink()
    assert get("packed", tmp_path, site) == folder
    assert site.asked == [], "put by hand, or unpacked already: no network is needed"


def test_two_at_once(site: Site, tmp_path: Path) -> None:
    with Part(tmp_path / "toy.bin"), pytest.raises(BusyError, match="another process"):
        get("toy", tmp_path, site)


def test_place_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(DataError, match="cannot be written: ") as caught:
        get("toy", tmp_path / "file", site)
    assert str(caught.value).isprintable()
    (tmp_path / "toy.bin").mkdir()
    with pytest.raises(DataError, match="Is a directory"):
        get("toy", tmp_path, site)


def test_proxy_of_the_environment_is_used(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", site.url)
    with pytest.raises(DataError, match=r"data\.example/toy\.bin: Tunnel connection failed: 501"):
        fetch("toy", tmp_path, timeout=10)


def test_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="did you mean 'cifar10'"):
        fetch("cifar_10", tmp_path)
    with pytest.raises(ArgumentError, match="there are cifar10, cifar100, fashion_mnist"):
        fetch("zzz", tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "fashion_mnist", "tiny_imagenet"])
def test_catalogue(name: str) -> None:
    dataset = CATALOGUE[name]
    for file in dataset.files:
        assert file.url.startswith("https://")
        assert "python" not in file.name, "the pickled edition is never fetched"
        assert file.size
        assert file.sha256
        assert len(bytes.fromhex(file.sha256)) == 32
    assert len({file.sha256 for file in dataset.files}) == len(dataset.files)
