"""Output for notebooks: small HTML tables with all untrusted text escaped, and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from fedrela.core.ledger import MOVES, Ledger
from fedrela.errors import ArgumentError
from fedrela.text import percent, printable, probability

LONGEST_TABLE = 20  # rows
LONGEST_NAME = 60  # characters


def safe(text: object, longest: int = 1000) -> str:
    r"""Return untrusted text for HTML: `printable`, and escaped.

    >>> safe("<b>\x00 cats & dogs")
    '&lt;b&gt;\\x00 cats &amp; dogs'
    >>> safe("a very long name", 7)
    'a very ...'
    """
    return escape(printable(text, longest))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> str:
    """Return a table; the first `left` columns are left-aligned, all others right-aligned, and all text is escaped.

    >>> table(["class"], [["<cat>"]])[-70:]
    '<tr><td style="text-align: left">&lt;cat&gt;</td></tr></tbody></table>'
    """
    sides = ["left" if j < left else "right" for j in range(len(columns))]
    head = _cells("th", sides, columns)
    body = "".join(f"<tr>{_cells('td', sides, row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(tag: str, sides: Sequence[str], values: Sequence[object]) -> str:
    cells = zip(sides, values, strict=True)
    return "".join(f'<{tag} style="text-align: {side}">{safe(value, LONGEST_NAME)}</{tag}>' for side, value in cells)


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a `pandas.DataFrame` of columns, in their order."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise ArgumentError("to_pandas: needs pandas, which is not installed; run `pip install pandas`") from None
    return pandas.DataFrame(dict(columns))


def moves_frame(ledger: Ledger, class_names: Sequence[str] | None = None) -> Any:
    """Return a data frame with a row for each moved sample."""
    names = list(ledger.class_names if class_names is None else class_names)
    if len(names) != ledger.num_classes and (names or class_names is not None):
        raise ArgumentError(f"expected {ledger.num_classes} names, got {len(names)}", argument="class_names")
    columns = {"index": ledger.index} | ({"id": [ledger.ids[row] for row in ledger.index]} if ledger.ids else {})
    columns |= {name: getattr(ledger, name) for name in MOVES}
    if names:
        columns |= {side: [names[c] for c in columns[side]] for side in ("old", "new")}
    return data_frame(columns)


def moves_html(ledger: Ledger) -> str:
    """Return a summary of a re-labelling: how many labels moved, from which class to which, and the notes."""
    moved, samples = len(ledger), ledger.original.size
    share = f" ({percent(moved / samples)})" if samples else ""
    parts = [f"<p><strong>{moved:,} of {samples:,} labels moved</strong>{share}</p>"]
    if ledger.refusal is not None:
        parts = [f"<p><strong>refused</strong>: {safe(ledger.refusal)}; no label moved</p>"]
    if moved:
        parts += _pairs(ledger)
    parts += [f"<p>note: {safe(note)}</p>" for note in ledger.notes]
    return f"<div>{''.join(parts)}</div>"


def _pairs(ledger: Ledger) -> list[str]:
    """Return a table of the pairs of classes with most moves, and how many more there are."""
    has_names = len(ledger.class_names) == ledger.num_classes
    names = ledger.class_names if has_names else range(ledger.num_classes)
    pairs, pair_of, counts = np.unique(
        np.stack([ledger.old, ledger.new], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    posterior, rho = (np.bincount(pair_of.ravel(), values) / counts for values in (ledger.posterior, ledger.rho))
    most = np.argsort(-counts, kind="stable")
    rows = [
        (names[pairs[p, 0]], names[pairs[p, 1]], int(counts[p]), probability(posterior[p]), probability(rho[p]))
        for p in most[:LONGEST_TABLE]
    ]
    parts = [table(["old", "new", "samples", "mean posterior", "mean rho"], rows, left=2)]
    if most.size > LONGEST_TABLE:
        more = int(counts[most[LONGEST_TABLE:]].sum())
        parts.append(f"<p>and {more:,} between {most.size - LONGEST_TABLE:,} further pairs of classes</p>")
    return parts
