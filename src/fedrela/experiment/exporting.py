"""A configuration as a folder that ``flwr run`` takes: an app, start scripts, and a page that says how."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from fedrela.experiment.apps import check_servable
from fedrela.experiment.build import build_data
from fedrela.experiment.load import config_toml
from fedrela.experiment.schema import Config
from fedrela.files import new_folder, write_new
from fedrela.files.verbs import make_folder

TEMPLATES = files("fedrela.experiment") / "app_template"
APP, SCRIPTS = "fedrela_app", ("start-superlink.sh", "start-supernode.sh", "make-trial-keys.sh")
LONGEST_NAME = 64
PLACES = {
    "pyproject.toml": "", "README.md": "", "environment.sh": "", **dict.fromkeys(SCRIPTS, ""),
    "client_app.py": APP, "server_app.py": APP,
}  # fmt: skip


def export_flower(config: Config, target: str | Path) -> Path:
    """Write a Flower app that carries out a configuration.

    Parameters
    ----------
    config
        A checked configuration; its data must be where every node can read them.
    target
        A new folder.
    """
    target, name = Path(target), _name(config, Path(target))
    check_servable(config)
    with new_folder(target) as folder:  # first: a target that is taken is refused before data are read
        words = _words(name, len(build_data(config).shards))
        make_folder(folder / APP)
        for file, place in PLACES.items():
            text = Template((TEMPLATES / f"{file}.in").read_text(encoding="utf-8")).substitute(words)
            write_new(folder / place / file, [text.encode()])
        write_new(folder / APP / "__init__.py", [b'"""A fedrela run as a Flower app."""\n'])
        write_new(folder / APP / "config.toml", [config_toml(config).encode()])
        for script in SCRIPTS:
            (folder / script).chmod(0o755)
    return target


def _words(name: str, clients: int) -> dict[str, object]:
    """Return what the templates leave open."""
    few = " ".join(map(str, range(min(clients, 3)))) + (" ..." if clients > 3 else "")
    return {
        "name": name, "package": name, "out": f"runs/{name}", "clients": clients, "last": clients - 1, "few": few,
    }  # fmt: skip


def _name(config: Config, target: Path) -> str:
    """Return a name that a package, a folder and a shell can have."""
    stem = Path(config.origin.name).stem if config.origin.name.endswith(".toml") else target.name
    plain = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    return plain[:LONGEST_NAME].strip("-") or "fedrela-run"
