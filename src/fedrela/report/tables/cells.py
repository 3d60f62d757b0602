"""Figures as the words of a table: shares in per cent, gains in points, the paper's `baseline (+FedReLa) gain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Spread = Mapping[str, Any]  # mean, deviation (None of one seed), values; of a difference also low and high
NONE = "-"  # what stands where there is no figure


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share in per cent.

    >>> percent(0.525), percent(0.525, 2), percent(None)
    ('52.5', '52.50', '-')
    """
    return NONE if share is None else f"{100 * share:.{digits}f}"


def points(difference: float | None, digits: int = 1) -> str:
    """Write a difference of shares in points, with its sign.

    >>> points(0.245), points(-0.0103), points(-0.0001), points(None)
    ('+24.5', '-1.0', '0.0', '-')
    """
    if difference is None:
        return NONE
    text = f"{100 * difference:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def spread_percent(spread: Spread) -> str:
    """Write mean and standard deviation over seeds in per cent.

    >>> spread_percent({"mean": 0.525, "deviation": 0.012}), spread_percent({"mean": 0.5, "deviation": None})
    ('52.5 ± 1.2', '50.0')
    """
    return _with_deviation(percent(spread["mean"]), percent(spread["deviation"]))


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
    """Write a pair as the paper does, ``baseline (+FedReLa) +gain`` or ``-trade-off``; what is missing is left out.

    Parameters
    ----------
    baseline, treated
        Shares without and with FedReLa.
    difference
        By how much the second exceeds the first, where it is not their plain difference.
    digits
        After the point.

    Examples
    --------
    >>> paper_cell(0.525, 0.77), paper_cell(0.8843, 0.8740, digits=2)
    ('52.5 (77.0) +24.5', '88.43 (87.40) -1.03')
    >>> paper_cell(0.525, None), paper_cell(None, 0.77), paper_cell(None, None)
    ('52.5', '(77.0)', '-')
    """
    if treated is None:
        return percent(baseline, digits)
    if baseline is None:
        return f"({percent(treated, digits)})"
    gain = treated - baseline if difference is None else difference
    return f"{percent(baseline, digits)} ({percent(treated, digits)}) {points(gain, digits)}"


def interval_points(difference: Spread) -> str:
    """Write a paired difference in points with its 95 % interval, where there is one.

    >>> interval_points({"mean": 0.245, "low": 0.221, "high": 0.269}), interval_points({"mean": 0.1, "low": None})
    ('+24.5 (+22.1 to +26.9)', '+10.0')
    """
    mean = points(difference["mean"])
    if NONE in (mean, points(difference["low"])):
        return mean
    return f"{mean} ({points(difference['low'])} to {points(difference['high'])})"
