"""Battery B17: random sweeps, right and wrong, load or are refused in one line that points at an entry of theirs."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.test_mutations import LITERALS, VALID, outcome
from helpers.batteries import examples

BASE = "[train]\nrounds = 40\n[data]\npartition = { kind = 'iid', clients = 4 }\n"
KEYS = [f"{table}.{key.strip(chr(34))}" for table, pairs in VALID.items() for key in pairs]
RIGHT = {
    "relabel.tau": ["0.1", "0", "{ 2 = 0.3 }", "{ default = 0.1 }"], "train.rounds": ["40", "33"],
    "relabel.start": ["1", "0.5", "33", "1.0"], "relabel.preset": ["'paper'", "'official'"],
    "data.partition.clients": ["4", "5"], "data.imbalance": ["{ kind = 'step', ratio = 3 }", "{ kind = 'natural' }"],
    "algorithm.name": ["'fedavg'", "'fedlc'"], "train.loss": ["'cross_entropy'", "'focal'"],
    "model.hidden": ["[]", "[8]"],
}  # fmt: skip


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


keys = st.sampled_from([*KEYS, *VALID, "seed", "sweep.x", "", ".", "a..b", "relabel.tua", "relabl.tau", "train.lr.x"])
values = st.one_of(
    st.sampled_from([value for pairs in VALID.values() for value in pairs.values()]),
    st.sampled_from([literal for literal in LITERALS if is_toml(f"x = [{literal}, 1]")]),
    st.integers(-3, 70).map(str),
)
wrong = st.tuples(keys, st.lists(values, min_size=1, max_size=3))
right = st.sampled_from(sorted(RIGHT)).flatmap(
    lambda key: st.tuples(st.just(key), st.lists(st.sampled_from(RIGHT[key]), min_size=1, unique=True))
)


@st.composite
def sweeps(draw: st.DrawFn) -> str:
    """A table ``[sweep]`` of one to three keys, behind dots, in quotes, or below headers; a few keys are no lists."""
    text = ""
    for key, listed in draw(st.lists(right | right | right | wrong, min_size=1, max_size=3, unique_by=lambda e: e[0])):
        spread = draw(st.sampled_from(["[{}]"] * 9 + ["[\n {} ,# ]\n]"])).format(", ".join(listed))
        value = draw(st.sampled_from([spread] * 9 + [listed[0]]))
        *tables, name = key.split(".")
        way = draw(st.sampled_from(["quoted", "dotted", "header"]))
        if way == "quoted" or "" in (*tables, name):
            text = f"sweep.'{key}' = {value}\n{text}"
        elif way == "dotted":
            text = f"sweep.{key} = {value}\n{text}"
        else:
            text = f"{text}[{'.'.join(['sweep', *tables])}]\n{name} = {value}\n"
    return text + BASE


@given(sweeps())
@examples(300, 5_000)
def test_a_random_sweep_loads_or_is_refused_in_one_line(text):
    said = outcome(text)
    assert said == "valid" or not is_toml(text) or re.match(r"run\.toml:\d+:\d+: sweep", said), said


@pytest.mark.parametrize("key", RIGHT)
def test_what_is_right_alone_is_right_in_a_sweep(key):
    more = "algorithm.name = 'fedprox'\n" if key == "train.loss" else ""
    assert outcome(f"{more}sweep.'{key}' = [{', '.join(RIGHT[key])}]\n{BASE}") == "valid"
