"""Run the commands and snippets of a page in order, and compare what they print: python docs/run.py [--write] PAGE ...

What counts, in the order of the page, in one empty folder per page:

- a block ``sh`` is run by bash and must end well; blocks ``python`` are executed, those of a page in one namespace,
  except doctests (``>>>``), which tests/test_docs.py runs;
- ``<!-- file: NAME -->`` before a block writes it to that file instead;
- a block ``text`` after ``<!-- output -->`` is what the block before printed, where ``...`` stands for anything;
- ``<!-- setup`` ... ``-->`` is Python that readers do not see: it makes up what a snippet takes as given. So does the
  file docs/setup/STEM.py of a page STEM.md; if it sets ``FRESH``, every block runs in a new copy of the folder that it
  made. ``ROOT`` is the repository;
- a block whose first line is a comment that begins with ``# needs`` is not run: it says what it needs.

With --write, the outputs on the page become those of this run, and pictures of the page that a snippet wrote to
its folder are copied to where the page shows them. Processes that a block leaves in the background end with the page.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file: \S+|output) -->\n+)?^(?P<indent> *)```(?P<kind>[\w{}-]*)\n(?P<text>.*?)^(?P=indent)```$"
    r"|^<!-- setup\n(?P<setup>.*?)^-->$",
    re.M | re.S,
)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
DECIMAL = re.compile(r"\d+\.\d+")
RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PROGRESS = re.compile(
    r"(?:^(?:round \d|done in |.*; \d+ workers?$|.* done to round ).*\n)+", re.M
)  # differs every time


@dataclass(frozen=True)
class Block:
    """A part of a page that something is done with, and where its text lies."""

    kind: str  # "sh", "python", "file", "output"
    text: str
    line: int
    span: tuple[int, int]
    name: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is run: not what says that it needs more, and not a doctest."""
        return self.kind in ("sh", "python") and not self.text.startswith(("# needs ", ">>> "))


def blocks(page: str) -> Iterator[Block]:
    """Yield what a page has to run, write and compare."""
    for found in BLOCK.finditer(page):
        line, mark = page[: found.start()].count("\n") + 1, found["mark"] or ""
        if found["setup"] is not None:
            yield Block("python", found["setup"], line, found.span("setup"))
        elif mark.startswith("file: "):
            yield Block("file", found["text"], line, found.span("text"), mark.removeprefix("file: "))
        elif mark == "output" or found["kind"] in ("sh", "python"):
            yield Block("output" if mark else found["kind"], textwrap.dedent(found["text"]), line, found.span("text"))


def execute(page: Path, folder: Path) -> list[tuple[Block, str]]:
    """Run a page in a folder; return its outputs with what was printed in fact."""
    found, printed, names, shells = [], "", {"ROOT": ROOT}, []
    private = {"XDG_DATA_HOME": f"{folder}/.data", "FLWR_HOME": f"{folder}/.flwr", "FLWR_TELEMETRY_ENABLED": "0"}
    with contextlib.ExitStack() as copies, contextlib.chdir(folder), mock.patch.dict(os.environ, private):
        sys.path.insert(0, str(folder))
        try:
            if (before := ROOT / "docs" / "setup" / f"{page.stem}.py").exists():
                names |= runpy.run_path(str(before))
            names["__name__"] = "__main__"
            for block in blocks(page.read_text(encoding="utf-8")):
                if block.kind == "file":
                    Path(block.name).parent.mkdir(parents=True, exist_ok=True)
                    Path(block.name).write_text(block.text)
                elif block.kind == "output":
                    found.append((block, printed))
                elif block.runs:
                    if names.get("FRESH"):
                        copy = copies.enter_context(tempfile.TemporaryDirectory())
                        os.chdir(shutil.copytree(folder, copy, dirs_exist_ok=True))
                    printed = _run(block, names, shells, f"{page.name}:{block.line}")
        finally:
            sys.path.remove(str(folder))
            for shell in shells:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell, signal.SIGTERM)
    return found


def _run(block: Block, names: dict, shells: list[int], where: str) -> str:
    if block.kind == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * block.line + block.text, where, "exec"), names)
        return out.getvalue()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    there = os.environ | {"PATH": path, "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        ["bash", "-e", "-c", block.text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=there,
        start_new_session=True,
    ) as shell:  # fmt: skip
        shells.append(shell.pid)
        out, err = shell.communicate(timeout=1800)
    if shell.returncode:
        raise RuntimeError(f"{where}: exit code {shell.returncode}: {err[-2000:]}")
    return out


def fits(block: Block, printed: str) -> bool:
    """Whether a page shows what was printed; decimals may differ a little, since processors round differently.

    They may differ by 2, such as points of accuracy, or by a fifth. Where ``...`` stands for anything, they may be any.
    """
    wanted, got = (DECIMAL.sub("#", text) for text in (block.text, printed))
    same = doctest.OutputChecker().check_output(wanted, got, RULES)
    if not same or "..." in block.text:
        return same
    here, there = (map(float, DECIMAL.findall(text)) for text in (block.text, printed))
    return all(abs(a - b) <= max(2, a / 5) for a, b in zip(here, there, strict=True))


def problems(page: Path, folder: Path) -> list[str]:
    """Run a page and return the outputs that differ from what it says."""
    return [
        f"{page.name}:{block.line}: expected\n{block.text}\ngot\n{printed}"
        for block, printed in execute(page, folder)
        if not fits(block, printed)
    ]


def write(page: Path) -> None:
    """Write the outputs and pictures of a run onto the page; an output with ``...`` that fits stays."""
    with tempfile.TemporaryDirectory() as scratch:
        text = page.read_text(encoding="utf-8")
        outputs = execute(page, Path(scratch))
        if page.read_text(encoding="utf-8") != text:
            raise RuntimeError(f"{page}: was changed meanwhile; nothing is written")
        for block, printed in reversed(outputs):
            if "..." not in block.text or not fits(block, printed):
                text = text[: block.span[0]] + PROGRESS.sub("...\n", printed).rstrip() + "\n" + text[block.span[1] :]
        page.write_text(text, encoding="utf-8")
        for picture in PICTURE.findall(text):
            made = list(Path(scratch).rglob(Path(picture).name))
            if made:
                (page.parent / picture).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(made[0], page.parent / picture)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if name == "--write":
            continue
        if "--write" in sys.argv:
            write(Path(name).resolve())
        else:
            with tempfile.TemporaryDirectory() as scratch:
                print("\n".join(problems(Path(name).resolve(), Path(scratch))) or f"{name}: as it says")
