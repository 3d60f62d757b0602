"""A result for notebooks: its rounds as columns, its figures as a table, its accuracy over rounds as a small line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.core.views import safe, table

WIDTH, HEIGHT, EDGE = 260, 56, 4  # of the line, in pixels
SCORES = ("overall", "balanced", "macro_f1")

Records = Sequence[Mapping[str, Any]]


def round_columns(records: Records) -> dict[str, list[Any]]:
    """Return the records of rounds as columns of numbers; NaN stands for what is not known.

    >>> columns = round_columns([])
    >>> list(columns)[:4]
    ['round', 'overall', 'balanced', 'macro_f1']
    """
    tests = [record["accuracy"] or {} for record in records]
    groups = dict.fromkeys(name for scores in tests for name in scores.get("groups", {}))
    held_back = [record["validation"] or {} for record in records]
    return {
        "round": [record["round"] for record in records],
        **{name: [_known(scores.get(name)) for scores in tests] for name in SCORES},
        **{name: [_known(scores.get("groups", {}).get(name)) for scores in tests] for name in groups},
        "loss": [_known(record["loss"]) for record in records],
        "moved": [math.nan if record["moved"] is None else record["moved"] for record in records],
        **{name: [len(record[name]) for record in records] for name in ("relabelled", "chosen", "admitted")},
        "lost": [len(record["excluded"]) for record in records],
        "skipped": [record["skipped"] for record in records],
        **{
            f"validation_{name}": [_known(scores.get(name)) for scores in held_back]
            for name in ("overall", "balanced")
            if any(held_back)
        },
    }


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def result_html(record: Mapping[str, Any], folder: object, records: Records) -> str:
    """Return the view of a result; without the records of its rounds it has no line."""
    accuracy = record["accuracy"]
    shown = {name: accuracy[name] for name in ("overall", "balanced") if name in accuracy} | accuracy.get("groups", {})
    rows = [(name, "–" if value is None else f"{value:.1%}") for name, value in shown.items()]
    moved = "labels moved are not told" if record["moved"] is None else f"{record['moved']:,} labels moved"
    facts = f"{moved}; {record['rounds']:,} rounds"
    line = accuracy_line(records, record.get("headline", "overall"))
    return f"<div>{table(['test set', 'accuracy'], rows)}{line}<p>{facts}<br><code>{safe(folder)}</code></p></div>"


def accuracy_line(records: Records, figure: str) -> str:
    """Draw a figure of the test set over rounds, in the colour of the text around, with a mark at the first move."""
    known: list[tuple[int, float | None]] = [(r["round"], (r["accuracy"] or {}).get(figure)) for r in records]
    scored = [(number, value) for number, value in known if value is not None]
    if len(scored) < 2:
        return ""
    (first, start), (last, end) = scored[0], scored[-1]
    low, high = (choose(value for _, value in scored) for choose in (min, max))

    def across(number: int) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * (number - first) / (last - first)

    def down(value: float) -> float:
        return EDGE + (HEIGHT - 2 * EDGE) * ((high - value) / (high - low) if high > low else 0.5)

    points = " ".join(f"{across(number):.1f},{down(value):.1f}" for number, value in scored)
    marks = [r["round"] for r in records if r["relabelled"] and first <= r["round"] <= last][:1]
    words = f"{safe(figure)} accuracy from {start:.1%} in round {first} to {end:.1%} in round {last}"
    words += "".join(f", re-labelling in round {number}" for number in marks)
    lines = "".join(f'<path d="M{across(number):.1f} 0V{HEIGHT}" stroke-dasharray="2 3"/>' for number in marks)
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'fill="none" stroke="currentColor" stroke-width="1.5"><title>{words}</title>{lines}'
        f'<polyline points="{points}"/></svg><p>{words}</p>'
    )
