"""Pictures, figures in words, and pages: from plain arrays, and from run folders."""

from fedrela.report.clients.picture import client_class_picture
from fedrela.report.clients.writing import check_picture_path, write_picture
from fedrela.report.facts import Fact, heterogeneity_facts
from fedrela.report.writing import write_figures, write_report

__all__ = [
    "Fact",
    "check_picture_path",
    "client_class_picture",
    "heterogeneity_facts",
    "write_figures",
    "write_picture",
    "write_report",
]
