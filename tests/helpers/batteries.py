"""How many cases a battery runs: everyday counts in `make test`, larger ones in `make nightly`, which counts them."""

from __future__ import annotations

import atexit
import json
import os
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings

NIGHTLY = False
TENTH = False  # for mutation tests: what a tenth of the everyday cases does not notice is worth a look
RECORD = "NIGHTLY_RECORD"  # names the folder to which counts are written; see tests/nightly.py
EVERY = 1.0  # seconds between two writes of a test's counts

_counted: Counter[tuple[str, str]] = Counter()  # by test and by what is counted, since the last write
_written = 0.0


def count(pr: int, nightly: int) -> int:
    """The number of cases of a battery in this run."""
    if TENTH:
        return max(pr // 10, 1)
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


def tried(inputs: int = 1, faults: int = 0) -> None:
    """Count inputs that the running test has tried and faults that it has injected, also from a process it started."""
    if RECORD in os.environ:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        _counted[test, "inputs"] += inputs
        _counted[test, "faults"] += faults
        if time.monotonic() - _written >= EVERY:
            write_counts()


def write_counts() -> None:
    """Append what was counted since the last write to this process's file."""
    global _written
    lines = [json.dumps({"test": test, what: number}) for (test, what), number in _counted.items() if number]
    _counted.clear()
    _written = time.monotonic()
    if lines:
        with Path(os.environ[RECORD], f"{os.getpid()}.jsonl").open("a") as file:
            file.write("\n".join(lines) + "\n")


atexit.register(write_counts)
os.register_at_fork(after_in_child=_counted.clear)  # the parent writes what it has counted
