"""The options of a re-labelling, declared once for `relabel`, `preview`, configurations and the command line.

The paper and the official code differ in three options: spread, threshold and target. A preset fixes all three; giving
one of them overrides the preset for that option alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_choice, check_fraction
from fedrela.core.input_checks import as_array, check_array
from fedrela.core.limits import Limits, OwnerLimits
from fedrela.errors import ArgumentError, UnknownOptionError
from fedrela.options import option, redeclared
from fedrela.text import shown, unknown

Function = TypeVar("Function", bound=Callable[..., Any])

QUANTILES = ("higher", "order", "linear")
FRACTION = "a fraction from 0 to 1"


class Variant(NamedTuple):
    """Which form of the equations is used; the paper and the official code differ in these three."""

    spread: str
    threshold: str | NDArray[np.float64]
    target: str


PRESETS = {
    "paper": Variant(spread="sample", threshold="higher", target="argmax"),
    "official": Variant(spread="population", threshold="order", target="winner"),
}


def _check_threshold(value: Any) -> str | float | tuple[float, ...] | None:
    if value is None:
        return None
    if isinstance(value, str | bool | Mapping):
        return check_choice("threshold", value, QUANTILES, ", or z values")
    if isinstance(value, list | tuple) and not value:
        raise ArgumentError("expected one z value per class, got none")
    for i, z in enumerate(value) if isinstance(value, list | tuple) else ():
        if isinstance(z, bool) or not isinstance(z, int | float | np.number) or not np.isfinite(z):
            raise ArgumentError(f"expected a z value, got {shown(z)}", item=(i,))
    z = as_array("threshold", value)
    z = check_array("threshold", z, z.shape[:1], np.float64)
    return tuple(z.tolist()) if z.ndim else float(z)


def _methods() -> Iterable[str]:
    from fedrela.core.reallocators import REALLOCATORS  # here, since re-allocators import these options

    return REALLOCATORS


def _check_method(value: Any) -> Any:
    from fedrela.core.reallocators import reallocator

    reallocator(value)
    return value


def _check_params(value: Any) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"expected a table of the method's own parameters, got {shown(value)}")
    return dict(value) if value else None


@dataclass(frozen=True, kw_only=True)
class RelabelOptions(Limits):
    """How labels are re-allocated. `fedrela.relabel` explains each option.

    Examples
    --------
    >>> options = RelabelOptions(preset="official", target="argmax")
    >>> options.tau, options.variant(num_classes=10)
    (0.05, Variant(spread='population', threshold='order', target='argmax'))
    """

    tau: float = redeclared(
        OwnerLimits,
        "tau",
        default=0.05,
        help="share of samples whose score may pass the threshold of a class; the paper advises 0.03 to 0.05",
        symbol="tau",
        check=partial(check_fraction, "tau", per_cent_hint=True),
        form=FRACTION,
    )
    preset: str = option(
        "paper",
        "the paper's equations, or what the official code does: sets spread, threshold and target unless given",
        choices=tuple(PRESETS),
    )
    spread: str | None = option(
        None,
        "standard deviation inside a class: with n - 1, or with n",
        symbol="sigma",
        choices=("sample", "population"),
    )
    threshold: str | float | ArrayLike | None = option(  # noqa: RUF009
        None,
        "threshold of a class: a quantile rule, or a constant z value",
        symbol="t_re",
        choices=QUANTILES,
        check=_check_threshold,
        form="one of higher, order, linear, a z value, or one z value per class",
    )
    target: str | None = option(
        None,
        "class of a moved sample: the largest rho of all, or of its successful draws",
        choices=("argmax", "winner"),
    )
    normalize: str = option(
        "zscore",
        "how posteriors become comparable: the paper's z-score, or one of its ablations",
        choices=("zscore", "minmax", "none"),
    )
    max_fraction: float = redeclared(
        OwnerLimits,
        "max_fraction",
        help="largest share of the labels that may change",
        check=partial(check_fraction, "max_fraction"),
        form=FRACTION,
    )
    method: Any = option(  # noqa: RUF009
        "fedrela",
        "what proposes the moves: the paper's equations, another re-allocator, or your own as module:Name",
        choices=_methods,
        check=_check_method,
        form="the name of a re-allocator",
    )
    params: Mapping[str, Any] | None = option(
        None,
        "the method's own parameters",
        check=_check_params,
        form="a table of the method's own parameters",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.params:
            self.reallocator()

    def reallocator(self) -> Any:
        """Return the re-allocator that proposes the moves, with its own parameters."""
        from fedrela.core.reallocators import reallocator

        return reallocator(self.method, self.params)

    def variant(self, num_classes: int) -> Variant:
        """Return spread, threshold and target: as given, or those of the preset."""
        preset = PRESETS[self.preset]
        threshold = self.threshold if isinstance(self.threshold, str) else preset.threshold
        if not isinstance(self.threshold, str | None):
            z = np.asarray(self.threshold)
            threshold = check_array("threshold", z if z.ndim else np.full(num_classes, z), (num_classes,), np.float64)
        return Variant(self.spread or preset.spread, threshold, self.target or preset.target)

    def taus(self, num_classes: int) -> NDArray[np.float64]:
        """Return tau of every class, ``(C,)``."""
        return self.class_taus(self.tau, num_classes)

    def as_record(self, num_classes: int) -> dict[str, Any]:
        """Return plain values for the ledger."""
        from fedrela.core.reallocators import method_name

        spread, threshold, target = self.variant(num_classes)
        return {
            "tau": self.tau,
            "spread": spread,
            "threshold": threshold if isinstance(threshold, str) else threshold.tolist(),
            "target": target,
            "normalize": self.normalize,
            "max_fraction": self.max_fraction,
            "method": method_name(self.method),
            **({"params": own} if (own := asdict(self.reallocator().params)) else {}),
            **({} if self.absent else {"absent": False}),
            **({} if self.class_tau is None else {"class_tau": dict(self.class_tau)}),
        }


class PreviewKeywords(TypedDict, total=False):
    """`RelabelOptions` without tau, for type checkers: the keywords of `preview`."""

    preset: str
    spread: str | None
    threshold: str | float | ArrayLike | None
    target: str | None
    normalize: str
    max_fraction: float
    method: Any
    params: Mapping[str, Any] | None
    allowed: Any
    forbidden: Any
    keep: Any
    absent: bool
    class_tau: Mapping[str, float] | None


class RelabelKeywords(PreviewKeywords, total=False):
    """`RelabelOptions` for type checkers: the keywords of `relabel`."""

    tau: float


def check_keywords(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise if a function that shows its keywords has none of a given name.

    >>> check_keywords(show_keywords(keyword_parameters("tau"))(lambda labels, **options: labels), ["taus"])
    Traceback (most recent call last):
    ...
    fedrela.errors.UnknownOptionError: taus: unknown option; nearest: tau
    """
    known = list(inspect.signature(function).parameters)
    for name in given:
        if name not in known:
            raise UnknownOptionError(unknown("option", name, known, function.__name__), argument=name)


def show_keywords(parameters: Iterable[inspect.Parameter], *, evaluate: bool = False) -> Callable[[Function], Function]:
    """Show parameters in a function's signature in place of its ``**options``.

    With `evaluate`, annotations are evaluated rather than left as text.

    >>> @show_keywords(keyword_parameters("preset", "max_fraction"))
    ... def f(labels, *, seed=0, **options): ...
    >>> inspect.signature(f)
    <Signature (labels, *, seed=0, preset: 'str' = 'paper', max_fraction: 'float' = 1.0)>
    """

    def show(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=evaluate)
        explicit = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        merged = sorted([*explicit, *parameters], key=lambda each: each.kind)
        # inspect reads the attribute from any function, but the type of functions does not declare it.
        function.__signature__ = signature.replace(parameters=merged)  # type: ignore[attr-defined]  # read by inspect
        return function

    return show


def keyword_parameters(*names: str) -> list[inspect.Parameter]:
    """Return options of `RelabelOptions` as parameters of a function."""
    parameters = inspect.signature(RelabelOptions).parameters
    return [parameters[name] for name in names]
