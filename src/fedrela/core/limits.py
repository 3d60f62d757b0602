"""The owner's limits on moves, declared once for `relabel`, `preview`, a client's policy and configurations.

Classes are given by number from 0, or by name if there are class names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_fraction
from fedrela.core.input_checks import as_array, check_array
from fedrela.errors import ArgumentError, WrongKeyError
from fedrela.options import Options, option
from fedrela.text import nearest_hint, shown

if TYPE_CHECKING:
    from fedrela.core.ledger import Ledger

Class = int | str
Pairs = tuple[tuple[Class, Class], ...]
PAIRS = "a list of pairs of classes [from, to]"
ROWS = "a list of rows, by number or id"


def check_pairs(value: Any) -> Pairs:
    """Return pairs of two different classes."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise ArgumentError(f"expected {PAIRS}, got {shown(value)}")
    pairs = []
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ArgumentError(f"expected a pair of classes [from, to], got {shown(pair)}", item=(i,))
        pair = tuple(_as_class(c, (i, j)) for j, c in enumerate(pair))
        if pair[0] == pair[1]:
            raise ArgumentError(f"expected two different classes, got {shown(pair[0])} twice", item=(i,))
        pairs.append(pair)
    return tuple(pairs)


def _plain(value: Any) -> Any:
    """Return an integer of NumPy as one of Python, and any other value as it is."""
    return int(value) if isinstance(value, np.integer) else value


def _as_class(value: Any, item: tuple[int, ...]) -> Class:
    value = _plain(value)
    if isinstance(value, str) or (type(value) is int and value >= 0):
        return value
    raise ArgumentError(f"expected a class number >= 0 or a class name, got {shown(value)}", item=item)


def is_matrix(allowed: Any) -> bool:
    """Whether allowed moves are booleans, by row and column, and not pairs of classes."""
    first = allowed[0] if isinstance(allowed, list | tuple) and allowed else None
    first = first[0] if isinstance(first, list | tuple) and first else first
    return isinstance(allowed, np.ndarray) or isinstance(first, bool | np.bool_ | np.ndarray)


def _check_allowed(value: Any) -> Pairs | NDArray[Any] | None:
    """Return pairs, or a matrix as it was given; `relabel` checks its shape."""
    if value is None:
        return None
    return as_array("allowed", value) if is_matrix(value) else check_pairs(value)


def _check_keep(value: Any) -> tuple[int | str, ...] | NDArray[np.bool_]:
    """Return rows by number or id, sorted, or booleans as they were given; `kept_rows` checks their length."""
    if isinstance(value, np.ndarray) and value.dtype == np.bool_:
        return value
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(rows, list | tuple | set | frozenset):
        raise ArgumentError(f"expected {ROWS}, got {shown(value)}")
    rows = [_plain(row) for row in rows]
    for i, row in enumerate(rows):
        if not isinstance(row, str) and (type(row) is not int or row < 0):
            raise ArgumentError(f"expected a row number >= 0 or an id, got {shown(row)}", item=(i,))
    return tuple(sorted(set(rows), key=lambda row: (isinstance(row, str), row)))


def _check_class_tau(value: Any) -> dict[str, float] | None:
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"expected a table class -> fraction, got {shown(value)}")
    table = {}
    for key, tau in (value or {}).items():
        key = _plain(key)
        if not isinstance(key, str) and (type(key) is not int or key < 0):
            raise WrongKeyError(f"expected a class number >= 0 or a class name, got {shown(key)}", item=(str(key),))
        if str(key) in table:
            raise WrongKeyError(f"expected each class once, got {key} as number and as text", item=(str(key),))
        table[str(key)] = check_tau_of(str(key), tau)
    return dict(sorted(table.items())) or None


def check_tau_of(key: str, value: Any) -> float:
    """Return the tau of one key of a table; an error names the key."""
    try:
        return check_fraction("tau", value, per_cent_hint=True)
    except ArgumentError as error:
        raise ArgumentError(error.reason, item=(key,)) from None


@dataclass(frozen=True, kw_only=True)
class Limits(Options):
    """Which moves the owner of the data permits.

    >>> Limits(forbidden=[("ill", "well")]).numbered(["well", "ill"]).forbidden
    ((1, 0),)
    """

    allowed: Any = option(  # noqa: RUF009
        None, "the only moves that may happen, as pairs of classes (from, to)", check=_check_allowed, form=PAIRS
    )
    forbidden: Any = option(  # noqa: RUF009
        (), "moves that may not happen, as pairs of classes [from, to]", check=check_pairs, form=PAIRS
    )
    keep: Any = option(  # noqa: RUF009
        (), "rows whose labels are verified and stay", check=_check_keep, form=ROWS
    )
    absent: bool = option(True, "whether samples may move into a class that the client does not have")
    class_tau: Mapping[str, float] | None = option(
        None,
        "tau of single classes, by number or name",
        check=_check_class_tau,
        form="a table class -> fraction from 0 to 1",
    )

    def check_no_array(self) -> None:
        """Raise if `allowed` or `keep` is an array of booleans, which a file cannot hold."""
        for limit, form in (("allowed", PAIRS), ("keep", ROWS)):
            if isinstance(getattr(self, limit), np.ndarray):
                raise ArgumentError(f"expected {form}, got booleans", argument=limit)

    def numbered(self, names: Sequence[str]) -> Self:
        """Return the same limits with numbers in place of class names."""
        changed: dict[str, Any] = {}
        for limit in ("allowed", "forbidden"):
            pairs = getattr(self, limit)
            if pairs is not None and not isinstance(pairs, np.ndarray):
                changed[limit] = tuple(
                    (class_number(a, names, limit, (i, 0)), class_number(b, names, limit, (i, 1)))
                    for i, (a, b) in enumerate(pairs)
                )
        if self.class_tau is not None:
            table: dict[str, float] = {}
            for c, tau in self.class_tau.items():
                number = str(class_number(c, names, "class_tau", (c,)))
                if number in table:
                    what = f"expected each class once, got class {number} by its number and by its name"
                    raise ArgumentError(what, argument="class_tau", item=(c,))
                table[number] = tau
            changed["class_tau"] = table
        return replace(self, **changed)

    def allowed_moves(self, C: int) -> NDArray[np.bool_] | None:
        """Return the moves that may happen as ``(C, C)``, from row to column; None for all."""
        if isinstance(self.allowed, np.ndarray):
            may = check_array("allowed", self.allowed, (C, C), np.bool_).copy()
        elif self.allowed is None and not self.forbidden:
            return None
        else:
            may = np.full((C, C), self.allowed is None)
        for limit, value in (("allowed", True), ("forbidden", False)):
            pairs = getattr(self, limit)
            for i, pair in enumerate(() if pairs is None or isinstance(pairs, np.ndarray) else pairs):
                for j, c in enumerate(pair):
                    if not isinstance(c, int) or c >= C:
                        raise ArgumentError(f"expected classes from 0 to {C - 1}, got {c}", argument=limit, item=(i, j))
                may[pair] = value
        return may

    def kept_rows(self, n: int, ids: Sequence[str] = ()) -> NDArray[np.bool_]:
        """Return which of `n` rows keep their labels, given as booleans, or by their ids if they have any."""
        if isinstance(self.keep, np.ndarray):
            return check_array("keep", self.keep, (n,), np.bool_)
        kept = np.zeros(n, np.bool_)
        row_number = {name: row for row, name in enumerate(ids)}
        for i, row in enumerate(self.keep):
            text = str(row)
            number = row_number.get(text, n) if ids else int(text) if text.isascii() and text.isdecimal() else n
            if number >= n:
                expected = "one of the ids" if ids else f"a row from 0 to {n - 1}"
                several = "; several are listed one by one: repeat --keep" if "," in text else ""
                raise ArgumentError(f"expected {expected}, got {shown(row)}{several}", argument="keep", item=(i,))
            kept[number] = True
        return kept

    def class_taus(self, tau: float, C: int) -> NDArray[np.float64]:
        """Return the tau of every class, ``(C,)``; `tau` for a class without its own."""
        taus = np.full(C, tau, np.float64)
        for key, own in (self.class_tau or {}).items():
            if not key.isdecimal() or int(key) >= C:
                what = f"expected a class from 0 to {C - 1}, got {shown(key)}"
                raise WrongKeyError(what, argument="class_tau", item=(key,))
            taus[int(key)] = own
        return taus


@dataclass(frozen=True, kw_only=True)
class OwnerLimits(Limits):
    """Which moves the owner of the data permits, and how many.

    >>> ours, theirs = OwnerLimits(tau=0.2, forbidden=[(2, 0)]), OwnerLimits(tau=0.05, class_tau={1: 0.1})
    >>> both = ours.stricter(theirs)
    >>> both.tau, both.forbidden, both.class_tau
    (0.05, ((2, 0),), {'1': 0.1})
    """

    enabled: bool = option(True, "false: train on the original labels, even if new ones were made before")
    tau: float = option(1.0, "largest tau", ge=0, le=1)
    max_fraction: float = option(1.0, "largest share of a client's labels that may change", ge=0, le=1)
    min_agreement: float = option(0.0, "if the model confirms a smaller share of the labels, none moves", ge=0, le=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_no_array()

    def stricter(self, other: Self) -> Self:
        """Return the limits that permit only what both permit."""
        allowed = [set(each.allowed) for each in (self, other) if each.allowed is not None]
        classes = {*(self.class_tau or ()), *(other.class_tau or ())}
        return replace(
            self,
            enabled=self.enabled and other.enabled,
            tau=min(self.tau, other.tau),
            max_fraction=min(self.max_fraction, other.max_fraction),
            min_agreement=max(self.min_agreement, other.min_agreement),
            allowed=sorted(set.intersection(*allowed), key=str) if allowed else None,
            forbidden=sorted({*self.forbidden, *other.forbidden}, key=str),
            keep={*self.keep, *other.keep},
            absent=self.absent and other.absent,
            class_tau={c: min(self.tau_of(c), other.tau_of(c)) for c in classes},
        )

    def tau_of(self, c: str) -> float:
        """Return the largest tau of a class."""
        return (self.class_tau or {}).get(c, self.tau)

    def broken_by(self, ledger: Ledger) -> str:
        """Return the first of these limits, with classes as numbers, that earlier moves violate, or an empty string.

        If a ledger does not say which share of the labels the model confirmed, any `min_agreement` is violated.
        """
        C, n, options = ledger.num_classes, ledger.original.size, ledger.options
        taus = Limits(class_tau=options.get("class_tau")).class_taus(options["tau"], C)
        agreement = None if ledger.provenance is None else ledger.provenance.agreement
        may = self.allowed_moves(C)
        violated = {
            "tau": (taus > self.class_taus(self.tau, C))[ledger.new].any(),
            "max_fraction": len(ledger) > self.max_fraction * n,
            "min_agreement": len(ledger) and (agreement or 0.0) < self.min_agreement,
            "allowed or forbidden moves": may is not None and not may[ledger.old, ledger.new].all(),
            "keep": self.kept_rows(n, ledger.ids)[ledger.index].any(),
            "absent": not self.absent and not np.isin(ledger.new, ledger.original).all(),
        }
        return next((name for name, is_violated in violated.items() if is_violated), "")


def eligible_by_agreement(agreement: float, min_agreement: float, n: int) -> NDArray[np.bool_] | None:
    """Return that none of `n` samples may move if the model confirms too few labels, since it is not reliable then."""
    return np.zeros(n, np.bool_) if agreement < min_agreement else None


def class_number(value: Class, names: Sequence[str], argument: str, item: tuple[int | str, ...] = ()) -> int:
    """Return the number of a class that is given by name or by number."""
    if isinstance(value, int):
        if str(value) in names and list(names).index(str(value)) != value:
            what = f"{value} is the name of one class and the number of another; write {str(value)!r} for the name"
            raise ArgumentError(what, argument=argument, item=item)
        return value
    if value in names:
        return list(names).index(value)
    if value.isascii() and value.isdecimal() and argument == "class_tau":  # the keys of a table are strings
        return int(value)
    hint = nearest_hint(value, names) if names else "; give class_names in the order of the posterior's columns"
    raise ArgumentError(f"unknown class {shown(value)}{hint}", argument=argument, item=item)
