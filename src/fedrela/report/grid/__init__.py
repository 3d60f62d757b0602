"""The page of a comparison, a sweep or a reproduction, from its folder alone."""

from fedrela.report.grid.page import grid_page

__all__ = ["grid_page"]
