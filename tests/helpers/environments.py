"""Environments of their own for packages that `make test` does not install: the nightly battery builds them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

import fedrela

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".nightly" / "environments"


def environment(name: str, packages: Sequence[str]) -> Path:
    """Return the Python of an environment that sees this one's packages, and has further ones of its own.

    Versions are chosen as for a user who installs fedrela and these packages; only torch is exact. constraints.txt
    would not do: other packages have ceilings below its versions, and pip would go back to ancient releases of them.
    """
    home = PLACE / name
    python, mark, wanted = home / "bin" / "python", home / ".ready", [*packages, *requirements()]
    if not mark.exists() or mark.read_text().splitlines() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, timeout=300)
        site = Path(
            subprocess.check_output([python, "-c", "import site; print(site.getsitepackages()[0])"], text=True).strip()
        )
        seen = [Path(fedrela.__file__).parents[1], sysconfig.get_paths()["purelib"], *filter(None, sys.path)]
        (site / "seen.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(map(str, seen))))
        install = [python, "-m", "pip", "install", "--quiet", *wanted]
        done = subprocess.run(install, capture_output=True, text=True, timeout=1800)
        if done.returncode:
            pytest.skip(f"{', '.join(packages)} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
        mark.write_text("\n".join(wanted))
    return python


def requirements() -> list[str]:
    """Return what fedrela itself requires, with the version of torch in constraints.txt."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    torch = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
    return [*required, torch]


def run_in(name: str, packages: Sequence[str], script: str, *arguments: object) -> str:
    """Run a script in an environment and return what it prints."""
    command = [environment(name, packages), "-c", script, *map(str, arguments)]
    there = {name: value for name, value in os.environ.items() if name != "WANDB_MODE"}  # offline is our default
    there |= {"WANDB_SILENT": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=there)
    assert done.returncode == 0, done.stderr
    return done.stdout
