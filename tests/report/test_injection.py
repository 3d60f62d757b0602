"""B18, injection: 60 payloads in 8 places, as HTML, Markdown, CSV and on the terminal, stay text everywhere.

HTML is parsed again and compared with the elements that a page may have; the page of a run has eight places more.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from markdown_it import MarkdownIt

from fedrela.cli.terminal import console, print_error, print_line, print_report_table
from fedrela.experiment import run as run_experiment
from fedrela.plots.folders import GridData
from fedrela.report.grid_page import KINDS, all_tables, heading, summary_page
from fedrela.report.page import render
from fedrela.report.run_page import run_page
from fedrela.runfolder import RunFolder
from fedrela.text import printable
from helpers.batteries import count, tried
from helpers.payloads import PAYLOADS
from helpers.small_runs import small
from helpers.summaries import compare_summary, reproduce_summary, sweep_summary
from report.test_page import LINK, PLOT, TAGS

torch.set_num_threads(1)
Record = dict[str, Any]
VOID = {"meta", "link", "img"}
MARKDOWN_TAGS = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
LONG_ENOUGH = 12  # characters by which a payload is known again where a place is short


def hostile_name(text: str) -> Record:
    return {**compare_summary(), "name": text}


def hostile_label(text: str) -> Record:
    return compare_summary(label=text)


def hostile_group(text: str) -> Record:
    return compare_summary(names=(text, "minority", "overall"))


def hostile_key(text: str) -> Record:
    return json.loads(json.dumps(sweep_summary(1)).replace('"relabel.tau"', json.dumps(text)))


def hostile_value(text: str) -> Record:
    return json.loads(json.dumps(sweep_summary(3)).replace('"official"', json.dumps(text)))


def hostile_axis(text: str) -> Record:
    return json.loads(json.dumps(reproduce_summary()).replace('"F-MNIST"', json.dumps(text)))


def hostile_doubt(text: str) -> Record:
    return json.loads(json.dumps(reproduce_summary()).replace('"printed twice"', json.dumps(text)))


def hostile_note(text: str) -> Record:
    return {**reproduce_summary(), "notes": [text], "title": text}


# place -> the summary with a payload there, and the formats that show it
PLACES: dict[str, tuple[Callable[[str], Record], set[str]]] = {
    "name": (hostile_name, {"md", "html"}),
    "baseline label": (hostile_label, {"md", "html", "csv"}),
    "group": (hostile_group, {"md", "html", "csv"}),
    "swept key": (hostile_key, {"md", "html", "csv"}),
    "swept value": (hostile_value, {"md", "html", "csv"}),
    "axis value": (hostile_axis, {"md", "html", "csv"}),
    "doubt": (hostile_doubt, {"md", "html", "csv"}),
    "note": (hostile_note, {"md", "html"}),
}


class Nested(HTMLParser):
    """Checks that every element ends where it should, and collects elements, text and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.attributes: set[tuple[str, str]] = set()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.update(attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")

    handle_pi = unknown_decl = handle_comment

    @property
    def outline(self) -> list[str]:
        """The elements but those of plots, whose number depends on the room that names leave."""
        return [tag for tag in self.tags if tag not in PLOT]


def read_page(html: str) -> Nested:
    """Only elements that a page may have, no event, nothing fetched, no style but ours."""
    assert all(line.isprintable() for line in html.split("\n"))
    read = Nested(html)
    assert set(read.tags) <= TAGS
    for name, value in read.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "src", "xmlns") or LINK.fullmatch(value)
    for sheet in re.findall(r"<style>(.*?)</style>", html, re.S):
        assert not any(word in sheet for word in ("url(", "@import", "http", "expression"))
    return read


def known_by(text: str) -> str:
    """What is seen of a payload wherever it is shown."""
    return printable(text).strip()[:LONG_ENOUGH].strip()


def cases(place: str) -> Iterator[tuple[str, Record, set[str]]]:
    made, shown = PLACES[place]
    for text in PAYLOADS:
        yield text, made(text), shown
        tried()


def test_the_counts_of_the_battery():
    assert len(set(PAYLOADS)) * len(PLACES) * 4 == 1_920


def all_of_a_comparison(name: str, label: str, group: str) -> Record:
    return {**compare_summary(label=label, names=(group, "minority", "overall")), "name": name}


def all_of_a_table(axis: str, doubt: str, note: str) -> Record:
    text = json.dumps(hostile_axis(axis)).replace('"printed twice"', json.dumps(doubt))
    return {**json.loads(text), "notes": [note], "title": note}


# the places that one page has, with its summary: drawing a page takes longest, so each is drawn for all its places
PAGES: dict[tuple[str, ...], Callable[..., Record]] = {
    ("name", "baseline label", "group"): all_of_a_comparison,
    ("swept key",): hostile_key,
    ("swept value",): hostile_value,
    ("axis value", "doubt", "note"): all_of_a_table,
}


def test_pages_have_every_place():
    assert [place for places in PAGES for place in places] == list(PLACES)


@pytest.mark.parametrize("places", PAGES, ids=", ".join)
def test_html(places):
    outline = read_page(render(summary_page(GridData([], [], PAGES[places](*["plain"] * len(places)))))).outline
    for i in range(len(PAYLOADS)):  # each payload comes to each place
        texts = [PAYLOADS[(i + j * len(PAYLOADS) // 3) % len(PAYLOADS)] for j in range(len(places))]
        tried(len(places))
        read = read_page(render(summary_page(GridData([], [], PAGES[places](*texts)))))
        assert read.outline == outline
        assert all(known_by(text) in "".join(read.words) for text in texts)


@pytest.mark.parametrize("place", PLACES)
def test_markdown(place):
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    plain = Nested(reader.render(all_tables(PLACES[place][0]("plain"))["table.md"].decode()))
    for text, summary, _ in cases(place):
        written = all_tables(summary)["table.md"].decode()
        assert all(line.isprintable() for line in written.split("\n"))
        read = Nested(reader.render(written))
        assert set(read.tags) <= MARKDOWN_TAGS
        assert read.tags == plain.tags  # no cell, row, heading or list item more
        assert known_by(text) in "".join(read.words)
        assert not re.search(r"(?<!\\)://|www\.", written)  # what some readers make links of by themselves


@pytest.mark.parametrize("place", PLACES)
def test_csv(place):
    plain = list(csv.reader(io.StringIO(all_tables(PLACES[place][0]("plain"))["table.csv"].decode()), strict=True))
    for text, summary, shown in cases(place):
        written = all_tables(summary)["table.csv"].decode()
        assert all(line.isprintable() for line in written.split("\n"))
        rows = list(csv.reader(io.StringIO(written), strict=True))
        assert [len(row) for row in rows] == [len(row) for row in plain]
        for cell in (cell for row in rows for cell in row):
            assert not cell.lstrip().startswith(("=", "+", "-", "@")) or re.fullmatch(r"-\d+(\.\d+)?", cell)
        ways = (printable(text), f"'{printable(text)}")
        assert ("csv" in shown) == any(cell.startswith(ways) for row in rows for cell in row)


@pytest.mark.parametrize("place", PLACES)
def test_terminal(place):
    for text, summary, _ in cases(place):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            screen = console()
            print_line(screen, printable(heading(summary)))
            tables, *_ = KINDS[summary["kind"]]
            for table in tables(summary):
                print_report_table(screen, table)
            print_error(text)
        for written in (out.getvalue(), errors.getvalue()):
            assert all(line.isprintable() for line in written.split("\n"))
        assert errors.getvalue() == f"fedrela: {printable(text)}\n"
        assert re.sub(r"\s", "", known_by(text))[:3] in re.sub(r"\s", "", out.getvalue() + errors.getvalue())


@pytest.fixture(autouse=True)
def no_layout(monkeypatch):
    """Where things stand in a plot is no matter of injection, and costs half of the time."""
    monkeypatch.setattr("matplotlib.layout_engine.ConstrainedLayoutEngine.execute", lambda *_: None)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return RunFolder.open(run_experiment(small(), out=tmp_path_factory.mktemp("run") / "run", workers=1).folder)


RUN_PLACES = ("class", "group", "source", "algorithm", "exclusion", "configuration", "feature", "refusal", "note")


def hostile_run(run: RunFolder, place, text: str) -> RunFolder:
    """A sound run folder with a payload in every place, each behind the name of the place."""
    bad = {name: f"{name} {text}" for name in RUN_PLACES}
    manifest = json.loads(json.dumps(run.manifest))
    manifest["classes"][0] = bad["class"]
    manifest["groups"]["names"][0] = bad["group"]
    manifest["algorithm"]["label"] = bad["algorithm"]
    features = [f"{bad['feature']} {j}" for j in range(manifest["data"]["arrays"]["x_train"]["shape"][1])]
    manifest["data"] |= {"source": bad["source"], "feature_names": features}
    config = run.read("config.toml").decode() + f"\n# {printable(bad['configuration'])}\n"
    made = RunFolder.create(place, manifest, config, {})
    for record in run.rounds():
        renamed = json.loads(json.dumps(record))
        shares = renamed["accuracy"]["groups"]
        renamed["accuracy"]["groups"] = dict(zip(manifest["groups"]["names"], shares.values(), strict=True))
        made.append_round({**renamed, "excluded": [[0, bad["exclusion"]]]})
    for record in run.timing():
        made.append_timing(record)
    relabelling = run.read_json("relabelling.json")
    first, second = list(relabelling["clients"].values())[:2]
    first["refusal"], second["notes"] = bad["refusal"], [bad["note"]]
    made.write_json("relabelling.json", relabelling)
    made.write("gallery.npz", run.read("gallery.npz"))
    result = {key: value for key, value in run.read_json("result.json").items() if key != "files"}
    result["accuracy"]["groups"] = dict(
        zip(manifest["groups"]["names"], result["accuracy"]["groups"].values(), strict=True)
    )
    made.finish(result)
    return made


@pytest.mark.parametrize("part", range(count(1, 10)))
def test_the_page_of_a_run(run, tmp_path, part):
    for number, text in enumerate(PAYLOADS[part::10]):
        tried(len(RUN_PLACES))
        words = "".join(read_page(render(run_page(hostile_run(run, tmp_path / f"{number}", text)))).words)
        for place in RUN_PLACES:
            assert f"{place} {printable(text)[:LONG_ENOUGH].rstrip()}" in words, place
