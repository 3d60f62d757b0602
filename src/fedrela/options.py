"""Options: a frozen dataclass whose fields know their help, their limits and the paper's symbol.

An option is declared once, with `option` in a class that derives from `Options`. Creating an instance checks every
value; `options_of` lists the declarations, from which schemas, command-line flags and tables are made.

>>> @dataclass(frozen=True)
... class Proximal(Options):
...     mu: float = option(0.01, "weight of the proximal term", symbol="mu", ge=0, lt=1)
...     core: str = option("sgd", "local solver", choices=("sgd", "adam"))
>>> Proximal(mu=0.5)
Proximal(mu=0.5, core='sgd')
>>> Proximal(mu=1)
Traceback (most recent call last):
...
fedrela.errors.ArgumentError: mu: expected a number >= 0 and < 1, got 1
>>> [(each.name, each.type.__name__, each.default, expected(each)) for each in options_of(Proximal)]
[('mu', 'float', 0.01, 'a number >= 0 and < 1'), ('core', 'str', 'sgd', 'one of sgd, adam')]
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.text import not_one_of, shown

LARGEST = sys.float_info.max  # also for integers, which are unbounded in Python
MOST_CLIENTS = 1_000_000
MOST_SEEDS = 1000
MOST_SAMPLES = 10**9  # far beyond any data set; larger numbers are mistakes that would exhaust memory

_DECLARED: dict[type, tuple[Option, ...]] = {}
Choices = Iterable[str] | Callable[[], Iterable[str]]


@dataclass(frozen=True)
class Option:
    """One declared option."""

    name: str
    type: Any  # the evaluated annotation, such as ``float`` or ``int | None``
    default: Any
    help: str  # what the option does, in one line
    symbol: str = ""  # the paper's, if it has one
    ge: float | None = None  # limits of a number: at least, greater than, at most, less than
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    words: Choices = ()  # the allowed words, or a function that returns them; read them as `choices`
    check: Callable[[Any], Any] | None = None  # in place of the built-in checks: returns the value to keep, or raises
    form: str = ""  # what `check` accepts, for messages

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed words; empty if the option is not a word."""
        return tuple(self.words() if callable(self.words) else self.words)

    @property
    def types(self) -> tuple[Any, ...]:
        """The types that a value may have: the members of the annotation, ``NoneType`` among them."""
        return _members(self.type)


def option(default: Any, help: str, *, choices: Choices = (), **details: Any) -> Any:
    """Return a dataclass field that declares one option.

    The annotation says which types are allowed: ``bool``, ``int``, ``float`` (integers too), ``str`` (one of
    `choices`, if there are any), ``None``, a sequence of these, or a union of them. For any other form give `check` and
    say in `form` what it accepts. Choices given as a function are read only for a value that is not the default.

    Parameters
    ----------
    default
        The value if none is given.
    help
        What the option does, in one line.
    choices
        The allowed words, or a function that returns them.
    details
        Further attributes of `Option`: ``symbol``, the limits ``ge``, ``gt``, ``le`` and ``lt``, ``check``, ``form``.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Proximal(Options):
    ...     mu: float = option(0.01, "weight of the proximal term", symbol="mu", ge=0)
    >>> Proximal().mu, [each.help for each in options_of(Proximal)]
    (0.01, ['weight of the proximal term'])
    """
    return field(default=default, metadata={"option": Option("", Any, default, help, words=choices, **details)})


def redeclared(kind: type[Options], name: str, **changes: Any) -> Any:
    """Return a dataclass field that declares an option of another class again, with other attributes of `Option`.

    >>> @dataclass(frozen=True)
    ... class Proximal(Options):
    ...     mu: float = option(0.01, "weight of the proximal term", ge=0)
    >>> @dataclass(frozen=True)
    ... class Strict(Proximal):
    ...     mu: float = redeclared(Proximal, "mu", default=0.5, le=1)
    >>> [(each.default, each.help, expected(each)) for each in options_of(Strict)]
    [(0.5, 'weight of the proximal term', 'a number from 0 to 1')]
    """
    declared = next(each.metadata["option"] for each in fields(kind) if each.name == name)
    again = replace(declared, **changes)
    return field(default=again.default, metadata={"option": again})


@dataclass(frozen=True)
class Options:
    """No options. Classes with options derive from this one, and check them on creation.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Params(Options):
    ...     steps: int = option(5, "local steps", ge=1)
    >>> Params(steps=0)
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: steps: expected an integer >= 1, got 0
    """

    def __post_init__(self) -> None:
        for each in options_of(type(self)):
            object.__setattr__(self, each.name, checked(each, getattr(self, each.name)))

    def unused(self) -> dict[str, str]:
        """Return the options that another choice makes meaningless, with the reason."""
        return {}


def options_of(kind: type[Options]) -> tuple[Option, ...]:
    """Return the options that a class declares, in their order."""
    if kind not in _DECLARED:
        hints = get_type_hints(kind)
        declared = {each.name: each.metadata["option"] for each in fields(kind) if "option" in each.metadata}
        _DECLARED[kind] = tuple(replace(each, name=name, type=hints[name]) for name, each in declared.items())
    return _DECLARED[kind]


def options_from(function: Callable[..., Any], exclude: Iterable[str] = ()) -> dict[str, Option]:
    """Return the options that the parameters of a function declare, by name, except those in `exclude`.

    >>> def load(root: str, *, size: int = 64) -> None: ...
    >>> [(each.name, each.default, expected(each)) for each in options_from(load, ["root"]).values()]
    [('size', 64, 'an integer')]
    """
    hints, parameters = get_type_hints(function), inspect.signature(function).parameters.items()
    defaults = {name: each.default for name, each in parameters if name not in exclude}
    return {name: Option(name, hints.get(name, Any), default, "") for name, default in defaults.items()}


def checked(option: Option, value: Any) -> Any:
    """Return the value to keep of one option, or raise `ArgumentError` with the option's name.

    >>> checked(Option("steps", int | None, 1, "steps", ge=1), 0)
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: steps: expected an integer >= 1 or None, got 0
    """
    value = value.item() if isinstance(value, np.generic) else value
    if option.check is not None:
        try:
            return option.check(value)
        except ArgumentError as error:
            raise type(error)(error.reason, argument=option.name, item=error.item) from None
    if not any(_fits(option, kind, value) for kind in option.types):
        only_words = option.words and {*option.types} <= {str, NoneType}
        reason = not_one_of(value, option.choices) if only_words else f"expected {expected(option)}, got {shown(value)}"
        raise ArgumentError(reason, argument=option.name)
    return value


def expected(option: Option) -> str:
    """Describe which values an option may have.

    >>> expected(Option("lr", float | str, 0.1, "rate", gt=0, words=("cosine", "step")))
    'a number > 0 or one of cosine, step'
    """
    return option.form or " or ".join(_describe(option, kind) for kind in option.types)


def without_none(option: Option) -> Option:
    """Return the option without None, which stands for an omitted value, so that messages do not offer it."""
    return replace(option, type=functools.reduce(operator.or_, [kind for kind in option.types if kind is not NoneType]))


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type that a hint is."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(option: Option, kind: Any, value: Any) -> bool:
    if get_origin(kind):
        kinds = _members(get_args(kind)[0])
        return isinstance(value, list | tuple) and all(any(_fits(option, k, item) for k in kinds) for item in value)
    if kind is str:
        lazy_default = callable(option.words) and value == option.default
        return isinstance(value, str) and (lazy_default or not option.words or value in option.choices)
    if kind not in (int, float):
        return kind is Any or type(value) is kind
    if isinstance(value, bool) or not isinstance(value, int | float if kind is float else int):
        return False
    return abs(value) <= LARGEST and (
        (option.ge is None or value >= option.ge)
        and (option.gt is None or value > option.gt)
        and (option.le is None or value <= option.le)
        and (option.lt is None or value < option.lt)
    )


def _describe(option: Option, kind: Any) -> str:
    if get_origin(kind):
        return f"a list, each item {' or '.join(_describe(option, each) for each in _members(get_args(kind)[0]))}"
    if kind is str:
        return f"one of {', '.join(option.choices)}" if option.words else "a string"
    if kind not in (int, float):
        return "true or false" if kind is bool else "None"
    noun = "an integer" if kind is int else "a number"
    if option.ge is not None and option.le is not None:
        return f"{noun} from {_number(option.ge)} to {_number(option.le)}"
    limits = {">=": option.ge, ">": option.gt, "<=": option.le, "<": option.lt}
    bounds = [f"{sign} {_number(limit)}" for sign, limit in limits.items() if limit is not None]
    return " ".join([noun, " and ".join(bounds)]).strip()


def _number(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:.15g}"
