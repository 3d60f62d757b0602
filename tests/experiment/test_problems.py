"""Words for tables to come: a toy schema with every kind of field, checked as `load` checks the real one."""

from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from fedrela.experiment.schema.base import Table
from fedrela.experiment.schema.problems import first_problem, problems_of
from fedrela.experiment.toml.places import Places


class Inner(Table):
    rounds: int = Field(ge=1)
    lr: float = Field(default=0.1, ge=0, le=1)
    augment: bool = False
    name: str | None = None


class Outer(Table):
    inner: Inner
    free: dict[str, int] | None = None
    many: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "inner: a table is missing"),
        ({"inner": {}}, "inner.rounds: a whole number of at least 1 is missing"),
        ({"inner": {"rounds": 0}}, "inner.rounds: a whole number of at least 1 is needed, got 0"),
        ({"inner": {"rounds": 1, "lr": 1.5}}, "inner.lr: a number from 0 to 1 is needed, got 1.5"),
        ({"inner": {"rounds": 1, "augment": 1}}, "inner.augment: true or false is needed, got 1"),
        ({"inner": {"rounds": 1, "augment": "yes"}}, "inner.augment: true or false is needed, got 'yes'"),
        ({"inner": {"rounds": 1, "name": 5}}, "inner.name: text is needed, got 5"),
        ({"inner": {"rounds": 1}, "free": {"x": "y"}}, "free.x: a table is needed, got 'y'"),
        ({"inner": {"rounds": 1}, "many": 3}, "many: a list is needed, got 3"),
        ({"inner": {"round": 1}}, "inner.rounds: a whole number of at least 1 is missing (and 1 more)"),
        ({"inner": {"rounds": 1, "augmet": 1}}, "inner.augmet: unknown key; nearest: augment"),
        ([], "a table is needed, got a list"),
    ],
    ids=str,
)
def test_words(raw, words):
    with pytest.raises(ValidationError) as error:
        Outer.model_validate(raw)
    problems = list(problems_of(error.value, Outer))
    assert str(first_problem(problems, "run.toml", None)) == f"run.toml: {words}"
    assert str(first_problem(problems, "run.toml", Places({}))) == f"run.toml:1:1: {words}"
