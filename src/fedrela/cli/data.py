"""``fedrela data list | show CONFIG | fetch NAME | split CONFIG DIR``: data sources, and the federation of a run."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from fedrela.arguments import check_choice
from fedrela.cli.check import ConfigFile, Target
from fedrela.cli.progress import progress_bar
from fedrela.cli.terminal import (
    LONGEST_NAME,
    column_kinds,
    command_group,
    console,
    print_line,
    print_table,
    print_text_table,
    refuse_existing,
)
from fedrela.data.download import fetch as fetch_data
from fedrela.data.federation import Federation
from fedrela.data.sources import SOURCES
from fedrela.records import GROUP_PROTOCOLS
from fedrela.text import plural, printable

MOST_CLASSES = 20

HELP = """
List data sources, fetch data sets, show a configuration's federation, and split it.

[bold]Example[/]: fedrela data list; fedrela data fetch cifar10; fedrela data show run.toml --picture clients.svg;
fedrela data split run.toml parts
"""

FETCHED = [name for name, spec in SOURCES.items() if spec.download]

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(FETCHED)}.", show_default=False)]
Root = Annotated[Path, typer.Option(metavar="DIR", help="The folder that holds data sets.")]
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="Download from this URL, such as your own mirror.")]
Picture = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw clients and classes into .svg, .png or .pdf.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the picture of an earlier call.")]
Protocol = Annotated[
    str | None,
    typer.Option(metavar="|".join(GROUP_PROTOCOLS), help="How classes are grouped.", show_default="as configured"),
]


def list_sources() -> None:
    """List the data sources: what they are, where their files are looked for, their options.

    [bold]Example[/]: fedrela data list
    """
    screen = console()
    rows = [(n, "yes" if spec.download else "-", f"{spec.label}: {spec.description}") for n, spec in SOURCES.items()]
    print_text_table(screen, ("source", "fetch", "what it is"), rows)
    rows = [(name, spec.files, ", ".join(spec.options) or "-") for name, spec in SOURCES.items()]
    print_text_table(screen, ("source", "looked for", "options"), rows)
    print_line(screen, "ROOT is the key root of [data], by default the folder data in the working directory.")
    print_line(screen, "Options go into data.options. fedrela data fetch NAME gets the sources marked yes.")


def fetch(name: Name, root: Root = Path("data"), base_url: BaseUrl = None) -> None:
    """Download a data set, check it, and put it where its source looks for it.

    [bold]Example[/]: fedrela data fetch cifar10 --root data

    A file that is already there is checked and not downloaded again; an interrupted download continues where it
    stopped. Without a network the message says which file to put where by hand (exit code 3). Files with a wrong
    checksum are never kept (exit code 4).
    """
    screen = console()
    with progress_bar(f"fetching {name}") as bar:
        folder = fetch_data(name, root, progress=partial(bar.count, stage=f"fetching {name}"), base_url=base_url)
    print_line(screen, SOURCES[name].label, "bold")
    print_line(screen, f"files   {printable(folder)}")


def show(config: ConfigFile, picture: Picture = None, force: Force = False, protocol: Protocol = None) -> None:
    """Show the federation that a configuration describes: class counts, clients, imbalance and heterogeneity.

    [bold]Example[/]: fedrela data show run.toml --picture clients.svg

    The picture has a column per client and a row per class; the area of each dot is the number of samples.
    """
    from fedrela.experiment.build import build_data, groups_of
    from fedrela.experiment.load import load_config
    from fedrela.plots import client_classes
    from fedrela.report import check_picture_path, heterogeneity_facts, write_plot

    if protocol is not None:
        check_choice("--protocol", protocol, GROUP_PROTOCOLS)
    if picture is not None:
        refuse_existing([picture], force, ", --picture chooses another name")
        check_picture_path(picture, overwrite=True)
    loaded = load_config(config)
    with progress_bar("reading data") as bar:
        federation = build_data(loaded, progress=bar.count)
    groups = groups_of(federation, protocol or loaded.data.protocol)
    facts = heterogeneity_facts(federation.client_counts)
    if picture is not None:
        recipe, names = federation.recipe, federation.source.class_names
        title = f"{federation.source.name}: {_describe(recipe.imbalance)}; {_describe(recipe.partition)}"
        draw = partial(client_classes, federation.client_counts, names=names, groups=groups)
        write_plot(picture, draw, title=title, overwrite=force)
    screen = console()
    _show_summary(screen, federation)
    _show_classes(screen, federation, [groups.names[g] for g in groups.of_class])
    print_line(screen, "groups: " + ", ".join(f"{name} {plural(size, 'class')}" for name, size in groups.sizes.items()))
    print_line(screen)
    rows = _client_rows(federation) + facts
    print_table(screen, ("clients", "value", "what it means"), rows, left=("clients", "what it means"))
    if federation.note:
        print_line(screen)
        print_line(screen, f"note: partition: {printable(federation.note)}", "yellow")
    if picture is not None:
        print_line(screen)
        print_line(screen, f"picture {printable(picture)}")


def split(config: ConfigFile, target: Target) -> None:
    r"""Write the shards of a configuration as the private data of nodes, one folder each.

    [bold]Example[/]: fedrela data split clinic.toml parts; fedrela export-flower clinic-app parts/config.toml --private

    DIR/nodes/NAME has node.toml and the samples of one node, DIR/server the test set, and DIR/config.toml is the
    configuration with the table \[federation], which says what all parties agree on. A run with these nodes gives the
    same weights and accuracies as fedrela run.
    """
    from fedrela.experiment.load import load_config
    from fedrela.experiment.split import split

    with progress_bar(f"reading {config}"):
        names = split(load_config(config), target)
    screen = console()
    few = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    print_line(screen, f"nodes    {printable(target / 'nodes')}: {plural(len(names), 'folder')}, {printable(few)}")
    print_line(screen, f"server   {printable(target / 'server')}")
    print_line(screen, f"agreed   {printable(target / 'config.toml')}")


def _describe(plan: Any) -> str:
    """Return the kind of a plan, and the options that are not defaults."""
    said = [plan.kind]
    for field in fields(plan):
        value = getattr(plan, field.name)
        if field.name not in ("kind", "clients") and value != field.default:
            values = value if isinstance(value, tuple) else (value,)
            text = " ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in values)
            said.append(printable(f"{field.name} {text}", LONGEST_NAME))
    return ", ".join(said)


def _show_summary(screen: Console, federation: Federation) -> None:
    source, recipe = federation.source, federation.recipe
    shape = source.x_train.shape[1:]
    sizes = "x".join(map(str, shape))
    form = f"images of {sizes}" if source.is_image else f"arrays of {sizes}"
    form = plural(shape[0], "feature") if source.numeric is not None else form
    kept, available = int(federation.class_counts.sum()), int(federation.available.sum())
    of_all = "" if kept == available else f" of {available:,}"
    clients, classes = plural(len(federation.shards), "client"), plural(source.num_classes, "class")
    test = plural(len(source.y_test), "test sample")
    print_line(
        screen,
        f"{printable(source.name)}: {kept:,}{of_all} training samples ({form}), {classes}, {clients}; {test}",
        "bold",
    )
    print_line(
        screen, f"imbalance {_describe(recipe.imbalance)}; partition {_describe(recipe.partition)}; seed {recipe.seed}"
    )
    if source.feature_names:
        print_line(screen, printable(column_kinds(source.feature_names, source.encoded)))
    print_line(screen)


def _show_classes(screen: Console, federation: Federation, groups: list[str]) -> None:
    """Print the classes with their counts: all of them if they are few, else the most frequent and the rarest."""
    from fedrela.report.run_page import effective_clients

    before, after = federation.available, federation.class_counts
    holders = (federation.client_counts > 0).sum(axis=0)
    names = [printable(name, LONGEST_NAME) for name in federation.source.class_names]
    spread = effective_clients(federation.client_counts)
    numbers = zip(*([f"{n:,}" for n in counts] for counts in (before, after, holders)), strict=True)
    rows = [(name, group, *of, s) for name, group, of, s in zip(names, groups, numbers, spread, strict=True)]
    half = MOST_CLASSES // 2
    if len(rows) > MOST_CLASSES:
        order = np.argsort(-after, kind="stable")
        gap = (f"... {len(rows) - MOST_CLASSES:,} more", "", "", "", "", "")
        rows = [rows[c] for c in order[:half]] + [gap] + [rows[c] for c in order[-half:]]
    columns = ("class", "group", "in the source", "kept", "clients with it", "effective clients")
    print_table(screen, columns, rows, left=("class", "group"))
    print_line(screen)


def _client_rows(federation: Federation) -> list[tuple[str, str, str]]:
    sizes = federation.client_counts.sum(axis=1)
    held = sum(shard.validation.size for shard in federation.shards)
    spread = f"{sizes.min():,} / {np.median(sizes):,.0f} / {sizes.max():,}"
    rows = [
        ("number", f"{sizes.size:,}", "clients in the federation"),
        ("samples", spread, "training samples per client: least, median, most"),
        ("empty", f"{(sizes == 0).sum():,}", "clients without a training sample"),
    ]
    if held:
        rows.append(("validation", f"{held:,}", "samples held out by the clients, never trained on"))
    return rows


app = command_group(HELP, list=list_sources, fetch=fetch, show=show, split=split)
