"""What a bug report should say about a machine: versions, hardware, folders, data sets, packages."""

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
from fedrela.models.runtime import device_of, processor

REQUIRED = ("numpy", "torch", "safetensors", "pydantic", "typer", "click", "rich", "jinja2", "pillow", "scikit-learn",
            "scipy", "matplotlib", "pooch")  # fmt: skip
OPTIONAL = {  # package -> the extra of ours that installs it, if any
    "flwr": "fedrela[flower]", "ray": "fedrela[flower-sim]", "tensorboard": "fedrela[tensorboard]",
    "pyarrow": "fedrela[parquet]", "imbalanced-learn": "fedrela[imblearn]", "pandas": "", "mlflow": "", "wandb": "",
    "datasets": "", "flwr-datasets": "",
}  # fmt: skip


def facts() -> Iterator[tuple[str, str]]:
    """Yield the name and value of every fact; no user or machine names, and no paths but those of data."""
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "processor", processor()
    yield "cores", f"{usable_cores()} usable of {os.cpu_count()}"
    yield "memory", memory()
    yield "device", device_of("auto")
    yield "packages", ", ".join(f"{name} {_version(name) or 'missing'}" for name in REQUIRED)
    installed = {name: _version(name) for name in OPTIONAL}
    yield "optional packages", ", ".join(f"{name} {found}" for name, found in installed.items() if found) or "none"
    missing = [f"{name} ({extra})" if extra else name for name, extra in OPTIONAL.items() if not installed[name]]
    yield "not installed", ", ".join(missing) or "none"
    folder = cache_folder()
    yield "cache", f"{_short(folder)} ({_state(folder)})"
    yield "data sets", ", ".join(_data_sets())


def memory() -> str:
    """Return total and free memory, as far as the system reports them."""
    with suppress(ValueError, OSError, AttributeError):  # some systems lack these names
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (page * os.sysconf(name) / 2**30 for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
        return f"{total:.1f} GiB, {free:.1f} GiB free"
    return "unknown"


def _version(name: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def _state(folder: os.PathLike[str]) -> str:
    """Return whether a folder exists and may be read."""
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError):
        return "not created yet"
    except OSError:
        return "not readable"
    return "exists"


def _data_sets() -> Iterator[str]:
    """Yield every source with files of its own, and the folder where they were found."""
    for name, spec in SOURCES.items():
        if spec.find is None:
            continue
        try:
            yield f"{name} in {_short(spec.find(None))}"
        except FedrelaError:
            yield f"{name} missing"
        except OSError:
            yield f"{name} not readable"


def _short(path: os.PathLike[str]) -> str:
    """Return a path without the name of the user."""
    text, home = os.fspath(path), os.path.expanduser("~")
    return f"~{text.removeprefix(home)}" if home != "/" and text.startswith(f"{home}{os.sep}") else text
