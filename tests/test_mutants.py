"""What is kept of mutation testing: its summary, and reasons that belong to lines which are there."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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


def summary(folder, *codes, file="core/one.py", text=MUTATED):
    """Return the exit code and the lines for mutants 1, 2, ... of one file that ended with these codes."""
    place = folder / "src" / "fedrela" / file
    place.parent.mkdir(parents=True)
    place.write_text(text)
    ended = {f"fedrela.core.one.x_f__mutmut_{number}": code for number, code in enumerate(codes, 1)}
    place.with_suffix(".py.meta").write_text(json.dumps({"exit_code_by_key": ended}))
    done = subprocess.run([sys.executable, TESTS / "mutants.py", folder], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_the_summary_counts_and_shows_the_line_of_a_survivor(tmp_path):
    code, lines = summary(tmp_path, 1, 0, None, 33, -24)
    assert code == 1
    assert lines[0].split(maxsplit=1) == ["fedrela/core/one.py", "1 not run, 2 noticed, 1 survived, 1 untested"]
    assert lines[1:4] == ["fedrela/core/one.py: x_f__mutmut_2: LOOK AT IT", "  - return b", "  + return None"]
    assert lines[4].startswith("2 noticed of 3 with tests (66.7%), of 4 tried (50.0%); ")
    assert lines[5] == "FAILED: 1 survivors to look at; at least 90% of those with tests must be noticed"


def test_a_survivor_without_a_reason_fails_whatever_the_share(tmp_path):
    code, lines = summary(tmp_path, 1, 0, *[1] * 98)
    assert (code, lines[-2].split(";")[0]) == (1, "99 noticed of 100 with tests (99.0%), of 100 tried (99.0%)")


@pytest.mark.parametrize(("noticed", "code"), [(8, 1), (9, 0)])
def test_survivors_with_a_reason_may_be_a_tenth_of_those_with_tests(tmp_path, noticed, code):
    """Changes without a test are in the second percentage alone."""
    text = MUTATED.replace("return b", 'raise ValueError("a line is missing")')
    found, lines = summary(tmp_path, 1, 0, *[1] * (noticed - 1), *[33] * 10, file="runfolder/folder.py", text=text)
    assert found == code
    assert not any("LOOK AT IT" in line for line in lines)
    share = f"{noticed} noticed of {noticed + 1} with tests ({noticed / (noticed + 1):.1%})"
    assert any(line.startswith(f"{share}, of {noticed + 11} tried (") for line in lines)


def test_no_change_that_was_tried_is_no_success(tmp_path):
    assert summary(tmp_path, None, 33)[0] == 1


@pytest.mark.parametrize(("expected", "code", "counted"), [(2, 0, "2 noticed"), (0, 1, "1 noticed, 1 survived")])
def test_what_runs_at_import_is_tried_in_a_new_process(tmp_path, expected, code, counted):
    file, (function, *_) = next(iter(tomllib.loads((TESTS / "mutants.toml").read_text())["at_import"].items()))
    place = tmp_path / "src" / file
    place.parent.mkdir(parents=True)
    place.write_text(MUTATED.replace("x_f", f"x_{function}"))
    mutants = {f"fedrela.x_{function}__mutmut_1": 0, "fedrela.x_f__mutmut_1": 1}
    place.with_suffix(".py.meta").write_text(json.dumps({"exit_code_by_key": mutants}))
    selection = 'pytest_add_cli_args_test_selection = ["test_it.py"]\npytest_add_cli_args = []\n'
    (tmp_path / "pyproject.toml").write_text("[tool.mutmut]\n" + selection)
    test = f'import os\nassert len(os.environ["MUTANT_UNDER_TEST"]) * {expected} == 0\ndef test_it(): pass\n'
    (tmp_path / "test_it.py").write_text(test)
    done = subprocess.run([sys.executable, TESTS / "mutants.py", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[0].split(maxsplit=1)[1] == counted


def test_what_runs_at_import_is_there():
    for file, functions in tomllib.loads((TESTS / "mutants.toml").read_text())["at_import"].items():
        text = (TESTS.parent / "src" / file).read_text()
        assert [name for name in functions if f"def {name}(" not in text] == [], file


def test_every_reason_is_of_a_line_that_is_there():
    for file, reasons in tomllib.loads((TESTS / "mutants.toml").read_text())["survivors"].items():
        lines = [line.strip() for line in (TESTS.parent / "src" / file).read_text().splitlines()]
        assert [start for start in reasons if not any(line.startswith(start) for line in lines)] == [], file
