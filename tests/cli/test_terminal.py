"""Foreign text cannot drive a terminal, and output is plain where there is none."""

from __future__ import annotations

import io
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.cli import terminal
from fedrela.text import printable
from helpers.batteries import examples

PAYLOADS = [
    "\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://x\x07link", "a\rb", "a\nb", "a\tb", "\x00", "\x7f", "\x9b31m",
    "\u202eevil", "\u2028", "\u200b", "\ufeff", "\udc80", "\U000e0041", "\b\b\b",
]  # fmt: skip
MARKUP = ["[bold]x[/]", "[red]", "[/]", "[link=http://x]y[/link]", "[@click=quit]q[/]", ":smile:", "[[x]]", "\\[x]"]


@pytest.mark.parametrize("text", PAYLOADS)
def test_nothing_that_drives_a_terminal_passes(text):
    shown = printable(text)
    assert shown.isprintable()
    assert shown != text
    assert shown.encode().decode("unicode_escape") == text


@examples(50, 2000)
@given(st.text(st.characters(codec=None)))
def test_inert_text_is_printable_and_printable_text_is_unchanged(text):
    shown = printable(text)
    assert shown.isprintable()
    assert all(unicodedata.category(ch)[0] != "C" for ch in shown)
    assert shown == text or not text.isprintable()


def test_long_text_is_cut():
    assert printable("x" * 41, 40) == "x" * 40 + "..."
    assert printable("x" * 40, 40) == "x" * 40


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_written_as_it_is(monkeypatch, kind, text):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", kind())
    screen = terminal.console()
    terminal.print_line(screen, text)
    terminal.print_table(screen, (text,), [(text,)])
    assert sys.stdout.getvalue().count(text) == 3


def test_colour_is_for_terminals(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    terminal.print_line(terminal.console(), "warning: x", "yellow")
    assert sys.stdout.getvalue() == "\x1b[33mwarning: x\x1b[0m\n"
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    terminal.print_line(terminal.console(), "warning: x", "yellow")
    assert sys.stdout.getvalue() == "warning: x\n"


def test_a_plain_table_has_no_blanks_at_the_end(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    terminal.print_table(terminal.console(), ("n", "word"), [("1", "a"), ("20", "longer")], left=("word",))
    assert sys.stdout.getvalue() == " n   word\n 1   a\n20   longer\n"


def test_lines_are_whole_without_a_terminal_and_tables_are_100_wide(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "40")
    screen = terminal.console()
    terminal.print_line(screen, "word " * 50)
    assert sys.stdout.getvalue().count("\n") == 1
    assert screen.width == 100
