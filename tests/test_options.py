"""Parameters: every kind of wrong value is one line that says what is allowed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.algorithms import ALGORITHMS
from fedrela.errors import ArgumentError
from fedrela.options import Option, Options, checked, expected, option, options_of
from fedrela.text import nearest, shown
from helpers.batteries import examples


@dataclass(frozen=True)
class Example(Options):
    mu: float = option(0.5, "a strength", symbol="mu", ge=0, lt=1)
    rate: float = option(1.0, "a rate", symbol="eta", gt=0, le=2)
    free: float = option(0.0, "any number", symbol="b")
    steps: int = option(3, "steps", symbol="k", ge=1, le=9)
    anchored: bool = option(False, "a switch")
    core: str = option("avg", "a word", choices=("avg", "pd"))


WRONG = {
    "mu": [-1e-9, 1, 1.5, float("nan"), float("inf"), "0.5", None, True, [0.5], 10**400],
    "rate": [0, 0.0, -1, 2.0001, float("nan"), False],
    "free": [float("inf"), -float("inf"), float("nan"), 10**400, -(10**400), "0"],
    "steps": [0, 10, 3.0, True, "3", None, 10**400],
    "anchored": [0, 1, "true", None],
    "core": ["AVG", "", "sgd", None, 1, b"avg"],
}
ALLOWED = {
    "mu": "mu: expected a number >= 0 and < 1, got ",
    "rate": "rate: expected a number > 0 and <= 2, got ",
    "free": "free: expected a number, got ",
    "steps": "steps: expected an integer from 1 to 9, got ",
    "anchored": "anchored: expected true or false, got ",
    "core": "core: expected one of avg, pd, got ",
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_values(name, value):
    with pytest.raises(ArgumentError) as error:
        Example(**{name: value})
    near = nearest(value, ("avg", "pd")) if name == "core" and isinstance(value, str) else ""
    assert str(error.value) == f"{ALLOWED[name]}{shown(value)}" + (f"; nearest: {near}" if near else "")
    assert error.value.argument == name


@pytest.mark.parametrize(
    "given",
    [
        {}, {"mu": 0}, {"mu": 0.0}, {"mu": np.float64(0.25)}, {"mu": np.float32(0.5)}, {"steps": np.int64(3)},
        {"rate": 2}, {"free": -1e300}, {"free": 10**300},
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
    assert Options() == Options()


def positive_pair(value):
    if isinstance(value, tuple) and len(value) == 2 and min(value) > 0:
        return tuple(map(float, value))
    raise ArgumentError(f"expected two numbers > 0, got {value!r}")


def unused():
    raise AssertionError("choices are read for a value that is not the default alone")


@dataclass(frozen=True)
class Forms(Options):
    several: float | str | None = option(None, "number, word or nothing", gt=0, choices=("a", "b"))
    pair: tuple[float, float] = option((1.0, 2.0), "two numbers", check=positive_pair, form="two numbers > 0")
    late: str = option("known", "a word that costs an import", choices=unused)
    plain: int = 3


def test_an_option_may_have_several_forms():
    assert [each.name for each in options_of(Forms)] == ["several", "pair", "late"]
    for value in (None, "a", 1, 0.5):
        assert Forms(several=value).several == value
    with pytest.raises(ArgumentError, match="several: expected a number > 0 or one of a, b or None, got 0"):
        Forms(several=0)


def test_an_option_may_have_a_check_of_its_own():
    assert Forms(pair=(1, 3)).pair == (1.0, 3.0)
    assert [expected(each) for each in options_of(Forms) if each.check] == ["two numbers > 0"]
    with pytest.raises(ArgumentError, match=r"^pair: expected two numbers > 0, got \(0, 1\)$"):
        Forms(pair=(0, 1))


def test_choices_may_be_a_function():
    loaded = Option("name", str, "a", "a word", words=lambda: iter("abc"))
    assert loaded.choices == ("a", "b", "c")
    assert checked(loaded, "c") == "c"
    with pytest.raises(ArgumentError, match="expected one of a, b, c, got 'x'"):
        checked(loaded, "x")


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
