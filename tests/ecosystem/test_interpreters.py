"""The wheel in empty environments, without the repository: the demo runs, and every Python gives the same weights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedrela.experiment import run
from fedrela.experiment.toml.writer import toml_text
from helpers.environments import PLACE, ROOT
from helpers.tiny_run import CONFIG

VERSIONS = ("3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """Return a Python of this version: this one, one beside it, or one on the path."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}*/bin/python"))
    for found in (sys.executable, *map(str, beside), shutil.which(f"python{version}")):
        if found is not None:
            code = "import sys; print(*sys.version_info[:2], sep='.')"
            done = subprocess.run([found, "-c", code], capture_output=True, text=True)
            if done.stdout.strip() == version:
                return found
    return None


@pytest.fixture(scope="module")
def wheel(request, tmp_path_factory) -> Path:
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in environments of their own")
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, ROOT]
    subprocess.run(command, check=True, timeout=600)
    return next(place.glob("fedrela-*.whl"))


def installed(version: str, wheel: Path) -> Path:
    """Return the command in an environment that holds the wheel and what it needs, and nothing else."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version} here")
    home = PLACE / f"wheel-{version}"
    subprocess.run([found, "-m", "venv", "--clear", home], check=True, timeout=300)
    install = [
        home / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        wheel,
    ]
    done = subprocess.run(install, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        pytest.skip(f"the wheel's needs cannot be installed for {version}: {done.stderr.strip().splitlines()[-1]}")
    return home / "bin" / "fedrela"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_runs_alone_with_the_same_weights(version, wheel, tmp_path):
    command = installed(version, wheel)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    (tmp_path / "tiny.toml").write_text(toml_text(CONFIG))
    calls = [["run", "tiny.toml", "--out", "there"], ["doctor"]]
    if version == VERSIONS[0]:
        calls.append(["demo", "--seeds", "1"])
    for arguments in calls:
        done = subprocess.run(
            [command, *arguments], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=1800
        )
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stdout, done.stderr)
    there = json.loads((tmp_path / "there" / "result.json").read_text())
    assert there["weights_sha256"] == run(CONFIG, out=tmp_path / "here", workers=1).record["weights_sha256"]
