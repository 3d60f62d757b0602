"""``fedrela data list | show CONFIG | fetch NAME``: which data there are, and what a configuration makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli import data_show
from fedrela.cli.progress import progress_bar
from fedrela.cli.show import console, draw, inert, paragraphs, say
from fedrela.data.fetch import fetch as fetch_data
from fedrela.data.sources import SOURCES

HELP = """
List data sources, fetch data sets, and look at the federation of a configuration.

[bold]Example[/]: fedrela data list; fedrela data fetch cifar10; fedrela data show run.toml --picture clients.svg
"""

LIST = """
List the data sources: what they are, where their files are looked for, their options.

[bold]Example[/]: fedrela data list
"""

FETCH = """
Download a data set, check it, and put it where its source looks for it.

[bold]Example[/]: fedrela data fetch cifar10 --root data

A file that lies there already is checked and not downloaded; a download that was cut off goes on where it stopped.
Without network (exit code 3) the message says which file to put where by hand. Bytes with a wrong checksum are never
kept (exit code 4).
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help=paragraphs(HELP))

FETCHED = [name for name, spec in SOURCES.items() if spec.download]

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(FETCHED)}.", show_default=False)]
Root = Annotated[Path, typer.Option(metavar="DIR", help="The folder that holds data sets.")]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Another place with the same files, such as a local mirror.")
]


@app.command("list", help=paragraphs(LIST))
def list_sources() -> None:
    """List the sources; see `LIST`."""
    screen = console()
    rows = [
        (name, "yes" if spec.download else "-", f"{spec.label}: {spec.description}") for name, spec in SOURCES.items()
    ]
    draw(screen, ("source", "fetch", "what it is"), rows, words=("source", "fetch", "what it is"))
    say(screen)
    rows = [(name, spec.files, ", ".join(spec.options) or "-") for name, spec in SOURCES.items()]
    draw(screen, ("source", "looked for", "options"), rows, words=("source", "looked for", "options"))
    say(screen)
    say(screen, "ROOT is the key root of the table [data], by default the folder data where you are.")
    say(screen, "Options go into data.options. fedrela data fetch NAME gets the sources marked yes.")


@app.command("fetch", help=paragraphs(FETCH))
def fetch(name: Name, root: Root = Path("data"), base_url: BaseUrl = None) -> None:
    """Fetch a data set; see `FETCH`."""
    screen = console()
    with progress_bar(f"fetching {name}") as bar:
        folder = fetch_data(name, root, progress=bar.receive, base_url=base_url)
    say(screen, SOURCES[name].label, "bold")
    say(screen, f"files   {inert(folder)}")


app.command("show", help=paragraphs(data_show.HELP))(data_show.show)
