"""Who does the work in the engine's tests: this process, or two workers that serve all tests of a session."""

from __future__ import annotations

import pytest
import torch

from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pool():
    with Pool(2) as pool:
        yield pool


@pytest.fixture
def serial():
    with SerialExecutor() as serial:
        yield serial
