"""The entry point: joins the verbs, and turns every error into one line and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer

from fedrela import __version__
from fedrela.cli import check, compare, data, relabel, report, reproduce, run, theory
from fedrela.cli import list as listing
from fedrela.cli.terminal import help_text, print_error
from fedrela.errors import FedrelaError
from fedrela.text import printable

INTERRUPTED = 130

# The base class of all usage errors has no name of its own in typer.
UsageError: Any = typer.BadParameter.__base__

HELP = """
FedReLa (ICML 2026): re-labelling against class imbalance in federated learning.

[bold]Start here[/]: fedrela demo shows it work; fedrela run examples/digits.toml trains a federation; fedrela preview
clinic.csv, then fedrela relabel clinic.csv --tau 0.03, re-labels a file of your own.

[bold]Exit codes[/]: 0 done, 1 unexpected, 2 usage or configuration, 3 data (a refusal too), 4 integrity, 5 busy or too
few clients, 130 interrupted.
"""

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)

# Verbs join here, in the order of the help page; the docstring of a verb is its help.
# Every call of `fedrela` loads these modules, so heavy imports (torch, scikit-learn) are made inside their functions.
VERBS: dict[str, Callable[..., None]] = {
    "demo": compare.demo,
    "preview": relabel.preview,
    "relabel": relabel.relabel,
    "run": run.run,
    "resume": run.resume,
    "compare": compare.compare,
    "sweep": compare.sweep,
    "reproduce": reproduce.reproduce,
    "report": report.report,
    "theory": theory.theory,
    "export-flower": check.export_flower,
    "check": check.check,
    "list": listing.list_names,
}
for name, verb in VERBS.items():
    formats = relabel.FILE_FORMATS if name in ("preview", "relabel") else ""
    app.command(name, help=help_text(f"{verb.__doc__}{formats}"))(verb)
app.add_typer(data.app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fedrela {__version__}")
        raise typer.Exit


@app.callback(help=help_text(HELP))
def options_before_the_verb(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Store what `main` needs to know when a verb fails."""
    context.obj["debug"] = debug


def main() -> int:
    """Run the command line with `sys.argv` and return the exit code."""
    session = {"debug": False}
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # print what the terminal cannot encode as escapes
    try:
        code = _run(session)
        sys.stdout.flush()  # here, and not at exit, where a closed pipe could no longer be caught
    except BrokenPipeError:
        _forget_standard_output()
        return 1
    return code


def _run(session: dict[str, bool]) -> int:
    try:
        command = typer.main.get_command(app)
        code = command.main(sys.argv[1:], prog_name="fedrela", standalone_mode=False, obj=session)
    except FedrelaError as error:
        return _fail(session, error, str(error), error.exit_code)
    except UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as error:  # typer and rich exit so when the reader of a pipe has gone
        raise BrokenPipeError from error
    except BrokenPipeError:
        raise
    except Exception as error:  # the user sees one line, never a traceback
        hint = "" if session["debug"] else "; fedrela --debug VERB ... shows the traceback"
        return _fail(session, error, f"unexpected {type(error).__name__}: {error}{hint}", 1)
    if code == INTERRUPTED:
        print_error("interrupted")
    return code or 0


def _fail(session: dict[str, bool], error: Exception, message: str, code: int) -> int:
    if session["debug"]:
        for line in "".join(traceback.format_exception(error)).splitlines():
            print(printable(line), file=sys.stderr)
    print_error(message)
    return code


def _usage(error: Any) -> int:
    """Say in one line what is wrong with the command line; an empty message means that help was shown instead."""
    sentences = re.split(r"(?<=[.?]) ", error.format_message().strip())
    message = " ".join(dict.fromkeys(sentences))  # typer and click may both suggest the same word
    if message:
        path = error.ctx.command_path if error.ctx else "fedrela"
        print_error(f"{message} See '{path} --help'.")
    return int(error.exit_code)


def _forget_standard_output() -> None:
    """Point standard output nowhere, so that Python does not complain about the closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
