"""``fedrela data list | show CONFIG | fetch NAME``: which data there are, and what a configuration makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli import data_show
from fedrela.cli.progress import progress_bar
from fedrela.cli.show import console, draw, inert, paragraphs, say
from fedrela.data.catalogue import CATALOGUE
from fedrela.data.fetch import fetch as fetch_data
from fedrela.data.sources import SOURCES, source_options

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

# name of a source -> what it is, where its files are looked for
IN_WORDS = {
    "cifar10": (CATALOGUE["cifar10"].title, "ROOT/cifar-10-batches-bin, ROOT/cifar-10-binary.tar.gz"),
    "cifar100": (CATALOGUE["cifar100"].title, "ROOT/cifar-100-binary, ROOT/cifar-100-binary.tar.gz"),
    "csv": ("a table of yours with a label column, .csv or .npy", "ROOT, or ROOT/file"),
    "digits": ("scikit-learn's digits: 1,797 grey images of 8x8, 10 classes", "comes with scikit-learn"),
    "fashion_mnist": (CATALOGUE["fashion_mnist"].title, "ROOT/FashionMNIST/raw, ROOT, Debian's package"),
    "gaussians": ("points drawn from Gaussians, for theory and tests", "made, no files"),
    "image_folder": (
        "images of yours, a folder a class, or with list files",
        "ROOT/train/CLASS and ROOT/val/CLASS, or lists",
    ),
    "imagenet_lt": (
        "ImageNet-LT: ImageNet's images by the two list files",
        "ROOT/train, ROOT/val and the lists in ROOT",
    ),
    "npz": ("arrays of yours: x_train, y_train, x_test, y_test", "ROOT, or ROOT/file"),
    "tiny_imagenet": (CATALOGUE["tiny_imagenet"].title, "ROOT/tiny-imagenet-200, ROOT"),
}

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(sorted(CATALOGUE))}.", show_default=False)]
Root = Annotated[Path, typer.Option(metavar="DIR", help="The folder that holds data sets.")]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Another place with the same files, such as a mirror in the house.")
]


@app.command("list", help=paragraphs(LIST))
def list_sources() -> None:
    """List the sources; see `LIST`."""
    screen = console()
    rows = [(name, "yes" if name in CATALOGUE else "-", IN_WORDS[name][0]) for name in SOURCES]
    draw(screen, ("source", "fetch", "what it is"), rows, words=("source", "fetch", "what it is"))
    say(screen)
    rows = [(name, IN_WORDS[name][1], ", ".join(source_options(name)) or "-") for name in SOURCES]
    draw(screen, ("source", "looked for", "options"), rows, words=("source", "looked for", "options"))
    say(screen)
    say(screen, "ROOT is the key root of the table [data], by default the folder data where you are.")
    say(screen, "Options go into data.options. fedrela data fetch NAME gets the sources marked yes.")


@app.command("fetch", help=paragraphs(FETCH))
def fetch(name: Name, root: Root = Path("data"), base_url: BaseUrl = None) -> None:
    """Fetch a data set; see `FETCH`."""
    notices: list[str] = []  # written when the bar has gone
    screen = console()
    try:
        with progress_bar(f"fetching {name}") as bar:
            place = fetch_data(name, root, progress=bar.receive, base_url=base_url, notice=notices.append)
    finally:
        for notice in notices:
            say(screen, f"note: {inert(notice)}")
    say(screen, CATALOGUE[name].title, "bold")
    say(screen, f"files   {inert(place)}")


app.command("show", help=paragraphs(data_show.HELP))(data_show.show)
