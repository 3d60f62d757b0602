"""The command line as users start it, in a process of its own, and what Flower's log says."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest


@pytest.fixture
def run_cli():
    """Return a function that runs `fedrela` with some words."""

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fedrela.cli.main", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    return call


@pytest.fixture
def heard():
    """The lines of Flower's log."""
    from helpers.flower_apps import Heard  # which needs the extra flower

    handler = Heard()
    logging.getLogger("flwr").addHandler(handler)
    yield handler.lines
    logging.getLogger("flwr").removeHandler(handler)
