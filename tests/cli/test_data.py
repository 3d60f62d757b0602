"""`fedrela data list`, `fedrela data show CONFIG`, and `fedrela data fetch NAME` against a real server on loopback."""

from __future__ import annotations

import re
import socket
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedrela.cli.data import GROUP_PROTOCOLS
from fedrela.data.sources import SOURCES
from fedrela.experiment.build import build_data, groups_of
from fedrela.experiment.load import load_config
from fedrela.files import PartialFile
from fedrela.metrics import groups as group_metrics
from fedrela.metrics import measure_heterogeneity
from fedrela.text import percent
from helpers import local_site as answers
from helpers.local_site import Site, running_site
from helpers.toy_downloads import DATA, PATH, add_toy

SVG = "{http://www.w3.org/2000/svg}"
DIGITS = """
seed = 1

[data]
source = "digits"
imbalance = { kind = "step", ratio = 20, minority = [0, 1, 2] }
partition = { kind = "dirichlet", clients = 10, alpha = 0.3, min_size = 5 }
"""


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    return configuration(tmp_path, DIGITS)


def configuration(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def rows(out: str, head: str) -> list[list[str]]:
    """The cells of the table whose header begins with `head`, up to the next empty line."""
    block = re.search(rf"^{head}  .*?(?=\n\n|\Z)", out, re.DOTALL | re.MULTILINE)[0].splitlines()
    return [re.split(r" {2,}", line) for line in block[1:]]


def figures(out: str) -> dict[str, str]:
    return {row[0]: row[1] for row in rows(out, "clients")}


def test_list_knows_every_source(run):
    done = run("data", "list")
    assert (done.code, done.err) == (0, "")
    first = " ".join(done.out.split("looked for")[0].split())
    for name, spec in SOURCES.items():
        assert f"{name} {'yes' if spec.download else '-'} {spec.label}: {spec.description}" in first
    second = " ".join(done.out.split("looked for")[1].split())
    for name in SOURCES:
        assert all(re.search(rf"\b{option}\b", second) for option in SOURCES[name].options)
    assert "cifar-10-binary.tar.gz" in second
    assert max(map(len, done.out.splitlines())) <= 100


def test_the_help_page_names_the_three(run):
    done = run("data")
    assert (done.code, done.err) == (2, "")
    assert all(word in done.out for word in ("list", "show", "fetch", "Example"))
    assert "Did you mean 'fetch'?" in run("data", "fetsh", "cifar10").line()


def test_show_says_what_the_federation_is(run, digits):
    done = run("data", "show", digits)
    assert (done.code, done.err) == (0, "")
    federation = build_data(load_config(digits))
    first, second = done.out.splitlines()[:2]
    assert first == "digits: 991 of 1,438 training samples (images of 1x8x8), 10 classes, 10 clients; 359 test samples"
    assert second.startswith("imbalance step, ratio 20, minority 0 1 2; partition dirichlet, alpha 0.3, ")
    assert second.endswith("; seed 1")
    holders = (federation.client_counts > 0).sum(axis=0)
    spread = [f"{clients:.1f}" for clients in measure_heterogeneity(federation.client_counts).effective_clients]
    assert len(set(spread)) > 3
    counts = zip(federation.available, federation.class_counts, holders, spread, strict=True)
    expected = [[str(c), "minority" if c < 3 else "majority", *map(str, numbers)] for c, numbers in enumerate(counts)]
    assert rows(done.out, "class") == expected
    header = next(line for line in done.out.splitlines() if line.startswith("class "))
    assert re.split(r" {2,}", header)[-2:] == ["clients with it", "effective clients"]
    assert "groups: majority 7 classes, minority 3 classes" in done.out


def test_show_gives_the_figures(run, digits):
    out = run("data", "show", digits).out
    federation = build_data(load_config(digits))
    found, shown = measure_heterogeneity(federation.client_counts), figures(out)
    sizes = federation.client_counts.sum(axis=1)
    assert shown["number"] == "10"
    assert shown["samples"] == f"{sizes.min()} / {np.median(sizes):.0f} / {sizes.max()}"
    assert shown["empty"] == str(found.empty_clients)
    assert shown["imbalance ratio"] == f"{found.imbalance_ratio:.1f}"
    assert shown["class absence"] == percent(found.absence_rate)
    assert shown["local/global mismatch"] == percent(found.mismatch)
    assert shown["total variation"] == f"{found.total_variation:.3f}"
    low, middle, high = (float(part) for part in shown["effective clients"].split(" / "))
    spread = found.effective_clients
    assert (low, middle, high) == pytest.approx((min(spread), np.median(spread), max(spread)), abs=0.051)
    assert "validation" not in shown
    assert "note" not in out


def test_show_counts_what_is_held_out(run, tmp_path):
    path = configuration(tmp_path, DIGITS + "validation = 0.25\n")
    held = sum(shard.validation.size for shard in build_data(load_config(path)).shards)
    assert held > 200
    assert figures(run("data", "show", path).out)["validation"] == str(held)


def test_show_tells_of_redraws_and_repairs(run, tmp_path):
    text = DIGITS.replace("alpha = 0.3, min_size = 5", "alpha = 0.01, min_size = 60")
    path = configuration(tmp_path, text)
    note = build_data(load_config(path)).note
    assert note
    assert f"note: partition: {note}\n" in run("data", "show", path).out


def test_show_cuts_long_tables_and_says_so(run, tmp_path):
    options = 'source = "gaussians"\noptions = { classes = 30, dimension = 30, samples = 40, test_samples = 5 }'
    tail = 'imbalance = { kind = "long_tail", factor = 10 }\npartition = { kind = "iid", clients = 3 }'
    path = configuration(tmp_path, f"[data]\n{options}\n{tail}\n")
    done = run("data", "show", path)
    assert done.code == 0
    table, names = rows(done.out, "class"), [f"class {c}" for c in range(30)]
    assert [row[0] for row in table] == [*names[:10], "... 10 more", *names[20:]]
    assert "30 features" in done.out
    sizes = groups_of(build_data(load_config(path))).sizes
    assert "groups: " + ", ".join(f"{name} {size} classes" for name, size in sizes.items()) in done.out


def test_protocols_are_those_of_the_metrics(run, tmp_path):
    assert GROUP_PROTOCOLS == group_metrics.GROUP_PROTOCOLS
    path = configuration(
        tmp_path, DIGITS.replace("step", "long_tail").replace("ratio = 20, minority = [0, 1, 2]", "factor = 20")
    )
    federation = build_data(load_config(path))
    for protocol in GROUP_PROTOCOLS:
        sizes = groups_of(federation, protocol).sizes
        out = run("data", "show", path, "--protocol", protocol).out
        assert "groups: head {head} class".format(**sizes) in out
    path.write_text(path.read_text() + 'protocol = "fedloge"\n')
    assert run("data", "show", path).out == run("data", "show", path, "--protocol", "fedloge").out


def test_show_draws_the_picture(run, digits, tmp_path):
    target = tmp_path / "new" / "clients.svg"
    done = run("data", "show", digits, "--picture", target)
    assert done.code == 0
    assert done.out.endswith(f"\npicture {target}\n")
    root = ET.parse(target).getroot()
    federation = build_data(load_config(digits))
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert any(text.startswith("digits: step, ratio 20, minority 0 1 2; dirichlet, alpha 0.3") for text in words)
    totals = [f"{total:,}" for total in federation.class_counts]
    assert [text for text in words if text in totals][-len(totals) :] == totals
    plain = run("data", "show", digits).out
    assert done.out == f"{plain}\npicture {target}\n"


def test_a_picture_is_not_overwritten_without_force(run, digits, tmp_path):
    old = tmp_path / "clients.svg"
    old.write_text("precious")
    done = run("data", "show", digits, "--picture", old)
    assert done.code == 2
    assert done.line() == f"{old}: exists already; --force overwrites it, --picture chooses another name"
    assert old.read_text() == "precious"
    assert run("data", "show", digits, "--picture", old, "--force").code == 0
    assert old.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--picture", "a.gif"), "a.gif: a picture ends in .svg, .png or .pdf"),
        (("--protocol", "fedlog"), "--protocol: expected one of counts, fedloge, fedrela-release, got 'fedlog'"),
        (("--protocol", "fedloge"), "protocol: not used with minority classes, got"),
        (("--pictures", "a.svg"), "--pictures"),
    ],
)
def test_wrong_options(run, digits, arguments, said):
    done = run("data", "show", digits, *arguments)
    assert done.code == 2
    assert said in done.line()


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[data]\nsorce = 'digits'", 2, "run.toml:2:1: data.sorce: unknown key; nearest: source"),
        ("[data\n", 2, "run.toml:1"),
        ("[data]\nsource = 'digit'", 2, "run.toml:2:"),
        ("[data]\nsource = 'npz'\nroot = 'none.npz'", 3, "run.toml:3:8: data.root: npz: "),
        ("[data]\nsource = 'npz'\nroot = 'none.npz'", 3, "none.npz is missing"),
        ("[data]\nsource = 'cifar10'\nroot = 'nowhere'", 3, "run.toml:3:8: data.root: cifar10: no binary edition"),
        ("[data]\nsource = 'cifar10'\nroot = 'nowhere'", 3, "fedrela data fetch cifar10"),
        (
            "[data]\npartition = { kind = 'natural' }",
            3,
            "run.toml:2:13: data.partition: this source has no client ids",
        ),
        (
            "[data]\npartition = { kind = 'iid', clients = 100000 }",
            2,
            "run.toml:2:39: data.partition.clients: 100000 clients with 1 samples each need 100000",
        ),
        (
            "[data]\npartition = { kind = 'iid', min_size = 0, clients = 1000000000000 }",
            2,
            "run.toml:2:53: data.partition.clients: expected an integer from 1 to 1000000",
        ),
        (
            DIGITS.replace("[0, 1, 2]", "[0, 12]"),
            2,
            "run.toml:6:53: data.imbalance.minority: expected different class ids from 0 to 9, got [0, 12]",
        ),
        (DIGITS + "protocol = 'fedloge'\n", 2, "run.toml:8:12: data.protocol: not used with minority classes"),
    ],
)
def test_configurations_that_do_not_work(run, tmp_path, text, code, said):
    done = run("data", "show", configuration(tmp_path, text))
    assert done.code == code
    assert said in done.line()


def test_a_configuration_that_is_not_there(run, tmp_path):
    done = run("data", "show", tmp_path / "none.toml")
    assert done.code == 2
    assert done.line().startswith(f"{tmp_path / 'none.toml'}: cannot be read: No such file or directory")


def test_hostile_class_names_are_shown_inert(run, tmp_path):
    names = ("[bold]b[/] :smile:", "</text><script>", "&amp; {0} %s")
    y = np.repeat(np.arange(3), 20)
    x = np.arange(240, dtype=np.float32).reshape(60, 4)
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y, class_names=np.array(names))
    text = '[data]\nsource = "npz"\nroot = "own.npz"\npartition = { kind = "iid", clients = 2 }\n'
    done = run("data", "show", configuration(tmp_path, text), "--picture", tmp_path / "a.svg")
    assert (done.code, done.err) == (0, "")
    assert [row[0] for row in rows(done.out, "class")] == list(names)
    shown = [text.text for text in ET.parse(tmp_path / "a.svg").getroot().iter(f"{SVG}text")]
    assert set(names) <= set(shown)


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
        f"{url}/train-images-idx3-ubyte.gz: Connection refused; try again, or copy the file to {file} by other means"
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
    with PartialFile(tmp_path / "toy.bin"):
        busy = run("data", "fetch", "toy", *arguments)
    assert busy.code == 5
    assert "another process" in busy.line()
    assert run("data", "fetch", "toys", *arguments).code == 2
    assert run("data", "fetch", "toy", "--root", tmp_path, "--base-url", "ftp://example.org").code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_kind_of_every_column_is_shown_by_data_show_and_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{'mf'[i % 2]},{'ill' if i % 3 else 'well'}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["age,sex,label", *rows]) + "\n")
    text = "[data]\nsource = 'csv'\nroot = 'a.csv'\npartition = { kind = 'iid', clients = 2 }\n"
    (tmp_path / "a.toml").write_text(text + "[model]\nname = 'logistic'\n[train]\nrounds = 1\n[engine]\nworkers = 1\n")
    for arguments in (("data", "show", "a.toml"), ("run", "a.toml")):
        done = run(*arguments)
        assert (done.code, "\ncolumns: numbers age; categories sex (2 values)\n" in done.out) == (0, True)
