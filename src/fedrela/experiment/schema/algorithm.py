"""The table ``[algorithm]``: a federated algorithm and its parameters, which its own ``Params`` checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from fedrela.errors import ArgumentError
from fedrela.experiment.schema.base import Fault, Table, one_of
from fedrela.experiment.schema.named import further_keys, settle
from fedrela.options import Option, checked, options_of

if TYPE_CHECKING:
    from fedrela.algorithms import Algorithm


def _names() -> Iterable[str]:
    from fedrela.algorithms import ALGORITHMS

    return ALGORITHMS


class AlgorithmConfig(Table):
    """Which algorithm; its parameters are keys of this table too."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, one_of(_names, sure="fedavg")] = Field(
        default="fedavg", description="the algorithm; its own parameters are keys of this table"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if further_keys(self):
            defaults = {option.name: option.default for option in self._options()}
            settle(self, f"algorithm {self.name!r}", defaults, self._faults)
            self.check_rules(lambda: self.kind()(**self.params))
        return self

    def _options(self) -> tuple[Option, ...]:
        return options_of(self.kind().Params)

    def _faults(self, key: str, value: Any) -> list[Fault]:
        """Check one parameter alone: rules between parameters need all of them, and come later."""
        try:
            checked(next(option for option in self._options() if option.name == key), value)
        except ArgumentError as error:
            return [Fault((key,), "value", error.reason)]
        return []

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
