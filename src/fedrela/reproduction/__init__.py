"""The paper's tables: published numbers and settings as data, and the runs that reproduce them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.reproduction.measurement import reproduce as reproduce

__all__ = ["reproduce"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # loaded on first use, since it loads torch
        from fedrela.reproduction import measurement

        return getattr(measurement, name)
    raise AttributeError(f"module 'fedrela.reproduction' has no attribute {name!r}")
