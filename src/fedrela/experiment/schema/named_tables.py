"""The tables ``[model]`` and ``[algorithm]``: a name, and the options that the model or algorithm of that name has.

These options stand beside the other keys, so such a table takes any key and checks the further ones itself. Where there
are none, it is checked without loading torch, which the models and algorithms need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, model_validator

from fedrela.experiment.schema.data import misfit
from fedrela.experiment.schema.table import ConfigTable, Fault, checked_options, one_of, raise_any, setting
from fedrela.options import Option, options_of
from fedrela.text import not_one_of, unknown

if TYPE_CHECKING:
    from fedrela.algorithms import Algorithm

DTYPES = ("float32", "float64")
WIDEST = 1_000_000  # units of a layer; larger numbers are slips that would end in a lack of memory
DEEPEST = 1_000  # layers


def further_keys(table: ConfigTable) -> dict[str, Any]:
    """Return the keys of a table that are no fields of it; changing them changes the table."""
    return table.__pydantic_extra__ or {}


def keep_changed(given: dict[str, Any], values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Keep only further keys that differ from the defaults: two tables that mean the same are then equal."""
    given.clear()
    given.update({key: value for key, value in values.items() if value != defaults[key]})


def _model_names() -> Iterable[str]:
    from fedrela.models import MODELS

    return MODELS


def _size_faults(path: tuple[str | int, ...], value: Any, hint: Any) -> list[Fault]:
    what = misfit(value, hint)
    if not what and isinstance(value, int) and not 1 <= value <= WIDEST:
        what = f"expected an integer from 1 to {WIDEST}, got {value}"
    return [Fault(path, what)] if what else []


class ModelConfig(ConfigTable):
    """Which network; its options are keys of this table too."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, one_of(_model_names, sure="mlp")] = setting(
        "mlp", "the network; its own options are keys of this table"
    )
    projection: int = setting(0, "width of MOON's projection before the last layer; 0: none", ge=0, le=WIDEST)
    dtype: Annotated[str, one_of(DTYPES)] = setting("float32", "float32 or float64")

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = further_keys(self)
        if given:
            defaults, owner = self._defaults(), f"model {self.name!r}"
            values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
            known = [*type(self).model_fields, *defaults]
            faults = [Fault((key,), unknown("key", key, known, owner), "key") for key in values if key not in defaults]
            faults += [fault for key in values if key in defaults for fault in self._faults(key, values[key])]
            raise_any(faults)
            keep_changed(given, values, defaults)
        return self

    def _defaults(self) -> dict[str, Any]:
        from fedrela.models import model_options

        return model_options(self.name)

    def _faults(self, key: str, value: Any) -> list[Fault]:
        from fedrela.models import MODELS
        from fedrela.models.networks import NORMS

        hint = get_type_hints(MODELS[self.name].make)[key]
        if key == "norm" and not (isinstance(value, str) and value in NORMS):
            return [Fault((key,), not_one_of(value, NORMS))]
        if not isinstance(value, tuple) or not get_origin(hint):
            return _size_faults((key,), value, hint)
        if len(value) > DEEPEST:
            return [Fault((key,), f"expected at most {DEEPEST} layers, got {len(value)}")]
        return [fault for i, size in enumerate(value) for fault in _size_faults((key, i), size, get_args(hint)[0])]

    @property
    def options(self) -> dict[str, Any]:
        """The model's own options, as far as they differ from its defaults."""
        return dict(further_keys(self))

    def as_table(self) -> dict[str, Any]:
        """Return all keys, with the model's own options in full."""
        return {"name": self.name, **self._defaults(), **self.options, **super().as_table()}


def _algorithm_names() -> Iterable[str]:
    from fedrela.algorithms import ALGORITHMS

    return ALGORITHMS


class AlgorithmConfig(ConfigTable):
    """Which algorithm; its parameters are keys of this table too."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, one_of(_algorithm_names, sure="fedavg")] = setting(
        "fedavg", "the algorithm; its own parameters are keys of this table"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = further_keys(self)
        if given:
            values = checked_options(self._options(), given, f"algorithm {self.name!r}", ["name"])
            keep_changed(given, values, {option.name: option.default for option in self._options()})
            self.kind()(**self.params)
        return self

    def _options(self) -> tuple[Option, ...]:
        return options_of(self.kind().Params)

    @property
    def params(self) -> dict[str, Any]:
        """The algorithm's own parameters, as far as they differ from its defaults."""
        return dict(further_keys(self))

    def kind(self) -> type[Algorithm]:
        """Return the class of the algorithm."""
        from fedrela.algorithms import ALGORITHMS

        return ALGORITHMS[self.name]

    def as_table(self) -> dict[str, Any]:
        """Return all keys, with the algorithm's own parameters in full."""
        return {"name": self.name, **{option.name: option.default for option in self._options()}, **self.params}

    def comments(self) -> dict[str, str]:
        """Return what each key means, the algorithm's own parameters too."""
        return super().comments() | {option.name: option.help for option in self._options()}
