"""The table ``[data]``: a source with its options, its imbalance, its partition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import PlainValidator, ValidationInfo, model_validator

from fedrela.arguments import check_choice
from fedrela.data.federation import DEFAULT_PARTITION, MODES, NO_IMBALANCE
from fedrela.data.imbalance import Imbalance
from fedrela.data.partition import PartitionPlan
from fedrela.data.sources import find_source
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.config_table import (
    FULL,
    ConfigTable,
    checked_options,
    component_name,
    one_of,
    options_table,
    setting,
)
from fedrela.metrics.groups import evaluation_groups
from fedrela.records import GROUP_PROTOCOLS
from fedrela.text import shown


def source_options(value: Any, info: ValidationInfo) -> dict[str, Any]:
    """Return the options of the source that was named before, checked."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"expected a table, got {shown(value)}")
    if source := info.data.get("source"):
        checked_options(find_source(source).options.values(), value, f"source {source!r}")
    return {name: tuple(each) if isinstance(each, list) else each for name, each in value.items()}


def source_root(value: Any, info: ValidationInfo) -> Path | None:
    """Resolve a path against the folder of its file; no part of it is expanded or replaced."""
    if value is None:
        return None
    if not isinstance(value, str | Path):
        raise ArgumentError(f"expected a path, got {shown(value)}")
    if not str(value) or any(ord(ch) < 32 for ch in str(value)):
        what = "expected a path of at least one character and without control characters"
        raise ArgumentError(f"{what}, got {shown(str(value))}")
    return Path((info.context or {}).get("folder", ""), value).absolute()


def _scaling(value: Any) -> str | dict[str, tuple[float, ...]]:
    """Return a word, or the same number of means and standard deviations."""
    if isinstance(value, str):
        return check_choice("", value, ("fit", "local", "none"), ", or a table { mean, std }")
    if not isinstance(value, Mapping) or {*value} != {"mean", "std"}:
        raise ArgumentError(f"expected fit, local, none, or a table {{ mean, std }}, got {shown(value)}")
    for name, each in value.items():
        numbers = isinstance(each, list | tuple) and all(type(number) in (int, float) for number in each)
        if not numbers or not each or not all(math.isfinite(x) and (x > 0 or name == "mean") for x in each):
            positive = " above 0" if name == "std" else ""
            raise ArgumentError(
                f"expected a list of numbers{positive}, one per channel, got {shown(each)}", item=(name,)
            )
    if len(value["mean"]) != len(value["std"]):
        raise ArgumentError(f"expected as many means as stds, got {len(value['mean'])} and {len(value['std'])}")
    return {name: tuple(map(float, value[name])) for name in ("mean", "std")}


class DataConfig(ConfigTable):
    """Which data, how imbalanced, and how they are split over clients."""

    source: Annotated[str, component_name(lambda: find_source)] = setting(
        "digits", "the data set; or your own, module:name"
    )
    root: Annotated[Path | None, PlainValidator(source_root)] = setting(
        None, "where the files of the source are, relative to the configuration file"
    )
    options: Annotated[dict[str, Any], PlainValidator(source_options)] = setting({}, "options of this source")
    imbalance: Annotated[Imbalance, options_table(Imbalance, strict=True), FULL] = setting(
        NO_IMBALANCE, "how many samples of each class are kept"
    )
    partition: Annotated[PartitionPlan, options_table(PartitionPlan, strict=True), FULL] = setting(
        DEFAULT_PARTITION, "which client gets which samples"
    )
    validation: float = setting(
        0.0, "share of each client's samples held out, original labels, never trained on", ge=0, lt=1
    )
    standardize: Annotated[str, one_of(MODES)] = setting(
        "pooled", "columns of a table: by statistics pooled over clients, by the client's own (local), or none"
    )
    scaling: Annotated[str | dict[str, tuple[float, ...]], PlainValidator(_scaling)] = setting(
        "fit",
        "images and series: fit, none, or mean and std per channel, for uint8 images as fractions of white; local: "
        "each private node by its own",
    )
    protocol: Annotated[str, one_of(GROUP_PROTOCOLS)] = setting(
        "counts", "how classes are sorted into head, medium and tail for evaluation"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.imbalance.kind == "step":
            evaluation_groups([1], minority=[], protocol=self.protocol)
        return self
