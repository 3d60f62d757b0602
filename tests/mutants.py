"""Mutation check: change one thing in `core` at a time and see whether any test notices.

usage: python tests/mutants.py [--only SUBSTRING] [--jobs 2]

Every mutant is a copy of the package with one operator, comparison, constant or choice of function changed. A fork of
this process, with the libraries loaded already, runs the core's tests on it. Mutants that no test notices are printed;
`EQUIVALENT` names those that cannot be noticed, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path

import hypothesis  # noqa: F401  (loaded here so that forks have it)
import numpy as np  # noqa: F401
import pytest
import sklearn.linear_model  # noqa: F401

import conftest  # noqa: F401  (first: it limits threads)
from helpers import batteries

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
ORDER = (
    "test_equations", "test_checks", "test_options", "test_goldens", "test_relabel", "test_ledger", "test_schedule",
    "test_previews", "test_draws", "test_notebook", "test_hostile", "test_differential", "test_properties",
    "test_repeated_requests",
)  # fmt: skip
SECONDS = 180  # a mutant that runs longer than this hangs, and counts as noticed

SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.USub: ast.UAdd, ast.Mod: ast.Mult,
}  # fmt: skip
NAMES = {
    "minimum": "maximum", "maximum": "minimum", "argmax": "argmin", "argmin": "argmax", "ceil": "floor",
    "floor": "ceil", "min": "max", "max": "min", "any": "all", "all": "any", "sqrt": "abs", "tanh": "sin",
    "zeros": "ones", "ones": "zeros", "logical_or": "logical_and",
}  # fmt: skip

KEYWORDS = {"strict", "frozen", "eq", "repr", "copy", "deep", "kind", "allow_pickle"}  # safeguards, not behaviour

# (file, start of the changed line): why no result can differ
EQUIVALENT = {
    ("candidates.py", "CACHE_NUMBERS"): "speed only",
    ("candidates.py", "TRANSPOSE_COLUMNS"): "speed only",
    ("candidates.py", "columns = np.empty"): "a larger buffer",
    ("candidates.py", "step = max(1"): "speed only",
    ("candidates.py", "nothing ="): "an empty array of another length is cut to nothing",
    ("candidates.py", "above = np.flatnonzero(z > threshold[c])"): "at the threshold rho is tanh(0) = 0",
    ("candidates.py", "target = np.repeat"): "all three parts have the same length",
    ("candidates.py", "return block, np.ones"): "only whether it is zero is asked",
    ("checks.py", "off = ~("): "no float lies exactly on the tolerance",
    ("checks.py", "i = int(np.argmax(off"): "a row with any value that is not finite has a sum that is off",
    (
        "checks.py",
        "if dtype is np.float64",
    ): "NaN passes through min and max alike, and 0 or 1 to start from are both finite",
    ("draws.py", "if chosen.size <= limit"): "at the limit both ways keep all",
    ("draws.py", "return draws.random"): "a draw equal to rho has probability 0",
    ("draws.py", "n = int(found.sample.max"): "a larger buffer",
    ("draws.py", "starts = np.flatnonzero"): "any negative number marks the first sample",
    ("equations.py", "return np.where(sigma > ROUNDING * mu"): "sigma is not exactly the limit",
    ("equations.py", "return a + (b - a) * share"): "the same number but for rounding",
    ("equations.py", "rank = np.empty"): "speed only",
    ("equations.py", "rank = max(int(np.ceil"): "a guard against rounding that no tested case needs",
    ("ledger.py", "return digest(json.dumps"): "the order of keys is that of to_record either way",
    ("previews.py", "if agreement < POOR_AGREEMENT"): "no share is exactly the limit",
    ("previews.py", "return self.total / max"): "where there is no sample nothing moves",
    ("relabelling.py", "return self.moved.size"): "where there is no sample nothing moves",
}


def annotations(tree: ast.AST) -> set[int]:
    """Nodes that only the type checker reads, and docstrings."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                skipped |= {id(inner) for inner in ast.walk(part)}
        if isinstance(node, ast.ImportFrom | ast.Import):
            skipped |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.keyword) and node.arg in KEYWORDS:
            skipped.add(id(node.value))
        if isinstance(node, ast.arg | ast.arguments):
            skipped |= {id(d) for d in getattr(node, "kw_defaults", []) if isinstance(d, ast.Constant)}
    return skipped


def changes(tree: ast.AST):
    """Yield (node, field, new value, words) for every single change."""
    skipped = annotations(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare):
            for place, op in enumerate(node.ops):
                ops = [*node.ops]
                ops[place] = SWAPS[type(op)]()
                yield node, "ops", ops, f"{type(op).__name__} -> {type(ops[place]).__name__}"
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            yield node, "op", SWAPS[type(node.op)](), f"{type(node.op).__name__} -> {SWAPS[type(node.op)].__name__}"
        elif isinstance(node, ast.UnaryOp) and type(node.op) in SWAPS:
            yield node, "op", ast.UAdd(), "drop minus"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "op", ast.Not(), "not dropped"
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node, "attr", NAMES[node.attr], f"{node.attr} -> {NAMES[node.attr]}"
        elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
            yield node, "id", NAMES[node.id], f"{node.id} -> {NAMES[node.id]}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "value", not node.value, f"{node.value} -> {not node.value}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, "value", node.value + 1, f"{node.value} -> {node.value + 1}"


def mutants(path: Path):
    """Yield (description, line of code, mutated text) for every change in a file."""
    text = path.read_text()
    tree = ast.parse(text)
    for node, field, new, words in list(changes(tree)):
        old = getattr(node, field)
        if words.startswith("not"):  # `not x` becomes `x`: replace the operand by its negation
            operand = node.operand
            node.operand = ast.UnaryOp(op=ast.Not(), operand=copy(operand))
            mutated = ast.unparse(ast.fix_missing_locations(tree))
            node.operand = operand
        else:
            setattr(node, field, new)
            mutated = ast.unparse(ast.fix_missing_locations(tree))
            setattr(node, field, old)
        line = text.splitlines()[node.lineno - 1].strip()
        yield f"{path.name}:{node.lineno}: {words}", line, mutated


def is_at(mutant: tuple[str, str, str, str], file: str, start: str) -> bool:
    return mutant[0] == file and mutant[2].startswith(start)


def noticed(name: str, mutated: str) -> bool:
    """Run the core's tests on a mutant in a fork; True where one fails."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    try:
        shutil.copytree(SOURCE / "fedrela", folder / "fedrela", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "fedrela" / "core" / name).write_text(mutated)
        child = os.fork()
        if child == 0:
            os._exit(run_tests(folder))
        return wait(child) != 0
    finally:
        shutil.rmtree(folder)


def run_tests(folder: Path) -> int:
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    batteries.count = lambda pr, nightly: max(
        pr // 10, 1
    )  # what a tenth of the examples does not notice is worth a look
    files = [str(TESTS / "core" / f"{stem}.py") for stem in ORDER]
    try:
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", *files]))
    except BaseException:
        return 1


def wait(child: int) -> int:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    core = SOURCE / "fedrela" / "core"
    if noticed("draws.py", (core / "draws.py").read_text()):
        print("the tests fail on the unchanged package")
        return 1
    work = [
        (path.name, *mutant)
        for path in sorted(core.glob("*.py"))
        if options.only in path.name
        for mutant in mutants(path)
    ]
    survivors = []
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda each: noticed(each[0], each[3]), work)
        for count, (each, seen) in enumerate(zip(work, verdicts, strict=True), 1):
            if not seen:
                survivors.append(each)
                why = next((why for (file, start), why in EQUIVALENT.items() if is_at(each, file, start)), "LOOK AT IT")
                print(f"survived: {each[1]}    {each[2]}    {why}", flush=True)
            if count % 25 == 0:
                print(f"{count} of {len(work)}", file=sys.stderr, flush=True)
    killed = len(work) - len(survivors)
    print(f"{killed} of {len(work)} mutants noticed ({killed / max(len(work), 1):.1%}), {len(survivors)} not")
    return 0


if __name__ == "__main__":
    sys.exit(main())
