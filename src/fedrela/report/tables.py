r"""Metrics as text, and tables as Markdown, CSV and LaTeX; one function per format escapes untrusted text.

Text is first made printable, so that no control character remains. Markdown escapes every sign that could begin
markup or a link. CSV puts an apostrophe before text that a spreadsheet would compute. LaTeX escapes all special signs,
and writes letters that a plain pdfLaTeX has no font for by their numbers, so that the file always compiles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.report.page import Table, environment
from fedrela.text import points, printable

Spread = Mapping[str, Any]  # mean, deviation (None for one seed), values; for a difference also low and high
Value = str | float | None
NONE = "-"  # in place of a missing number
MOVED = "labels moved"  # the column of the metric ``moved``
MARKUP = re.compile(r"[\\`*_\[\]<>#|~&$]|:(?=//)|(?<=www)\.")
FIRST = re.compile(r"^(\d*)([-+=.)])")  # would start a list or underline a heading
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


def share(value: float | None, digits: int = 1) -> str:
    """Write a share in per cent, without the sign.

    >>> share(0.525), share(0.525, 2), share(None)
    ('52.5', '52.50', '-')
    """
    return NONE if value is None else f"{100 * value:.{digits}f}"


def spread_text(spread: Spread | None, metric: str = "") -> str:
    """Write mean and standard deviation over seeds: a share in per cent, or the number of labels ``moved``.

    >>> spread_text({"mean": 0.525, "deviation": 0.012}), spread_text({"mean": 0.5, "deviation": None})
    ('52.5 ± 1.2', '50.0')
    >>> spread_text({"mean": 1131.4, "deviation": 12.5}, "moved"), spread_text(None)
    ('1,131 ± 12', '-')
    """
    if spread is None or spread["mean"] is None:
        return NONE
    write = "{:,.0f}".format if metric == "moved" else share
    mean = write(spread["mean"])
    return mean if spread["deviation"] is None or mean == "0" else f"{mean} ± {write(spread['deviation'])}"


def paper_cell(baseline: float | None, treated: float | None, difference: float | None = None, digits: int = 1) -> str:
    """Write a pair of shares as the paper does, ``baseline (+FedReLa) +gain`` or ``-trade-off``.

    >>> paper_cell(0.525, 0.77), paper_cell(0.8843, 0.8740, digits=2)
    ('52.5 (77.0) +24.5', '88.43 (87.40) -1.03')
    >>> paper_cell(0.525, None), paper_cell(None, 0.77), paper_cell(None, None)
    ('52.5', '(77.0)', '-')
    """
    if treated is None:
        return share(baseline, digits)
    if baseline is None:
        return f"({share(treated, digits)})"
    gain = treated - baseline if difference is None else difference
    return f"{share(baseline, digits)} ({share(treated, digits)}) {points(gain, digits)}"


def values_of(
    spread: Spread | None, metric: str = "", prefix: str = "", keys: Sequence[str] = ("mean", "deviation")
) -> dict[str, float | None]:
    """Return parts of a spread for programs: shares in per cent, labels ``moved`` as they are.

    >>> values_of({"mean": 0.525, "deviation": None}), values_of(None, keys=("mean",))
    ({'mean': 52.5, 'deviation': None}, {'mean': None})
    """
    found = {key: None if spread is None else spread[key] for key in keys}
    factor = 1 if metric == "moved" else 100
    return {f"{prefix}{key}": None if value is None else round(factor * value, 4) for key, value in found.items()}


def markdown(tables: Sequence[Table], heading: str = "", remarks: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return tables as Markdown, their captions below, and at the end remarks by title."""
    template = environment(markdown_text, html=False).get_template("tables.md.j2")
    return template.render(tables=tables, heading=heading, remarks=remarks or {}, paragraph=paragraph)


def paragraph(text: object) -> str:
    r"""Return untrusted text as a line of Markdown by itself.

    >>> print(paragraph("1. no list"))
    1\. no list
    """
    return FIRST.sub(r"\1\\\2", markdown_text(text))


def markdown_text(text: object) -> str:
    r"""Return untrusted text as one line that Markdown shows as it is.

    >>> print(markdown_text("<b>*bold*</b>"))
    \<b\>\*bold\*\</b\>
    """
    return MARKUP.sub(r"\\\g<0>", printable(text).strip())


def csv_text(rows: Sequence[Mapping[str, Value]]) -> str:
    """Return rows, values by column, as CSV: numbers as they are, text that looks like a formula after an apostrophe.

    >>> print(csv_text([{"baseline": "=1+1", "gain": -0.5}, {"baseline": "a,b", "gain": None}]), end="")
    baseline,gain
    "'=1+1",-0.5
    "a,b",
    """
    lines = [list(rows[0]), *(row.values() for row in rows)]
    return "".join(",".join(map(_field, line)) + "\n" for line in lines)


def latex(tables: Sequence[Table], heading: str = "", remarks: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return tables as LaTeX floats that need the package booktabs and nothing else, with remarks as comments."""
    template = environment(latex_text, html=False).get_template("tables.tex.j2")
    return template.render(tables=tables, heading=heading, remarks=remarks or {})


def latex_text(text: object) -> str:
    r"""Return untrusted text as one line that LaTeX sets as it is; rare letters by their numbers.

    >>> print(latex_text("50% \\input{x} 名"))
    50\% \textbackslash{}input\{x\} U+540D
    """
    return NEGATIVE.sub("$-$", "".join(map(_letter, printable(text))))


def _letter(letter: str) -> str:
    if letter in LATEX:
        return LATEX[letter]
    known = letter.isascii() or (letter.isalpha() and letter < "\u0180")
    return letter if known else f"U+{ord(letter):04X}"


def _field(value: Value) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return f"{value:.10g}"
    text = ("'" if FORMULA.match(value) else "") + printable(value)
    return text if PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'
