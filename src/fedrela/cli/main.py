"""The entry point: joins the commands, and turns every error into one line and an exit code."""

from __future__ import annotations

import atexit
import codecs
import contextlib
import errno
import io
import os
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fedrela import __version__
from fedrela.cli.terminal import help_text, print_error
from fedrela.errors import STOP_SIGNALS, DataError, FedrelaError
from fedrela.text import printable

INTERRUPTED = 130
REPEATED = 5.0  # seconds after a signal within which others do not disturb the clean-up
PLAIN = "fedrela.plain"  # the error handler for characters that a terminal cannot encode
ASCII = {"±": "+/-", "τ": "tau", "ρ": "rho", "α": "alpha", "…": "...", "†": "*", "→": "->", "–": "-", "\xa0": " "}

# typer does not export the base class of all usage errors.
UsageError: Any = typer.BadParameter.__base__

HELP = """
FedReLa (ICML 2026): re-labelling against class imbalance in federated learning.

[bold]Start here[/]: fedrela demo shows it at work; fedrela init, then fedrela run digits.toml, trains a federation;
fedrela preview clinic.csv, then fedrela relabel clinic.csv --tau 0.03, re-labels a file of your own.

[bold]Exit codes[/]: 0 done, 1 unexpected, 2 usage or configuration, 3 data (a refusal too), 4 integrity, 5 busy or too
few clients, 130 interrupted.
"""

# Commands in the order of the help page: the function in `fedrela.cli`, whose docstring is the command's help, and the
# first sentence of that help. The help page needs no more, so a module is loaded only when its command is called.
COMMANDS = {
    "demo": (
        "compare.demo",
        "Show what FedReLa does in federated training, on scikit-learn's digits, within a minute or two.",
    ),
    "init": ("init.init", "Write a commented configuration to start from, which runs as it is."),
    "preview": ("relabel.preview", "Show how many labels would move at several tau, on average; nothing is written."),
    "audit": (
        "audit.audit",
        "Write a page that shows what re-labelling would do, to review before anything is changed.",
    ),
    "relabel": ("relabel.relabel", "Re-label the majority-class samples that look most like a rarer class."),
    "ledger": ("ledger.app", "Show which labels were changed, verify the record, and undo the changes."),
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
        "Re-run a table of the paper, and show published and measured values side by side in the paper's layout.",
    ),
    "results": ("results.app", "Run studies whose results are kept with the code, and repeat recorded runs."),
    "report": (
        "report.report",
        "Write the report of a run, a comparison, a sweep or a reproduction: one HTML page, from its folder alone.",
    ),
    "theory": (
        "theory.theory",
        "Show the paper's theory on two Gaussians: clients' boundaries and their aggregate, with and without "
        "re-labelling.",
    ),
    "export-flower": (
        "check.export_flower",
        "Write a configuration as a Flower app: a folder for flwr run, with scripts that start its nodes.",
    ),
    "check": (
        "check.check",
        "Check a configuration without running it: every key, type, range and name, and conflicts between keys.",
    ),
    "list": (
        "list.list_names",
        "List the algorithms, models, data sources and methods that a configuration may name, and the paper's tables.",
    ),
    "doctor": (
        "list.doctor",
        "Show what a bug report needs: versions, processor, memory, device, folders, data sets and optional packages.",
    ),
    "node": ("node.app", "Check a private node before it joins a federation; no connection is made."),
    "data": ("data.app", "List data sources, fetch data sets, show a configuration's federation, and split it."),
}


READ_POSTERIORS = ("preview", "audit", "relabel")  # their help pages explain the files


class LazyGroup(TyperGroup):
    """The commands, each loaded when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that the arguments name, and the remaining arguments."""
        name, known, left = super().resolve_command(ctx, args)
        return name, load_command(name) if name and known else known, left


def load_command(name: str) -> Any:
    """Return a command, or a group of commands, by its name."""
    home, _, attribute = COMMANDS[name][0].partition(".")
    module = import_module(f"fedrela.cli.{home}")
    found = getattr(module, attribute)
    if not isinstance(found, typer.Typer):
        formats = import_module("fedrela.cli.posterior_options").FILE_FORMATS if name in READ_POSTERIORS else ""
        found, function = new_app(), found
        found.command(name, help=help_text(f"{function.__doc__}{formats}"))(function)
    return typer.main.get_command(found)


def new_app(**options: Any) -> typer.Typer:
    """Return an empty app: rich markup in its help, errors left to `main`."""
    return typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, **options)


app = new_app(no_args_is_help=True, cls=LazyGroup)
for name, (_, summary) in COMMANDS.items():
    app.command(name, help=summary)(lambda: None)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fedrela {__version__}")
        raise typer.Exit


@app.callback(help=help_text(HELP))
def global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Store what `main` needs to know when a command fails."""
    context.obj["debug"] = debug


def main() -> int:
    """Run the command line with `sys.argv` and return the exit code."""
    session = {"debug": False}
    _fill_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="ascii" if _wants_ascii() else None, errors=PLAIN)
    try:
        with _interruptible(), warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print_error(message)
            code = _run(session)
        sys.stdout.flush()  # here, and not at exit, where a closed pipe could no longer be caught
    except BrokenPipeError:
        _discard_standard_output()
        return 1
    except OSError as error:  # raised by the flush
        _discard_standard_output()
        return _fail(session, error, _refusal(error), DataError.exit_code)
    return code


def _wants_ascii() -> bool:
    """Whether the user chose the C locale but not UTF-8; Python then writes UTF-8, as if no locale were chosen."""
    chosen = os.environ.get("PYTHONUTF8") or os.environ.get("PYTHONIOENCODING")
    locales = {os.environ.get("LC_ALL"), os.environ.get("LANG")}  # Python may have changed LC_CTYPE
    return bool(sys.flags.utf8_mode and not chosen and locales & {"C", "POSIX"})


def _fill_standard_streams() -> None:
    """Point each standard stream that the caller closed to nowhere, so that no file opened later takes its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return ASCII in place of the first character that a terminal cannot encode: its usual spelling, or an escape."""
    assert isinstance(error, UnicodeEncodeError)
    character = error.object[error.start]
    escape = character.encode("ascii", "backslashreplace").decode()
    return ASCII.get(character, escape), error.start + 1


codecs.register_error(PLAIN, _plain)


_replaced: dict[int, Any] = {}  # handlers of signals that are ignored for a moment after an interrupt


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP, as systemd, SLURM and closed terminals send them, end a command as Ctrl-C does.

    Signals often come again at once, and to every process of the group: they do not cut the clean-up short.
    """
    latest = -REPEATED

    def interrupt(number: int, frame: Any) -> None:
        nonlocal latest
        if time.monotonic() - latest >= REPEATED:
            latest = time.monotonic()
            raise KeyboardInterrupt

    def act_as_before(number: int, frame: Any) -> None:
        if time.monotonic() - latest >= REPEATED:
            signal.signal(number, former[number])
            signal.raise_signal(number)

    is_main = threading.current_thread() is threading.main_thread()
    for number in [*_replaced] if is_main else ():  # by an earlier call in this process that was interrupted
        signal.signal(number, _replaced.pop(number))
    former = {number: signal.getsignal(number) for number in STOP_SIGNALS if is_main}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    taken = [number for number in former if former[number] in usual]  # nohup ignores SIGHUP
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in taken:  # a signal that comes again at once must not disturb Python's shutdown
            signal.signal(number, former[number] if latest < 0 else act_as_before)
            if latest > 0:
                _replaced[number] = former[number]
        atexit.unregister(_ignore_signals)
        if latest > 0:
            atexit.register(_ignore_signals)  # now: what is registered last is called first


def _ignore_signals() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _run(session: dict[str, bool]) -> int:
    try:
        os.getcwd()  # if this folder has been removed, torch would end the process
        command = typer.main.get_command(app)
        code = command.main(sys.argv[1:], prog_name="fedrela", standalone_mode=False, obj=session)
    except FedrelaError as error:
        return _fail(session, error, str(error), error.exit_code)
    except UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as error:  # how typer and rich exit when the reader of a pipe is gone; or code of the user's
        if isinstance(error.__context__, OSError):
            raise BrokenPipeError from error
        return _unexpected(session, RuntimeError(f"code of your own ended the program: exit {error.code}"))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.strerror is None:
            return _unexpected(session, error)
        return _fail(session, error, _refusal(error), DataError.exit_code)
    except Exception as error:  # the user sees one line, never a traceback
        return _unexpected(session, error)
    if code == INTERRUPTED:
        print_error("interrupted")
    return code or 0


def _refusal(error: OSError) -> str:
    """Return what the system refused, and what to do."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{error.strerror}; allow more (ulimit -n), or use fewer workers"
    if error.filename is None:
        known = {errno.ENOSPC: "; free space, or send the output elsewhere", errno.ENOENT: "; change to another folder"}
        return f"the system refused: {error.strerror}{known.get(error.errno or 0, '')}"
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else error.filename
    return f"{path}: {error.strerror}; choose another path"


def _unexpected(session: dict[str, bool], error: Exception) -> int:
    if isinstance(error, MemoryError) or re.search("can't allocate memory|out of memory", str(error)):  # or of torch
        what = "out of memory; use fewer workers, a smaller model or fewer samples"
        return _fail(session, error, what, DataError.exit_code)
    hint = "" if session["debug"] else "; fedrela --debug COMMAND ... shows the traceback"
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
        end = "" if message.endswith((".", "?")) else "."
        print_error(f"{message}{end} See '{path} --help'.")
    return int(error.exit_code)


def _discard_standard_output() -> None:
    """Point standard output nowhere, so that Python does not complain about the closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
