"""``fedrela list [algorithms|models|sources]``: what a configuration may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console

from fedrela.cli.data import IN_WORDS
from fedrela.cli.show import console, draw, say
from fedrela.core.checks import check_choice
from fedrela.data.sources import SOURCES, source_options

HELP = """
List what a configuration may name: algorithms with their parameters, models, data sources.

[bold]Example[/]: fedrela list; fedrela list algorithms
"""

What = Annotated[
    str | None, typer.Argument(metavar="[algorithms|models|sources]", help="Which of them.", show_default="all")
]


def list_names(what: What = None) -> None:
    """List what there is; see `HELP`."""
    if what is not None:
        check_choice("list", what, tuple(TABLES))
    screen = console()
    for number, name in enumerate(TABLES if what is None else [what]):
        if number:
            say(screen)
        TABLES[name](screen)


def _algorithms(screen: Console) -> None:
    from fedrela.experiment import registries

    known = list(registries.algorithms())
    hosts = [(each.name, each.paper, ", ".join(each.sends) or "-") for each in known]
    columns: tuple[str, ...] = ("algorithm", "paper", "leaves a client beside the weights")
    draw(screen, columns, hosts, words=columns)
    say(screen)
    parameters = [
        (each.name, one.name, one.symbol or "-", _value(one.default), one.allowed, one.meaning)
        for each in known
        for one in each.parameters
    ]
    columns = ("algorithm", "parameter", "symbol", "default", "allowed", "what it is")
    draw(screen, columns, parameters, words=columns)
    say(screen)
    say(screen, "An algorithm and its parameters are keys of [algorithm].", "dim")


def _models(screen: Console) -> None:
    from fedrela.experiment import registries

    rows = [
        (
            each.name,
            ", ".join(f"{option} = {_value(default)}" for option, default in each.options.items()) or "-",
            "-" if each.parameters is None else f"{each.parameters:,}",
        )
        for each in registries.models()
    ]
    draw(screen, ("model", "options", "parameters"), rows, words=("model", "options"))
    say(screen)
    say(screen, "A model and its options are keys of [model]; parameters for 32x32x3 and 10 classes.", "dim")


def _sources(screen: Console) -> None:
    rows = [(name, ", ".join(source_options(name)) or "-", IN_WORDS[name][0]) for name in SOURCES]
    columns = ("source", "options", "what it is")
    draw(screen, columns, rows, words=columns)
    say(screen)
    say(screen, "A source is a key of [data], its options are keys of [data.options]; see fedrela data list.", "dim")


def _value(value: Any) -> str:
    """Return a default as a configuration would say it."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


TABLES: dict[str, Callable[[Console], None]] = {"algorithms": _algorithms, "models": _models, "sources": _sources}
