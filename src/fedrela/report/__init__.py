"""Pictures and figures in words, from plain arrays."""

from fedrela.report.clients.picture import client_class_picture
from fedrela.report.clients.writing import check_picture_path, write_picture
from fedrela.report.facts import Fact, heterogeneity_facts

__all__ = ["Fact", "check_picture_path", "client_class_picture", "heterogeneity_facts", "write_picture"]
