"""The options of a re-labelling: one declaration, seen by callers, help pages and type checkers."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_type_hints

import pytest

import fedrela
from fedrela.core.relabel_options import PRESETS, PreviewKeywords, RelabelKeywords, RelabelOptions
from fedrela.errors import ArgumentError
from fedrela.options import options_of


def test_the_signatures_show_every_option_with_its_default():
    defaults = {each.name: each.default for each in fields(RelabelOptions)}
    shown = inspect.signature(fedrela.relabel).parameters
    assert {name: shown[name].default for name in defaults} == defaults
    preview = inspect.signature(fedrela.preview).parameters
    assert {name for name in defaults if name in preview} == defaults.keys() - {"tau"}


def test_type_checkers_know_the_same_options():
    types = {each.name: each.type for each in options_of(RelabelOptions)}
    assert get_type_hints(RelabelKeywords) == types
    assert get_type_hints(PreviewKeywords) == {name: types[name] for name in types if name != "tau"}


def test_what_is_left_open_comes_from_the_preset():
    assert RelabelOptions().variant(3) == PRESETS["paper"]
    assert RelabelOptions(preset="official").variant(3) == PRESETS["official"]
    assert RelabelOptions(preset="official", spread="sample").variant(3) == ("sample", "order", "winner")
    assert RelabelOptions(threshold=2).variant(3).threshold.tolist() == [2.0, 2.0, 2.0]
    assert RelabelOptions(threshold=[1, 2]) == RelabelOptions(threshold=(1.0, 2.0))


@pytest.mark.parametrize("value", [5, -0.1, True, "0.1", float("nan"), None])
def test_an_error_names_its_argument(value):
    with pytest.raises(ArgumentError) as error:
        RelabelOptions(tau=value)
    assert error.value.argument == "tau"
    with pytest.raises(ArgumentError) as error:
        RelabelOptions(threshold=[1.0, 2.0]).variant(3)
    assert error.value.argument == "threshold"


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="taw"):
        fedrela.relabel([[0.5, 0.5]], [0], taw=0.1)
