"""Every verb with bad paths, names and devices: each is an ordinary mistake, with one line, and never "unexpected"."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedrela.cli import main as entry
from fedrela.experiment import run as run_experiment
from fedrela.experiment.toml.writer import toml_text
from helpers.batteries import count, tried
from helpers.tiny_run import CONFIG

TINY = CONFIG | {"train": {"rounds": 1}, "relabel": {"start": 1, "tau": 0.2}, "engine": {"workers": 1}}

# Every verb, with arguments that it would take. Each of its paths and words is then replaced by bad ones.
GOOD: dict[str, list[str]] = {
    "audit": ["clinic.csv", "--out", "new"],
    "check": ["tiny.toml"],
    "compare": ["tiny.toml", "--out", "new", "--dry-run"],
    "data fetch": ["cifar10", "--root", "new", "--base-url", "file:///proc/nowhere"],
    "data list": [],
    "data show": ["tiny.toml"],
    "data split": ["tiny.toml", "new"],
    "demo": ["--out", "new"],
    "doctor": [],
    "export-flower": ["new", "tiny.toml"],
    "init": ["new.toml"],
    "ledger show": ["done/clinic.ledger.json"],
    "ledger undo": ["done/clinic.ledger.json", "--reason", "x"],
    "ledger verify": ["done/clinic.ledger.json", "--data", "clinic.csv"],
    "list": [],
    "node check": ["node.toml", "tiny.toml"],
    "preview": ["clinic.csv"],
    "relabel": ["clinic.csv", "--out", "new"],
    "report": ["run"],
    "reproduce": ["tab:step", "--dry-run"],
    "results list": ["empty"],
    "results run": ["empty"],
    "results verify": ["empty"],
    "resume": ["run"],
    "run": ["tiny.toml", "--out", "file"],
    "sweep": ["tiny.toml", "--out", "new", "--dry-run"],
    "theory": ["--out", "file", "--draws", "1"],
}
PATHS = {
    "missing": "missing/{}",
    "a folder": "full",
    "a folder of its name": "folder{}",
    "a file": "file",
    "below a file": "file/x{}",
    "too long": "x" * 300 + "{}",
    "too deep": "/".join(["y" * 200] * 25) + "/z{}",
    "no such place": "/proc/nowhere/x{}",
    "unreadable": "/proc/self/mem",
    "a link to itself": "loop",
    "below a link to itself": "loop/x{}",
    "a link to nothing": "broken{}",
    "a pipe": "pipe{}",
    "a device": "/dev/full",
    "empty": "",
    "no UTF-8": "\udcff/\udc80{}",
    "escapes": "\x1b[2J\n{}",
    "somebody's home": "~nobody-of-this-name/x{}",
}
WORDS = ("", "x" * 300, "\udcff", "\x1b[2J\n", "-", "../..", "=", ":", ",", "9" * 400, "nan", "cuda:9")
WORKING = ("demo", "report", "theory")  # draw or train for a while with any folder that they can make


def verbs() -> dict[str, Any]:
    """Return every command by its words."""
    found = {}
    for name in entry.COMMANDS:
        command = entry.load_command(name)
        found |= {f"{name} {verb}": each for verb, each in getattr(command, "commands", {}).items()} or {name: command}
    return found


def suffix_of(verb: str, name: str) -> str:
    """Return the ending with which a verb goes further than the ending."""
    if name in ("config", "node", "with_") or (verb, name) == ("init", "file"):
        return ".toml"
    return {"file": ".csv", "picture": ".svg", "model": ".safetensors", "data": ".npz"}.get(name, "")


def replaced(verb: str, command: Any, parameter: Any, value: str) -> list[str]:
    """Return the arguments of a verb with one of them replaced or added."""
    arguments = [*GOOD[verb]]
    if parameter.param_type_name == "argument":
        place = [each.name for each in command.params if each.param_type_name == "argument"].index(parameter.name)
        arguments[place : place + 1] = [value]
    elif parameter.opts[0] in arguments:
        arguments[arguments.index(parameter.opts[0]) + 1] = value
    else:
        arguments += [parameter.opts[0], value]
    return [*verb.split(), *arguments]


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A folder with what the verbs need, and with bad things of every kind."""
    place = tmp_path_factory.mktemp("paths")
    (place / "tiny.toml").write_text(toml_text(TINY))
    (place / "clinic.csv").write_text("a,b,label\n" + "0.9,0.1,a\n" * 20 + "0.4,0.6,b\n" * 5)
    (place / "node.toml").write_text('name = "a"\n')
    run_experiment(TINY, out=place / "run", workers=1)
    for name in ("empty", "full"):
        (place / name).mkdir()
    (place / "file").write_text("text\n")
    (place / "full" / "x").write_text("text\n")
    (place / "loop").symlink_to("loop")
    for suffix in ("", ".toml", ".csv", ".svg", ".safetensors", ".npz"):
        (place / f"folder{suffix}").mkdir()
        (place / f"broken{suffix}").symlink_to("nowhere")
        os.mkfifo(place / f"pipe{suffix}")
    return place


def test_every_verb_is_here():
    assert sorted(GOOD) == sorted(verbs())


@pytest.mark.parametrize("verb", sorted(GOOD))
def test_no_path_and_no_word_is_unexpected(template, tmp_path, monkeypatch, run, verb):
    place = tmp_path / "place"
    monkeypatch.chdir(tmp_path)
    shutil.copytree(template, place, symlinks=True, copy_function=copy_plain)
    monkeypatch.chdir(place)
    run("relabel", "clinic.csv", "--out", "done")
    command, wrong = verbs()[verb], []
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "is_flag", False):
            continue
        is_path = parameter.type.name == "path"
        ending = suffix_of(verb, parameter.name)
        values = [text.format(ending) for text in PATHS.values()] if is_path else [*WORDS]
        for value in values[:: count(9 if verb in WORKING else 3, 1)]:
            if is_path and verb in WORKING and not fails_as_a_folder(value):
                continue
            arguments = replaced(verb, command, parameter, value)
            with no_longer_than(60):
                done = run(*arguments)
            tried()
            one_line = done.code == 0 or (done.err.startswith("fedrela: ") and "\n" not in done.err.rstrip("\n"))
            if done.code not in (0, 2, 3, 4, 5) or not one_line:
                wrong.append((arguments, done.code, done.err))
    assert wrong == []


@contextlib.contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Interrupt a verb that waits for ever."""
    former = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def copy_plain(source: str, target: str) -> None:
    """Copy a file; make a pipe where there is one."""
    if Path(source).is_fifo():
        os.mkfifo(target)
    else:
        shutil.copy(source, target)


def fails_as_a_folder(value: str) -> bool:
    return value.startswith(("file", "x", "y", "/", "loop")) or value == "full"
