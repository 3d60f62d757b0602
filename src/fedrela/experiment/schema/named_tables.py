"""The tables ``[model]`` and ``[algorithm]``: a name, and the options that the model or algorithm of that name has.

These options are keys of the same table, so it accepts any key and checks the extra ones itself. Without extra keys it
is checked without loading torch, which models and algorithms need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self, get_type_hints

from pydantic import ConfigDict, model_validator

from fedrela.errors import ArgumentError
from fedrela.experiment.schema.config_table import (
    LARGEST_SIZE,
    ConfigTable,
    Fault,
    checked_options,
    component_name,
    one_of,
    raise_any,
    setting,
    sizes,
)
from fedrela.options import Option, options_of

if TYPE_CHECKING:
    from fedrela.algorithms import Algorithm

DTYPES = ("float32", "float64")
DEEPEST = 1_000  # layers


def keep_changed(table: ConfigTable, options: Sequence[Option], owner: str) -> None:
    """Check the keys of a table that are not fields of it, and keep those that differ from their defaults.

    Two tables that mean the same are then equal.
    """
    given, defaults = extra_keys(table), {option.name: option.default for option in options}
    values = checked_options(options, given, owner, type(table).model_fields)
    given.clear()
    given.update({key: value for key, value in values.items() if value != defaults[key]})


def extra_keys(table: ConfigTable) -> dict[str, Any]:
    """Return the keys of a table that are not fields of it; changing them changes the table."""
    return table.__pydantic_extra__ or {}


def _find_model() -> Callable[[object], Any]:
    from fedrela.models import find_model

    return find_model


def _check_sizes(value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple) and len(value) > DEEPEST:
        raise ArgumentError(f"expected at most {DEEPEST} layers, got {len(value)}")
    return sizes(value, "one per layer")


class ModelConfig(ConfigTable):
    """Which network; its options are keys of this table too."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, component_name(_find_model, sure="mlp")] = setting(
        "mlp", "the network; its own options are keys of this table"
    )
    projection: int = setting(0, "width of MOON's projection before the last layer; 0: none", ge=0, le=LARGEST_SIZE)
    dtype: Annotated[str, one_of(DTYPES)] = setting("float32", "float32 or float64")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if extra_keys(self):
            keep_changed(self, self._options(), f"model {self.name!r}")
        return self

    def _options(self) -> tuple[Option, ...]:
        """Return the model's own options, as the signature of its function declares them."""
        from fedrela.models import ModelSpec, find_model, model_options
        from fedrela.models.networks import NORMS

        found = find_model(self.name)
        if not isinstance(found, ModelSpec):
            return tuple(Option(name, Any, default, "") for name, default in model_options(self.name).items())
        hints = get_type_hints(found.make)
        kinds: dict[Any, dict[str, Any]] = {int: {"ge": 1, "le": LARGEST_SIZE}, str: {"words": NORMS}}
        return tuple(
            Option(name, hints[name], default, "", **kinds.get(hints[name], {"check": _check_sizes}))
            for name, default in model_options(self.name).items()
        )

    @property
    def options(self) -> dict[str, Any]:
        """The model's own options, as far as they differ from its defaults."""
        return dict(extra_keys(self))

    def as_table(self) -> dict[str, Any]:
        """Return all keys, with the model's own options in full."""
        from fedrela.models import model_options

        values = {"name": self.name, **model_options(self.name), **self.options, **super().as_table()}
        return {key: value for key, value in values.items() if value is not None}


def _find_algorithm() -> Callable[[object], type[Algorithm]]:
    from fedrela.algorithms import find_algorithm

    return find_algorithm


class AlgorithmConfig(ConfigTable):
    """Which algorithm; its parameters are keys of this table too."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, component_name(_find_algorithm, sure="fedavg")] = setting(
        "fedavg", "the algorithm; its own parameters are keys of this table"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if extra_keys(self):
            keep_changed(self, self._options(), f"algorithm {self.name!r}")
            unused = self.make().params.unused().items()
            raise_any(Fault((name,), f"{why}; leave it out", "key") for name, why in unused if name in extra_keys(self))
        return self

    def _options(self) -> tuple[Option, ...]:
        return options_of(self.kind().Params)

    @property
    def params(self) -> dict[str, Any]:
        """The algorithm's own parameters, as far as they differ from its defaults."""
        return dict(extra_keys(self))

    def kind(self) -> type[Algorithm]:
        """Return the class of the algorithm."""
        return _find_algorithm()(self.name)

    def make(self) -> Algorithm:
        """Return the algorithm with its parameters."""
        return self.kind()(**self.params)

    def as_table(self) -> dict[str, Any]:
        """Return all keys, with the algorithm's own parameters in full."""
        return {"name": self.name, **{option.name: option.default for option in self._options()}, **self.params}

    def comments(self) -> dict[str, str]:
        """Return what each key means, the algorithm's own parameters too."""
        return super().comments() | {option.name: option.help for option in self._options()}
