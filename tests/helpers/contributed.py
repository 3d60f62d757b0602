"""A copy of the package with one component more: a new file, and one new line in the table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fedrela

PACKAGE = Path(fedrela.__file__).parent
DOCS = PACKAGE.parents[1] / "docs"
COMMAND = "import sys; from fedrela.cli.main import main; sys.exit(main())"


def contributed(root: Path, file: str, text: str, line: str, after: str) -> Callable[..., str]:
    """Write `file` into a copy of the package in `root`, and `line` into its table; return what runs Python there."""
    package = root / "fedrela"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / file).write_text(text)
    table = (package / file).with_name("__init__.py")
    before, neighbour, rest = table.read_text().partition(f"        {after}\n")
    table.write_text(f"{before}{neighbour}        {line}\n{rest}")
    assert neighbour

    def run(*arguments: str) -> str:
        place = os.environ | {"PYTHONPATH": str(root), "COLUMNS": "400"}
        done = subprocess.run([sys.executable, *arguments], env=place, cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
