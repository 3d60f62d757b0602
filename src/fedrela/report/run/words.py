"""Numbers and names as the pages write them."""

from __future__ import annotations

from collections.abc import Sequence

from fedrela.report.figures.text import limited, printable

LONGEST_NAME = 40  # characters


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in per cent, or a dash where there is none.

    >>> percent(0.8764), percent(None)
    ('87.6 %', '–')
    """
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def points(before: float | None, after: float | None) -> str:
    """Return a change in percentage points, with its sign.

    >>> points(0.5, 0.625), points(None, 1.0), points(0.5, 0.4)
    ('+12.5', '–', '−10.0')
    """
    if before is None or after is None:
        return "–"
    change = round(100 * (after - before), 1)
    return f"{change:+.1f}".replace("-", "−") if change else "0.0"


def many(number: int, thing: str) -> str:
    """Return a number of things.

    >>> many(1, "class"), many(1200, "client")
    ('1 class', '1,200 clients')
    """
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith('s') else 's'}"


def name(text: object) -> str:
    """Return a foreign name as a short line of print."""
    return limited(printable(text), LONGEST_NAME)


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
    if number < 1:
        return f"{1000 * number:.0f} ms"
    if number < 60:
        return f"{number:.1f} s"
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
