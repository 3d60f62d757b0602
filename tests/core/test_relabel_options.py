"""The options of a re-labelling: one declaration, seen by callers, help pages and type checkers."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import get_type_hints

import numpy as np
import pytest

import fedrela
from fedrela.core import REALLOCATORS, Reallocator
from fedrela.core.relabel_options import (
    PRESETS,
    PreviewKeywords,
    RelabelKeywords,
    RelabelOptions,
    keyword_parameters,
    show_keywords,
)
from fedrela.errors import ArgumentError
from fedrela.options import Options, option, options_of


class Halving(Reallocator):
    """A re-allocator with a parameter of its own."""

    @dataclass(frozen=True)
    class Params(Options):
        halves: int = option(1, "how often to halve", ge=1)


def test_the_signatures_show_every_option_with_its_default():
    defaults = {each.name: each.default for each in fields(RelabelOptions)}
    shown = inspect.signature(fedrela.relabel).parameters
    assert {name: shown[name].default for name in defaults} == defaults
    preview = inspect.signature(fedrela.preview).parameters
    assert {name for name in defaults if name in preview} == defaults.keys() - {"tau"}


def test_keywords_stand_in_place_of_the_options():
    def f(labels, *, seed: int = 0, **options): ...

    assert show_keywords(keyword_parameters("preset", "max_fraction"))(f) is f
    expected = "(labels, *, seed: 'int' = 0, preset: 'str' = 'paper', max_fraction: 'float' = 1.0)"
    assert str(inspect.signature(f)) == expected

    def g(labels, *, seed: int = 0, **options): ...

    path = inspect.Parameter("path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    show_keywords([path], evaluate=True)(g)
    assert str(inspect.signature(g)) == "(labels, path, *, seed: int = 0)"


def test_type_checkers_know_the_same_options():
    types = {each.name: each.type for each in options_of(RelabelOptions)}
    assert get_type_hints(RelabelKeywords) == types
    assert get_type_hints(PreviewKeywords) == {name: types[name] for name in types if name != "tau"}


def test_what_is_left_open_comes_from_the_preset():
    assert RelabelOptions().variant(3) == PRESETS["paper"]
    assert RelabelOptions(preset="official").variant(3) == PRESETS["official"]
    assert RelabelOptions(preset="official", spread="sample").variant(3) == ("sample", "order", "winner")
    assert RelabelOptions(threshold="linear", target="winner").variant(3) == ("sample", "linear", "winner")
    assert RelabelOptions(threshold=[1, 2]).variant(2).threshold.tolist() == [1.0, 2.0]
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


@pytest.mark.parametrize(
    ("options", "said", "item"),
    [
        (
            {"threshold": "hiher"},
            "threshold: expected one of higher, order, linear, or z values, got 'hiher'; nearest: higher",
            (),
        ),
        ({"threshold": True}, "threshold: expected one of higher, order, linear, or z values, got true", ()),
        ({"threshold": {}}, "threshold: expected one of higher, order, linear, or z values, got a table", ()),
        ({"threshold": []}, "threshold: expected one z value per class, got none", ()),
        ({"threshold": [0.5, "x"]}, "threshold: expected a z value, got 'x'", (1,)),
        ({"threshold": (0.5, 1, True)}, "threshold: expected a z value, got true", (2,)),
        ({"threshold": [float("nan")]}, "threshold: expected a z value, got nan", (0,)),
        ({"threshold": float("inf")}, "threshold: expected finite numbers, got NaN or infinity", ()),
        ({"threshold": np.zeros((1, 2))}, "threshold: expected shape (1,), got (1, 2)", ()),
        ({"threshold": object()}, "threshold: expected numbers, got object", ()),
        ({"params": 3}, "params: expected a table of the method's own parameters, got 3", ()),
        ({"params": {"share": 1}}, "params.share: unknown parameter; method 'FedReLa' has none", ("share",)),
    ],
)
def test_a_wrong_value_is_named_with_its_place(options, said, item):
    with pytest.raises(ArgumentError) as error:
        RelabelOptions(**options)
    assert (str(error.value), error.value.item) == (said, item)


def test_values_in_every_form_become_one():
    assert [RelabelOptions(threshold=z).threshold for z in (2, np.float32(2), np.array(2))] == [2.0, 2.0, 2.0]
    assert [RelabelOptions(threshold=z).threshold for z in ([1, np.int8(2)], np.array([1.0, 2.0]))] == [(1.0, 2.0)] * 2
    assert RelabelOptions(threshold=None).threshold is RelabelOptions(params={}).params is None
    assert {each.name: each.choices for each in options_of(RelabelOptions)}["method"] == tuple(REALLOCATORS)


def test_the_record_for_the_ledger():
    expected = {
        "tau": 0.1,
        "spread": "population",
        "threshold": "order",
        "target": "winner",
        "normalize": "zscore",
        "max_fraction": 0.5,
        "method": "fedrela",
    }
    assert RelabelOptions(tau=0.1, preset="official", max_fraction=0.5).as_record(2) == expected
    more = RelabelOptions(
        tau=0.1,
        spread="population",
        threshold=2,
        target="winner",
        normalize="minmax",
        max_fraction=0.5,
        method=Halving,
        params={"halves": 3},
        absent=False,
        class_tau={1: 0.2},
    )
    changes = {"threshold": [2.0, 2.0], "normalize": "minmax", "method": f"{__name__}:Halving"}
    limits = {"params": {"halves": 3}, "absent": False, "class_tau": {"1": 0.2}}
    assert more.as_record(2) == expected | changes | limits
    assert more.taus(3).tolist() == [0.1, 0.2, 0.1]
    assert more.reallocator().params.halves == 3


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="taw"):
        fedrela.relabel([[0.5, 0.5]], [0], taw=0.1)


@pytest.mark.parametrize(
    ("function", "given", "said"),
    [
        (fedrela.relabel, {"taus": 0.05}, "taus: unknown option; nearest: tau"),
        (fedrela.relabel, {"sed": 1}, "sed: unknown option; nearest: seed"),
        (fedrela.preview, {"max_fractions": 0.1}, "max_fractions: unknown option; nearest: max_fraction"),
        (fedrela.preview, {"tau": 0.03}, "tau: preview takes several: give taus=(0.03,)"),
        (fedrela.preview, {"tau": [0.03]}, "tau: preview takes several: give taus=(0.02,)"),
    ],
)
def test_an_unknown_option_names_the_nearest(function, given, said):
    with pytest.raises(ArgumentError) as caught:
        function([[0.9, 0.1], [0.2, 0.8]], [0, 1], **given)
    assert str(caught.value) == said
    assert isinstance(caught.value, TypeError)
