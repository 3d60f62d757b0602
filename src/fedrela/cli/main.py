"""The entry point: joins the verbs, and turns every error into one line and an exit code."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fedrela import __version__
from fedrela.cli.terminal import help_text, print_error
from fedrela.errors import DataError, FedrelaError
from fedrela.text import printable

INTERRUPTED = 130
PLAIN = "fedrela.plain"  # how what a terminal cannot encode is printed
ASCII = {"±": "+/-", "τ": "tau", "ρ": "rho", "α": "alpha", "…": "...", "†": "*", "→": "->", "–": "-", "\xa0": " "}

# The base class of all usage errors has no name of its own in typer.
UsageError: Any = typer.BadParameter.__base__

HELP = """
FedReLa (ICML 2026): re-labelling against class imbalance in federated learning.

[bold]Start here[/]: fedrela demo shows it work; fedrela init, then fedrela run digits.toml, trains a federation;
fedrela preview clinic.csv, then fedrela relabel clinic.csv --tau 0.03, re-labels a file of your own.

[bold]Exit codes[/]: 0 done, 1 unexpected, 2 usage or configuration, 3 data (a refusal too), 4 integrity, 5 busy or too
few clients, 130 interrupted.
"""

# Verbs in the order of the help page: the function in `fedrela.cli`, whose docstring is the verb's help, and the first
# sentence of that. The help page needs no more, so a module is loaded when its verb is called.
VERBS = {
    "demo": (
        "compare.demo",
        "Show what FedReLa does in federated training, on scikit-learn's digits, within a minute or two.",
    ),
    "init": ("init.init", "Write a commented configuration to start from, which runs as it is."),
    "preview": ("relabel.preview", "Show how many labels would move at several tau, on average; nothing is written."),
    "audit": (
        "audit.audit",
        "Write a page that shows what re-labelling would do, for people to look at before anything is changed.",
    ),
    "relabel": ("relabel.relabel", "Re-label the majority-class samples that look most like a rarer class."),
    "ledger": ("ledger.app", "Show what was done to labels, check that the record is sound, and take it back."),
    "run": (
        "run.run",
        "Train one federation, and write rounds, checkpoints, changed labels, result and report into one run folder.",
    ),
    "resume": ("run.resume", "Continue a run that was interrupted, from its newest checkpoint."),
    "compare": (
        "compare.compare",
        "Compare baselines with and without FedReLa over several seeds; all arms share the rounds before re-labelling.",
    ),
    "sweep": (
        "compare.sweep",
        "Run every combination of values for keys of a configuration, and say which values validation would choose.",
    ),
    "reproduce": (
        "reproduce.reproduce",
        "Run a table of the paper again, and show published and measured values side by side in the paper's layout.",
    ),
    "results": ("results.app", "Run studies whose results are kept with the code, and run recorded ones again."),
    "report": (
        "report.report",
        "Write the report of a run, a comparison, a sweep or a reproduction: one HTML page, from its folder alone.",
    ),
    "theory": (
        "theory.theory",
        "Show the paper's theory on two Gaussians: how clients and their aggregate decide, with and without "
        "re-labelling.",
    ),
    "export-flower": (
        "check.export_flower",
        "Write a configuration as a Flower app: a folder for flwr run, with scripts that start its nodes.",
    ),
    "check": (
        "check.check",
        "Check a configuration without running it: every key, type, range and name, and which of them exclude each "
        "other.",
    ),
    "list": (
        "list.list_names",
        "List the algorithms, models, data sources and methods that a configuration may name, and the paper's tables.",
    ),
    "doctor": (
        "doctor.doctor",
        "Show what a bug report needs: versions, cores, memory, device, folders, data sets and optional parts.",
    ),
    "node": ("node.app", "Look at a private node before it joins a federation; nothing is connected."),
    "data": ("data.app", "List data sources, fetch data sets, look at a configuration's federation, and split it."),
}


READ_POSTERIORS = ("preview", "audit", "relabel")  # whose help explains the files


class Verbs(TyperGroup):
    """The verbs, each of which is loaded when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the verb that the arguments name, and the arguments that are left."""
        name, known, left = super().resolve_command(ctx, args)
        return name, load_verb(name) if name and known else known, left


def load_verb(name: str) -> Any:
    """Return the command of a verb, or the group of verbs that it is."""
    home, _, attribute = VERBS[name][0].partition(".")
    module = import_module(f"fedrela.cli.{home}")
    verb = getattr(module, attribute)
    if not isinstance(verb, typer.Typer):
        formats = import_module("fedrela.cli.posterior_options").FILE_FORMATS if name in READ_POSTERIORS else ""
        verb, function = new_app(), verb
        verb.command(name, help=help_text(f"{function.__doc__}{formats}"))(function)
    return typer.main.get_command(verb)


def new_app(**options: Any) -> typer.Typer:
    """Return an empty app: rich markup in its help, errors left to `main`."""
    return typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, **options)


app = new_app(no_args_is_help=True, cls=Verbs)
for name, (_, summary) in VERBS.items():
    app.command(name, help=summary)(lambda: None)


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
            stream.reconfigure(errors=PLAIN)
    try:
        with _interruptible():
            code = _run(session)
        sys.stdout.flush()  # here, and not at exit, where a closed pipe could no longer be caught
    except BrokenPipeError:
        _forget_standard_output()
        return 1
    return code


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return ASCII in place of the first character that a terminal cannot encode: its usual spelling, or an escape."""
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    escape = character.encode("ascii", "backslashreplace").decode()
    return ASCII.get(character, escape), error.start + 1


codecs.register_error(PLAIN, _plain)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let what systemd, SLURM, containers and closed terminals send end a verb as Ctrl-C does, unless it is ignored."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        known = []
    taken = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


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
    except SystemExit as error:  # how typer and rich exit when the reader of a pipe is gone
        raise BrokenPipeError from error
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None or error.strerror is None:
            return _unexpected(session, error)
        path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
        return _fail(session, error, f"{path}: {error.strerror}; choose another path", DataError.exit_code)
    except Exception as error:  # the user sees one line, never a traceback
        return _unexpected(session, error)
    if code == INTERRUPTED:
        print_error("interrupted")
    return code or 0


def _unexpected(session: dict[str, bool], error: Exception) -> int:
    hint = "" if session["debug"] else "; fedrela --debug VERB ... shows the traceback"
    return _fail(session, error, f"unexpected {type(error).__name__}: {error}{hint}", 1)


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
