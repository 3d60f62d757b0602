"""Values of ``[relabel]`` that have several forms: a tau for all or for each client, a threshold, pairs of classes."""

from __future__ import annotations

import math
import re
from typing import Any

from fedrela.core.checks import check_fraction
from fedrela.core.options import QUANTILES
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.base import BrokenRuleError, Fault, said_of
from fedrela.text import shown

OTHERS = "default"  # the key of all clients that a table of tau does not name
USUAL_TAU = 0.05
_CLIENT = re.compile(r"0|[1-9][0-9]{0,17}")


def check_tau(value: Any) -> float | dict[str, float]:
    """Return a fraction, or a table client id -> fraction that has a value for all others too."""
    if not isinstance(value, dict):
        return _fraction(value, ())
    faults, table = [], {OTHERS: USUAL_TAU}
    for key, tau in value.items():
        if key != OTHERS and not _CLIENT.fullmatch(key):
            faults.append(Fault((key,), "key", f'a client id such as 0, or "{OTHERS}" for all others, is needed'))
        try:
            table[key] = _fraction(tau, (key,))
        except BrokenRuleError as error:
            faults += error.faults
    if faults:
        raise BrokenRuleError(*faults)
    return dict(sorted(table.items(), key=lambda item: -1 if item[0] == OTHERS else int(item[0])))


def _fraction(value: Any, path: tuple[str, ...]) -> float:
    try:
        return check_fraction("tau", value, per_cent_hint=True)
    except ArgumentError as error:
        raise BrokenRuleError(Fault(path, "value", said_of(value, error))) from None


def check_threshold(value: Any) -> str | float | tuple[float, ...] | None:
    """Return the name of a quantile, a z value, or one z value a class; None leaves it to the preset."""
    if value is None or (isinstance(value, str) and value in QUANTILES):
        return value
    if _is_number(value):
        return float(value)
    if not isinstance(value, list | tuple) or not value:
        what = f"expected one of {', '.join(QUANTILES)}, a z value, or a list with one a class, got {shown(value)}"
        raise BrokenRuleError(Fault((), "value", what))
    if wrong := [i for i, z in enumerate(value) if not _is_number(z)]:
        raise BrokenRuleError(*(Fault((i,), "value", f"expected a z value, got {shown(value[i])}") for i in wrong))
    return tuple(map(float, value))


def check_pairs(value: Any) -> tuple[tuple[int, int], ...]:
    """Return pairs of two different class ids."""
    needed = "expected of class ids [from, to], got"
    if not isinstance(value, list | tuple):
        raise BrokenRuleError(Fault((), "value", f"a list of pairs {needed} {shown(value)}"))
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            number = f" of {len(pair)}" if isinstance(pair, list | tuple) else ""
            raise BrokenRuleError(Fault((i,), "value", f"a pair {needed} {shown(pair)}{number}"))
        for j, c in enumerate(pair):
            if type(c) is not int or c < 0:
                raise BrokenRuleError(Fault((i, j), "value", f"expected a class id of at least 0, got {shown(c)}"))
        if pair[0] == pair[1]:
            raise BrokenRuleError(Fault((i,), "value", f"expected two different classes, got {pair[0]} twice"))
    return tuple((pair[0], pair[1]) for pair in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
