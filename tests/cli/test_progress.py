"""The progress bar: one for counts and for bytes, only where somebody looks on, and safe to look at."""

from __future__ import annotations

import io
import sys

import pytest

from fedrela.cli.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(what: str = "reading") -> None:
    with progress_bar(what) as bar:
        for done in range(0, 101, 20):
            bar.count(done, 100, "decoding [bold]\x1b[2J pictures")
        bar.count(0, None, "hashing")
        bar.receive(50, None)
        bar.receive(10, 20)


def test_on_a_terminal_it_shows_what_is_done(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    work()
    written = sys.stderr.getvalue()
    assert "hashing" in written
    assert "50%" in written, "a new stage counts from its own beginning"
    assert "\x1b[2J" not in written


def test_foreign_words_are_inert(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar("\x1b[2J[red]bad[/]") as bar:
        bar.receive(1, 2)
    assert "\\x1b[2J[red]bad[/]" in sys.stderr.getvalue()
    assert "\x1b[2J" not in sys.stderr.getvalue()


@pytest.mark.parametrize("colour", ["0", "1"])
def test_elsewhere_nothing_is_written(monkeypatch, capsys, colour):
    monkeypatch.setenv("FORCE_COLOR", colour)
    work()
    assert capsys.readouterr() == ("", "")


def test_it_ends_with_an_error_too(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(RuntimeError), progress_bar("reading"):
        raise RuntimeError
    assert sys.stderr.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in sys.stderr.getvalue()
