"""What a finished run leaves on the screen: its accuracies, the labels moved, where it lies, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fedrela.cli.live import many, percent
from fedrela.cli.show import complain, draw, inert, say
from fedrela.runfolder import RunFolder
from fedrela.runfolder.names import REPORT

if TYPE_CHECKING:
    from fedrela.experiment.result import Result


def show_result(out: Console, result: Result) -> None:
    """Write the result of a run."""
    folder = RunFolder.open(result.folder)
    rows = [(name, percent(share)) for name, share in _shares(result).items()]
    draw(out, ("accuracy", f"after round {result.rounds}"), rows, words=("accuracy",))
    say(out)
    samples, clients = sum(folder.manifest["data"]["client_sizes"]), len(folder.ledgers())
    told = "not told: clients keep that to themselves" if result.moved is None else f"{result.moved:,} of {samples:,}"
    say(out, f"labels moved  {told}" + ("" if result.moved is None else f", by {many(clients, 'client')}"))
    say(out, f"run folder    {inert(result.folder)}")
    if (result.folder / REPORT).exists():
        say(out, f"report        {inert(result.folder / REPORT)}")
    place = inert(json.dumps(str(result.folder), ensure_ascii=False))
    say(out, f"model         fedrela.experiment.Result.load({place}).weights() in Python")
    if clients:
        say(out, "next          the same with enabled = false in [relabel] shows what re-labelling changed")


def leave_report(folder: Path) -> None:
    """Write the report of runs that have just ended; what goes wrong there is told, and spoils nothing."""
    from fedrela.report.writing import write_report

    try:
        write_report(folder)
    except Exception as error:  # hours of training must not end in an error because of a page
        complain(f"{folder}: no report was written: {error}; `fedrela --debug report` shows why")


def _shares(result: Result) -> dict[str, Any]:
    """Return the accuracies by name, the one that counts most first."""
    accuracy, record = result.accuracy, result.record
    both = ("balanced", "overall") if record["headline"] == "balanced" else ("overall", "balanced")
    shares = {name: accuracy[name] for name in both} | result.groups
    shares |= {name.upper(): accuracy[name] for name in ("auroc", "auprc") if name in accuracy}
    if "validation" in record:
        shares["balanced, on what clients hold back"] = record["validation"]["balanced"]
    if "local" in record:
        shares["mean of the clients' own"] = record["local"]["mean"]
    return shares
