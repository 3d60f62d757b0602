"""What a bug report needs: every fact in one line, and nothing about the user."""

from __future__ import annotations

import getpass
import importlib.util
import os
import platform
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import fedrela
from fedrela.experiment.bug_report import OPTIONAL


def test_it_names_versions_machine_folders_and_data(run, tmp_path, monkeypatch):
    (tmp_path / "data" / "cifar-10-batches-bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    facts = dict(line.removeprefix("- ").split(": ", 1) for line in done.out.splitlines())
    names = ["fedrela", "python", "system", "processor", "cores", "memory", "device", "packages", "optional packages",
             "not installed", "cache", "data sets"]  # fmt: skip
    assert list(facts) == names
    assert facts["fedrela"] == fedrela.__version__
    assert facts["python"].startswith(platform.python_version())
    assert f"torch {version('torch')}" in facts["packages"]
    assert "cifar10 in data/cifar-10-batches-bin, cifar100 missing" in facts["data sets"]
    for name, extra in OPTIONAL.items():
        if importlib.util.find_spec(name.replace("-", "_").replace("imbalanced_learn", "imblearn")):
            assert f"{name} {version(name)}" in facts["optional packages"]
        else:
            assert (f"{name} ({extra})" if extra else name) in facts["not installed"].split(", ")
    assert f"/{getpass.getuser()}/" not in done.out


def test_a_cache_that_may_not_be_looked_at_is_one_fact_among_others(run, tmp_path):
    """As a user who may not look below another one's home: root, who may, takes another user's rights."""
    (tmp_path / "home" / "data").mkdir(parents=True)
    code = (
        "import os, sys\n"
        "from fedrela.experiment import bug_report\n"
        "import torch\n"
        "os.chdir(sys.argv[1])\n"
        "os.chmod('data', 0); os.chmod('.', 0)\n"
        "if os.getuid() == 0: os.setresuid(65534, 65534, 65534)\n"
        "print(*(f'{name}: {fact}' for name, fact in bug_report.facts()), sep='\\n')\n"
    )
    home = tmp_path / "home"
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": ""}
    try:
        done = subprocess.run([sys.executable, "-c", code, home], env=environment, capture_output=True, text=True)
    finally:
        home.chmod(0o700)
    assert done.returncode == 0, done.stderr
    facts = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert facts["cache"] == "~/.cache/fedrela (not readable)"
    assert "cifar10 not readable" in facts["data sets"]


@pytest.mark.parametrize(
    ("name", "said"), [("none", "not created yet"), ("there", "exists"), ("x" * 300, "not readable")]
)
def test_what_it_says_of_the_cache(run, tmp_path, monkeypatch, name, said):
    (tmp_path / "there" / "fedrela").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    assert f"- cache: {tmp_path / name}/fedrela ({said})\n" in done.out


def test_every_extra_that_it_names_brings_that_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    brought = {f"fedrela[{name}]": " ".join(packages) for name, packages in extras.items()}
    for name, extra in OPTIONAL.items():
        assert not extra or {"ray": "flwr[simulation]"}.get(name, name) in brought[extra]
    users = [name for name in extras if name not in ("dev", "docs")]
    assert sorted(filter(None, OPTIONAL.values())) == sorted(f"fedrela[{name}]" for name in users)
