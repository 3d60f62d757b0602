"""What is measured, on plain arrays."""

from fedrela.metrics.groups import shot_groups

__all__ = ["shot_groups"]
