"""Numbers as tables and pages write them: shares in per cent, gains in points, seconds, bytes, lists of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.text import points

Spread = Mapping[str, Any]  # mean, deviation (None of one seed), values; of a difference also low and high
Value = str | float | None
NONE = "-"  # what stands where there is no number
MOVED = "labels moved"  # the column of the metric ``moved``


def share(value: float | None, digits: int = 1) -> str:
    """Write a share in per cent, without the sign.

    >>> share(0.525), share(0.525, 2), share(None)
    ('52.5', '52.50', '-')
    """
    return NONE if value is None else f"{100 * value:.{digits}f}"


def spread_text(spread: Spread | None, metric: str = "") -> str:
    """Write mean and standard deviation over seeds: a share in per cent, or the number of labels ``moved``.

    >>> spread_text({"mean": 0.525, "deviation": 0.012}), spread_text({"mean": 0.5, "deviation": None})
    ('52.5 ± 1.2', '50.0')
    >>> spread_text({"mean": 1131.4, "deviation": 12.5}, "moved"), spread_text(None)
    ('1,131 ± 12', '-')
    """
    if spread is None or spread["mean"] is None:
        return NONE
    write = "{:,.0f}".format if metric == "moved" else share
    mean = write(spread["mean"])
    return mean if spread["deviation"] is None or mean == "0" else f"{mean} ± {write(spread['deviation'])}"


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


def values_of(
    spread: Spread | None, metric: str = "", prefix: str = "", keys: Sequence[str] = ("mean", "deviation")
) -> dict[str, float | None]:
    """Return parts of a spread for programs: shares in per cent, labels ``moved`` as they are.

    >>> values_of({"mean": 0.525, "deviation": None}), values_of(None, keys=("mean",))
    ({'mean': 52.5, 'deviation': None}, {'mean': None})
    """
    found = {key: None if spread is None else spread[key] for key in keys}
    factor = 1 if metric == "moved" else 100
    return {f"{prefix}{key}": None if value is None else round(factor * value, 4) for key, value in found.items()}


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
