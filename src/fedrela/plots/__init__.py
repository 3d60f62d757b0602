"""Plots of runs, comparisons and sweeps, one function per figure, drawn by matplotlib.

Each function takes a run (a ``Result`` or its folder), a comparison, a sweep or plain numbers, draws onto `ax` or a new
figure, and returns the ``Axes``, so that anything can be changed afterwards. matplotlib is loaded when something is
drawn.
"""

from fedrela.plots.classes import class_changes, class_counts, moves_into_classes
from fedrela.plots.clients import client_classes
from fedrela.plots.comparisons import Gain, gains, published_and_measured, sensitivity
from fedrela.plots.matrices import confusion, label_flows
from fedrela.plots.rounds import accuracy_over_rounds, cost
from fedrela.plots.samples import decision_boundary, gallery, score_histogram
from fedrela.plots.style import use_style

__all__ = [
    "Gain",
    "accuracy_over_rounds",
    "class_changes",
    "class_counts",
    "client_classes",
    "confusion",
    "cost",
    "decision_boundary",
    "gains",
    "gallery",
    "label_flows",
    "moves_into_classes",
    "published_and_measured",
    "score_histogram",
    "sensitivity",
    "use_style",
]
