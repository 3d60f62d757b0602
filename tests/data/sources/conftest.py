"""Fixtures of the source tests: a cache of their own, and small files in the true formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fedrela"


@pytest.fixture
def noise() -> Callable[..., NDArray[np.uint8]]:
    generator = np.random.default_rng(7)
    return lambda *shape: generator.integers(0, 256, shape, np.uint8)
