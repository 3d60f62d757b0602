"""What the owner of the data permits. If a federation asks for more, the stricter of the two applies."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError
from fedrela.options import Options, option, options_of
from fedrela.text import one_line, shown, unknown

Moves = frozenset[tuple[int, int]]
POLICY = "policy.toml"
NOT_OF_MOVES = ("enabled", "passes", "share")
PAIRS = "pairs of class numbers [from, to]"


def _pairs(value: Any) -> Moves | None:
    if value is None:
        return None
    try:
        return frozenset((check_integer("class", a, 0), check_integer("class", b, 0)) for a, b in value)
    except (TypeError, ValueError):
        raise ArgumentError(f"expected {PAIRS}, got {shown(value)}") from None


@dataclass(frozen=True)
class Policy(Options):
    """Limits of re-labelling: those of a client's file, or those that a federation asks for.

    >>> asked, own = Policy(tau=0.2, share=True), Policy(tau=0.05, forbidden=[(3, 0)])
    >>> both = asked.stricter(own)
    >>> both.tau, both.share, sorted(both.forbidden)
    (0.05, False, [(3, 0)])
    """

    enabled: bool = option(True, "false: train on the original labels, even if new ones were made before")
    tau: float = option(1.0, "largest tau", ge=0, le=1)
    max_fraction: float = option(0.3, "largest share of a client's labels that may change", ge=0, le=1)
    passes: int = option(1, "how often labels may be made, each time from the original ones", ge=1)
    min_agreement: float = option(0.0, "if the model confirms a smaller share of the labels, none moves", ge=0, le=1)
    share: bool = option(False, "whether the server may learn the number of moved labels")
    allowed: Iterable[tuple[int, int]] | None = option(
        None, "the only moves that may happen, as pairs of classes (from, to); None for all", check=_pairs, form=PAIRS
    )
    forbidden: Iterable[tuple[int, int]] = option(
        frozenset(), "moves that may not happen", check=lambda value: _pairs(value or ()), form=PAIRS
    )

    def stricter(self, other: Policy) -> Policy:
        """Return the policy that permits what both permit."""
        mine, others = _pairs(self.allowed), _pairs(other.allowed)
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

    def in_force(self) -> dict[str, Any]:
        """Return what decides which labels move, as plain values."""
        values = {each.name: getattr(self, each.name) for each in options_of(Policy) if each.name not in NOT_OF_MOVES}
        return {name: sorted(map(list, v)) if isinstance(v, frozenset) else v for name, v in values.items()}

    def moves(self, classes: int) -> NDArray[np.bool_] | None:
        """Return the moves that may happen as ``(C, C)``, from row to column; None for all."""
        if self.allowed is None and not self.forbidden:
            return None
        named = [*(self.allowed or ()), *self.forbidden]
        if named and max(map(max, named)) >= classes:
            raise ArgumentError(
                f"policy: expected classes from 0 to {classes - 1} in moves, got {max(map(max, named))}"
            )
        may = np.full((classes, classes), self.allowed is None)
        for pairs, value in ((self.allowed or (), True), (self.forbidden, False)):
            for pair in pairs:
                may[pair] = value
        return may


def read_policy(path: str | Path) -> Policy:
    """Return the policy in a TOML file, whose keys are the attributes of `Policy`; errors name file and key."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}; a policy is a TOML file") from None
    except ValueError as error:
        raise ArgumentError(f"{path}: not TOML: {one_line(error)}") from None
    known = [each.name for each in options_of(Policy)]
    for key in table:
        if key not in known:
            raise ArgumentError(f"{path}:{key}: {unknown('key', key, known, 'a policy')}")
    try:
        return Policy(**table)
    except ArgumentError as error:
        raise ArgumentError(f"{path}:{error.argument}: {error.reason}") from None


def own_policy(given: Policy | str | Path | None, folder: Path) -> Policy:
    """Return a policy, or that of a file, by default of the one in `folder`; without a file the default policy."""
    if isinstance(given, Policy):
        return given
    if given is None and not (folder / POLICY).exists():
        return Policy()
    return read_policy(folder / POLICY if given is None else given)
