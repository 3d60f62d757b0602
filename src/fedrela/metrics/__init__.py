"""What is measured, on plain arrays."""

from fedrela.metrics.groups import Groups, evaluation_groups, local_test_counts, shot_groups
from fedrela.metrics.heterogeneity import Heterogeneity, measure_heterogeneity

__all__ = ["Groups", "Heterogeneity", "evaluation_groups", "local_test_counts", "measure_heterogeneity", "shot_groups"]
