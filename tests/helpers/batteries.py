"""How many cases a battery runs: everyday counts in `make test`, larger ones in `make nightly`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

NIGHTLY = False


def count(pr: int, nightly: int) -> int:
    """The number of cases of a battery in this run."""
    return nightly if NIGHTLY else pr


def examples(pr: int, nightly: int) -> settings:
    """Hypothesis settings of a battery: that many examples, always the same ones."""
    return settings(
        max_examples=count(pr, nightly),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
