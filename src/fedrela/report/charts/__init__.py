"""Charts: plain numbers in, a drawing out; light and dark, for every eye, the same bytes for the same numbers."""

from fedrela.report.charts.bars import bar_chart
from fedrela.report.charts.changes import change_chart
from fedrela.report.charts.heat import heat_map
from fedrela.report.charts.histogram import histogram
from fedrela.report.charts.intervals import interval_chart
from fedrela.report.charts.lines import Series, line_chart
from fedrela.report.charts.stack import stacked_bars

__all__ = [
    "Series",
    "bar_chart",
    "change_chart",
    "heat_map",
    "histogram",
    "interval_chart",
    "line_chart",
    "stacked_bars",
]
