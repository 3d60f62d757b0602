"""What mutmut has found so far: python tests/mutants.py [FOLDER].

`make mutants` runs mutmut as pyproject.toml configures it, then this: how many changes of each file some test noticed,
and every change that none did. tests/mutants.toml explains those that cannot be noticed, or need not be, one by one.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parent
KILLED = {1, 3, 24, -24, 36, 152, 255}  # exit codes of a failure, or of a time limit
SURVIVED, UNTESTED = 0, {5, 33}


def verdicts(folder: Path) -> dict[str, dict[str, int | None]]:
    """Return by source file how pytest ended for every mutant; None where it has not run."""
    metas = sorted((folder / "src").rglob("*.meta"))
    return {
        meta.relative_to(folder / "src").as_posix().removesuffix(".meta"): json.loads(meta.read_text())[
            "exit_code_by_key"
        ]
        for meta in metas
    }


def changed_line(folder: Path, file: str, mutant: str) -> str:
    """Return the first line of a mutant that differs from the original function."""
    lines = (folder / "src" / file).read_text().splitlines()
    function, _, number = mutant.rpartition(".")[2].rpartition("_")
    bodies = [_body(lines, f"{function}_{which}") for which in ("orig", number)]
    return next((old.strip() for old, new in zip(*bodies, strict=False) if old != new), "")


def _body(lines: list[str], name: str) -> list[str]:
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(f"def {name}("))
    indent = len(lines[start]) - len(lines[start].lstrip())
    body = []
    for line in lines[start + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent and not line.strip().startswith(")"):
            break
        body.append(line)
    return body


def explained(reasons: dict[str, dict[str, str]], file: str, line: str) -> str:
    return next((why for start, why in reasons.get(file, {}).items() if line.startswith(start)), "")


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "mutants")
    reasons = tomllib.loads((TESTS / "mutants.toml").read_text())["survivors"]
    total: Counter[str] = Counter()
    survivors = defaultdict(list)
    for file, codes in verdicts(folder).items():
        found = Counter(
            "noticed"
            if code in KILLED
            else "not run"
            if code is None
            else "untested"
            if code in UNTESTED
            else "survived"
            for code in codes.values()
        )
        total += found
        print(f"{file:45} " + ", ".join(f"{number} {what}" for what, number in sorted(found.items())))
        for mutant, code in codes.items():
            if code == SURVIVED:
                line = changed_line(folder, file, mutant)
                survivors[file].append((mutant, line, explained(reasons, file, line)))
    for file, found in survivors.items():
        for mutant, line, why in found:
            print(f"{file}: {mutant.rpartition('.')[2]}: {line}    {why or 'LOOK AT IT'}")
    tried = total["noticed"] + total["survived"]
    print(f"{total['noticed']} of {tried} noticed ({total['noticed'] / max(tried, 1):.1%}); {dict(total)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
