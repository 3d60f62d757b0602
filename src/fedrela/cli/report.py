"""``fedrela report FOLDER``: the page of a run, or of runs that belong together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fedrela.cli.progress import open_logs, progress_bar
from fedrela.cli.run import MLflow, TensorBoard, Wandb
from fedrela.cli.terminal import console, print_line
from fedrela.errors import ArgumentError
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.text import printable

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A run folder, or the folder of several runs.", show_default=False)
]
NoSamples = Annotated[bool, typer.Option("--no-samples", help="Leave samples out of the page.")]
Strip = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Copy the folder without samples to a new one.", show_default=False)
]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write every plot, at two widths.", show_default=False)
]
Formats = Annotated[
    list[str] | None,
    typer.Option("--format", metavar="svg|png|pdf", help="Format of the plots. Repeatable.", show_default="svg"),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing plots.")]


def report(
    folder: Folder,
    no_samples: NoSamples = False,
    strip: Strip = None,
    figures: Figures = None,
    format: Formats = None,
    tensorboard: TensorBoard = None,
    mlflow: MLflow = None,
    wandb: Wandb = None,
    force: Force = False,
) -> None:
    """Write the report of a run, a comparison, a sweep or a reproduction: one HTML page, from its folder alone.

    [bold]Example[/]: fedrela report runs/digits; fedrela report runs/digits --figures paper --format pdf

    The page opens from disk, prints, and needs no network. Every run writes it when it ends; this command writes it
    again, also for an unfinished run. --figures writes every plot at the widths of a paper's column and page. --strip
    copies the folder without samples, for sharing.
    """
    from fedrela.plots.folders import open_folder
    from fedrela.report.tensorboard import write_tensorboard
    from fedrela.report.trackers import write_trackers
    from fedrela.report.writing import check_formats, write_figures, write_report
    from fedrela.runfolder.grids import copy_without_samples

    if format and figures is None:
        raise ArgumentError("applies to plots; name a folder for them with --figures", argument="--format")
    check_formats(format or ())
    if strip is not None and os.path.lexists(strip):
        raise ArgumentError(f"--strip: {strip}: exists already; remove it or choose another place")
    screen, opened = console(), open_folder(folder)
    if (mlflow or wandb) and not isinstance(opened, RunFolder):
        raise ArgumentError(f"{folder}: --mlflow and --wandb take one run; name a folder of its runs")
    open_logs(tensorboard, None, None, "")
    with progress_bar(f"reading {folder}"):
        lines = [f"report   {write_report(folder, samples=not no_samples)}"]
        if figures is not None:
            plots = write_figures(folder, figures, format or ("svg",), overwrite=force)
            lines.append(f"figures  {figures}, {len(plots)} files")
        if strip is not None:
            copy_without_samples(opened, strip)
            write_report(strip, samples=False)
            lines.append(f"copy     {strip}, without samples")
        if tensorboard is not None:
            write_tensorboard(opened, tensorboard)
            lines.append(f"events   {tensorboard}: tensorboard --logdir {tensorboard}")
        if isinstance(opened, RunFolder):
            write_trackers(opened, mlflow, wandb)
    for line in lines:
        print_line(screen, printable(line))
    if isinstance(opened, RunFolder) and opened.status is RunStatus.DONE:
        opened.final_checkpoint()  # last: a lost model is an error, but no reason not to write the page
