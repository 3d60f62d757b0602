"""The exception tree. Every class carries the exit code with which the command line ends.

Each message is one line: what was expected, what came, where, and what to do.
"""

from __future__ import annotations


class FedrelaError(Exception):
    """Base of every error that this package raises on purpose."""

    exit_code = 1


class ArgumentError(FedrelaError, ValueError):
    """A wrong argument, option or configuration value."""

    exit_code = 2


class DataError(FedrelaError, ValueError):
    """Input data that cannot be used, or that was refused."""

    exit_code = 3


class IntegrityError(FedrelaError):
    """A stored file does not match what was recorded about it."""

    exit_code = 4


class BusyError(FedrelaError):
    """Somebody else holds the resource, or too few clients are left."""

    exit_code = 5
