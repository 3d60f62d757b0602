"""Ways to write one table of a configuration; a sign « in the text stays where it is, and marks a place."""

from __future__ import annotations

from collections.abc import Callable

MARK = "«"


def header(table: str, pairs: list[str]) -> str:
    return "\n".join([f"{_table_mark(pairs)}[{table}]", *pairs]) + "\n"


def inline(table: str, pairs: list[str]) -> str:
    *parents, name = table.split(".")
    above = f"[{'.'.join(parents)}]\n" if parents else ""
    return f"{above}{name} = {_table_mark(pairs)}{{ {', '.join(pairs)} }}\n"


def dotted(table: str, pairs: list[str]) -> str:
    parents, dot, name = table.rpartition(".")
    first = f"{parents}{dot}{_table_mark(pairs)}{name}"
    return "".join(f"{table if i else first}.{pair}\n" for i, pair in enumerate(pairs))


def _table_mark(pairs: list[str]) -> str:
    """What is missing is shown at the table, so pairs without a mark mean a mark there."""
    return "" if any(MARK in pair for pair in pairs) else MARK


def plain(text: str) -> str:
    return text


def busy(text: str) -> str:
    """Comments, blank lines, indents and wide characters around the same statements."""
    lines = [f" \t{line}  # clients = 0, [data] é語 ' \"" for line in text.splitlines()]
    return '#!é\n\n# [data]\n# alpah = 0\n"seed" = 3 # data.sorce\n\n' + "\n\n".join(lines) + "\n\n# end"


def windows(text: str) -> str:
    """A byte order mark, CRLF, and other tables around."""
    other = "[report]\nsamples =\ttrue\n" if "compare" in text else '[compare]\nbaselines = [\n"fedavg",\n]\n'
    around = 'sweep.relabel.preset = ["""\\\n  paper""",\n# [data]\n# validation = 7\n]\n' + text + "\n" + other
    return "\ufeff" + around.replace("\n", "\r\n")


LAYOUTS: dict[str, Callable[[str, list[str]], str]] = {"header": header, "inline": inline, "dotted": dotted}
DRESSES: dict[str, Callable[[str], str]] = {"plain": plain, "busy": busy, "windows": windows}


def place_of_mark(text: str) -> tuple[str, int, int]:
    """Return the text without its mark, and line and column of the mark; a byte order mark is no character."""
    at = text.index(MARK)
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at) - (line == 1 and text.startswith("\ufeff"))
    return text.replace(MARK, ""), line, column
