"""The architecture as a test: who may import whom, what importing costs, who may write files, how long things are."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fedrela

ROOT = Path(fedrela.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
BASE = {"arguments", "arms", "errors", "components", "options", "records", "streams", "text", "files", "runfolder"}
BASE_PACKAGES = {"numpy", "safetensors"}

# layer -> (layers of ours it may import, third-party packages beside those of the base row)
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "base": (set(), set()),
    "core": (set(), set()),
    "data": ({"core"}, set()),
    "metrics": (set(), set()),
    "models": (set(), {"torch"}),
    "losses": (set(), {"torch"}),
    "algorithms": ({"models", "losses"}, {"torch"}),
    "engine": ({"core", "models", "losses", "algorithms", "metrics"}, {"torch"}),
    "plugin": ({"core", "models"}, {"torch"}),
    "flower": ({"engine", "core", "models", "algorithms", "metrics", "plugin"}, {"torch", "flwr"}),
    "plots": ({"metrics", "theory"}, {"matplotlib"}),
    "theory": ({"core"}, set()),
    "report": ({"metrics", "plots"}, {"jinja2"}),
    "cli": ({"experiment", "reproduction", "plots", "report", "theory", "core", "data", "plugin"}, {"typer", "rich"}),
}
EVERYTHING = {"core", "data", "metrics", "models", "losses", "algorithms", "engine", "flower"}
LAYERS["experiment"] = (EVERYTHING, {"pydantic"})
LAYERS["reproduction"] = (EVERYTHING | {"experiment"}, {"pydantic"})
LAYERS["testing"] = (EVERYTHING | {"experiment", "reproduction"}, {"torch", "pydantic"})

# place (a file, or a folder ending in a slash) -> packages it may load inside the function that needs them
LAZY = {
    "data/sources/": {"sklearn", "PIL", "datasets", "flwr_datasets"},
    "data/posterior_tables.py": {"pyarrow"},
    "data/posteriors.py": {"pyarrow"},
    "data/download.py": {"pooch", "requests"},
    "core/notebook.py": {"pandas"},
    "report/tensorboard.py": {"torch"},
    "report/trackers.py": {"mlflow", "wandb"},
    "algorithms/smote.py": {"imblearn"},
    "metrics/paired.py": {"scipy"},
    "flower/roster.py": {"cryptography"},
}
BASES = {"plugin/relabeler.py": {"sklearn"}}  # packages whose classes a file derives from


def layer_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "base" if first in BASE else {"__main__": "cli"}.get(first, first)


def imports(path: Path) -> list[tuple[str, bool]]:
    """Return all imported modules of a file, each with whether it is imported inside a function."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in inside) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert all(alias.name != "*" for alias in node.names), f"{path}: star import"
            # `from fedrela import x` names the module x of ours, or a public name
            found += [(f"{node.module}.{alias.name}", id(node) in inside) for alias in node.names]
    return found


def violations(path: Path) -> list[str]:
    layer, wrong = layer_of(path), []
    ours, packages = LAYERS[layer]
    place = path.relative_to(ROOT).as_posix()
    lazy = set().union(*(names for where, names in LAZY.items() if place == where or place.startswith(where + "")))
    for module, inside in imports(path):
        top, *rest = module.split(".")
        known = packages | BASE_PACKAGES | BASES.get(place, set())
        if top in sys.stdlib_module_names or top in known or (top in lazy and inside):
            continue
        if top == "fedrela" and rest and (rest[0] in BASE or rest[0] == layer or rest[0] in ours):
            continue
        if top == "fedrela" and layer == "cli" and rest == ["__version__"]:
            continue
        wrong.append(f"{place} imports {module}")
    return wrong


@pytest.mark.parametrize("path", [p for p in FILES if p.parent != ROOT or p.stem != "__init__"], ids=str)
def test_layers_import_downwards_only(path):
    assert violations(path) == []


def test_a_forbidden_edge_is_noticed(tmp_path, monkeypatch):
    bad = tmp_path / "core" / "bad.py"
    bad.parent.mkdir()
    bad.write_text("import torch\nfrom fedrela.engine import round\nfrom fedrela.errors import DataError\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert violations(bad) == ["core/bad.py imports torch", "core/bad.py imports fedrela.engine.round"]


NETWORK = {"socket", "ssl", "http", "urllib.request", "ftplib", "smtplib", "asyncio"}
ARCHIVES = {"tarfile", "shutil.unpack_archive"}
ARCHIVE_FILES = {"data/download.py", "data/sources/cifar.py"}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_network_and_archives_stay_in_their_files(path):
    place = path.relative_to(ROOT).as_posix()
    named = {module for module, _ in imports(path)}
    if place != "data/download.py":
        assert not {m for m in named if any(m == n or m.startswith(n + ".") for n in NETWORK)}
    if place not in ARCHIVE_FILES:
        assert not {m for m in named if any(m == n or m.startswith(n + ".") for n in ARCHIVES)}


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_numpy_only():
    loaded = python(
        "import sys; before = set(sys.modules); import fedrela; fedrela.data; fedrela.metrics;"
        "print(*{m.split('.')[0] for m in set(sys.modules) - before})"
    )
    parts_of_numpy = {name for name in loaded.split() if "cython_" in name}  # how its compiled random module loads
    assert set(loaded.split()) - set(sys.stdlib_module_names) - parts_of_numpy == {"fedrela", "numpy"}


def test_the_whole_core_works_without_torch():
    python(
        "import sys\n"
        "for name in ('torch', 'flwr', 'sklearn', 'pydantic', 'typer', 'rich', 'scipy'): sys.modules[name] = None\n"
        "import tempfile, numpy as np, fedrela\n"
        "rng = np.random.default_rng(0)\n"
        "Q, y = rng.dirichlet(np.ones(4), 90), np.repeat([0, 1, 2, 3], [60, 20, 8, 2])\n"
        "done = fedrela.relabel(Q, y, tau=0.2)\n"
        "assert done.moved.size and str(fedrela.preview(Q, y))\n"
        "assert fedrela.Schedule().due(9, 10)\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    done.ledger.save(folder + '/a.npz')\n"
        "    assert fedrela.undo(folder + '/a.npz').tolist() == y.tolist()\n"
    )


def test_without_flower_the_plug_in_names_the_extra():
    for module in ("fedrela.flower", "fedrela.flower.mod"):
        said = python(
            f"import sys; sys.modules['flwr'] = None\ntry: import {module}\nexcept ImportError as error: print(error)\n"
        )
        assert said == "fedrela.flower needs Flower, the extra `flower`: pip install 'fedrela[flower]'\n"


def writes(node: ast.AST) -> bool:
    """Whether a call opens or moves a file for writing."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in {"write_text", "open_memmap", "rename", "mkfifo"}:
        return True
    if name in {"write_bytes", "replace"}:  # of a path or of os; files.write_bytes and str.replace are not
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        return (name == "write_bytes" and owner not in {"", "files"}) or owner == "os"
    modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
    return name == "open" and any(isinstance(m, ast.Constant) and set(str(m.value)) & set("wax+") for m in modes)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_only_files_writes_files(path):
    if path.parent != ROOT / "files":
        found = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if writes(node)]
        assert not found, f"lines {found} write a file"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_sizes_and_forbidden_words(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for word in ("import pickle", "np.random.seed", "random.seed(", "allow_pickle=True", "deepcopy"):
        # A user's own module is copied once a run, so that it stays as it is, and may draw from any generator.
        home = {"deepcopy": "models/contract.py"}.get(word, "models/runtime.py" if "seed" in word else "")
        assert word not in text or path.relative_to(ROOT).as_posix() == home
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert node.end_lineno - first.lineno < 40, f"{node.name} is longer than a screen"
