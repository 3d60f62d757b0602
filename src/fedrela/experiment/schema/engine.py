"""The tables ``[engine]`` and ``[report]``: how a run is carried out and shown; nothing here changes a result."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from fedrela.experiment.schema.table import BrokenRuleError, ConfigTable, Fault
from fedrela.text import not_one_of, shown

MOST_WORKERS = 1024
DEVICES = ("auto", "cpu", "cuda", "mps", "xpu")
_NUMBERED = re.compile(r"(cuda|xpu):\d{1,3}")


def _workers(value: Any) -> str | int:
    if value == "auto":
        return "auto"
    if type(value) is int and 1 <= value <= MOST_WORKERS:
        return value
    what = f"expected 'auto' or an integer from 1 to {MOST_WORKERS}, got {shown(value)}"
    raise BrokenRuleError(Fault((), "value", what))


def _device(value: Any) -> str:
    if isinstance(value, str) and (value in DEVICES or _NUMBERED.fullmatch(value)):
        return value
    raise BrokenRuleError(Fault((), "value", not_one_of(value, DEVICES, ", or a numbered one such as cuda:1,")))


class EngineConfig(ConfigTable):
    """How a run is carried out."""

    workers: Annotated[str | int, PlainValidator(_workers)] = Field(
        default="auto", description="processes that train clients; auto: one per core"
    )
    device: Annotated[str, PlainValidator(_device)] = Field(
        default="auto", description="where models are trained; auto: a GPU where there is one"
    )
    checkpoint_every: int = Field(default=5, ge=1, le=1_000_000, description="rounds between two checkpoints")


class ReportConfig(ConfigTable):
    """What the report shows."""

    samples: bool = Field(default=True, description="keep thumbnails of moved samples in the run folder and show them")
    gallery_size: int = Field(default=24, ge=1, le=1000, description="how many moved samples are shown")
