"""Text for people: untrusted text made harmless, the nearest allowed word, lists, numbers with a noun or a unit."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

LONGEST_VALUE = 40  # characters of a value in a message
LONGEST_KEY = 60
LONGEST = 40  # characters of a name
DAY = 86_400  # seconds
_KINDS: dict[type, str] = {dict: "a table", list: "a list", tuple: "a list"}


def shown(value: Any) -> str:
    """Return a value from a configuration as one short word for a message, as TOML writes it.

    >>> shown(True), shown("step"), shown([1, 2]), shown({})
    ('true', "'step'", 'a list', 'a table')
    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'..."
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value[:LONGEST_VALUE]) + ("..." if len(value) > LONGEST_VALUE else "")
    if value is None or isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time):
        return "a date or time"
    return _KINDS.get(type(value), f"a Python {type(value).__name__}")


def nearest(word: object, words: Iterable[str]) -> str:
    """Return the one of `words` most similar to `word`, or an empty string if none is similar.

    >>> nearest("alpah", ["kind", "clients", "alpha"]), nearest("xyz", ["kind"])
    ('alpha', '')
    """
    folded = {each.casefold(): each for each in words}
    near = difflib.get_close_matches(str(word)[:LONGEST_KEY].casefold(), folded, 1, 0.5)
    return folded[near[0]] if near else ""


def nearest_hint(word: str, words: Iterable[str]) -> str:
    """Return the end of a message that names the nearest of `words`, or nothing if none is similar.

    >>> nearest_hint("Catt", ["dog", "cat"]), nearest_hint("xyz", ["dog"])
    ("; nearest: 'cat'", '')
    """
    near = nearest(word, words)
    return f"; nearest: {shown(near)}" if near else ""


def printable(text: object, longest: int | None = None) -> str:
    r"""Return untrusted text as one harmless line: unprintable characters are escaped, and long text is cut.

    Control and formatting characters could control a terminal or reverse its text.

    >>> printable("a\nb"), printable("abcdef", 3)
    ('a\\nb', 'abc...')
    """
    whole = str(text)
    line = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in whole[:longest])
    return line if longest is None or len(whole) <= longest else f"{line}..."


def one_line(error: BaseException, longest: int = 300) -> str:
    r"""Return an error's type and message as one harmless line.

    >>> one_line(ValueError("two\n  lines")), one_line(KeyError())
    ('ValueError: two lines', 'KeyError')
    """
    message = printable(" ".join(str(error).split()), longest)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def own_line(error: BaseException) -> str:
    """Return where in the user's own code an error arose, such as `` (bad.py:6)``; empty if it was not there."""
    import sysconfig
    import traceback

    # fedrela, other packages, Python's own, and code that is no file
    libraries = (str(Path(__file__).parent), *map(sysconfig.get_path, ("purelib", "platlib", "stdlib")), "<")
    own = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(libraries)]
    return f" ({printable(Path(own[-1].filename).name)}:{own[-1].lineno})" if own else ""


def not_one_of(value: Any, allowed: Iterable[str], more: str = "") -> str:
    """Return the message for a value that is not one of the allowed words, with the nearest of them.

    >>> not_one_of("stepp", ["natural", "step"])
    "expected one of natural, step, got 'stepp'; nearest: step"
    """
    words = list(allowed)
    near = nearest(value, words) if isinstance(value, str) else ""
    return f"expected one of {', '.join(words)}{more}, got {shown(value)}" + (f"; nearest: {near}" if near else "")


def unknown(what: str, word: str, allowed: Iterable[str], owner: str) -> str:
    """Return the message for an unknown word, with the nearest allowed one or with all that `owner` has.

    >>> unknown("key", "alpah", ["kind", "alpha"], "here")
    'unknown key; nearest: alpha'
    >>> unknown("option", "x", [], "source 'digits'")
    "unknown option; source 'digits' has none"
    """
    names = list(allowed)
    near = nearest(word, names)
    return f"unknown {what}; " + (f"nearest: {near}" if near else f"{owner} has {', '.join(names) or 'none'}")


def plural(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> plural(1, "class"), plural(2, "class"), plural(1200, "client")
    ('1 class', '2 classes', '1,200 clients')
    """
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in per cent, or "-" if there is none.

    >>> percent(0.8764), percent(None)
    ('87.6 %', '-')
    """
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def stated_number(text: str) -> float | int | None:
    """Return the number that text states, a percentage as a share, or None for a word.

    >>> stated_number("10"), stated_number("0.3"), stated_number("5%"), stated_number("Original")
    (10, 0.3, 0.05, None)
    """
    digits = text.removesuffix("%")
    if not digits.replace(".", "", 1).isdecimal():
        return None
    if digits != text:
        return float(digits) / 100
    return float(digits) if "." in digits else int(digits)


def probability(value: float) -> str:
    """Return a probability with three decimals, and one below 0.001 by its order of magnitude.

    >>> probability(0.25), probability(0.00004), probability(0.0)
    ('0.250', '4e-05', '0.000')
    """
    return f"{value:.0e}" if 0 < value < 0.001 else f"{value:.3f}"


def points(difference: float | None, digits: int = 1) -> str:
    """Return a difference of two shares in percentage points, with its sign, or "-" if there is none.

    >>> points(0.125), points(-0.1), points(0.0), points(None)
    ('+12.5', '-10.0', '0.0', '-')
    """
    if difference is None:
        return "-"
    change = round(100 * difference, digits)
    return f"{change:+.{digits}f}" if change else f"{0:.{digits}f}"


def listed(items: Sequence[str]) -> str:
    """Join items as in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def duration(seconds: float) -> str:
    """Return a duration.

    >>> [duration(each) for each in (0.0291, 1.25, 42, 75.4, 4000, 1e6)]
    ['29 ms', '1.2 s', '42 s', '1 min 15 s', '1 h 7 min', '12 days']
    """
    if seconds < 60:
        return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.{1 if seconds < 10 else 0}f} s"
    if round(seconds) < 3600:
        return "{} min {} s".format(*divmod(round(seconds), 60))
    return "{} h {} min".format(*divmod(round(seconds / 60), 60)) if seconds < 2 * DAY else f"{seconds / DAY:,.0f} days"


def clock(seconds: float) -> str:
    """Return the time left, as a clock shows it.

    >>> clock(75), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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


def limited(text: object, longest: int = LONGEST) -> str:
    """Return text as one printable line of at most `longest` characters.

    >>> limited("a very long name", 8), limited("a name", 8)
    ('a very…', 'a name')
    """
    line = printable(text)
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def short(number: float) -> str:
    """Return a number with thousands separators, and one decimal unless that is 0.

    >>> short(12345.0), short(2.55), short(0.96)
    ('12,345', '2.5', '1')
    """
    return f"{number:,.1f}".removesuffix(".0")
