"""Plots of runs, comparisons and sweeps, one function per figure, drawn by matplotlib.

Each function draws onto `ax`, or onto a new figure if none is given, and returns the ``Axes``, so that anything can be
changed afterwards. matplotlib is loaded when something is drawn. Parameters of several functions:

source
    A run, a comparison, a sweep or a reproduction: a folder, or an object that has one, such as a ``Result``. Or plain
    numbers, as each function says.
names, groups
    Names and groups of the classes, for plain numbers; by default ids, and no groups. A folder has its own.
baseline, arm
    Which one of a comparison or sweep; by default the first.
"""

from fedrela.plots.classes import class_changes, class_counts, confusion, label_flows, moves_into_classes
from fedrela.plots.clients import client_classes
from fedrela.plots.comparisons import Gain, gains, published_and_measured, sensitivity
from fedrela.plots.gaussian_boundaries import boundaries, posteriors
from fedrela.plots.rounds import accuracy_over_rounds, cost
from fedrela.plots.samples import decision_boundary, gallery, score_histogram
from fedrela.plots.style import use_style

__all__ = [
    "Gain", "accuracy_over_rounds", "boundaries", "class_changes", "class_counts", "client_classes", "confusion",
    "cost", "decision_boundary", "gains", "gallery", "label_flows", "moves_into_classes", "posteriors",
    "published_and_measured", "score_histogram", "sensitivity", "use_style",
]  # fmt: skip
