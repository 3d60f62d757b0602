"""What is installed and given away: lock file, bill of materials, and packages that are the same bytes every time."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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


def test_every_dependency_of_a_locked_distribution_is_locked():
    """Of those installed here: hatchling was locked without tomlkit, and tensorboard without setuptools."""
    names, missing = dist.everything(), set()
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            for needed in map(Requirement, distribution(name).requires or ()):
                holds = needed.marker is None or needed.marker.evaluate({"extra": ""})
                if holds and dist.normal(needed.name) not in names:
                    missing.add((name, str(needed)))
    assert missing == set()


def test_all_that_the_extras_name_is_locked():
    """Such as furo, for the pages: `make docs` would take any version otherwise."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = {dist.normal(Requirement(each).name) for each in (*project["dependencies"], *itertools.chain(*extras))}
    assert wanted - dist.everything().keys() == set()


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


def test_saved_advisories_are_searched_without_a_network(tmp_path, capsys):
    """An advisory counts by version or range, unless it is withdrawn or of another ecosystem."""
    version = dist.everything()["numpy"][0]

    def advisory(name, ecosystem="PyPI", **affected):
        package = {"ecosystem": ecosystem, "name": "NumPy"}
        return {"id": name, "modified": "2026-01-02T03:04:05Z", "summary": "a\x1b[2J", "affected": [
            {"package": package, **affected}]}  # fmt: skip

    def within(*events):
        return [{"type": "ECOSYSTEM", "events": list(events)}]

    always = {"introduced": "0"}
    records = [
        advisory("LISTED", versions=[f"{version}.0"]),
        advisory("OPEN", ranges=within(always)),
        advisory("LAST", ranges=within({"last_affected": version}, always)),
        advisory("UNREADABLE", ranges=within({"introduced": "2004d"})),
        advisory("FIXED", ranges=within(always, {"fixed": version}), versions=["0.1"]),
        advisory("LATER", ranges=within({"introduced": f"{version}.1"})),
        advisory("PAST", ranges=within(always, {"last_affected": "0.1"})),
        advisory("OTHER", "npm", ranges=within(always)),
        advisory("COMMITS", ranges=[{"type": "GIT", "events": [always]}]),
        advisory("WITHDRAWN", ranges=within(always)) | {"withdrawn": "2026-01-03T00:00:00Z"},
    ]
    assert dist.audit(zipped(tmp_path / "some.zip", records)) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["LAST", "LISTED", "OPEN", "UNREADABLE"]
    assert lines[0] == f"numpy {version}: LAST: a?[2J"
    assert last.startswith("4 of 8 advisories apply to ")
    assert last.endswith("the newest is of 2026-01-02")
    assert dist.audit(zipped(tmp_path / "none.zip", records[4:])) == 0


@pytest.mark.parametrize("records", [[], [{}], [3], ["x"], [{"affected": [{"package": {"ecosystem": "npm"}}]}]])
def test_a_file_without_advisories_does_not_pass_for_a_clean_one(tmp_path, capsys, records):
    assert dist.audit(zipped(tmp_path / "all.zip", records)) == 2
    assert "expected a zip file of OSV records" in capsys.readouterr().err


def test_advisories_that_cannot_be_read_are_an_error(tmp_path):
    whole = zipped(tmp_path / "all.zip", [{}] * 9).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "bent.zip").write_bytes(whole.replace(b"{}", b"{]"))
    for name in ("missing.zip", "cut.zip", "bent.zip", "."):
        assert dist.audit(tmp_path / name) == 2


def zipped(path, records):
    with zipfile.ZipFile(path, "w") as archive:
        for number, record in enumerate(records):
            archive.writestr(f"{number}.json", json.dumps(record))
    return path


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
