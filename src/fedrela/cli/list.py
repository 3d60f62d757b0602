"""``fedrela list``: what a configuration or ``reproduce`` may name; ``fedrela doctor``: machine and packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from fedrela import __version__
from fedrela.arguments import check_choice
from fedrela.cli.terminal import console, print_line, print_table, print_text_table
from fedrela.components import installed_components
from fedrela.core import REALLOCATORS
from fedrela.data.sources import SOURCES
from fedrela.experiment.toml.writer import toml_value
from fedrela.options import expected, options_of
from fedrela.text import printable

What = Annotated[
    str | None,
    typer.Argument(metavar="[algorithms|models|sources|methods|tables]", help="Which of them.", show_default="all"),
]
Model = Annotated[str, typer.Option("--model", metavar="NAME", help="The model whose bytes are shown.")]


def list_names(what: What = None, model: Model = "mlp") -> None:
    """List the algorithms, models, data sources and methods that a configuration may name, and the paper's tables.

    For each algorithm: its paper; what a client sends, receives and stores between rounds besides the weights, in bytes
    for the model of --model on 32x32x3 images and 10 classes; and its parameters with the official defaults. A
    parameter with several named values selects between the paper and the original code where they differ.

    [bold]Example[/]: fedrela list; fedrela list algorithms --model resnet8
    """
    if what is not None:
        check_choice("list", what, tuple(TABLES))
    screen = console()
    for number, name in enumerate(TABLES if what is None else [what]):
        if number:
            print_line(screen)
        TABLES[name](screen, model)
        if others := installed_components("reallocators" if name == "methods" else name):
            print_line(screen, f"From installed packages: {', '.join(others)}.")


def doctor() -> None:
    """Show what a bug report needs: versions, processor, memory, device, folders, data sets and optional packages.

    [bold]Example[/]: fedrela doctor

    The lines are a Markdown list, to paste as they are. Data sets are looked for where a configuration without
    data.root looks: in the folder data in the working directory, and where the system's packages put them.
    """
    from fedrela.experiment.bug_report import facts

    for name, value in [("fedrela", __version__), *facts()]:
        print(f"- {name}: {printable(value)}")


def _algorithms(screen: Console, model: str) -> None:
    from fedrela.experiment.registries import ALGORITHMS, sent_besides_weights, traffic

    costs = {name: traffic(name, model) for name in ALGORITHMS}
    sent = {name: ", ".join(sent_besides_weights(name)) or "-" for name in ALGORITHMS}
    facts = [(name, kind.description, kind.paper, sent[name]) for name, kind in ALGORITHMS.items()]
    print_text_table(screen, ("algorithm", "what it does", "paper", "sent besides the weights"), facts)
    sizes = [(name, *map(_sizes, (cost.up, cost.exchanges, cost.down, cost.stored))) for name, cost in costs.items()]
    print_text_table(screen, ("algorithm", "sends", "answers", "receives", "keeps"), sizes)
    print_line(screen, f"In bytes, besides the weights of {model}: {costs['fedavg'].weights:,}.", "dim")
    print_line(screen)
    for name, kind in ALGORITHMS.items():
        if parameters := options_of(kind.Params):
            print_line(screen, name, "bold")
            rows = [(p.name, p.symbol or "-", toml_value(p.default), expected(p), p.help) for p in parameters]
            print_text_table(screen, ("parameter", "symbol", "default", "allowed", "what it is"), rows)
    print_line(screen, "An algorithm and its parameters are keys of [algorithm].", "dim")


def _models(screen: Console, _: str) -> None:
    from fedrela.experiment.registries import MODELS, model_options, model_size

    rows = []
    for name, spec in MODELS.items():
        options = ", ".join(f"{option} = {toml_value(default)}" for option, default in model_options(name).items())
        size = model_size(name)
        rows.append((name, options or "-", "-" if size is None else f"{size:,}", spec.description))
    columns = ("model", "options", "parameters", "what it is")
    print_table(screen, columns, rows, left=("model", "options", "what it is"))
    print_line(screen)
    print_line(screen, "A model and its options are keys of [model]; parameters for 32x32x3 and 10 classes.", "dim")


def _sources(screen: Console, _: str) -> None:
    rows = [(n, ", ".join(spec.options) or "-", f"{spec.label}: {spec.description}") for n, spec in SOURCES.items()]
    print_text_table(screen, ("source", "options", "what it is"), rows)
    print_line(screen, "A source is a key of [data], its options of [data.options]; see fedrela data list.", "dim")


def _methods(screen: Console, _: str) -> None:
    rows = [(name, kind.label, kind.description) for name, kind in REALLOCATORS.items()]
    print_text_table(screen, ("method", "label", "which labels it moves"), rows)
    print_line(screen, "A method is a key of [relabel]; budget, limits and ledger are the same for all.", "dim")


def _tables(screen: Console, _: str) -> None:
    from fedrela.reproduction.paper_table import paper_tables

    columns = ("table", "entries", "doubtful", "what it shows")
    rows = [
        (table.label, str(len(table.cells)), str(sum(bool(entry.doubtful) for entry in table.cells)), table.caption)
        for table in paper_tables()
    ]
    print_table(screen, columns, rows, left=("table", "what it shows"))
    print_line(screen)
    print_line(screen, "fedrela reproduce TABLE runs one; doubtful entries contradict others of the paper.", "dim")


def _sizes(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {size:,}" if size else name for name, size in parts.items()) or "-"


TABLES: dict[str, Callable[[Console, str], None]] = {
    "algorithms": _algorithms,
    "models": _models,
    "sources": _sources,
    "methods": _methods,
    "tables": _tables,
}
