"""Charts show the numbers they are given, in places, forms and words."""

from __future__ import annotations

import numpy as np
import pytest

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
from fedrela.report.charts.ticks import axis, inner_axis, value_axis
from fedrela.report.figures.png import draw_pdf, draw_png
from fedrela.report.figures.shapes import Boxes, Disc, Lines, Trace, Word
from helpers.chart_checks import check_chart, texts, tips

GROUPS = Groups(("majority", "minority"), np.array([0, 1, 0]), "counts")


def traces(chart, style):
    return [shape for shape in chart.shapes if isinstance(shape, Trace) and shape.style == style]


def heights(chart):
    """Places of boxes with a tip, by the tip."""
    return {tip: shape.places[0] for tip, shape in tips(chart).items() if isinstance(shape, Boxes)}


def test_a_line_goes_through_its_values_and_breaks_where_one_is_missing():
    y = [0.0, 0.5, 1.0, None, 0.25, 0.75]
    chart = check_chart(line_chart([Series("a", [1, 2, 3, 4, 5, 6], y)], title="t", x_label="round"))
    first, second = traces(chart, "c0-line")
    (x0, low), (x1, middle), (_, high) = first.points
    assert middle == pytest.approx((low + high) / 2)
    assert second.points[1][1] == pytest.approx(0.25 * low + 0.75 * high)
    assert second.points[0][0] - x0 == pytest.approx(4 * (x1 - x0))
    assert {"0%", "100%", "round", "a"} <= set(texts(chart))


def test_lines_differ_by_dashes_and_markers_and_not_only_by_colour():
    many = [Series(f"a longer name of series {k}", [1, 2], [0.1, k / 24]) for k in range(24)]
    chart = check_chart(line_chart(many, title="t", markers=True))
    styles = {shape.style for shape in chart.shapes if isinstance(shape, Trace) and "-line" in shape.style}
    assert len(styles) == 24
    forms = {
        tuple(np.subtract(shape.points, shape.points[0]).round(3).ravel())
        for shape in chart.shapes
        if isinstance(shape, Trace) and shape.closed
    }
    assert len(forms) == 5  # and the disc


def test_lines_that_reach_the_end_are_named_there_and_the_others_below():
    lines = [
        Series("prefix", [1, 2, 3], [0.1, 0.2, 0.3]),
        Series("one", [3, 9], [0.3, 0.9]),
        Series("two", [3, 9], [0.3, 0.8]),
    ]
    chart = check_chart(line_chart(lines, title="t"))
    place = {shape.text: shape for shape in chart.shapes if isinstance(shape, Word)}
    ends = {name: traces(chart, style)[0].points[-1] for name, style in (("one", "c1-line"), ("two", "c2-line"))}
    for name, (x, y) in ends.items():
        assert place[name].x > x
        assert abs(place[name].y - y) < 12
    assert place["prefix"].y > max(y for _, y in ends.values()) + 50


def test_a_mark_stands_at_its_place_with_its_words():
    chart = check_chart(line_chart([Series("a", [0, 10], [0, 1])], title="t", marks=[(5, "T = 5"), (99, "outside")]))
    (line,) = [shape for shape in chart.shapes if isinstance(shape, Lines) and shape.style == "mark"]
    (start, end) = traces(chart, "c0-line")[0].points
    assert line.segments[0][0] == pytest.approx((start[0] + end[0]) / 2)
    assert "T = 5" in texts(chart)
    assert "outside" not in texts(chart)


def test_marks_close_to_each_other_keep_their_words_apart():
    marks = [(47 + k, f"mark {k}") for k in range(5)]
    chart = check_chart(line_chart([Series("a", list(range(60)), [0.5] * 60)], title="t", marks=marks))
    assert {word for _, word in marks} <= set(texts(chart))
    every_round = [(k, f"pass {k}") for k in range(60)]
    crowded = check_chart(line_chart([Series("a", list(range(60)), [0.5] * 60)], title="t", marks=every_round))
    assert len([s for s in crowded.shapes if isinstance(s, Lines) and s.style == "mark"]) == 60


def test_a_band_lies_between_its_ends_and_group_styles_count_groups():
    series = Series("minority", [1, 2], [0.5, 0.5], "g1", low=[0.0, 0.25], high=[1.0, 0.75])
    chart = check_chart(line_chart([series], title="t"))
    assert chart.groups == 2
    (band,) = traces(chart, "g1-band")
    top, bottom = band.points[0][1], band.points[3][1]
    assert traces(chart, "g1-line")[0].points[0][1] == pytest.approx((top + bottom) / 2)


def test_each_class_has_a_dot_before_and_after_and_its_difference():
    chart = change_chart(["a", "b", "c"], [0.2, 0.4, 1.0], [0.2, 0.8, 0.9], groups=GROUPS, title="t")
    check_chart(chart)
    discs = {(d.tip, d.style): d.x for d in chart.shapes if isinstance(d, Disc) and d.tip}
    before, after = discs["b: 40.0% to 80.0%", "g1-open"], discs["b: 40.0% to 80.0%", "g1"]
    assert discs["c: 100.0% to 90.0%", "g0-open"] - before == pytest.approx(1.5 * (after - before))
    assert [text for text in texts(chart) if text in ("+40.0", "0.0", "−10.0")] == ["0.0", "−10.0", "+40.0"]
    assert {"majority", "minority", "before", "after"} <= set(texts(chart))


def test_of_many_classes_means_and_extremes_are_shown():
    count = 1_000
    before, after = np.full(count, 0.5), 0.5 + np.linspace(-0.4, 0.4, count)
    groups = evaluation_groups(np.arange(count, 0, -1))
    chart = check_chart(change_chart([f"c{k}" for k in range(count)], before, after, groups=groups, title="t"))
    assert [name for name in texts(chart) if name.startswith("mean of")] == [
        "mean of head", "mean of medium", "mean of tail"
    ]  # fmt: skip
    shown = {name for name in texts(chart) if name[0] == "c" and name[1:].isdigit()}
    assert shown == {f"c{k}" for k in [*range(12), *range(count - 12, count)]}
    assert "of 1,000." in " ".join(texts(chart))


def test_cells_are_coloured_by_their_numbers_and_say_them():
    chart = check_chart(
        heat_map([[90, 10], [0, None]], ["a", "b"], ["a", "b"], title="t", row_label="true", mark_diagonal=True)
    )
    cells = {tip: shape.style for tip, shape in tips(chart).items()}
    assert cells["a, a: 90"] > cells["a, b: 10"]
    assert len(cells) == 2  # nothing for zero, nothing for what is missing
    written = [w for w in chart.shapes if isinstance(w, Word) and (w.style.startswith("on-") or w.text == "–")]
    assert [w.text for w in written] == ["90", "10", "–"]


def test_differences_have_a_side_for_falls_and_one_for_rises():
    chart = check_chart(heat_map([[0.2, -0.2], [0.0, 0.001]], "ab", "ab", title="t", percent=True, diverging=True))
    cells = {tip: shape.style[0] for tip, shape in tips(chart).items()}
    assert cells == {"a, a: +20": "p", "a, b: −20": "n"}


@pytest.mark.parametrize("percent", [False, True])
def test_many_classes_are_drawn_as_blocks_that_keep_the_whole(percent):
    count = 130
    matrix = np.eye(count)
    chart = check_chart(heat_map(matrix, [""] * count, [""] * count, title="t", percent=percent))
    assert "block of 3 by 3" in " ".join(texts(chart))
    filled = [shape for shape in chart.shapes if isinstance(shape, Boxes) and shape.style[0] == "s"]
    assert max(len(shape.places) for shape in filled) in (43, 44)  # the diagonal


def test_shares_that_lie_near_each_other_get_different_colours():
    chart = heat_map([[0.81, 0.82, 0.85, 0.87]], ["tau"], list("abcd"), title="t", percent=True)
    assert len({shape.style for shape in tips(check_chart(chart)).values()}) >= 3


@pytest.mark.parametrize("names", [["1", "2", "3"], ["cat", "dog", "eel"]])
def test_bars_are_as_long_as_their_values(names):
    chart = check_chart(
        bar_chart(
            names, [10, 20, None], title="t", expected=[12, 18, 1], limit=40, limit_name="budget", y_label="labels"
        )
    )
    bars = heights(chart)
    along = 3 if names[0] == "1" else 2
    assert bars[f"{names[1]}: 20"][along] == pytest.approx(2 * bars[f"{names[0]}: 10"][along])
    assert len(bars) == 2
    assert {"budget 40", "expected", "labels", "10", "20"} <= set(texts(chart))


def test_a_limit_far_beyond_all_bars_is_said_in_words():
    chart = check_chart(bar_chart(["a", "b"], [1, 2], title="t", limit=5_000, limit_name="budget"))
    assert "Beyond this chart: budget 5,000." in texts(chart)
    assert max(place[2] for place in heights(chart).values()) > 200


def test_bins_are_as_wide_as_their_edges_and_what_lies_beyond_stands_apart():
    chart = check_chart(histogram([0, 1, 3], [7, 4, 2, 9], title="t", marks=[(1.0, "threshold")], log=False))
    bars = list(heights(chart).values())
    assert [bar[3] / bars[1][3] * 4 for bar in bars] == pytest.approx([7, 4, 2, 9])
    assert bars[2][2] == pytest.approx(2 * bars[1][2])
    assert bars[1][0] - (bars[0][0] + bars[0][2]) > 3
    assert "threshold" in texts(chart)


def test_counts_spaced_by_ratio_show_a_single_one():
    bars = list(heights(check_chart(histogram([0, 1, 2, 3], [1, 100, 10_000], title="t"))).values())
    assert bars[2][3] - bars[1][3] == pytest.approx(bars[1][3] - bars[0][3])
    assert bars[0][3] > 3


def test_a_dot_is_filled_where_its_interval_leaves_out_zero():
    rows = [
        ("up", 0.1, 0.05, 0.15),
        ("noise", 0.1, -0.05, 0.25),
        ("down", -0.1, -0.2, -0.01),
        ("alone", 0.02, None, None),
    ]
    chart = check_chart(interval_chart(rows, title="t", x_label="points"))
    discs = [shape for shape in chart.shapes if isinstance(shape, Disc)][:4]
    assert [disc.style for disc in discs] == ["c0", "c0-open", "c0", "c0-open"]
    assert {"+10.0 [+5.0, +15.0]", "−10.0 [−20.0, −1.0]", "+2.0", "no interval"} <= set(texts(chart))
    assert discs[2].x < discs[3].x < discs[0].x == discs[1].x


def test_stacked_parts_add_up():
    parts = {"training": [3.0, 1.0], "scoring": [1.0, None]}
    bars = heights(check_chart(stacked_bars(["1", "2"], parts, title="t", y_label="seconds")))
    training, scoring = bars["1, training: 3"], bars["1, scoring: 1"]
    assert scoring[1] + scoring[3] == pytest.approx(training[1])
    assert training[3] == pytest.approx(3 * scoring[3])
    assert set(bars) == {"1, training: 3", "1, scoring: 1", "2, training: 1"}


def test_bars_of_many_rounds_are_means_of_neighbours():
    chart = check_chart(stacked_bars([str(k) for k in range(1, 501)], {"a": list(range(500))}, title="t"))
    assert "Each bar is the mean of 4 neighbouring values." in texts(chart)
    assert "5, a: 5.5" in tips(chart)


@pytest.mark.parametrize(
    "values", [[0.0, 1.0], [3.0, 97.0], [1e-9, 3e-9], [-5.0, 12.0], [1e12, 3e12], [7.0], [10_000, 10_400]]
)
def test_ticks_hold_the_values_and_all_read_differently(values):
    found = axis(np.array(values))
    assert found.low <= min(values) <= max(values) <= found.high
    assert 2 <= len(found.ticks) <= 6
    assert len({text for _, text in found.ticks}) == len(found.ticks)


def test_counts_have_no_ticks_between_whole_numbers():
    assert all(text.isdigit() for _, text in axis(np.array([1.0, 2.0, 3.0])).ticks)
    assert [text for _, text in inner_axis(np.array([1.0, 2.0, 3.0])).ticks] == ["1", "2", "3"]


def test_values_of_a_setting_are_spaced_by_ratio_where_they_span_one():
    assert value_axis(np.array([0.01, 0.1, 1.0])).share(0.1) == pytest.approx(0.5)
    assert value_axis(np.array([1.0, 2.0, 3.0])).share(2.0) == pytest.approx(0.5)
    assert not value_axis(np.array([0.5])).logarithmic


@pytest.mark.parametrize("draw", [draw_png, draw_pdf])
def test_pictures_for_papers_have_the_same_bytes_each_time(draw):
    pytest.importorskip("matplotlib", reason="PNG and PDF are drawn by matplotlib, the extra plots, not installed here")
    banded = Series("$x$ <b>", [1, 2, 3], [0.1, 0.5, 0.4], low=[0, 0.4, 0.3], high=[0.2, 0.6, 0.5])
    lines = [banded, Series("名", [1, 3], [1, 0])]
    chart = line_chart(lines, title="\\frac{ $ (unbalanced", marks=[(2, "T")], markers=True)
    one, two = draw(chart), draw(chart)
    assert one == two
    assert one[:4] == (b"\x89PNG" if draw is draw_png else b"%PDF")
    assert not any(word in one for word in (b"CreationDate", b"Producer", b"/Type3"))
