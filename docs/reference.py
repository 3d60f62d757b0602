"""Write reference/configuration.md and reference/command-line.md from the code: python docs/reference.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from fedrela.cli.main import COMMANDS, app, load_command
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.compare import CompareConfig
from fedrela.experiment.schema.config_table import ConfigTable, comments_of, plain_table
from fedrela.experiment.schema.federation import FederationConfig, NodeConfig
from fedrela.experiment.toml.writer import toml_value
from fedrela.models import MODELS
from fedrela.options import Options, options_from

PAGES = Path(__file__).with_name("reference")
CONFIGURATION = """# Configuration, key by key

Generated from the schema by `python docs/reference.py`. A configuration is one TOML file. Every table may be left out,
and an unknown one is refused with its line, its column and the nearest key. `fedrela check --show CONFIG` prints
a file in full with these explanations; `fedrela init` writes one to start from. Defaults are those of `fedrela run` on
an empty file; "-" means that there is none.
"""
COMMAND_LINE = """# Command line

Generated from `fedrela --help` by `python docs/reference.py`. [Exit codes](exit-codes.md): 0 done, 1 unexpected, 2
usage or configuration, 3 data (or a refusal), 4 integrity, 5 busy or too few clients, 130 interrupted. Every
error is one line on standard error; `fedrela --debug COMMAND ...` shows its traceback.
"""

NEEDS = {  # beginnings of examples that no test runs
    "fedrela compare": "several minutes",
    "fedrela data fetch": "a network",
    "fedrela ledger verify labels": "a client's folder of the plug-in, and its model and data",
    "fedrela reproduce tab:lt --dry-run": "",
    "fedrela reproduce tab": "minutes to hours",
    "fedrela results": "a clone of the repository",
}


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or "-"


def tables(table: ConfigTable | Options, path: tuple[str, ...] = (), about: str = "") -> Iterator[str]:
    """Yield a section for a table of a configuration, and for those in it."""
    values, comments = plain_table(table), comments_of(table)
    inner = [key for key in values if isinstance(getattr(table, key, None), ConfigTable | Options)]
    name = f"`[{'.'.join(path)}]`" if path else "At the top"
    rows = [(key, f"`{toml_value(values[key])}`" if key in values else "-") for key in comments if key not in inner]
    lines = [f"| `{key}` | {cell(value)} | {cell(comments[key])} |" for key, value in rows]
    head = f"\n## {name}\n\n{about[:1].upper()}{about[1:]}{'.' if about else ''}\n\n"
    yield head.replace("\n\n\n\n", "\n\n") + "\n".join(["| key | default | meaning |", "|---|---|---|", *lines, ""])
    for key in inner:
        yield from tables(getattr(table, key), (*path, key), comments[key])


def federation() -> str:
    """Return the sections of private nodes, whose tables have keys that must be there."""
    agreed = FederationConfig.model_construct(nodes=None, classes=None)
    about = "what the parties of [a private federation](../how-to/federate.md) agree on; nodes and classes are required"
    own = "".join(tables(NodeConfig.model_construct(source=None), (), "a node's own file; source is required"))
    own = own.replace("## At the top", "## `node.toml`").replace("## `[policy]`", "## `[policy]` in `node.toml`")
    return "".join(tables(agreed, ("federation",), about)) + own


def models() -> str:
    lines = [
        "\n## Options of models\n",
        "Keys of `[model]` besides those above. Parameters of algorithms are in [algorithms](algorithms.md), options\n"
        "of sources in [data](data.md).\n",
        "| model | what it is | options |",
        "|---|---|---|",
    ]
    for name, spec in MODELS.items():
        options = ", ".join(f"`{option}`" for option in options_from(spec.make, ("input_shape",))) or "-"
        lines.append(f"| `{name}` | {cell(spec.description)} | {options} |")
    return "\n".join([*lines, ""])


def configuration() -> str:
    sweep = (
        "\n## `[sweep]`\n\nValues to try: one key per swept key, named with dots, such as "
        '`"relabel.tau" = [0.01, 0.03]`; see [sweeping](../how-to/sweep.md).\n'
    )
    compared = tables(CompareConfig(), ("compare",), "seeds, baselines and arms of a comparison")
    return CONFIGURATION + "".join([*tables(Config()), *compared, sweep, federation(), models()])


def plain(text: str) -> str:
    """Return help without the marks that the terminal shows as bold."""
    return re.sub(r"\[/?bold\]|\[/\]", "", text).replace("\\[", "[")


def shell_blocks(examples: str) -> str:
    """Return examples as blocks of a page: those that docs/run.py runs, and those that say what they need."""
    blocks: dict[str, list[str]] = {}
    for command in re.split(r"; (?:then )?(?=fedrela )", examples.partition("; then see")[0]):
        needs = next((what for start, what in NEEDS.items() if command.startswith(start)), "")
        blocks.setdefault(needs, [f"# needs {needs}"] if needs else []).append(command)
    return "\n\n".join("\n".join(["```sh", *lines, "```"]) for lines in blocks.values())


def section(command, path: str) -> Iterator[str]:
    """Yield the section of a command, and those of its subcommands."""
    summary, *rest = plain(command.help or "").split("\n\n")
    yield f"\n## `fedrela {path}`\n\n{summary}\n"
    for paragraph in rest:
        if paragraph.startswith("Example: "):
            paragraph = shell_blocks(paragraph.removeprefix("Example: "))
        yield f"\n{paragraph}\n"
    rows = [_parameter(each) for each in command.params if each.name != "help"]
    if rows:
        yield "\n" + "\n".join(["| argument or option | default | meaning |", "|---|---|---|", *rows, ""])
    for name, below in getattr(command, "commands", {}).items():
        yield from section(below, f"{path} {name}")


def _parameter(parameter) -> str:
    names = ", ".join([*parameter.opts, *parameter.secondary_opts]) if parameter.param_type_name == "option" else ""
    is_flag = getattr(parameter, "is_flag", False)
    value = "" if is_flag else parameter.make_metavar(typer.Context(typer.main.get_command(app)))
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    nothing = default in (None, (), "") or default is False or callable(default)
    shown = "-" if nothing or parameter.required else f"{default}"
    return f"| `{cell(f'{names} {value}')}` | {cell(shown)} | {cell(plain(parameter.help or ''))} |"


def command_line() -> str:
    return COMMAND_LINE + "".join(line for name in COMMANDS for line in section(load_command(name), name))


MADE = {"configuration.md": configuration, "command-line.md": command_line}

if __name__ == "__main__":
    for name, make in MADE.items():
        (PAGES / name).write_text(make())
        sys.stdout.write(f"reference/{name}\n")
