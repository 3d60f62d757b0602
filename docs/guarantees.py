"""Write the last nightly run into docs/explanation/guarantees.md: python docs/guarantees.py [--publish].

With --publish, docs/nightly.json is the result of `make nightly` in this tree; otherwise it stays as it is.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PAGE, COUNTS = DOCS / "explanation" / "guarantees.md", DOCS / "nightly.json"
START, END = "<!-- made by docs/guarantees.py -->\n", "<!-- end -->\n"
HEAD = """
| battery | inputs tried | faults injected | violations | passed | failed | skipped | seconds |
|---|---|---|---|---|---|---|---|
"""


def part() -> str:
    """Return what the counts of the last nightly run say."""
    if not COUNTS.exists():
        return "No full nightly run has been recorded yet.\n"
    counts = json.loads(COUNTS.read_text())
    state = "to its end" if counts["complete"] else "in part"
    tree = f"commit `{counts['commit'][:12]}`" + (", with uncommitted changes" if counts["uncommitted_changes"] else "")
    earlier = f"; tests that had passed on {', '.join(f'`{each[:12]}`' for each in counts['kept_from'])} were kept"
    lines = [
        f"Run {state} on {counts['date']}, {counts['minutes']:,} minutes, {tree}{earlier * bool(counts['kept_from'])}."
    ]
    lines += [f"Failed: `{text}`." for text in counts["failures"]]
    for name, group in counts["not_ended"].items():
        reached = ", ".join(f"`{test}` reached {inputs:,} inputs" for test, inputs in group["reached"].items())
        lines.append(f"Not ended: {name}, {group['problem']}{f'; {reached}' if reached else ''}.")
    rows = [
        f"| {' | '.join([name, *(f'{number:,}' for number in row.values())])} |"
        for name, row in counts["batteries"].items()
    ]
    return "\n\n".join(lines) + "\n" + HEAD + "\n".join(rows) + "\n"


def page() -> str:
    before, rest = PAGE.read_text().split(START)
    return before + START + part() + END + rest.split(END)[1]


if __name__ == "__main__":
    if "--publish" in sys.argv[1:]:
        shutil.copy(DOCS.parent / ".nightly" / "counts.json", COUNTS)
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name}: {part().splitlines()[0]}\n")
