"""Downloads from a real server on loopback: the right bytes, or the old state and one line that helps."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrela.data.fetch import fetch
from fedrela.errors import DataError, IntegrityError
from fedrela.files import Part
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import CUT, DATA, PART, PATH, SHA256, TAG, add_toy, failure, get


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    add_toy(monkeypatch)
    with running_site() as running:
        yield running


def test_resume_after_a_cut(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT, ETag='"one"'), answers.whole(DATA))
    assert f"ended after {CUT} of {len(DATA)} bytes" in failure(tmp_path, site)
    assert sorted(os.listdir(tmp_path)) == [PART, TAG]
    get(tmp_path, site)
    assert site.asked == [(PATH, None, None), (PATH, f"bytes={CUT}-", '"one"')]
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert set(os.listdir(tmp_path)) == {"toy.bin"}


@pytest.mark.parametrize(
    "later",
    [
        answers.always_whole(DATA),
        answers.whole(DATA, tag='"two"'),
        answers.status(416),
        answers.status(206, Content_Range=f"bytes 0-{len(DATA) - 1}/{len(DATA)}"),
        answers.status(206),
    ],
    ids=["no_ranges", "new_edition", "no_such_range", "other_range", "no_range_named"],
)
def test_a_rest_that_cannot_be_had_means_a_clean_start(later: answers.Answer, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(b"old" * 50_000, CUT, ETag='"one"'), later, answers.whole(DATA, tag='"two"'))
    with pytest.raises(DataError):
        get(tmp_path, site)
    get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert os.listdir(tmp_path) == ["toy.bin"]


def test_complete_part_is_only_checked_and_named(site: Site, tmp_path: Path) -> None:
    with Part(tmp_path / "toy.bin") as part:
        part.restart("")
        part.append(DATA)
    get(tmp_path, site)
    assert site.asked == []
    assert os.listdir(tmp_path) == ["toy.bin"]


def test_damaged_part_is_an_integrity_error_once(site: Site, tmp_path: Path) -> None:
    with Part(tmp_path / "toy.bin") as part:
        part.restart('"one"')
        part.append(bytes(CUT))
    site.put(PATH, answers.whole(DATA))
    assert "was expected" in failure(tmp_path, site, IntegrityError)
    assert os.listdir(tmp_path) == []
    get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


def test_truncated_without_a_declared_length(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.without_length(DATA[:CUT]))
    assert f"ended after {CUT} of {len(DATA)} bytes" in failure(tmp_path, site)


def test_wrong_checksum(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.whole(DATA[::-1]))
    line = failure(tmp_path, site, IntegrityError)
    assert f"SHA-256 {SHA256} was expected" in line
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answers.whole(DATA + b"x"), "102401 bytes are offered where 102400 were published"),
        (answers.without_length(DATA + b"x"), "more bytes came than the 102400"),
        (answers.whole(b"<html>please log in</html>"), "26 bytes are offered"),
    ],
)
def test_wrong_size(answer: answers.Answer, words: str, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answer)
    assert words in failure(tmp_path, site, IntegrityError)
    assert os.listdir(tmp_path) == []


def test_slow_server(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.silent(DATA[:CUT], len(DATA)), answers.dripping(len(DATA)), answers.whole(DATA))
    assert "no answer within 0.5 seconds" in failure(tmp_path, site, timeout=0.5)
    assert (tmp_path / PART).read_bytes() == DATA[:CUT], "what came can be continued"
    assert "no answer within 0.5 seconds" in failure(tmp_path, site, timeout=0.5)
    (tmp_path / PART).unlink()
    get(tmp_path, site)


def test_slow_and_sure_server(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.steady(DATA, pieces=20))
    get(tmp_path, site, timeout=1.0)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


def test_failure_of_a_second_attempt_keeps_the_first(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT), answers.status(503), answers.whole(DATA))
    failure(tmp_path, site)
    assert "HTTP 503" in failure(tmp_path, site)
    assert (tmp_path / PART).read_bytes() == DATA[:CUT]
    get(tmp_path, site)
    assert site.asked[-1] == (PATH, f"bytes={CUT}-", None)


def test_server_that_accepts_and_never_answers(site: Site, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(DataError, match=r"no answer within 0\.2 seconds"):
            fetch("toy", tmp_path, base_url=url, timeout=0.2)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answers.status(404), "HTTP 404 Not Found;"),
        (answers.status(503), "HTTP 503 Service Unavailable;"),
        (answers.status(299), "HTTP 299 is not the answer"),
        (answers.status(206), "HTTP 206 is not the answer"),
        (answers.status(302), "HTTP 302 Found;"),
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
    line = failure(tmp_path, site)
    assert "redirected to" in line or "Invalid IPv6" in line
    assert os.listdir(tmp_path) == []


def test_redirects_within_the_scheme_and_in_a_loop(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.status(307, Location="/else where"), answers.status(301, Location=f"{site.url}{PATH}"))
    site.put("/else%20where", answers.whole(DATA))
    get(tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert "redirected more than 10 times" in failure(tmp_path / "loop", site)
