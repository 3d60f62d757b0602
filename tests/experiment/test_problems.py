"""Words for tables to come: a toy schema with every kind of field, checked as `load` checks the real one."""

from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from fedrela.errors import ArgumentError
from fedrela.experiment.load import parse_config
from fedrela.experiment.schema.config_table import ConfigTable
from fedrela.experiment.schema.problems import WrongConfigError, problems_of
from fedrela.experiment.toml.reader import Origin, Places


class Inner(ConfigTable):
    rounds: int = Field(ge=1)
    lr: float = Field(default=0.1, ge=0, le=1)
    augment: bool = False
    share: float = Field(default=1.0, gt=0, le=1)
    step: float = Field(default=1.0, gt=0)
    name: str | None = None


class Outer(ConfigTable):
    inner: Inner
    free: dict[str, int] | None = None
    many: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "inner: a table is missing"),
        ({"inner": {}}, "inner.rounds: an integer >= 1 is missing"),
        ({"inner": {"rounds": 0}}, "inner.rounds: expected an integer >= 1, got 0"),
        ({"inner": {"rounds": 1, "lr": 1.5}}, "inner.lr: expected a number from 0 to 1, got 1.5"),
        ({"inner": {"rounds": 1, "share": 0}}, "inner.share: expected a number > 0 and <= 1, got 0"),
        ({"inner": {"rounds": 1, "step": "1"}}, "inner.step: expected a number > 0, got '1'"),
        ({"inner": {"rounds": 1, "augment": 1}}, "inner.augment: expected true or false, got 1"),
        ({"inner": {"rounds": 1, "augment": "yes"}}, "inner.augment: expected true or false, got 'yes'"),
        ({"inner": {"rounds": 1, "name": 5}}, "inner.name: expected text, got 5"),
        ({"inner": {"rounds": 1}, "free": {"x": "y"}}, "free.x: expected a table, got 'y'"),
        ({"inner": {"rounds": 1}, "many": 3}, "many: expected a list, got 3"),
        ({"inner": {"round": 1}}, "inner.rounds: an integer >= 1 is missing (and 1 more)"),
        ({"inner": {"rounds": 1, "augmet": 1}}, "inner.augmet: unknown key; nearest: augment"),
        ([], "expected a table, got a list"),
    ],
    ids=str,
)
def test_words(raw, words):
    with pytest.raises(ValidationError) as error:
        Outer.model_validate(raw)
    problems = list(problems_of(error.value, Outer))
    assert str(WrongConfigError(problems, Origin("run.toml"))) == f"run.toml: {words}"
    assert str(WrongConfigError(problems, Origin("run.toml", Places({})))) == f"run.toml:1:1: {words}"


def test_all_problems_in_the_order_of_the_text_and_how_many_more():
    with pytest.raises(ArgumentError) as error:
        parse_config("[train]\nrounds = 0\nlr = 0\n[data]\nsorce = 1\n", name="run.toml")
    assert isinstance(error.value, WrongConfigError)
    lines = [
        "run.toml:2:10: train.rounds: expected an integer from 1 to 1000000, got 0",
        "run.toml:3:6: train.lr: expected a number > 0, got 0",
        "run.toml:5:1: data.sorce: unknown key; nearest: source",
    ]
    assert list(error.value.lines(3)) == lines
    assert list(error.value.lines(2)) == [*lines[:2], "run.toml: and 1 more"]
    assert str(error.value) == f"{lines[0]} (and 2 more)"
