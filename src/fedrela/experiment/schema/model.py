"""The table ``[model]``: a network, its own options, and what every network can be told."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, model_validator

from fedrela.experiment.schema.base import Fault, Table, one_of
from fedrela.experiment.schema.named import further_keys, settle
from fedrela.experiment.schema.options import misfit
from fedrela.text import not_one_of

DTYPES = ("float32", "float64")
WIDEST = 1_000_000  # units of a layer; larger numbers are slips that would end in a lack of memory
DEEPEST = 1_000  # layers


def _names() -> Iterable[str]:
    from fedrela.models import MODELS

    return MODELS


def _size_faults(path: tuple[str | int, ...], value: Any, hint: Any) -> list[Fault]:
    what = misfit(value, hint)
    if not what and isinstance(value, int) and not 1 <= value <= WIDEST:
        what = f"expected an integer from 1 to {WIDEST}, got {value}"
    return [Fault(path, "value", what)] if what else []


class ModelConfig(Table):
    """Which network; its options are keys of this table too."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, one_of(_names, sure="mlp")] = Field(
        default="mlp", description="the network; its own options are keys of this table"
    )
    projection: int = Field(
        default=0, ge=0, le=WIDEST, description="width of MOON's projection before the last layer; 0: none"
    )
    dtype: Annotated[str, one_of(DTYPES)] = Field(default="float32", description="float32 or float64")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if further_keys(self):
            settle(self, f"model {self.name!r}", self._defaults(), self._faults)
        return self

    def _defaults(self) -> dict[str, Any]:
        from fedrela.models import MODELS, model_options

        parameters = inspect.signature(MODELS[self.name]).parameters
        return {name: parameters[name].default for name in model_options(self.name)}

    def _faults(self, key: str, value: Any) -> list[Fault]:
        from fedrela.models import MODELS
        from fedrela.models.resnet import NORMS

        hint = get_type_hints(MODELS[self.name])[key]
        if key == "norm" and not (isinstance(value, str) and value in NORMS):
            return [Fault((key,), "value", not_one_of(value, NORMS))]
        if not isinstance(value, tuple) or not get_origin(hint):
            return _size_faults((key,), value, hint)
        if len(value) > DEEPEST:
            return [Fault((key,), "value", f"expected at most {DEEPEST} layers, got {len(value)}")]
        return [fault for i, size in enumerate(value) for fault in _size_faults((key, i), size, get_args(hint)[0])]

    @property
    def options(self) -> dict[str, Any]:
        """The model's own options, as far as they differ from its defaults."""
        return dict(further_keys(self))

    def as_table(self) -> dict[str, Any]:
        """Return all keys, with the model's own options in full."""
        return {"name": self.name, **self._defaults(), **self.options, **super().as_table()}
