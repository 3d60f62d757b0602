"""Fixtures of the source tests: a cache of their own, and small files in the true formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


@pytest.fixture
def images(noise: Callable[..., NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
    return {
        "x_train": noise(12, 3, 8, 8),
        "y_train": np.arange(12) % 3,
        "x_test": noise(6, 3, 8, 8),
        "y_test": np.arange(6) % 3,
        "class_names": np.array(["a", "b", "c"]),
    }
