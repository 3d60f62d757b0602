"""Downloads from a real server on loopback: the right bytes, or the old state and one line that helps."""

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

from fedrela.data.download import CHUNK, fetch
from fedrela.data.sources import SOURCES, Download, RemoteFile
from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.files import PartialFile
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import CUT, DATA, PART, PATH, SHA256, add_source, add_toy, failure, get, impatient

KEPT = CUT - CUT % CHUNK  # whole chunks that arrived before a cut


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
    with pytest.raises(IntegrityError, match=f"expected the published SHA-256 {SHA256}"):
        get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == b"something else"
    assert site.asked == []


def test_refused_connection(site: Site, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with impatient(0.3), pytest.raises(DataError, match=r"Connection refused; .* copy the file to") as caught:
        fetch("fashion_mnist", tmp_path, base_url=url)
    assert str(tmp_path / "FashionMNIST" / "raw" / "train-images-idx3-ubyte.gz") in str(caught.value)


@pytest.mark.parametrize("base_url", ["file:///etc", "http://data.example", "ftp://127.0.0.1", "data.example", ""])
def test_base_url_of_another_scheme_is_a_wrong_argument(base_url: str, site: Site, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="expected an https URL"):
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
    with PartialFile(tmp_path / "toy.bin"), pytest.raises(BusyError, match="another process"):
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
    with impatient(), pytest.raises(DataError, match=r"data\.example/toy\.bin: Tunnel connection failed: 501"):
        fetch("toy", tmp_path)


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


def test_resume_after_a_cut(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT), answers.whole(DATA))
    failure(tmp_path, site)
    assert (tmp_path / PART).read_bytes() == DATA[:KEPT], "what came can be continued"
    get(tmp_path, site)
    assert [asked for _, asked, _ in site.asked] == [None, f"bytes={KEPT}-"]
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert os.listdir(tmp_path) == ["toy.bin"]


def test_a_failed_attempt_is_repeated_and_continued(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.status(503), answers.cut(DATA, CUT), answers.whole(DATA))
    get(tmp_path, site, retries=2)
    assert [asked for _, asked, _ in site.asked] == [None, None, f"bytes={KEPT}-"]
    assert (tmp_path / "toy.bin").read_bytes() == DATA


@pytest.mark.parametrize(
    "later",
    [
        answers.always_whole(DATA),
        answers.status(416),
        answers.status(206, Content_Range=f"bytes 0-{len(DATA) - 1}/{len(DATA)}"),
        answers.status(206),
    ],
    ids=["no_ranges", "no_such_range", "other_range", "no_range_named"],
)
def test_a_rest_that_cannot_be_had_means_a_clean_start(later: answers.Answer, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT), later, answers.whole(DATA))
    get(tmp_path, site, retries=2)
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert os.listdir(tmp_path) == ["toy.bin"]


def test_complete_part_is_only_checked_and_named(site: Site, tmp_path: Path) -> None:
    with PartialFile(tmp_path / "toy.bin") as part:
        part.append(DATA)
    get(tmp_path, site)
    assert site.asked == []
    assert os.listdir(tmp_path) == ["toy.bin"]


def test_damaged_part_is_an_integrity_error_once(site: Site, tmp_path: Path) -> None:
    with PartialFile(tmp_path / "toy.bin") as part:
        part.append(bytes(CUT))
    site.put(PATH, answers.whole(DATA))
    assert "published SHA-256" in failure(tmp_path, site, IntegrityError)
    assert os.listdir(tmp_path) == []
    get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


def test_truncated_without_a_declared_length(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.without_length(DATA[:CUT]))
    assert f"ended after {CUT} of {len(DATA)} bytes" in failure(tmp_path, site)


def test_wrong_checksum(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.whole(DATA[::-1]))
    line = failure(tmp_path, site, IntegrityError)
    assert f"the published SHA-256 {SHA256}" in line
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answers.whole(DATA + b"x"), "expected 102400 bytes, but the server offers 102401"),
        (answers.without_length(DATA + b"x"), "sent more than the published 102400 bytes"),
        (answers.whole(b"<html>please log in</html>"), "the server offers 26"),
    ],
)
def test_wrong_size(answer: answers.Answer, words: str, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answer)
    assert words in failure(tmp_path, site, IntegrityError)
    assert os.listdir(tmp_path) == []


def test_slow_server(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.silent(DATA[:CUT], len(DATA)), answers.whole(DATA))
    assert "no response within 0.5 seconds" in failure(tmp_path, site, timeout=0.5)
    assert (tmp_path / PART).read_bytes() == DATA[:KEPT], "what came can be continued"
    get(tmp_path, site)


def test_slow_and_sure_server(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.steady(DATA, pieces=20))
    get(tmp_path, site, timeout=1.0)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


def test_failure_of_a_second_attempt_keeps_the_first(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT), answers.status(503), answers.whole(DATA))
    failure(tmp_path, site)
    assert "HTTP 503" in failure(tmp_path, site)
    assert (tmp_path / PART).read_bytes() == DATA[:KEPT]
    get(tmp_path, site)
    assert site.asked[-1] == (PATH, f"bytes={KEPT}-", None)


def test_server_that_accepts_and_never_answers(site: Site, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with impatient(0.2), pytest.raises(DataError, match=r"no response within 0\.2 seconds"):
            fetch("toy", tmp_path, base_url=url)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answers.status(404), "HTTP 404 Not Found;"),
        (answers.status(503), "HTTP 503 Service Unavailable;"),
        (answers.status(299), "unexpected HTTP status 299"),
        (answers.status(206), "range other than the one requested"),
        (answers.status(302), "unexpected HTTP status 302"),
        (lambda handler: handler.wfile.write(b"HTTP/1.1 599 \x1b[2Jgone\r\n\r\n"), "HTTP 599;"),
        (lambda handler: handler.wfile.write(b"\x1b[2Jnonsense\r\n\r\n"), "nonsense"),
        (lambda handler: None, "closed connection"),
    ],
)
def test_other_answers(answer: answers.Answer, words: str, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answer)
    assert words in failure(tmp_path, site)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "location",
    ["file:///etc/hosts", "ftp://127.0.0.1/x", "https://127.0.0.1/x", "http://data.example/x", "data:,x", "http://[x"],
)
def test_redirect_to_another_scheme_or_into_the_open(location: str, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.status(302, Location=location))
    assert "redirected to" in failure(tmp_path, site)
    assert os.listdir(tmp_path) == []


def test_redirects_within_the_scheme_and_in_a_loop(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.status(307, Location="/else where"), answers.status(301, Location=f"{site.url}{PATH}"))
    site.put("/else%20where", answers.whole(DATA))
    get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert "30 redirects" in failure(tmp_path / "loop", site)
