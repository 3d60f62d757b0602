"""Counts of the batteries: everyday by default, `--nightly` for the long ones."""

from __future__ import annotations

import os

import pytest

# Tests run in several processes: a linear-algebra library that starts threads in each only makes them wait.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the batteries at their nightly counts")
    parser.addoption("--goldens", metavar="DIR", help="folder of full FedReLa goldens, in place of the reduced copies")
    parser.addoption("--real-data", metavar="DIR", help="folder with CIFAR's binary editions, to check the real bytes")


def pytest_configure(config: pytest.Config) -> None:
    from helpers import batteries

    batteries.NIGHTLY = config.getoption("--nightly")
