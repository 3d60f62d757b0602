"""What mutmut has found so far: python tests/mutants.py [FOLDER].

`make mutants` runs mutmut as pyproject.toml configures it, then this: how many changes of each file some test noticed,
and every change that none did. tests/mutants.toml explains those that cannot be noticed, or need not be, one by one.
mutmut switches a change on after all modules are imported; changes of functions that run at import are tried here,
each in a process of its own.
The exit code is 1 if a survivor is not explained, or if too few of the changes in tested lines were noticed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
KILLED = {1, 3, 24, -24, 36, 152, 255}  # exit codes of a failure, or of a time limit
UNTESTED = {5, 33}
LEAST = 0.9  # share of the changes with tests that must be noticed


def verdicts(folder: Path) -> dict[str, dict[str, int | None]]:
    """Return by source file how pytest ended for every mutant; None where it has not run."""
    metas = sorted((folder / "src").rglob("*.meta"))
    return {
        meta.relative_to(folder / "src").as_posix().removesuffix(".meta"): json.loads(meta.read_text())[
            "exit_code_by_key"
        ]
        for meta in metas
    }


def tried_at_import(folder: Path, mutants: list[str]) -> dict[str, int]:
    """Return how pytest ends for mutants that are switched on before it starts; at_import.json keeps what was tried."""
    record, files = folder / "at_import.json", sorted(folder.glob("src/**/*.py")) + sorted(folder.glob("tests/**/*.py"))
    digest = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    known = json.loads(record.read_text()) if record.exists() else {}
    ended: dict[str, int] = known["ended"] if known.get("digest") == digest else {}
    for mutant in sorted(set(mutants) - set(ended)):
        options = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["mutmut"]
        selected = options["pytest_add_cli_args_test_selection"] + options["pytest_add_cli_args"]
        environment = os.environ | {"MUTANT_UNDER_TEST": mutant, "PYTHONPATH": str(folder.resolve() / "src")}
        command = [sys.executable, "-m", "pytest", "-x", "-q", *selected]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True)
        ended[mutant] = min(done.returncode, 1)  # pytest has other codes for a package that cannot be imported
        record.write_text(json.dumps({"digest": digest, "ended": ended}))
    return ended


def changed_line(folder: Path, file: str, mutant: str) -> tuple[str, str]:
    """Return the first line of a function that a mutant changes, as it was and as it is."""
    lines = (folder / "src" / file).read_text().splitlines()
    function, _, number = mutant.rpartition(".")[2].rpartition("_")
    bodies = [_body(lines, f"{function}_{which}") for which in ("orig", number)]
    differ = ((old, new) for old, new in zip_longest(*bodies, fillvalue="") if old != new)
    return next(differ, ("", ""))


def _body(lines: list[str], name: str) -> list[str]:
    """Return the stripped lines of a function, the first one without the number of the mutant."""
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(f"def {name}("))
    indent = len(lines[start]) - len(lines[start].lstrip())
    body = [lines[start].strip().replace(name, function_of(name))]
    for line in lines[start + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent and not line.strip().startswith(")"):
            break
        body.append(line.strip())
    return body


def function_of(mutant: str) -> str:
    """Return the name of a mutant's function: ``f`` of ``package.module.x_f__mutmut_1``, or of a method likewise."""
    name = mutant.rpartition(".")[2].rpartition("__mutmut_")[0]
    return name.rpartition("ǁ")[2] if "ǁ" in name else name.removeprefix("x_")


def explained(reasons: dict[str, dict[str, str]], file: str, line: str) -> str:
    return next((why for start, why in reasons.get(file, {}).items() if line.startswith(start)), "")


def outcome(code: int | None) -> str:
    """Return in words how pytest ended for a mutant."""
    if code is None:
        return "not run"
    return "noticed" if code in KILLED else "untested" if code in UNTESTED else "survived"


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "mutants")
    known = tomllib.loads((TESTS / "mutants.toml").read_text())
    reasons, at_import = known["survivors"], known["at_import"]
    total: Counter[str] = Counter()
    survivors = defaultdict(list)
    files = verdicts(folder)
    early = [key for file, codes in files.items() for key in codes if function_of(key) in at_import.get(file, [])]
    early_codes = tried_at_import(folder, early)
    for file, codes in files.items():
        ended = {key: outcome(early_codes.get(key, code)) for key, code in codes.items()}
        found = Counter(ended.values())
        total += found
        print(f"{file:45} " + ", ".join(f"{number} {what}" for what, number in sorted(found.items())))
        for mutant, what in ended.items():
            if what == "survived":
                old, new = changed_line(folder, file, mutant)
                survivors[file].append((mutant, old, new, explained(reasons, file, old)))
    for file, found in survivors.items():
        for mutant, old, new, why in found:
            print(f"{file}: {mutant.rpartition('.')[2]}: {why or 'LOOK AT IT'}\n  - {old}\n  + {new}")
    tested = total["noticed"] + total["survived"]
    tried, share = tested + total["untested"], total["noticed"] / max(tested, 1)
    of_all = f"{tried} tried ({total['noticed'] / max(tried, 1):.1%})"
    print(f"{total['noticed']} noticed of {tested} with tests ({share:.1%}), of {of_all}; {dict(total)}")
    unexplained = sum(not found[-1] for each in survivors.values() for found in each)
    if unexplained or share < LEAST:
        print(f"FAILED: {unexplained} survivors to look at; at least {LEAST:.0%} of those with tests must be noticed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
