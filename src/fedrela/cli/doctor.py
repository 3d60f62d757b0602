"""``fedrela doctor``: the machine and what is installed, to paste into a bug report."""

from __future__ import annotations

from fedrela import __version__
from fedrela.text import printable


def doctor() -> None:
    """Show what a bug report needs: versions, processor, memory, device, folders, data sets and optional packages.

    [bold]Example[/]: fedrela doctor

    The lines are a Markdown list, to paste as they are. Data sets are looked for where a configuration without
    data.root looks: in the folder data in the working directory, and where the system's packages put them.
    """
    from fedrela.experiment.bug_report import facts

    for name, value in [("fedrela", __version__), *facts()]:
        print(f"- {name}: {printable(value)}")
