"""Named arrays in rows of bytes: every value in its place, and nothing undeclared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.algorithms.base import ArraySpec
from fedrela.engine.areas import Area
from fedrela.engine.rows import ALIGNMENT, Rows, fill
from fedrela.errors import ArgumentError
from helpers.batteries import examples

FORMS = st.tuples(
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.sampled_from(["float32", "float64", "int64", "bool", "int8"]),
)
FIELDS = st.dictionaries(st.text("abc", min_size=1, max_size=3), FORMS, min_size=1, max_size=5)


def fields_of(forms):
    return {name: ArraySpec(shape, dtype) for name, (shape, dtype) in forms.items()}


@examples(60, 2000)
@given(FIELDS, st.integers(1, 4), st.integers(0, 99))
def test_rows_do_not_touch_each_other(forms, count, seed):
    fields, rng = fields_of(forms), np.random.default_rng(seed)
    area = Area.create(fields, count, None)
    other = Area.attach(area.handle)
    written = []
    for row in range(count):
        arrays = {name: rng.integers(0, 2, f.shape).astype(f.dtype) for name, f in fields.items()}
        fill("here", area.views(row), arrays, fields)
        written.append(arrays)
    for row, arrays in enumerate(written):
        for name, found in other.views(row).items():
            assert found.dtype == fields[name].dtype
            assert found.tolist() == arrays[name].tolist()
    area.close()


@examples(60, 2000)
@given(FIELDS)
def test_every_array_begins_at_a_cache_line(forms):
    rows = Rows(fields_of(forms))
    ends = [rows.offsets[name] + field.nbytes for name, field in rows.fields.items()]
    starts = [*list(rows.offsets.values())[1:], rows.nbytes]
    assert all(end <= start < end + ALIGNMENT for end, start in zip(ends, starts, strict=True))
    assert all(offset % ALIGNMENT == 0 for offset in [*rows.offsets.values(), rows.nbytes])


DECLARED = {"a": ArraySpec((2,)), "b": ArraySpec((), "int64")}
GIVEN = {"a": np.ones(2, "f4"), "b": np.array(3)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c": np.ones(1)}, "here: 'c' is not declared"),
        ({"b": None}, "here: 'b' is declared but missing"),
        ({"a": np.ones(2)}, "here: 'a': float32 of shape \\(2,\\) is declared, got float64 of shape \\(2,\\)"),
        ({"a": np.ones((1, 2), "f4")}, "here: 'a': .* got float32 of shape \\(1, 2\\)"),
        ({"a": np.ones((), "f4")}, "here: 'a': .* got float32 of shape \\(\\)"),
        ({"b": 3.0}, "here: 'b': int64 of shape \\(\\) is declared, got float64 of shape \\(\\)"),
    ],
)
def test_what_is_not_as_declared(change, message):
    arrays = {name: array for name, array in (GIVEN | change).items() if array is not None}
    target = {"a": np.zeros(2, "f4"), "b": np.zeros((), "int64")}
    with pytest.raises(ArgumentError, match=message):
        fill("here", target, arrays, DECLARED)


def test_a_number_will_do_for_an_array_without_dimensions():
    target = {"a": np.zeros(2, "f4"), "b": np.zeros((), "int64")}
    fill("here", target, GIVEN | {"b": 7}, DECLARED)
    assert target["b"] == 7
    assert target["a"].tolist() == [1, 1]
