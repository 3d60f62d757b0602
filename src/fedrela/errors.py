"""The exception tree. Every class has the exit code of the command line.

Each message is one line: what was expected, what was given, where, and what to do.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Self

from fedrela.text import printable

STOP_SIGNALS = [  # each ends a command as Ctrl-C does; Windows lacks some
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


LONGEST_KEY = 80  # characters in a message


class FedrelaError(Exception):
    """Base of every error that this package raises on purpose.

    Examples
    --------
    >>> [(kind.__name__, kind.exit_code) for kind in (ArgumentError, DataError, IntegrityError, BusyError)]
    [('ArgumentError', 2), ('DataError', 3), ('IntegrityError', 4), ('BusyError', 5)]
    """

    exit_code = 1

    def prefixed(self, where: str) -> Self:
        """Return this error, of the same class and with the same fields, with `where` before its message.

        Examples
        --------
        >>> error = DataError("expected one id per sample", argument="client_ids").prefixed("clinic.csv")
        >>> error, error.argument
        (DataError('clinic.csv: client_ids: expected one id per sample'), 'client_ids')
        """
        error = type(self).__new__(type(self), f"{where}: {self}")
        error.__dict__.update(self.__dict__)
        return error


class ArgumentError(FedrelaError, ValueError):
    """A wrong argument, option or configuration value.

    Parameters
    ----------
    reason
        What is wrong, without the name.
    argument
        Its name, or empty if no single argument is at fault.
    item
        The path inside the argument: table keys and list indices.

    Examples
    --------
    >>> error = ArgumentError("expected a number from 0 to 1, got 5", argument="tau")
    >>> str(error), error.argument
    ('tau: expected a number from 0 to 1, got 5', 'tau')
    >>> print(ArgumentError("expected an integer >= 1, got 0", argument="params", item=("every",)))
    params.every: expected an integer >= 1, got 0
    """

    exit_code = 2

    def __init__(self, reason: str, *, argument: str = "", item: tuple[str | int, ...] = ()) -> None:
        keys = "".join(f".{printable(part, LONGEST_KEY)}" for part in item if isinstance(part, str))
        super().__init__(f"{argument}{keys}: {reason}" if argument else reason)
        self.argument, self.reason, self.item = argument, reason, item


class WrongKeyError(ArgumentError):
    """An unexpected key inside an argument: the last part of `item`.

    Examples
    --------
    >>> WrongKeyError("expected a class number >= 0", argument="class_tau", item=("-1",)).item[-1]
    '-1'
    """


class UnknownOptionError(ArgumentError, TypeError):
    """An option that a function does not have; a `TypeError`, as Python raises for an unknown keyword.

    Examples
    --------
    >>> isinstance(UnknownOptionError("unknown option; nearest: tau", argument="taus"), TypeError)
    True
    """


class DataError(FedrelaError, ValueError):
    """Input data that cannot be used, or that was refused.

    Parameters
    ----------
    reason, argument
        As for `ArgumentError`.

    Examples
    --------
    >>> str(DataError("expected one id per sample, got shape (2, 3)", argument="client_ids"))
    'client_ids: expected one id per sample, got shape (2, 3)'
    """

    exit_code = 3

    def __init__(self, reason: str, *, argument: str = "") -> None:
        super().__init__(f"{argument}: {reason}" if argument else reason)
        self.argument, self.reason = argument, reason


class IntegrityError(FedrelaError):
    """A stored file does not match what was recorded about it.

    Parameters
    ----------
    reason
        What is wrong, without the path.
    path
        The file or folder, or None if the reason names it.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.1, 0.9]], [0, 1])
    >>> fedrela.undo(done.ledger, labels=[1, 1])
    Traceback (most recent call last):
    ...
    fedrela.errors.IntegrityError: ledger: it did not produce these labels; is it another client's ledger?
    """

    exit_code = 4

    def __init__(self, reason: str, *, path: Path | None = None) -> None:
        super().__init__(reason if path is None else f"{path}: {reason}")
        self.reason, self.path = reason, path


class BusyError(FedrelaError):
    """Another process holds the resource."""

    exit_code = 5


class RunFailedError(FedrelaError):
    """A run cannot continue: it diverged, no client could train, or its evaluation failed.

    Parameters
    ----------
    reason
        What is wrong.
    exit_code
        By default that of the class; that of its cause, if another failure is the cause.
    """

    def __init__(self, reason: str, *, exit_code: int | None = None) -> None:
        super().__init__(reason)
        self.exit_code = type(self).exit_code if exit_code is None else exit_code


class TooFewClientsError(RunFailedError):
    """Too few clients took part in too many rounds in a row."""

    exit_code = 5
