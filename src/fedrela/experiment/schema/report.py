"""The table ``[report]``: what the report of a run shows."""

from __future__ import annotations

from pydantic import Field

from fedrela.experiment.schema.base import Table


class ReportConfig(Table):
    """What the report shows."""

    samples: bool = Field(default=True, description="keep thumbnails of moved samples in the run folder and show them")
    gallery_size: int = Field(default=24, ge=1, le=1000, description="how many moved samples are shown")
