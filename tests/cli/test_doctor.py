"""What a bug report needs: every fact in one line, and nothing about the user."""

from __future__ import annotations

import getpass
import platform
from importlib.metadata import version

import fedrela


def test_it_names_versions_machine_folders_and_data(run, tmp_path, monkeypatch):
    (tmp_path / "data" / "cifar-10-batches-bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    facts = dict(line.removeprefix("- ").split(": ", 1) for line in done.out.splitlines())
    names = ("fedrela", "python", "system", "cores", "memory", "device", "packages", "optional", "cache", "data sets")
    assert tuple(facts) == names
    assert facts["fedrela"] == fedrela.__version__
    assert facts["python"].startswith(platform.python_version())
    assert f"torch {version('torch')}" in facts["packages"]
    assert "cifar10 in data/cifar-10-batches-bin, cifar100 missing" in facts["data sets"]
    assert "flwr-datasets " in facts["optional"]
    assert f"/{getpass.getuser()}/" not in done.out
