"""Downloads from a real server on loopback: the right bytes, or the old state and one line that helps."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrela.data.fetch import RECORD, fetch
from fedrela.errors import DataError, IntegrityError
from fedrela.files import Part
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import CUT, DATA, PART, PATH, SHA256, TAG, add_toys, failure, get


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    add_toys(monkeypatch)
    with running_site() as running:
        yield running


@pytest.mark.parametrize("name", ["toy", "toy_digest", "toy_size", "toy_unknown"])
def test_resume_after_a_cut(name: str, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT, ETag='"one"'), answers.whole(DATA))
    assert f"ended after {CUT} of {len(DATA)} bytes" in failure(name, tmp_path, site)
    assert sorted(os.listdir(tmp_path)) == [PART, TAG]
    get(name, tmp_path, site, notice=lambda line: None)
    assert site.asked == [(PATH, None, None), (PATH, f"bytes={CUT}-", '"one"')]
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert set(os.listdir(tmp_path)) <= {"toy.bin", RECORD}


def test_resume_by_date_where_the_tag_is_weak(site: Site, tmp_path: Path) -> None:
    date = "Thu, 31 Aug 2017 10:50:27 GMT"
    site.put(PATH, answers.cut(DATA, CUT, ETag='W/"one"', Last_Modified=date), answers.whole(DATA, tag=date))
    failure("toy_unknown", tmp_path, site)
    get("toy_unknown", tmp_path, site)
    assert site.asked[1] == (PATH, f"bytes={CUT}-", date)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


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
        get("toy_unknown", tmp_path, site)
    get("toy_unknown", tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert sorted(os.listdir(tmp_path)) == [RECORD, "toy.bin"]


def test_bytes_that_nothing_vouches_for_are_not_kept(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT), answers.whole(DATA, tag=None))
    failure("toy_unknown", tmp_path, site)
    assert os.listdir(tmp_path) == []
    get("toy_unknown", tmp_path, site)
    assert [asked for _, asked, _ in site.asked] == [None, None]


def test_complete_part_is_only_checked_and_named(site: Site, tmp_path: Path) -> None:
    with Part(tmp_path / "toy.bin") as part:
        part.restart("")
        part.append(DATA)
    get("toy", tmp_path, site)
    assert site.asked == []
    assert os.listdir(tmp_path) == ["toy.bin"]


def test_damaged_part_is_an_integrity_error_once(site: Site, tmp_path: Path) -> None:
    with Part(tmp_path / "toy.bin") as part:
        part.restart('"one"')
        part.append(bytes(CUT))
    site.put(PATH, answers.whole(DATA))
    assert "was expected" in failure("toy", tmp_path, site, IntegrityError)
    assert os.listdir(tmp_path) == []
    get("toy", tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


def test_truncated_without_a_declared_length(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.without_length(DATA[:CUT]))
    assert f"ended after {CUT} of {len(DATA)} bytes" in failure("toy", tmp_path, site)


def test_wrong_checksum(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.whole(DATA[::-1]))
    line = failure("toy", tmp_path, site, IntegrityError)
    assert f"SHA-256 {SHA256} was expected" in line
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "answer", "kind", "words"),
    [
        ("toy", answers.whole(DATA + b"x"), IntegrityError, "102401 bytes are offered where 102400 were published"),
        ("toy", answers.without_length(DATA + b"x"), IntegrityError, "more bytes came than the 102400"),
        ("toy_unknown", answers.whole(bytes(200_001)), DataError, "at most 200000 are accepted"),
        ("toy_unknown", answers.without_length(bytes(400_000)), DataError, "more bytes came than the 200000"),
        ("toy", answers.whole(b"<html>please log in</html>"), IntegrityError, "26 bytes are offered"),
    ],
)
def test_wrong_size(
    name: str, answer: answers.Answer, kind: type[DataError], words: str, site: Site, tmp_path: Path
) -> None:
    site.put(PATH, answer)
    assert words in failure(name, tmp_path, site, kind)
    assert os.listdir(tmp_path) == []


def test_slow_server(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.silent(DATA[:CUT], len(DATA)), answers.dripping(len(DATA)), answers.whole(DATA))
    assert "no answer within 0.5 seconds" in failure("toy", tmp_path, site, timeout=0.5)
    assert (tmp_path / PART).read_bytes() == DATA[:CUT], "what came can be continued"
    assert "no answer within 0.5 seconds" in failure("toy", tmp_path, site, timeout=0.5)
    (tmp_path / PART).unlink()
    get("toy", tmp_path, site)


def test_slow_and_sure_server(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.steady(DATA, pieces=20))
    get("toy", tmp_path, site, timeout=1.0)
    assert (tmp_path / "toy.bin").read_bytes() == DATA


def test_failure_of_a_second_attempt_keeps_the_first(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.cut(DATA, CUT), answers.status(503), answers.whole(DATA))
    failure("toy", tmp_path, site)
    assert "HTTP 503" in failure("toy", tmp_path, site)
    assert (tmp_path / PART).read_bytes() == DATA[:CUT]
    get("toy", tmp_path, site)
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
    assert words in failure("toy", tmp_path, site)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "location",
    ["file:///etc/hosts", "ftp://127.0.0.1/x", "https://127.0.0.1/x", "http://data.example/x", "data:,x", "http://[x"],
)
def test_redirect_to_another_scheme_or_into_the_open(location: str, site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.status(302, Location=location))
    line = failure("toy", tmp_path, site)
    assert "redirected to" in line or "Invalid IPv6" in line
    assert os.listdir(tmp_path) == []


def test_redirects_within_the_scheme_and_in_a_loop(site: Site, tmp_path: Path) -> None:
    site.put(PATH, answers.status(307, Location="/else where"), answers.status(301, Location=f"{site.url}{PATH}"))
    site.put("/else%20where", answers.whole(DATA))
    get("toy", tmp_path, site)
    assert (tmp_path / "toy.bin").read_bytes() == DATA
    assert "redirected more than 10 times" in failure("toy", tmp_path / "loop", site)
