r"""Tables as Markdown, CSV and LaTeX; each format has one function that makes foreign text inert.

Text is first made printable, so that no control character remains. Markdown escapes every sign that could begin
markup or a link. CSV puts an apostrophe before text that a spreadsheet would compute. LaTeX escapes all special signs,
and writes letters that a plain pdfLaTeX has no font for by their numbers, so that the file always compiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedrela.report.compare import compare_tables, compare_values
from fedrela.report.numbers import Value
from fedrela.report.page import Table
from fedrela.report.reproduce import remarks, reproduce_tables, reproduce_values
from fedrela.report.sweep import sweep_tables, sweep_values
from fedrela.runfolder.records import page
from fedrela.text import printable

Summary = Mapping[str, Any]
KINDS: dict[str, tuple[Callable[[Summary], list[Table]], Callable[[Summary], list[dict[str, Value]]]]] = {
    "compare": (compare_tables, compare_values),
    "sweep": (sweep_tables, sweep_values),
    "reproduce": (reproduce_tables, reproduce_values),
}
MARKUP = re.compile(r"[\\`*_\[\]<>#|~&$]|:(?=//)|(?<=www)\.")
FIRST = re.compile(r"^(\d*)([-+=.)])")  # would begin a list or underline a heading
FORMULA = re.compile(r"\s*[\t\r\n=+@\uff1d\uff0b\uff0d\uff20-]")  # the wide forms count in some spreadsheets
PLAIN = re.compile(r"[\w .:/()+-]*")
LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"{\char34}", "`": r"{\char96}", "'": r"{\char39}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after the end of a row these would be its options
    "±": r"$\pm$", "†": r"$^{\dagger}$", "τ": r"$\tau$", "α": r"$\alpha$", "…": r"\ldots{}", "\xa0": "~",
}  # fmt: skip
NEGATIVE = re.compile(r"(?<!\w)-(?=\d)")


def markdown(table: Table) -> str:
    r"""Return a table as Markdown, its caption below.

    >>> print(markdown(Table(["class", "share"], [["cat|dog", "52.5"]], ["class"], "In per cent.")), end="")
    | class | share |
    |:---|---:|
    | cat\|dog | 52.5 |
    <BLANKLINE>
    In per cent.
    """
    ruler = "|".join(":---" if name in table.words else "---:" for name in table.columns)
    lines = [_line(table.columns), f"|{ruler}|", *map(_line, table.rows)]
    return "\n".join(lines) + "\n" + (f"\n{paragraph(table.caption)}\n" if table.caption else "")


def markdown_text(text: object) -> str:
    r"""Return foreign text as one line that Markdown shows as it is.

    >>> print(markdown_text("<b>*bold*</b>"))
    \<b\>\*bold\*\</b\>
    """
    return MARKUP.sub(r"\\\g<0>", printable(text).strip())


def paragraph(text: object) -> str:
    r"""Return foreign text as a line by itself.

    >>> print(paragraph("1. no list"))
    1\. no list
    """
    return FIRST.sub(r"\1\\\2", markdown_text(text))


def csv_text(rows: Sequence[Mapping[str, Value]]) -> str:
    """Return rows, values by column, as CSV: numbers as they are, what looks like a formula behind an apostrophe.

    >>> print(csv_text([{"baseline": "=1+1", "gain": -0.5}, {"baseline": "a,b", "gain": None}]), end="")
    baseline,gain
    "'=1+1",-0.5
    "a,b",
    """
    lines = [list(rows[0]), *(row.values() for row in rows)]
    return "".join(",".join(map(_field, line)) + "\n" for line in lines)


def latex(table: Table) -> str:
    r"""Return a table as a LaTeX float that needs the package booktabs and nothing else.

    >>> print(latex(Table(["baseline", "gain"], [["R&D", "-1.0"]], ["baseline"], "In %.")), end="")
    \begin{table}
    \centering
    \caption{In \%.}
    \begin{tabular}{lr}
    \toprule
    baseline & gain \\
    \midrule
    R\&D & $-$1.0 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    sides = "".join("l" if name in table.words else "r" for name in table.columns)
    rows = [" & ".join(map(latex_text, row)) + r" \\" for row in (table.columns, *table.rows)]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_text(table.caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", r"\end{table}", ""])


def latex_text(text: object) -> str:
    r"""Return foreign text as one line that LaTeX sets as it is; rare letters by their numbers.

    >>> print(latex_text("50% \\input{x} 名"))
    50\% \textbackslash{}input\{x\} U+540D
    """
    return NEGATIVE.sub("$-$", "".join(map(_letter, printable(text))))


def _letter(letter: str) -> str:
    if letter in LATEX:
        return LATEX[letter]
    known = letter.isascii() or (letter.isalpha() and letter < "\u0180")
    return letter if known else f"U+{ord(letter):04X}"


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(markdown_text, cells)) + " |"


def _field(value: Value) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return f"{value:.10g}"
    text = ("'" if FORMULA.match(value) else "") + printable(value)
    return text if PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'


def all_tables(summary: Summary) -> dict[str, bytes]:
    """Return ``table.md``, ``table.csv``, ``table.tex`` and ``table.json`` of a summary.

    The CSV has one value a column, shares in per cent; the JSON is the summary itself.
    """
    make_tables, make_values = KINDS[summary["kind"]]
    tables = make_tables(summary)
    return {
        "table.md": _markdown(summary, tables).encode(),
        "table.csv": csv_text(make_values(summary)).encode(),
        "table.tex": _latex(summary, tables).encode(),
        "table.json": page(summary),
    }


def heading(summary: Summary) -> str:
    """Return the title of the tables."""
    title = f": {summary['title']}, scale {summary['scale']}" if summary["kind"] == "reproduce" else ""
    return f"{summary['kind']} {summary['name']}{title}"


def _markdown(summary: Summary, tables: list[Table]) -> str:
    parts = [f"# {markdown_text(heading(summary))}\n", *map(markdown, tables)]
    for title, lines in remarks(summary).items():
        parts.append(f"## {title}\n\n" + "".join(f"- {paragraph(line)}\n" for line in lines))
    return "\n".join(parts)


def _latex(summary: Summary, tables: list[Table]) -> str:
    lines = [heading(summary), *(f"{title}: {line}" for title, found in remarks(summary).items() for line in found)]
    head = "".join(f"% {latex_text(line)}\n" for line in lines)
    return "\n".join([f"% \\usepackage{{booktabs}}\n{head}", *map(latex, tables)])
