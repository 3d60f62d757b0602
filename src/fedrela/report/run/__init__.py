"""The page of one run, from its folder alone."""

from fedrela.report.run.page import run_page

__all__ = ["run_page"]
