"""What is installed and given away: lock file, bill of materials, and packages that are the same bytes every time."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fedrela

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("dist", ROOT / "tools" / "dist.py")
dist = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(dist)


def test_the_lock_file_has_the_versions_of_the_constraints():
    """Without torch, which is installed by its exact version before; and without an address."""
    constrained = dist.constrained()
    assert {name: version for name, (version, _) in dist.locked().items()} == {
        name: version for name, version in constrained.items() if name != "torch"
    }
    text = dist.LOCK.read_text()
    assert f"pip install torch=={constrained['torch']}" in text
    assert not any(word in text for word in ("://", "index-url", "@"))


def test_a_lock_file_is_made_from_what_pip_reports(monkeypatch, tmp_path):
    monkeypatch.setattr(dist, "LOCK", tmp_path / "lock")
    items = [("PyYAML", "6.0", "b"), ("attrs", "1.0", "a"), ("torch", "2.0", "c"), ("fedrela", "0.1", "d")]
    dist.write_lock({"install": [
        {"metadata": {"name": name, "version": version}, "download_info": {
            "url": "https://example.org/x.whl", "archive_info": {"hashes": {"sha256": letter * 64}}}}
        for name, version, letter in items
    ]})  # fmt: skip
    assert dist.locked() == {"attrs": ("1.0", "a" * 64), "pyyaml": ("6.0", "b" * 64)}
    assert "example" not in dist.LOCK.read_text()
    dist.LOCK.write_text("attrs==1.0\n")
    with pytest.raises(SystemExit, match="expected NAME==VERSION --hash"):
        dist.locked()


def test_the_bill_of_materials_names_everything_with_its_digest():
    bill = dist.bill_of_materials()
    assert json.dumps(bill) == json.dumps(dist.bill_of_materials())
    parts = {part["name"]: part for part in bill["components"]}
    assert parts.keys() == dist.constrained().keys()
    assert all(part["hashes"][0]["content"] for name, part in parts.items() if name != "torch")
    (needs,) = bill["dependencies"]
    assert {"pkg:pypi/numpy@", "pkg:pypi/torch@"} <= {each.rpartition("@")[0] + "@" for each in needs["dependsOn"]}


def test_packages_built_twice_are_the_same_bytes(tmp_path, request):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery")
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", tmp_path / name], cwd=ROOT, check=True)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [Path(name).suffix for name in files] == [".whl", ".gz"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.findall(r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    assert {version, newest, cited} == {fedrela.__version__}
