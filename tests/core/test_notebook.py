"""A re-labelling in a notebook and in pandas: what it shows is what the ledger holds, and foreign text stays text."""

from __future__ import annotations

import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedrela
from fedrela.core.ledger import Ledger
from fedrela.core.notebook import LONGEST_TABLE, moves_html, safe, table
from fedrela.errors import ArgumentError
from fedrela.text import percent
from helpers.batteries import examples
from helpers.core_cases import Case, clients, make

SIDES = ("text-align: left", "text-align: right")
COLUMNS = ["index", "old", "new", "posterior", "z", "rho"]


class Reader(HTMLParser):
    """Reads markup: its elements, and the text of its cells and paragraphs."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.sides: list[str] = []
        self.text = ""
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.open.append(tag)
        assert all(name == "style" and value in SIDES for name, value in attrs)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.sides += [value.removeprefix("text-align: ") for _, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def done_for(case: Case, names: tuple[str, ...] = ()) -> fedrela.Relabelling:
    done = fedrela.relabel(case.Q, case.y, tau=case.tau, uniforms=case.U)
    return replace(done, ledger=replace(done.ledger, class_names=names))


def ledger_of(old: list[int], new: list[int], num_classes: int, **fields) -> Ledger:
    """A ledger whose first rows all move; the posterior of the last move is 0.9, of the others 0.5."""
    m = len(old)
    posterior, rho = np.full(m, 0.5), np.linspace(0, 1, m)
    posterior[-1:] = 0.9
    moves = {"index": np.arange(m), "old": np.array(old), "new": np.array(new)}
    return Ledger(np.array([*old, 0]), num_classes, **moves, posterior=posterior, z=rho, rho=rho, **fields)


@given(case=clients(max_n=120, max_C=40))
@examples(25, 300)
def test_the_frame_is_the_ledger(case):
    done = done_for(case)
    frame = done.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == COLUMNS
    for name in COLUMNS:
        assert np.array_equal(frame[name].to_numpy(), getattr(done.ledger, name))
    assert np.array_equal(done.labels[frame["index"]], frame["new"])


def test_names_of_classes_stand_for_their_numbers():
    case = make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None)
    names = ("cat", "dog", "owl", "<bat>")
    plain, named = done_for(case), done_for(case, names)
    assert len(plain.ledger) > 3
    expected = [names[c] for c in plain.ledger.new]
    assert list(named.to_pandas().columns) == COLUMNS
    assert named.to_pandas()["new"].tolist() == expected == plain.to_pandas(np.array(names))["new"].tolist()
    assert named.to_pandas(["a", "b", "c", "d"])["old"].tolist() == ["abcd"[c] for c in plain.ledger.old]
    for wrong in ([], ["a", "b"]):
        with pytest.raises(ArgumentError, match=f"^class_names: expected 4 names, got {len(wrong)}$"):
            plain.to_pandas(wrong)


def test_ids_of_rows_are_a_column():
    case = make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None)
    done = fedrela.relabel(case.Q, case.y, tau=case.tau, uniforms=case.U, ids=[f"p{row}" for row in range(300)])
    frame = done.to_pandas()
    assert list(frame.columns) == ["index", "id", *COLUMNS[1:]]
    assert frame["id"].tolist() == [f"p{row}" for row in done.moved] != []


def test_a_result_is_shown_in_one_line_without_labels_or_ids():
    case = make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None)
    done = fedrela.relabel(case.Q, case.y, tau=case.tau, uniforms=case.U, ids=[f"p{row}" for row in range(300)])
    assert str(done) == repr(done) == f"<Relabelling: {done.moved.size} of 300 labels moved>"
    assert repr(done.ledger) == f"<Ledger: {done.moved.size} of 300 labels moved>"
    refused = fedrela.relabel([[0.5, np.nan]], [0])
    assert repr(refused) == f"<Relabelling: refused: {refused.refusal}; 0 of 1 labels moved>"
    assert repr(replace(refused.ledger, refusal="a\x1b\n")) == "<Ledger: refused: a\\x1b\\n; 0 of 1 labels moved>"


def test_a_frame_does_not_reach_into_the_ledger():
    done = done_for(make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None))
    before = done.ledger.rho.copy()
    frame = done.to_pandas()
    frame.loc[:, "rho"] = 7.0
    assert np.array_equal(done.ledger.rho, before)


def test_without_pandas_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError) as caught:
        fedrela.relabel([[0.9, 0.1]], [0]).to_pandas()
    assert str(caught.value) == "to_pandas: needs pandas, which is not installed; run `pip install pandas`"


@given(case=clients(max_n=200, max_C=30))
@examples(25, 300)
def test_the_view_counts_every_move_once(case):
    done = done_for(case)
    seen = Reader(done._repr_html_())
    share = f" ({percent(done.share)})" if case.n else ""
    assert f"{len(done.ledger):,} of {case.n:,} labels moved{share}" in seen.text
    flow, rows = done.ledger.flow, seen.rows[1:]
    assert len(rows) == min(np.count_nonzero(flow), LONGEST_TABLE)
    assert all(int(samples.replace(",", "")) == flow[int(old), int(new)] for old, new, samples, _, _ in rows)
    left = len(done.ledger) - sum(int(row[2].replace(",", "")) for row in rows)
    assert (f"and {left:,} between" in seen.text) == (left > 0)
    for old, new, _, posterior, rho in rows:
        here = (done.ledger.old == int(old)) & (done.ledger.new == int(new))
        assert float(posterior) == pytest.approx(done.ledger.posterior[here].mean(), abs=6e-4)
        assert float(rho) == pytest.approx(done.ledger.rho[here].mean(), abs=6e-4)


def test_the_view_word_for_word():
    seen = Reader(moves_html(ledger_of([0, 0, 1], [1, 2, 2], 3, class_names=("cat", "dog", "owl"), notes=("odd",))))
    more = Reader(moves_html(ledger_of([0, 0, 0], [1, 2, 2], 3, class_names=("cat", "dog", "owl"))))
    head = ["old", "new", "samples", "mean posterior", "mean rho"]
    assert more.rows == [head, ["cat", "owl", "2", "0.700", "0.750"], ["cat", "dog", "1", "0.500", "0.000"]]
    assert seen.rows == [
        head,
        ["cat", "dog", "1", "0.500", "0.000"],
        ["cat", "owl", "1", "0.500", "0.500"],
        ["dog", "owl", "1", "0.900", "1.000"],
    ]
    assert seen.text == "3 of 4 labels moved (75.0 %)" + "".join(map("".join, seen.rows)) + "note: odd"
    assert (seen.elements.count("th"), seen.elements.count("td")) == (5, 15)
    assert seen.sides == ["left", "left", "right", "right", "right"] * 4
    assert Reader(table(["arm", "accuracy", "moved"], [])).sides == ["left", "right", "right"]
    nothing = Ledger(np.empty(0, np.int64), 2, *np.empty((3, 0), np.int64), *np.empty((3, 0)))
    assert Reader(moves_html(nothing)).text == "0 of 0 labels moved"


@pytest.mark.parametrize(
    ("pairs", "end"),
    [(20, ""), (21, "and 1 between 1 further pairs of classes"), (80, "and 70 between 60 further pairs of classes")],
)
def test_the_busiest_twenty_pairs_are_listed_the_first_of_equals_first(pairs, end):
    new = [*range(1, pairs + 1), *range(51, pairs + 1), pairs]
    seen = Reader(moves_html(ledger_of([0] * len(new), new, 81)))
    numbers = np.bincount(new)
    assert [int(row[1]) for row in seen.rows[1:]] == sorted(range(1, pairs + 1), key=lambda c: -numbers[c])[:20]
    assert seen.text.endswith("".join(seen.rows[-1]) + end)


def test_long_text_is_cut():
    names, notes = ("a" * 60, "b" * 61), ("c" * 1000, "d" * 1001)
    seen = Reader(moves_html(ledger_of([0], [1], 2, class_names=names, notes=notes)))
    assert seen.rows[1][:2] == ["a" * 60, "b" * 60 + "..."]
    assert seen.text.endswith(f"note: {notes[0]}note: {'d' * 1000}...")


def test_a_refusal_is_shown_with_its_reason():
    done = fedrela.relabel([[0.9, 0.1], [np.nan, 0.5]], [0, 1])
    text = Reader(done._repr_html_()).text
    assert text == f"refused: {done.refusal}; no label moved"
    assert len(done.to_pandas()) == 0


def test_notes_are_shown():
    done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    assert done.ledger.notes
    text = Reader(done._repr_html_()).text
    assert all(f"note: {note}" in text for note in done.ledger.notes)


@given(name=st.text(max_size=100))
@examples(50, 1000)
def test_names_are_text_whatever_is_in_them(name):
    done = done_for(
        make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None), (name, name, f"<b>{name}", "</td>&lt;" + name)
    )
    plain = done_for(make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None))
    seen, expected = Reader(done._repr_html_()), Reader(plain._repr_html_())
    assert seen.elements == expected.elements
    assert seen.text.isprintable()
    assert Reader(f"<p>{safe(name)}</p>").text == "".join(
        ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in name
    )


def test_a_ledger_with_too_few_names_shows_numbers():
    done = done_for(make(300, 4, 0.3, 1, skew=1.0, skill=0.0, digits=None), ("one",))
    assert all(row[0].isdecimal() for row in Reader(done._repr_html_()).rows[1:])
    with pytest.raises(ArgumentError, match="expected 4 names, got 1"):
        done.to_pandas()
