"""What is kept of mutation testing: its summary, and reasons that belong to lines which are there."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
MUTATED = """
def x_f__mutmut_orig(a):
    b = a + 1
    return b

def x_f__mutmut_1(a):
    b = a - 1
    return b

def x_f__mutmut_2(a):
    b = a + 1
    return None
"""


def test_the_summary_counts_and_shows_the_line_of_a_survivor(tmp_path):
    place = tmp_path / "src" / "fedrela" / "core"
    place.mkdir(parents=True)
    (place / "one.py").write_text(MUTATED)
    names = [f"fedrela.core.one.x_f__mutmut_{number}" for number in range(1, 6)]
    codes = dict(zip(names, (1, 0, None, 33, -24), strict=True))
    (place / "one.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    done = subprocess.run([sys.executable, TESTS / "mutants.py", tmp_path], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].split(maxsplit=1) == ["fedrela/core/one.py", "1 not run, 2 noticed, 1 survived, 1 untested"]
    assert lines[1] == "fedrela/core/one.py: x_f__mutmut_2: return b    LOOK AT IT"
    assert lines[2].startswith("2 of 3 noticed (66.7%)")


def test_every_reason_is_of_a_line_that_is_there():
    for file, reasons in tomllib.loads((TESTS / "mutants.toml").read_text())["survivors"].items():
        lines = [line.strip() for line in (TESTS.parent / "src" / file).read_text().splitlines()]
        assert [start for start in reasons if not any(line.startswith(start) for line in lines)] == [], file
