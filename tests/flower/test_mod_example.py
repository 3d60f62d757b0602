"""The example: an ordinary quickstart app and the same with the plug-in, as the docs show it."""

from __future__ import annotations

import difflib
import re
import runpy
import sys
import tomllib
from pathlib import Path

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.common.config import flatten_dict, fuse_dicts, parse_config_args

from fedrela.engine.run_options import RelabelPlan
from fedrela.plugin import LabelStore

torch.set_num_threads(1)
ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "flower-plugin"


def difference() -> list[str]:
    """Return the lines that differ between the two apps, in all files."""
    files = {
        path.relative_to(EXAMPLE / app)
        for app in ("before", "after")
        for path in (EXAMPLE / app).rglob("*")
        if path.suffix in (".py", ".toml")
    }
    found = []
    for name in sorted(files):
        before, after = ((EXAMPLE / app / name).read_text().splitlines() for app in ("before", "after"))
        lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        found += [line for line in lines if line[0] in "+-"]
    return found


def test_five_lines_are_enough():
    lines = difference()
    assert 0 < len(lines) <= 5
    page = (ROOT / "docs" / "how-to" / "plugin.md").read_text().splitlines()
    assert [line for line in lines if line not in page] == [], "docs/how-to/plugin.md shows another difference"


def test_the_tutorials_setting_can_be_changed():
    page = (ROOT / "docs" / "tutorials" / "flower-app.md").read_text()
    (override,) = re.findall(r'flwr run after --run-config "(.+?)"', page)
    app = tomllib.loads((EXAMPLE / "after" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    config = fuse_dicts(flatten_dict(app["config"]), parse_config_args([override]))  # as `flwr run` does
    assert (app["config"]["fedrela-tau"], config["fedrela-tau"]) == (RelabelPlan().tau, 0.03)


@pytest.fixture
def measure():
    modules, path = dict(sys.modules), list(sys.path)
    yield runpy.run_path(str(EXAMPLE / "measure.py"))
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        if name.split(".")[0] == "quickstart":
            del sys.modules[name]


def final(measure, folder, app, **config):
    """Return the final model of a short run, as bytes, and the folder of labels."""
    folder.mkdir()
    measure["accuracy"](app, 0, 3, folder, **{"num-server-rounds": 3, "local-epochs": 1} | config)
    state = torch.load(folder / f"{app}-0.pt", weights_only=True)
    return b"".join(value.numpy().tobytes() for value in state.values())


def test_both_apps_run_and_only_labels_make_the_difference(measure, tmp_path):
    plain = final(measure, tmp_path / "before", "before")
    nothing_moves = final(measure, tmp_path / "idle", "after", **{"fedrela-tau": 0.0})
    assert nothing_moves == plain  # the mod's own pass leaves no trace in random numbers or weights
    assert final(measure, tmp_path / "off", "after", **{"fedrela-enabled": False}) == plain
    assert final(measure, tmp_path / "on", "after", **{"fedrela-tau": 0.3}) != plain
    moved = [LabelStore(tmp_path / "on" / "labels", "run-1", str(client)).passes() for client in range(3)]
    assert all(len(passes) == 1 and passes[0].options["round"] == 2 for passes in moved)
    assert sum(len(passes[0]) for passes in moved) > 0
