"""Numbers as tables and pages write them: shares in per cent, gains in points, seconds, bytes, lists of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrela.text import points

Spread = Mapping[str, Any]  # mean, deviation (None of one seed), values; of a difference also low and high
Value = str | float | None
NONE = "-"  # what stands where there is no number


@dataclass(frozen=True)
class Values:
    """A table for programs: one value per column; text may be anybody's, None is no value."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]


def share(value: float | None, digits: int = 1) -> str:
    """Write a share in per cent, without the sign.

    >>> share(0.525), share(0.525, 2), share(None)
    ('52.5', '52.50', '-')
    """
    return NONE if value is None else f"{100 * value:.{digits}f}"


def spread_percent(spread: Spread | None) -> str:
    """Write mean and standard deviation over seeds in per cent, a hyphen where there is none.

    >>> spread_percent({"mean": 0.525, "deviation": 0.012}), spread_percent({"mean": 0.5, "deviation": None})
    ('52.5 ± 1.2', '50.0')
    """
    return NONE if spread is None else _with_deviation(share(spread["mean"]), share(spread["deviation"]))


def spread_count(spread: Spread) -> str:
    """Write mean and standard deviation over seeds of a number of things.

    >>> spread_count({"mean": 1131.4, "deviation": 12.5}), spread_count({"mean": None, "deviation": None})
    ('1,131 ± 12', '-')
    """
    mean, deviation = (NONE if spread[key] is None else f"{spread[key]:,.0f}" for key in ("mean", "deviation"))
    return mean if mean == "0" else _with_deviation(mean, deviation)


def _with_deviation(mean: str, deviation: str) -> str:
    return mean if NONE in (mean, deviation) else f"{mean} ± {deviation}"


def paper_cell(baseline: float | None, treated: float | None, difference: float | None = None, digits: int = 1) -> str:
    """Write a pair of shares as the paper does, ``baseline (+FedReLa) +gain`` or ``-trade-off``.

    >>> paper_cell(0.525, 0.77), paper_cell(0.8843, 0.8740, digits=2)
    ('52.5 (77.0) +24.5', '88.43 (87.40) -1.03')
    >>> paper_cell(0.525, None), paper_cell(None, 0.77), paper_cell(None, None)
    ('52.5', '(77.0)', '-')
    """
    if treated is None:
        return share(baseline, digits)
    if baseline is None:
        return f"({share(treated, digits)})"
    gain = treated - baseline if difference is None else difference
    return f"{share(baseline, digits)} ({share(treated, digits)}) {points(gain, digits)}"


def interval_points(difference: Spread) -> str:
    """Write a paired difference in points with its 95 % interval, where there is one.

    >>> interval_points({"mean": 0.245, "low": 0.221, "high": 0.269}), interval_points({"mean": 0.1, "low": None})
    ('+24.5 (+22.1 to +26.9)', '+10.0')
    """
    mean = points(difference["mean"])
    if NONE in (mean, points(difference["low"])):
        return mean
    return f"{mean} ({points(difference['low'])} to {points(difference['high'])})"


def values_of(spread: Spread | None, keys: Sequence[str], factor: float = 100) -> list[float | None]:
    """Return parts of a spread for programs, shares in per cent; with `factor` 1 numbers as they are.

    >>> values_of({"mean": 0.525, "deviation": None}, ("mean", "deviation")), values_of(None, ("mean",))
    ([52.5, None], [None])
    """
    found = [None if spread is None else spread[key] for key in keys]
    return [None if value is None else round(factor * value, 4) for value in found]


def listed(items: Sequence[str]) -> str:
    """Join items as a sentence does.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def seconds(number: float) -> str:
    """Return a duration.

    >>> seconds(0.0291), seconds(75.4), seconds(4000)
    ('29 ms', '1 min 15 s', '1 h 7 min')
    """
    if number < 60:
        return f"{1000 * number:.0f} ms" if number < 1 else f"{number:.1f} s"
    minutes, rest = divmod(round(number), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{round(number / 60) // 60} h {round(number / 60) % 60} min"


def size(number: float) -> str:
    """Return a number of bytes.

    >>> size(0), size(19_240), size(2_500_000)
    ('0 B', '19.2 kB', '2.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"
