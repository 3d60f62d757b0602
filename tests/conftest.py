"""Counts of the batteries: everyday by default, `--nightly` for the long ones, with a line of progress every minute."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import pytest

# Tests run in several processes: a linear-algebra library that starts threads in each only makes them wait.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

# Nightly, tests that take minutes start first, so that no worker is left alone with one of them at the end.
LONG = (
    "crash/test_kill_points", "crash/test_random_kills", "flower/test_deployment_nightly", "runfolder/test_fuzz",
    "data/test_unpack", "core/test_repeated_requests", "flower/test_faults", "core/test_properties",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the batteries at their nightly counts")
    parser.addoption("--goldens", metavar="DIR", help="folder of full FedReLa goldens, in place of the reduced copies")
    parser.addoption("--real-data", metavar="DIR", help="folder with CIFAR's binary editions, to check the real bytes")


def pytest_configure(config: pytest.Config) -> None:
    from helpers import batteries

    batteries.NIGHTLY = config.getoption("--nightly")
    if batteries.NIGHTLY and not hasattr(config, "workerinput"):
        config.pluginmanager.register(NightlyProgress(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nightly"):
        items.sort(key=lambda item: next((at for at, name in enumerate(LONG) if name in item.nodeid), len(LONG)))


class NightlyProgress:
    """Prints once a minute how many tests are done, and names every test that took a minute or more."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._began = config, time.monotonic()
        self._done = self._failed = self._total = 0
        self._said = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._total = len(session.items)

    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        self._total = len(list(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed
        if report.when == "call" and report.duration >= 60:
            self._say(f"{report.duration / 60:.1f} min for {report.nodeid}")
        if report.when == "teardown":
            self._done += 1
            if time.monotonic() - self._said >= 60:
                self._said = time.monotonic()
                self._say(f"{self._done:,} of {self._total:,} tests done, {self._failed} failed")

    def _say(self, text: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"[{(time.monotonic() - self._began) / 60:5.1f} min] {text}")
