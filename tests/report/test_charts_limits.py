"""Charts at their limits: nothing, one, thousands, and names that are no names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import Groups, evaluation_groups
from fedrela.report.charts import (
    Series,
    bar_chart,
    change_chart,
    heat_map,
    histogram,
    interval_chart,
    line_chart,
    stacked_bars,
)
from fedrela.report.figures.drawing import draw_svg
from helpers.batteries import examples
from helpers.chart_checks import check_chart, texts

HOSTILE = (
    "<script>alert(1)</script>", "</svg><b>", "a\x00b", "line\nbreak", "\u202eturned", "\ud800", "名" * 200, "", "   ",
    "e" + "\u0301" * 90, "x" * 10_000, "%s {0}", "]]>", '" onload="1',
)  # fmt: skip

SIZES = [1, 2, 10, 31, 41, 100, 1_000]


def charts_of(names: list[str], seed: int = 0) -> list:
    """One chart of each kind over these names."""
    rng, count = np.random.default_rng(seed), len(names)
    one, two = rng.random(count).tolist(), rng.random(count).tolist()
    groups = evaluation_groups(rng.integers(1, 500, count))
    rounds = list(range(1, count + 1))
    matrix = rng.dirichlet(np.full(count, 0.2), count)
    head = names[0]
    return [
        line_chart([Series(head, rounds, one), Series(names[-1], rounds, two)], title=head, x_label=head, y_label=head),
        line_chart([Series(name, [1, 2, 3], rng.random(3).tolist()) for name in names], title="Many lines"),
        line_chart([Series(head, rounds, one, low=two, high=one)], title=head, marks=[(1, head), (2, "x" * 90)]),
        change_chart(names, one, two, groups=groups, title=head, words=(head, names[-1])),
        change_chart(names, one, two, title="Change"),
        heat_map(matrix, names, names, title=head, row_label=head, percent=True, mark_diagonal=True),
        heat_map(matrix - matrix.T, names, names, title="Differences", percent=True, diverging=True),
        heat_map(rng.integers(0, 9, (count, 3)), names, ["a", "b", "c"], title="Counts"),
        bar_chart(names, rng.poisson(9, count), title=head, y_label=head, expected=two, limit=30, limit_name=head),
        bar_chart([str(k) for k in rounds], one, title="Standing"),
        histogram(np.arange(count + 1.0), rng.poisson(9, count), title=head, x_label=head, marks=[(0.5, head)]),
        interval_chart([(name, a, a - b, a + b) for name, a, b in zip(names, one, two, strict=True)], title=head),
        stacked_bars(names, {head: one, "other": two}, title=head, y_label=head),
        stacked_bars([str(k) for k in rounds], {"a": one, "b": two}, title="Rounds"),
    ]


@pytest.mark.parametrize("count", SIZES)
def test_any_number_of_classes_is_drawn_on_its_page_without_overlap(count):
    for chart in charts_of([f"class {k}" for k in range(count)]):
        check_chart(chart)


@pytest.mark.parametrize("name", HOSTILE, ids=[ascii(name)[:16] for name in HOSTILE])
def test_hostile_names_are_text(name):
    for chart in charts_of([name, "plain", name + "2"]):
        check_chart(chart)


@pytest.mark.parametrize("rounds", [1, 2, 500])
def test_any_number_of_rounds(rounds):
    x = list(range(1, rounds + 1))
    lines = [Series(f"series {k}", x, [0.5 + 0.1 * k] * rounds) for k in range(4)]
    check_chart(line_chart(lines, title="Rounds", x_label="round", marks=[(1, "first"), (rounds, "last")]))
    check_chart(stacked_bars([str(k) for k in x], {"training": [1.0] * rounds}, title="Time"))


NOTHING = [
    line_chart([], title="t"),
    line_chart([Series("a", [], [])], title="t"),
    line_chart([Series("a", [1, 2], [None, None])], title="t"),
    change_chart([], [], [], title="t"),
    change_chart(["a"], [None], [0.5], title="t"),
    heat_map([], [], [], title="t"),
    heat_map([[None]], ["a"], ["a"], title="t"),
    bar_chart([], [], title="t"),
    bar_chart(["a"], [None], title="t"),
    histogram([], [], title="t"),
    histogram([0, 1], [0], title="t"),
    interval_chart([], title="t"),
    interval_chart([("a", None, None, None)], title="t"),
    stacked_bars([], {}, title="t"),
    stacked_bars([], {"a": []}, title="t"),
    stacked_bars(["a"], {"a": [None]}, title="t"),
]


@pytest.mark.parametrize("chart", NOTHING)
def test_nothing_to_draw_is_said_in_a_sentence(chart):
    check_chart(chart)
    assert texts(chart)[1].startswith("There ")
    assert texts(chart)[1] in chart.description


def test_lengths_that_differ_are_one_line():
    with pytest.raises(ArgumentError, match="as many values as places"):
        line_chart([Series("a", [1, 2], [0.5])], title="t")
    with pytest.raises(ArgumentError, match="one a class"):
        change_chart(["a"], [0.5, 0.5], [0.5], title="t")
    with pytest.raises(ArgumentError, match="one a class"):
        change_chart(["a"], [0.5], [0.5], groups=Groups(("x",), np.zeros(2, np.int64), "counts"), title="t")
    with pytest.raises(ArgumentError, match="2 rows of 1"):
        heat_map([[1]], ["a", "b"], ["a"], title="t")
    with pytest.raises(ArgumentError, match="one a name"):
        bar_chart(["a"], [1, 2], title="t")
    with pytest.raises(ArgumentError, match="for these edges"):
        histogram([0, 1, 2], [1], title="t")
    with pytest.raises(ArgumentError, match="ascending"):
        histogram([0, 2, 1], [1, 1], title="t")
    with pytest.raises(ArgumentError, match="at least 0"):
        stacked_bars(["a"], {"x": [-1]}, title="t")
    with pytest.raises(ArgumentError, match="c0 to c5"):
        line_chart([Series("a", [1], [0.5], style="red")], title="t")


NUMBERS = st.none() | st.floats(width=64) | st.integers(-5, 5) | st.sampled_from([1e-300, 1e300, 0.1, -0.0])


@examples(60, 2_000)
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=12), st.booleans())
def test_any_numbers_make_a_chart(rows, flag):
    a, b, c = (list(column) for column in zip(*rows, strict=True))
    names = [f"n{k}" for k in range(len(rows))]
    places = list(range(len(rows)))
    for chart in (
        line_chart([Series("a", places, a, low=b, high=c)], title="t", percent=flag, markers=not flag),
        line_chart([Series("a", b, a), Series("b", b, c)], title="t", percent=flag, markers=flag),
        change_chart(names, a, b, title="t"),
        heat_map(rows, names, ["x", "y", "z"], title="t", percent=flag, diverging=not flag),
        bar_chart(names, a, title="t", expected=b, limit=c[0] if flag else None),
        interval_chart([(name, *row) for name, row in zip(names, rows, strict=True)], title="t", percent_points=flag),
    ):
        check_chart(chart)


def test_same_numbers_same_bytes():
    one, two = ([draw_svg(chart) for chart in charts_of([f"c{k}" for k in range(12)])] for _ in range(2))
    assert one == two
