"""The entry point: help, version, one line and an exit code for whatever goes wrong."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fedrela
from fedrela.cli import main as entry
from fedrela.errors import BusyError, IntegrityError


def fails(monkeypatch, error: BaseException) -> None:
    """Let the next read of a posterior file fail."""

    def read(*_, **__):
        raise error

    monkeypatch.setattr("fedrela.cli.posterior_options.read_posteriors", read)


def test_version(run):
    done = run("--version")
    assert (done.code, done.out, done.err) == (0, f"fedrela {fedrela.__version__}\n", "")


@pytest.mark.parametrize("verb", entry.COMMANDS)
def test_the_help_page_shows_the_first_sentence_of_each_verb(verb):
    assert entry.COMMANDS[verb][1] == entry.load_command(verb).help.split("\n\n")[0]


def test_the_help_page_loads_no_verb():
    code = "import sys; from fedrela.cli.main import main; main(); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "fedrela.cli.main" in loaded
    assert not loaded & {"numpy", "torch", "pydantic", "fedrela.core", "fedrela.data", "fedrela.cli.run"}


def test_no_verb_shows_the_help_page(run):
    done = run()
    assert done.code == 2
    assert done.err == ""
    assert "preview" in done.out
    assert "relabel" in done.out


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ((), ("FedReLa", "Start here", "Exit codes", "--version", "--debug")),
        (("relabel",), ("Example", ".csv", ".npz", "class_names", "--forbid", "--ledger-format", "--dry-run")),
        (("preview",), ("Example", ".csv", ".npz", "kappa", "--label-column", "0.01, 0.03, 0.05")),
        (("theory",), ("Example", "likelihood ratio", "printed", "--alpha", "--force", "runs/theory")),
    ],
)
def test_help_teaches(run, monkeypatch, verb, words):
    monkeypatch.setenv("COLUMNS", "200")
    done = run(*verb, "--help")
    assert done.code == 0
    assert done.err == ""
    assert [word for word in words if word not in done.out] == []


@pytest.mark.parametrize(
    ("arguments", "said", "page"),
    [
        (("relabel",), "Missing argument 'FILE'", "fedrela relabel --help"),
        (("relabel", "a.csv", "--tua", "0.1"), "--tua", "fedrela relabel --help"),
        (("relabel", "a.csv", "--tau", "much"), "'much' is not a valid float", "fedrela relabel --help"),
        (("relabel", "a.csv", "--seed", "-1"), "--seed", "fedrela relabel --help"),
        (("relabel", "a.csv", "b.csv"), "b.csv", "fedrela relabel --help"),
        (("preview", "a.csv", "--seed", "1"), "--seed", "fedrela preview --help"),
        (("relabl", "a.csv"), "Did you mean 'relabel'?", "fedrela --help"),
        (("--loud",), "--loud", "fedrela --help"),
    ],
)
def test_usage_errors_are_one_line_with_code_2(run, arguments, said, page):
    done = run(*arguments)
    assert done.code == 2
    assert said in done.line()
    assert done.line().count("Did you mean") <= 1
    assert done.line().endswith(f"See '{page}'.")


def test_control_characters_in_a_usage_error_are_escaped(run):
    done = run("relabel", "a.csv", "--\x1b[2J\n")
    assert done.code == 2
    assert "\\x1b[2J" in done.line()


@pytest.mark.parametrize(("error", "code"), [(IntegrityError("torn"), 4), (BusyError("held"), 5)])
def test_every_error_of_ours_carries_its_code(run, monkeypatch, error, code):
    fails(monkeypatch, error)
    done = run("preview", "a.csv")
    assert (done.code, done.line()) == (code, str(error))


def test_an_unexpected_error_is_one_line_and_debug_shows_the_traceback(run, monkeypatch):
    fails(monkeypatch, RuntimeError("sun\nspots\x1b[31m [bold]"))
    line = "unexpected RuntimeError: sun\\nspots\\x1b[31m [bold]"
    done = run("preview", "a.csv")
    assert done.code == 1
    assert done.line() == f"{line}; fedrela --debug COMMAND ... shows the traceback"
    loud = run("--debug", "preview", "a.csv")
    assert loud.code == 1
    assert loud.err.startswith("Traceback")
    assert "\x1b" not in loud.err
    assert loud.err.endswith(f"\nfedrela: {line}\n")


def test_debug_shows_the_traceback_of_an_error_of_ours_too(run):
    done = run("--debug", "preview", "missing.csv")
    assert done.code == 3
    assert done.err.startswith("Traceback")


def test_interrupted(run, monkeypatch):
    fails(monkeypatch, KeyboardInterrupt())
    done = run("preview", "a.csv")
    assert (done.code, done.line()) == (130, "interrupted")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_process_are_ctrl_c(run, monkeypatch, number):
    monkeypatch.setattr(entry.typer.main, "get_command", lambda _: signal.raise_signal(number))
    done = run("preview", "a.csv")
    assert (done.code, done.line()) == (130, "interrupted")
    signal.raise_signal(number)  # it comes again at once, and nothing happens
    raised = []
    monkeypatch.setattr(entry, "REPEATED", 0.0)
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    signal.getsignal(number)(number, None)
    assert (raised, signal.getsignal(number)) == ([number], signal.SIG_DFL)


def test_interrupted_before_the_verb(run, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(entry.typer.main, "get_command", stop)
    assert run("preview", "a.csv").code == 130


def test_a_closed_pipe_is_quiet(run, monkeypatch):
    fails(monkeypatch, BrokenPipeError())
    done = run("preview", "a.csv")
    assert (done.code, done.out, done.err) == (1, "", "")


def python(*arguments: object, **more) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "fedrela.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, env=os.environ | more)


def test_a_process_of_its_own_relabels_with_plain_output_in_any_encoding(clinic):
    names = ("gesünd", "flu", "rare")
    done = python("relabel", clinic.csv(names=names), "--tau", "0.1", PYTHONIOENCODING="ascii", FORCE_COLOR="1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"ges\\xfcnd" in done.stdout
    assert b"\x1b" not in done.stdout
    assert clinic.files() == {"clinic.csv", "clinic.relabelled.csv", "clinic.ledger.json", "clinic.ledger.log"}


def test_a_process_of_its_own_fails_in_one_line(tmp_path):
    done = python("relabel", tmp_path / "none.csv")
    assert done.returncode == 3
    assert done.stdout == b""
    words = done.stderr.decode()
    assert words.startswith(f"fedrela: {tmp_path}/none.csv: cannot be read")
    assert words.endswith(": No such file or directory\n")
    assert words.count("\n") == 1


def test_a_process_of_its_own_is_quiet_when_its_reader_has_gone(clinic):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "fedrela.cli.main", "preview", str(clinic.csv())]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def shell(command: str, folder: Path) -> subprocess.CompletedProcess:
    text = f"python() {{ {shlex.quote(sys.executable)} -m fedrela.cli.main $@; }}; {command}"
    return subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("python --version > /dev/full", 3, "the system refused: No space left on device; free space, or send"),
        ("python preview clinic.csv > /dev/full", 3, "the system refused: No space left on device; free space"),
        ("mkdir gone; cd gone; rmdir ../gone; python list models", 3, "the system refused: No such file or directory"),
        ("python preview clinic.csv >&-", 0, ""),
        ("python preview clinic.csv <&- >&- 2>&-", 0, ""),
        ("python relabel clinic.csv --out one <&- >&- 2>&-", 0, ""),
        ("python preview none.csv 2>&-", 3, ""),
    ],
)
def test_what_the_caller_or_the_system_refuses_is_one_line(clinic, command, code, said):
    clinic.csv()
    done = shell(command, clinic.folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == (1 if said else 0)
    assert done.stderr.startswith(f"fedrela: {said}" if said else "")
    if "--out" in command:  # nothing else has got into the files
        assert python("ledger", "verify", clinic.folder / "one" / "clinic.ledger.json").returncode == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("9 TiB"), "out of memory; use fewer workers, a smaller model or fewer samples"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes."), "out of memory; "),
        (OSError(24, "Too many open files", "/proc/9"), "Too many open files; allow more (ulimit -n), or use fewer"),
        (OSError(5, "Input/output error"), "the system refused: Input/output error"),
    ],
)
def test_what_runs_out_is_one_line(run, monkeypatch, error, said):
    fails(monkeypatch, error)
    done = run("preview", "a.csv")
    assert (done.code, done.line().startswith(said)) == (3, True)


def test_a_warning_is_one_line_without_the_place_in_the_code():
    code = (
        "import warnings, fedrela.cli.main as entry; entry._run = lambda _: warnings.warn('odd\\n') or 0; entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.stderr == b"fedrela: odd\\n\n"


@pytest.mark.parametrize(
    ("encoding", "printed"), [("ascii", b"52.5 +/- 1.2 tau \\u96ea"), ("latin-1", b"52.5 \xb1 1.2 tau \\u96ea")]
)
def test_what_a_terminal_cannot_encode_is_spelled_out(encoding, printed):
    code = "import fedrela.cli.main as entry; entry._run = lambda _: print('52.5 ± 1.2 τ 雪') or 0; entry.main()"
    there = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=there)
    assert done.stdout.strip() == printed


@pytest.mark.parametrize(
    ("chosen", "printed"),
    [
        ({"LC_ALL": "C"}, b"1 +/- 1"),
        ({"LANG": "C"}, b"1 +/- 1"),
        ({"LANG": "POSIX"}, b"1 +/- 1"),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, "1 ± 1".encode()),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "1 ± 1".encode()),
        ({}, "1 ± 1".encode()),
    ],
    ids=str,
)
def test_the_c_locale_is_ascii_unless_utf8_is_asked_for(chosen, printed):
    code = "import fedrela.cli.main as entry; entry._run = lambda _: print('1 \\xb1 1') or 0; entry.main()"
    of_locale = ("PYTHONUTF8", "PYTHONIOENCODING", "LC_ALL", "LC_CTYPE", "LANG")
    there = {name: value for name, value in os.environ.items() if name not in of_locale} | chosen
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, env=there)
    assert done.stdout.strip() == printed
