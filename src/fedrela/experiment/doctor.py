"""What a bug report should say about a machine: versions, cores, memory, device, folders, data sets, optional parts."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from fedrela.data.cache import cache_folder
from fedrela.data.sources import SOURCES
from fedrela.engine.executors.forkserver import usable_cores
from fedrela.errors import FedrelaError
from fedrela.models.runtime import device_of

NEEDED = ("numpy", "torch", "safetensors", "pydantic", "typer", "rich", "jinja2", "pillow", "scikit-learn", "scipy",
          "matplotlib", "pooch")  # fmt: skip
OPTIONAL = ("flwr", "ray", "tensorboard", "pandas", "imbalanced-learn", "mlflow", "wandb", "datasets", "flwr-datasets")


def facts() -> Iterator[tuple[str, str]]:
    """Yield name and value of every fact, without user or machine names, or paths other than those of data."""
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "cores", f"{usable_cores()} usable of {os.cpu_count()}"
    yield "memory", memory()
    yield "device", device_of("auto")
    yield "packages", ", ".join(_versions(NEEDED))
    yield "optional", ", ".join(_versions(OPTIONAL))
    folder = cache_folder()
    yield "cache", f"{_short(folder)} ({'there' if folder.is_dir() else 'not made yet'})"
    yield "data sets", ", ".join(_data_sets())


def memory() -> str:
    """Return total and free memory, as far as the system reports them."""
    with suppress(ValueError, OSError, AttributeError):  # some systems lack these names
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (page * os.sysconf(name) / 2**30 for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
        return f"{total:.1f} GiB, {free:.1f} GiB free"
    return "unknown"


def _versions(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} missing"


def _data_sets() -> Iterator[str]:
    """Yield every source that is read from known files, with where these are in the usual folders."""
    for name, spec in SOURCES.items():
        if spec.find is None:
            continue
        try:
            yield f"{name} in {_short(spec.find(None))}"
        except FedrelaError:
            yield f"{name} missing"


def _short(path: os.PathLike[str]) -> str:
    """Return a path without the name of the user."""
    text, home = os.fspath(path), os.path.expanduser("~")
    return f"~{text.removeprefix(home)}" if home != "/" and text.startswith(f"{home}{os.sep}") else text
