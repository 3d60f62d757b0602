"""Parameters: every kind of wrong value is one line that says what is allowed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.algorithms import ALGORITHMS
from fedrela.errors import ArgumentError
from fedrela.options import Params, allowed, param
from helpers.batteries import examples


@dataclass(frozen=True)
class Example(Params):
    mu: float = param(0.5, "mu", "a strength", low=0, below=1)
    rate: float = param(1.0, "eta", "a rate", above=0, high=2)
    free: float = param(0.0, "b", "any number")
    steps: int = param(3, "k", "steps", low=1, high=9)
    anchored: bool = param(False, "", "a switch")
    core: str = param("avg", "", "a word", choices=("avg", "pd"))


WRONG = {
    "mu": [-1e-9, 1, 1.5, float("nan"), float("inf"), "0.5", None, True, [0.5], 10**400, np.float32(0.5)],
    "rate": [0, 0.0, -1, 2.0001, float("nan"), False],
    "free": [float("inf"), -float("inf"), float("nan"), 10**400, -(10**400), "0"],
    "steps": [0, 10, 3.0, True, "3", None, np.int64(3), 10**400],
    "anchored": [0, 1, "true", None],
    "core": ["AVG", "", "sgd", None, 1, b"avg"],
}
ALLOWED = {
    "mu": "mu: expected a number >= 0 and < 1, got ",
    "rate": "rate: expected a number > 0 and <= 2, got ",
    "free": "free: expected a number, got ",
    "steps": "steps: expected an integer >= 1 and <= 9, got ",
    "anchored": "anchored: expected true or false, got ",
    "core": "core: expected one of avg, pd, got ",
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_values(name, value):
    with pytest.raises(ArgumentError) as error:
        Example(**{name: value})
    assert str(error.value) == f"{ALLOWED[name]}{value!r}"
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {}, {"mu": 0}, {"mu": 0.0}, {"mu": np.float64(0.25)}, {"rate": 2}, {"free": -1e300}, {"free": 10**300},
        {"steps": 1}, {"steps": 9}, {"anchored": True}, {"core": "pd"},
    ],
)  # fmt: skip
def test_right_values(given):
    made = Example(**given)
    assert {name: getattr(made, name) for name in given} == given


@examples(200, 5000)
@given(st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none(), st.binary()))
def test_whatever_comes_is_taken_or_refused_in_one_line(value):
    for name, message in ALLOWED.items():
        said = ""
        try:
            Example(**{name: value})
        except ArgumentError as error:
            said = str(error)
        assert not said or said.startswith(message)


def test_they_do_not_change():
    with pytest.raises(FrozenInstanceError):
        Example().mu = 0.1


def test_there_may_be_none():
    assert Params() == Params()


def test_a_word_says_its_choices():
    assert allowed(param("a", "", "", choices=("a", "b")).metadata) == "one of a, b"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_defaults_of_every_algorithm_are_allowed_ones(name):
    algorithm = ALGORITHMS[name]()
    assert isinstance(algorithm.params, algorithm.Params)
    assert algorithm.name == name


def test_the_table_is_sorted_and_complete():
    assert list(ALGORITHMS) == sorted(ALGORITHMS)
    for algorithm in ALGORITHMS.values():
        assert algorithm.paper
        assert "weights" in algorithm.uploads
