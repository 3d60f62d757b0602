"""`fedrela data fetch NAME`, against a real server on loopback and against none."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fedrela.files import Part
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import DATA, PATH, add_toy


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    add_toy(monkeypatch)
    with running_site() as running:
        yield running


def test_fetch_puts_the_files_and_says_where(run, site, tmp_path):
    site.put(PATH, answers.whole(DATA))
    done = run("data", "fetch", "toy", "--root", tmp_path / "data", "--base-url", site.url)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"toy\nfiles   {tmp_path / 'data'}\n"
    assert (tmp_path / "data" / "toy.bin").read_bytes() == DATA
    assert run("data", "fetch", "toy", "--root", tmp_path / "data", "--base-url", site.url).out == done.out
    assert len(site.asked) == 1


def test_fetch_goes_to_the_folder_data_by_default(run, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site.put(PATH, answers.whole(DATA))
    assert run("data", "fetch", "toy", "--base-url", site.url).out == "toy\nfiles   data\n"
    assert (tmp_path / "data" / "toy.bin").read_bytes() == DATA


def test_fetch_without_network_names_the_file_to_put_where(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    done = run("data", "fetch", "fashion_mnist", "--root", tmp_path, "--base-url", url)
    assert done.code == 3
    file = tmp_path / "FashionMNIST" / "raw" / "train-images-idx3-ubyte.gz"
    assert done.line() == (
        f"{url}/train-images-idx3-ubyte.gz: Connection refused; try again, or get the file by other means "
        f"and put it at {file}"
    )


def test_fetch_ends_with_the_code_of_the_error(run, site, tmp_path):
    arguments = ("--root", tmp_path, "--base-url", site.url)
    site.put(PATH, answers.status(404))
    missing = run("data", "fetch", "toy", *arguments)
    assert missing.code == 3
    assert "HTTP 404 Not Found" in missing.line()
    site.put(PATH, answers.whole(DATA[::-1]))
    wrong = run("data", "fetch", "toy", *arguments)
    assert wrong.code == 4
    assert "SHA-256" in wrong.line()
    with Part(tmp_path / "toy.bin"):
        busy = run("data", "fetch", "toy", *arguments)
    assert busy.code == 5
    assert "another process" in busy.line()
    assert run("data", "fetch", "toys", *arguments).code == 2
    assert run("data", "fetch", "toy", "--root", tmp_path, "--base-url", "ftp://example.org").code == 2
    assert list(tmp_path.iterdir()) == []
