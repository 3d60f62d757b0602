"""Metrics on plain arrays."""

from fedrela.metrics.accuracy import Scores, best_threshold, headline, score, score_sums
from fedrela.metrics.groups import Groups, evaluation_groups, local_test_counts, shot_groups
from fedrela.metrics.heterogeneity import Heterogeneity, measure_heterogeneity
from fedrela.metrics.moves import Z_EDGES, z_histogram

__all__ = [
    "Z_EDGES", "Groups", "Heterogeneity", "Scores", "best_threshold", "evaluation_groups", "headline",
    "local_test_counts", "measure_heterogeneity", "score", "score_sums", "shot_groups", "z_histogram",
]  # fmt: skip
