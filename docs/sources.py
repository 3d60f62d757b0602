"""Write the table of sources in docs/reference/data.md from the registry: python docs/sources.py."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fedrela.data.sources import SOURCES

PAGE = Path(__file__).with_name("reference") / "data.md"
TABLE = re.compile(r"\| source \|.*?\n\n", re.DOTALL)


def table() -> str:
    lines = ["| source | what it is | files | fetch | options |", "|---|---|---|---|---|"]
    for name, spec in SOURCES.items():
        options = ", ".join(f"`{option}`" for option in spec.options) or "-"
        what, fetch = f"{spec.label}: {spec.description}", "yes" if spec.download else "-"
        lines.append(f"| `{name}` | {what} | {spec.files} | {fetch} | {options} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    return TABLE.sub(lambda _: table() + "\n", PAGE.read_text(), count=1)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name}: {len(SOURCES)} sources\n")
