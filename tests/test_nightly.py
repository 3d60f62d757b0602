"""The nightly run on a tree with a few tests: it counts what they try, goes on after a kill, and names what failed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from helpers.nightly_counts import too_little_covered
from nightly import ROOT, SLOW, groups, sources
from nightly import tree as digest_of_tree

TESTS = Path(__file__).parent
COPIED = ("nightly.py", "conftest.py", *(f"helpers/{name}.py" for name in ("__init__", "batteries", "nightly_counts")))
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["tests"]\naddopts = "--import-mode=importlib"\n',
    "docs/explanation/guarantees.md": "| B1 | examples | `tests/one/test_one.py` | 5 | 70 |\n"
    "| B2 | loops | `tests/one/test_two.py`, `tests/two/test_three.py` | 5 | 70 |\n",
    "tests/one/test_one.py": """
from hypothesis import assume, given, strategies as st
from helpers.batteries import examples

@examples(5, 70)
@given(st.integers())
def test_examples(number):
    assume(number % 3)
""",
    "tests/one/test_two.py": """
import subprocess, sys, time
from pathlib import Path
from helpers.batteries import count, tried

def note(what):
    with open("ran", "a") as file:
        file.write(what + " ")

def test_first():
    note("first")
    tried(count(5, 70), faults=3)

def test_in_another_process():
    note("other")
    subprocess.run([sys.executable, __file__], check=True, env={**__import__("os").environ, "PYTHONPATH": "tests"})

def test_last():
    note("last")
    tried(11)
    time.sleep(1.1)
    tried(4)
    while Path("wait").exists():
        time.sleep(0.05)

if __name__ == "__main__":
    for _ in range(40):
        tried(faults=1)
""",
    "tests/two/test_three.py": """
import os, pytest
from pathlib import Path
from helpers.batteries import tried

@pytest.mark.parametrize("number", [1, 2, 3])
def test_odd(number):
    tried(10)
    assert number != 2 or Path("mended").exists()

def test_skipped():
    pytest.skip("not here")
""",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in COPIED:
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TESTS / name, tmp_path / "tests" / name)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, tree / "tests" / "nightly.py", "--workers", "0", *arguments]
    hidden = ("NIGHTLY_RECORD", "NIGHTLY_PIPE", "PYTEST_XDIST_WORKER")  # of a nightly run that this test is part of
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def nightly(tree: Path, *arguments: str) -> tuple[int, str]:
    with start(tree, *arguments) as process:
        said, _ = process.communicate(timeout=120)
    return process.returncode, said


def counts(tree: Path, battery: str) -> dict[str, int]:
    row = json.loads((tree / ".nightly" / "counts.json").read_text())["batteries"][battery]
    assert row.pop("seconds") >= 0
    return {key: number for key, number in row.items() if number}


def wait_for(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_every_test_file_is_in_one_group():
    assert [name for name in SLOW if not (TESTS / name).exists()] == []
    arguments = {name: words for name, words in groups().items() if name != "coverage"}
    for path in TESTS.rglob("test_*.py"):
        name = path.relative_to(TESTS.parent).as_posix()
        found = [
            group for group, words in arguments.items() if f"--ignore={name}" not in words and is_below(name, words)
        ]
        assert len(found) == 1, (name, found)


def is_below(name: str, words: list[str]) -> bool:
    return any(name == word or name.startswith(f"{word}/") for word in words)


def test_every_file_of_the_project_counts_as_a_change_of_the_source_tree():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not in a git repository")
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    missing = tracked - {path.relative_to(ROOT).as_posix() for path in sources()}
    assert missing == {".gitattributes", ".gitignore"}


@pytest.mark.parametrize(
    "name", ["tools/dist.py", "requirements.lock", "docs/how-to/a.md", "README.md", "results/a/b.json"]
)
def test_a_change_of_what_tests_read_is_another_tree(tree, monkeypatch, name):
    monkeypatch.setattr("nightly.ROOT", tree)
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("a")
    before = digest_of_tree()
    assert digest_of_tree() == before
    (tree / name).write_text("b")
    assert digest_of_tree() != before


def test_what_is_made_from_the_source_tree_is_no_part_of_it(tree, monkeypatch):
    monkeypatch.setattr("nightly.ROOT", tree)
    before = sources()
    for name in ("docs/_build/a.html", "docs/jupyter_execute/a.ipynb", "src/__pycache__/a.pyc", "benchmarks/.envs/a"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text("a")
    assert sources() == before


def test_counts_and_failures(tree):
    code, said = nightly(tree, "--only", "one", "two")
    assert code == 1
    assert "FAILED tests/two/test_three.py::test_odd[2]\n" in said
    assert counts(tree, "B1") == {"inputs": 70, "passed": 1}
    assert counts(tree, "B2") == {
        "inputs": 70 + 40 + 15 + 30, "faults": 43, "violations": 1, "passed": 5, "failed": 1, "skipped": 1,
    }  # fmt: skip
    whole = json.loads((tree / ".nightly" / "counts.json").read_text())
    assert (whole["failures"], whole["complete"]) == (["tests/two/test_three.py::test_odd[2]"], False)
    ran = (tree / "ran").read_text()
    assert nightly(tree, "--only", "one", "two")[0] == 1  # the same tree: nothing runs again, and nothing is forgotten
    (tree / "mended").touch()
    assert nightly(tree, "--only", "one", "two", "--keep")[0] == 0
    assert counts(tree, "B2") == {"inputs": 155, "faults": 43, "passed": 6, "skipped": 1}
    assert (tree / "ran").read_text() == ran
    (tree / "tests/one/test_one.py").write_text(FILES["tests/one/test_one.py"] + "\n")
    assert nightly(tree, "--only", "one")[0] == 0  # another tree: from the beginning
    assert (tree / "ran").read_text() == 2 * ran
    assert counts(tree, "B2") == {"inputs": 125, "faults": 43, "passed": 3}


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_it_goes_on_where_it_was_killed(tree, by):
    (tree / "wait").touch()
    with start(tree, "--only", "one") as process:
        wait_for(lambda: (tree / "ran").exists() and "last" in (tree / "ran").read_text())
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(by)
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert len(children) == 1
    wait_for(lambda: not Path(f"/proc/{children[0]}").exists())  # the tests have ended with the runner
    (tree / "wait").unlink()
    code, said = nightly(tree, "--only", "one")
    assert (code, Counter((tree / "ran").read_text().split())) == (0, Counter(first=1, other=1, last=2))
    assert counts(tree, "B2") == {"inputs": 125, "faults": 43, "passed": 3}, said  # none twice


def test_a_group_whose_time_is_over_says_what_it_reached(tree):
    (tree / "wait").touch()
    for minutes in ("0.1", "0.3", "1"):  # on a busy machine the first tests take longer
        code, said = nightly(tree, "--only", "one", "two", "--minutes", minutes)
        assert code == 1
        if "reached" in said:
            break
    assert f"NOT ENDED one: stopped after {minutes} minutes" in said
    assert "tests/one/test_two.py::test_last: reached 1" in said  # 11 or 15
    assert counts(tree, "B2")["passed"] == 4  # the other group has run
    (tree / "wait").unlink()
    assert "NOT ENDED" not in nightly(tree, "--only", "one")[1]


def test_a_worker_that_dies_is_a_failure_and_the_others_go_on(tree):
    (tree / "tests/two/test_four.py").write_text("import os\n\ndef test_exit():\n    os._exit(3)\n")
    (tree / "mended").touch()
    code, said = nightly(tree, "--only", "two", "--workers", "2")
    assert code == 1
    assert [line for line in said.splitlines() if line.startswith("FAILED")] == [
        "FAILED tests/two/test_four.py::test_exit"
    ]
    assert counts(tree, "B2") == {"inputs": 30, "passed": 3, "skipped": 1}
    assert counts(tree, "other tests") == {"inputs": 1, "violations": 1, "failed": 1}


def test_packages_with_too_few_branches_taken(tmp_path):
    taken = {
        "core/a": (9, 10),
        "core/b": (10, 10),
        "engine/admission": (5, 5),
        "engine/b": (89, 100),
        "plots/c": (9, 10),
    }
    files = {
        f"fedrela/src/fedrela/{name}.py": {"summary": {"covered_branches": part, "num_branches": whole}}
        for name, (part, whole) in taken.items()
    }
    (tmp_path / "coverage.json").write_text(json.dumps({"files": files}))
    assert too_little_covered(tmp_path / "coverage.json") == [
        "core: 95.0 % of the branches where 100 are expected",
        "engine: 89.0 % of the branches where 90 are expected",
    ]


def test_a_group_that_cannot_be_collected_is_a_failure(tree):
    (tree / "tests/two/test_four.py").write_text("import nothing_of_this_name\n")
    code, said = nightly(tree, "--only", "two")
    assert code == 1
    assert "NOT ENDED two: pytest ended with exit code 2" in said


def test_doctests_alone_know_the_options():
    command = [sys.executable, "-m", "pytest", *groups()["src"], "--collect-only", "-q", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
