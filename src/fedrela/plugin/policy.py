"""What the owner of the data permits. Whatever a federation asks for, the stricter of the two wins."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.checks import check_fraction
from fedrela.errors import ArgumentError
from fedrela.models.checks import one_of, whole

Moves = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Policy:
    """Limits of re-labelling: those of a client's file, or those that a federation asks for.

    Attributes
    ----------
    enabled
        False: the original labels, also where others have been made before.
    tau
        Largest tau.
    max_fraction
        Largest share of a client's labels that may change.
    passes
        How often the labels may be made anew, each time from the original ones.
    min_agreement
        A model that confirms a smaller share of the labels moves none of them.
    share
        Whether the number of moved labels may be told to the server.
    allowed
        The only moves that may happen, as pairs of classes (from, to); None for all.
    forbidden
        Moves that may not happen.

    Examples
    --------
    >>> asked, own = Policy(tau=0.2, share=True), Policy(tau=0.05, forbidden=[(3, 0)])
    >>> both = asked.stricter(own)
    >>> both.tau, both.share, sorted(both.forbidden)
    (0.05, False, [(3, 0)])
    """

    enabled: bool = True
    tau: float = 1.0
    max_fraction: float = 0.3
    passes: int = 1
    min_agreement: float = 0.0
    share: bool = False
    allowed: Iterable[tuple[int, int]] | None = None
    forbidden: Iterable[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def stricter(self, other: Policy) -> Policy:
        """Return the policy that permits what both permit."""
        mine, others = _pairs("allowed", self.allowed), _pairs("allowed", other.allowed)
        return Policy(
            enabled=self.enabled and other.enabled,
            tau=min(self.tau, other.tau),
            max_fraction=min(self.max_fraction, other.max_fraction),
            passes=min(self.passes, other.passes),
            min_agreement=max(self.min_agreement, other.min_agreement),
            share=self.share and other.share,
            allowed=others if mine is None else mine if others is None else mine & others,
            forbidden={*self.forbidden, *other.forbidden},
        )

    def moves(self, classes: int) -> NDArray[np.bool_] | None:
        """Return the moves that may happen as ``(C, C)``, from row to column; None for all."""
        if self.allowed is None and not self.forbidden:
            return None
        named = [*(self.allowed or ()), *self.forbidden]
        if named and max(map(max, named)) >= classes:
            raise ArgumentError(
                f"policy: a move names class {max(map(max, named))} where the model knows 0 to {classes - 1}"
            )
        may = np.full((classes, classes), self.allowed is None)
        for pairs, value in ((self.allowed or (), True), (self.forbidden, False)):
            for pair in pairs:
                may[pair] = value
        return may


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}: expected true or false, got {value!r}")
    return value


def _pairs(name: str, value: Any) -> Moves | None:
    if value is None:
        return None
    try:
        return frozenset((whole(name, a, 0), whole(name, b, 0)) for a, b in value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: expected pairs of class numbers [from, to], got {value!r}") from None


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "enabled": _switch, "tau": check_fraction, "max_fraction": check_fraction, "passes": whole,
    "min_agreement": check_fraction, "share": _switch, "allowed": _pairs,
    "forbidden": lambda name, value: _pairs(name, () if value is None else value),
}  # fmt: skip


def read_policy(path: str | Path) -> Policy:
    """Return the policy in a TOML file, whose keys are the attributes of `Policy`; errors name file and key."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}; a policy is a TOML file") from None
    except ValueError as error:
        raise ArgumentError(f"{path}: not TOML: {' '.join(str(error).split())}") from None
    known = [each.name for each in fields(Policy)]
    for key, value in table.items():
        try:
            Policy(**{one_of("key", key, known): value})
        except ArgumentError as error:
            raise ArgumentError(f"{path}:{key}: {str(error).removeprefix(f'{key}: ')}") from None
    return Policy(**table)
