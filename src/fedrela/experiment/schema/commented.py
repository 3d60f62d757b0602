"""The full configuration as TOML text for people: every key with what it means, those left out as comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fedrela.experiment.schema.base import Table
from fedrela.experiment.toml.text import toml_key, toml_text, toml_value

WIDEST_PAIR = 36  # characters before the comments of a table, unless a pair is longer


def commented_toml(config: Table) -> str:
    """Return a configuration as text with comments; loading it gives an equal configuration.

    >>> from fedrela.experiment.schema import Config
    >>> print(commented_toml(Config())[:54])
    seed = 1     # seed of everything that is drawn
    # comp
    """
    return "\n".join(_sections(config, ()))


def _sections(table: Table, path: tuple[str, ...], about: str = "") -> Iterator[str]:
    values, comments = table.as_table(), table.comments()
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    pairs = {key: f"{toml_key(key)} = {toml_value(value)}" for key, value in values.items() if key not in inner}
    pairs |= {key: f"# {key} =" for key in comments if key not in values}
    width = max((len(pair) for pair in pairs.values() if len(pair) <= WIDEST_PAIR), default=0)
    header = f"# {about}\n[{'.'.join(map(toml_key, path))}]\n" if path else ""
    yield header + "".join(_line(pair, comments.get(key, ""), width) for key, pair in pairs.items())
    for key, value in inner.items():
        found = getattr(table, key)
        if isinstance(found, Table):
            yield from _sections(found, (*path, key), comments[key])
        else:
            yield f"# {comments[key]}\n" + _below(path, {key: value})


def _line(pair: str, comment: str, width: int) -> str:
    return f"{pair:<{width}}  # {comment}\n" if comment else f"{pair}\n"


def _below(path: tuple[str, ...], table: Mapping[str, object]) -> str:
    """Return the sections of a table that lies below others, without theirs."""
    for key in reversed(path):
        table = {key: table}
    return toml_text(table)
