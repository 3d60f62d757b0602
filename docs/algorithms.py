"""Write docs/reference/algorithms.md from the table of algorithms: python docs/algorithms.py."""

from __future__ import annotations

import sys
from pathlib import Path

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment.registries import traffic
from fedrela.options import expected, options_of

PAGE = Path(__file__).with_name("reference") / "algorithms.md"
HEAD = """# Algorithms

Generated from the code by `python docs/algorithms.py`. Bytes are those of the MLP 784-200-10 (159,010 weights) with
ten clients; an exchange is an extra request to clients before training; cost is that of a round relative to FedAvg.

| name | paper | sends besides the weights | receives besides the weights | exchanges | keeps | cost | equals |
|---|---|---|---|---|---|---|---|
"""


def listed(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size:,}" if size else name for name, size in sizes.items()) or "-"


def page() -> str:
    rows, details = [], []
    for name, kind in ALGORITHMS.items():
        found = traffic(name, "mlp", (1, 28, 28), 10)
        sizes = (found.up, found.down, found.exchanges, found.stored)
        cells = (f"`{name}`", kind.paper, *map(listed, sizes), f"{kind.cost:g}", kind.reduces_to or "-")
        rows.append(f"| {' | '.join(cells)} |")
        details.append(f"## {name}\n\n{kind.label}. {kind.description}\n\n{parameters(name)}")
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(details)


def parameters(name: str) -> str:
    declared = options_of(ALGORITHMS[name].Params)
    if not declared:
        return "No parameters.\n"
    lines = ["| parameter | symbol | default | allowed | what it is |", "|---|---|---|---|---|"]
    for one in declared:
        lines.append(f"| `{one.name}` | {one.symbol or '-'} | `{one.default}` | {expected(one)} | {one.help} |")
    chosen = [one.name for one in declared if one.words]
    note = f"\nOptions with a value for the original code or another reading: {', '.join(chosen)}.\n" if chosen else ""
    return "\n".join(lines) + "\n" + note


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name}: {len(ALGORITHMS)} algorithms\n")
