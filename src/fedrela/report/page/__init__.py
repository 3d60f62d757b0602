"""A page as plain parts, and the parts as one HTML file that needs nothing else."""

from fedrela.report.page.parts import Block, Code, Facts, Figure, Page, Picture, Pictures, Section, Table, Text
from fedrela.report.page.render import render

__all__ = [
    "Block", "Code", "Facts", "Figure", "Page", "Picture", "Pictures", "Section", "Table", "Text", "render",
]  # fmt: skip
