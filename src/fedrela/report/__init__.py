"""Pages, tables and files of plots, from run folders alone."""

from fedrela.report.run_page import heterogeneity_facts
from fedrela.report.writing import check_picture_path, write_figures, write_plot, write_report

__all__ = ["check_picture_path", "heterogeneity_facts", "write_figures", "write_plot", "write_report"]
