"""Tables of summaries: the paper's form, for people, for papers and for machines."""

from fedrela.report.tables.compare import arms_table, compare_table, difference_table
from fedrela.report.tables.documents import all_tables
from fedrela.report.tables.formats import csv_text, latex, markdown
from fedrela.report.tables.reproduce import reproduce_tables
from fedrela.report.tables.sweep import sweep_table, wide_table
from fedrela.report.tables.values import Values

__all__ = [
    "Values", "all_tables", "arms_table", "compare_table", "csv_text", "difference_table", "latex", "markdown",
    "reproduce_tables", "sweep_table", "wide_table",
]  # fmt: skip
