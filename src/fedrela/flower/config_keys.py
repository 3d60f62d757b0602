"""FedReLa's keys in the configurations of Flower's nodes and runs: one that is misspelt is an error, never ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fedrela.errors import ArgumentError
from fedrela.text import printable, unknown

PREFIX = "fedrela-"


def check_keys(where: str, keys: Iterable[str], known: Sequence[str]) -> None:
    """Raise if one of a configuration's keys looks like FedReLa's and is not known.

    >>> check_keys("run-config", ["fedrela-tau", "lr"], ["fedrela-tau"])
    >>> check_keys("run-config", ["Fedrela_tau"], ["fedrela-tau", "fedrela-late"])
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: run-config: Fedrela_tau: unknown key; nearest: fedrela-tau
    """
    for key in keys:
        plain = re.sub("[^a-z0-9]+", "-", key.casefold())
        if plain.startswith("fedrela") and key not in known:
            what = unknown("key", plain, known, "FedReLa")
            raise ArgumentError(f"{where}: {printable(key, 60)}: {what}")
