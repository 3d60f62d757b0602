"""Blocks with named arrays in them: what the server lays down for clients, what clients leave, what they keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fedrela.algorithms.base import ArraySpecs
from fedrela.engine.blocks import Block, Handle
from fedrela.engine.rows import Rows


@dataclass(frozen=True)
class AreaHandle:
    """How another process finds an area."""

    block: Handle
    fields: ArraySpecs


class Area:
    """Rows of named arrays that every process sees."""

    def __init__(self, block: Block, fields: ArraySpecs, count: int = 0) -> None:
        self.block, self.rows, self.count = block, Rows(fields), count

    @classmethod
    def create(cls, fields: ArraySpecs, rows: int, folder: Path | None) -> Area:
        """Make an area of zeros."""
        return cls(Block.create(Rows(fields).nbytes * rows, folder=folder), fields, rows)

    @classmethod
    def attach(cls, handle: AreaHandle) -> Area:
        """Open an area that another process made."""
        return cls(Block.attach(handle.block), handle.fields)

    @property
    def handle(self) -> AreaHandle:
        """How another process finds it."""
        return AreaHandle(self.block.handle, self.rows.fields)

    def views(self, row: int = 0) -> dict[str, NDArray[Any]]:
        """Return the arrays of a row."""
        return self.rows.views(self.block.array, row)

    def close(self) -> None:
        """Let go of it; the maker removes it."""
        self.block.close()
