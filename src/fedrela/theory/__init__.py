"""The paper's Section 3 and Appendix A: boundaries of local and aggregated models, before and after re-labelling.

Two classes, j (the global minority) and l (the global majority). Clients share the class-conditional densities P_j and
P_l and differ in their priors, so every boundary in the section is a threshold on the likelihood ratio P_j(x) / P_l(x):
a sample belongs to class j where its ratio is above the threshold. A lower threshold gives the minority more room.
"""

from __future__ import annotations

from fedrela.theory.boundaries import (
    Clients,
    aggregated_threshold,
    balance_condition,
    bayes_threshold,
    directed,
    local_threshold,
    margin,
    needed_rho,
    parameter_threshold,
    posterior,
    posterior_rho,
    printed_condition,
    printed_directed_threshold,
    printed_threshold,
    relabelled_posterior,
)
from fedrela.theory.examples import (
    Example1,
    TwoGaussians,
    aggregation_gap,
    dirichlet_clients,
    example_1,
    printed_error,
)

__all__ = [
    "Clients",
    "Example1",
    "TwoGaussians",
    "aggregated_threshold",
    "aggregation_gap",
    "balance_condition",
    "bayes_threshold",
    "directed",
    "dirichlet_clients",
    "example_1",
    "local_threshold",
    "margin",
    "needed_rho",
    "parameter_threshold",
    "posterior",
    "posterior_rho",
    "printed_condition",
    "printed_directed_threshold",
    "printed_error",
    "printed_threshold",
    "relabelled_posterior",
]
