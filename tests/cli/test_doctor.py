"""What a bug report needs: every fact in one line, and nothing about the user."""

from __future__ import annotations

import getpass
import importlib.util
import platform
import tomllib
from importlib.metadata import version
from pathlib import Path

import fedrela
from fedrela.experiment.doctor import OPTIONAL


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


def test_every_extra_that_it_names_brings_that_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    brought = {f"fedrela[{name}]": " ".join(packages) for name, packages in extras.items()}
    for name, extra in OPTIONAL.items():
        assert not extra or {"ray": "flwr[simulation]"}.get(name, name) in brought[extra]
    users = [name for name in extras if name not in ("dev", "docs")]
    assert sorted(filter(None, OPTIONAL.values())) == sorted(f"fedrela[{name}]" for name in users)
