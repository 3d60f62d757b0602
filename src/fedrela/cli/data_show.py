"""``fedrela data show CONFIG``: the federation of a configuration in figures, and as a picture."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from fedrela.cli.progress import progress_bar
from fedrela.cli.show import LONGEST_NAME, console, draw, inert, say
from fedrela.core.checks import check_choice
from fedrela.data.federation import Federation
from fedrela.errors import ArgumentError

MOST_CLASSES = 20
PROTOCOLS = ("counts", "fedloge", "fedrela-release")

HELP = """
Show the federation that a configuration describes: class counts, clients, imbalance and heterogeneity.

[bold]Example[/]: fedrela data show run.toml --picture clients.svg

The picture has clients across, classes down, and a dot in each cell as large as its number of samples. PNG needs the
extra plots: pip install fedrela\\[plots].
"""

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration, .toml.", show_default=False)]
Picture = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw clients and classes into a .svg or .png file.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the picture of an earlier call.")]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(PROTOCOLS), help="How head, medium and tail are told apart.", show_default="CONFIG's"
    ),
]


def show(config: ConfigFile, picture: Picture = None, force: Force = False, protocol: Protocol = None) -> None:
    """Show the data of a configuration; see `HELP`."""
    from fedrela.experiment.build import build_data, groups_of
    from fedrela.experiment.load import load_config
    from fedrela.report import check_picture_path, heterogeneity_facts, write_picture

    if protocol is not None:
        check_choice("--protocol", protocol, PROTOCOLS)
    if picture is not None:
        _check_free(picture, force)
        check_picture_path(picture, overwrite=True)
    loaded = load_config(config)
    with progress_bar("reading data") as bar:
        federation = build_data(loaded, progress=bar.count)
    groups = groups_of(federation, protocol or loaded.data.protocol)
    facts = heterogeneity_facts(federation.client_counts)
    if picture is not None:
        recipe, names = federation.recipe, federation.source.class_names
        title = f"{federation.source.name}: {_plan(recipe.imbalance)}; {_plan(recipe.partition)}"
        write_picture(picture, federation.client_counts, names, groups=groups, title=title, overwrite=force)
    screen = console()
    _show_what(screen, federation)
    _show_classes(screen, federation, [groups.names[g] for g in groups.of_class])
    say(screen, "groups: " + ", ".join(f"{name} {_many(size, 'class')}" for name, size in groups.sizes.items()))
    say(screen)
    rows = _client_rows(federation) + [(fact.name, fact.value, fact.meaning) for fact in facts]
    draw(screen, ("clients", "here", "what it means"), rows, words=("clients", "what it means"))
    _show_ending(screen, federation, picture)


def _check_free(picture: Path, force: bool) -> None:
    if os.path.lexists(picture) and not force:
        raise ArgumentError(f"{picture}: exists already; --force overwrites it, --picture chooses another name")


def _plan(plan: Any) -> str:
    """Return the kind of a plan, and what it says beyond the defaults."""
    said = [plan.kind]
    for field in fields(plan):
        value = getattr(plan, field.name)
        if field.name not in ("kind", "clients") and value != field.default:
            values = value if isinstance(value, tuple) else (value,)
            words = " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in values)
            said.append(inert(f"{field.name} {words}", LONGEST_NAME))
    return ", ".join(said)


def _show_what(screen: Console, federation: Federation) -> None:
    source, recipe = federation.source, federation.recipe
    shape = source.x_train.shape[1:]
    form = f"images of {'x'.join(map(str, shape))}" if source.is_image else _many(shape[0], "feature")
    chosen, there = int(federation.class_counts.sum()), int(federation.available.sum())
    of = f"{chosen:,}" if chosen == there else f"{chosen:,} of {there:,}"
    clients, classes = _many(len(federation.shards), "client"), _many(source.num_classes, "class")
    test = _many(len(source.y_test), "test sample")
    say(screen, f"{inert(source.name)}: {of} training samples ({form}), {classes}, {clients}; {test}", "bold")
    say(screen, f"imbalance {_plan(recipe.imbalance)}; partition {_plan(recipe.partition)}; seed {recipe.seed}")
    say(screen)


def _show_classes(screen: Console, federation: Federation, groups: list[str]) -> None:
    """Write the classes with their counts: all of them where they are few, else the most frequent and the rarest."""
    from fedrela.report.facts import effective_clients

    before, after = federation.available, federation.class_counts
    holders = (federation.client_counts > 0).sum(axis=0)
    names = [inert(name, LONGEST_NAME) for name in federation.source.class_names]
    spread = effective_clients(federation.client_counts)
    rows = [
        (names[c], groups[c], f"{before[c]:,}", f"{after[c]:,}", f"{holders[c]:,}", spread[c])
        for c in range(len(names))
    ]
    half = MOST_CLASSES // 2
    if len(rows) > MOST_CLASSES:
        order = np.argsort(-after, kind="stable")
        gap = (f"... {len(rows) - MOST_CLASSES:,} more", "", "", "", "", "")
        rows = [rows[c] for c in order[:half]] + [gap] + [rows[c] for c in order[-half:]]
    columns = ("class", "group", "in the source", "kept", "clients with it", "effective clients")
    draw(screen, columns, rows, words=("class", "group"))
    say(screen)


def _client_rows(federation: Federation) -> list[tuple[str, str, str]]:
    sizes = federation.client_counts.sum(axis=1)
    held = sum(shard.validation.size for shard in federation.shards)
    spread = f"{sizes.min():,} / {np.median(sizes):,.0f} / {sizes.max():,}"
    rows = [
        ("number", f"{sizes.size:,}", "clients in the federation"),
        ("samples", spread, "training samples of a client: least, median, most"),
        ("empty", f"{(sizes == 0).sum():,}", "clients without a training sample"),
    ]
    if held:
        rows.append(("validation", f"{held:,}", "samples held out by the clients, never trained on"))
    return rows


def _show_ending(screen: Console, federation: Federation, picture: Path | None) -> None:
    if federation.note:
        say(screen)
        say(screen, f"note: partition: {inert(federation.note)}", "yellow")
    if picture is not None:
        say(screen)
        say(screen, f"picture {inert(picture)}")


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith('s') else 's'}"
