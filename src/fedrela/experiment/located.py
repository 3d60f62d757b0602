"""Errors that show only when the data are there, told with the place of the key that is to blame."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.schema.problems import placed
from fedrela.experiment.toml.places import KeyPath
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

LONGEST_MESSAGE = 2000  # characters; messages about data hold whole paths
_FIRST_WORD = re.compile(r"\w*")


@contextlib.contextmanager
def located(config: Config, keys: Mapping[str, KeyPath], otherwise: KeyPath) -> Iterator[None]:
    r"""Raise an `ArgumentError` or a `DataError` of the block anew: the same class, with place and key in front.

    Parameters
    ----------
    config
        The configuration that the block follows.
    keys
        The first word of a message (the name of an argument), and the key of the configuration that it comes from.
    otherwise
        The key to name where a message begins with another word.

    Examples
    --------
    >>> from fedrela.experiment.load import parse_config
    >>> config = parse_config("[data]\nroot = 'x'", name="run.toml")
    >>> with located(config, {"label": ("data", "options", "label")}, ("data", "root")):
    ...     raise DataError("x: no such file")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: run.toml:2:8: data.root: x: no such file
    """
    try:
        yield
    except (ArgumentError, DataError) as error:
        kind = DataError if isinstance(error, DataError) else ArgumentError
        raise kind(_told(config, str(error), keys, otherwise)) from error


def _told(config: Config, message: str, keys: Mapping[str, KeyPath], otherwise: KeyPath) -> str:
    path, what = otherwise, message
    sentence = message.removeprefix(f"{config.data.source}: ")
    word = _FIRST_WORD.match(sentence)
    if word and word[0] in keys:
        path, what = keys[word[0]], sentence.removeprefix(f"{word[0]}: ")
    places = config.origin.places
    position = places.of(path).value if places else None
    return placed(config.origin.name, printable(what, LONGEST_MESSAGE), position, path)
