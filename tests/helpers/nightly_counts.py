"""What the tests of a nightly run have written, as counts of every battery; see tests/nightly.py."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Test = dict[str, Any]  # inputs, faults; where it has ended also outcome, seconds
Tests = dict[str, Test]
KEYS = ("inputs", "faults", "violations", "passed", "failed", "skipped", "seconds")
WHOLE = ("core", "engine/admission", "files", "runfolder")  # all branches of these are covered
LEAST = 90  # per cent of the branches of every other package


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what processes have written; a line cut short by a kill is left out."""
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue


def results(folder: Path) -> tuple[Tests, Tests, int]:
    """Return the tests that ended, those that only began to count, and how many were to be run."""
    found: Tests = defaultdict(lambda: {"inputs": 0, "faults": 0})
    collected = 0
    for line in lines(folder):
        if "test" not in line:
            collected = line["collected"]
            continue
        test = found[line["test"]]
        test |= {key: line[key] for key in ("outcome", "seconds") if key in line}
        for what in ("inputs", "faults"):
            test[what] += line.get(what, 0)
    for test in found.values():
        if test.get("outcome", "skipped") != "skipped":
            test["inputs"] = test["inputs"] or 1  # a test that counts nothing is one input
    ended = {name: test for name, test in found.items() if "outcome" in test}
    return ended, {name: test for name, test in found.items() if name not in ended}, collected


def progress(folder: Path) -> str:
    ended, begun, collected = results(folder)
    inputs = sum(test["inputs"] for test in (*ended.values(), *begun.values()))
    return f"{len(ended):,} of {collected:,} tests, {len(failed(ended))} failed, {inputs:,} inputs tried"


def failed(tests: Tests) -> list[str]:
    return sorted(name for name, test in tests.items() if test["outcome"] == "failed")


def by_battery(tests: Tests, page: str) -> dict[str, dict[str, int]]:
    """Return the counts of each battery; `page` says which test file belongs to which.

    A violation is a test that failed: a test stops at its first one.
    """
    listed = re.findall(r"^\| (B\d+) \|[^|]*\|([^|]*)\|", page, re.M)
    battery_of = {path: battery for battery, cell in listed for path in re.findall(r"`(tests/\S+)`", cell)}
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for name, test in tests.items():
        row = rows[battery_of.get(name.split("::")[0], "other tests")]
        row.update({key: test[key] for key in ("inputs", "faults", "seconds")})
        row.update({test["outcome"]: 1, "violations": test["outcome"] == "failed"})
    ordered = sorted(rows, key=lambda name: (len(name), name))
    return {name: {key: round(rows[name][key]) for key in KEYS} for name in ordered}


def too_little_covered(report: Path) -> list[str]:
    """Return the packages of which coverage's report says that tests take fewer branches than they should."""
    taken: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for path, found in json.loads(report.read_text())["files"].items():
        name = path.rpartition("fedrela/")[2].removesuffix(".py")
        package = next((each for each in WHOLE if f"{name}/".startswith(f"{each}/")), name.split("/")[0])
        taken[package] += found["summary"]["covered_branches"]
        there[package] += found["summary"]["num_branches"]
    shares = {name: 100 * taken[name] / there[name] for name in sorted(there) if there[name]}
    least = {name: 100 if name in WHOLE else LEAST for name in shares}
    return [
        f"{name}: {share:.1f} % of the branches where {least[name]} are expected"
        for name, share in shares.items()
        if share < least[name]
    ]
