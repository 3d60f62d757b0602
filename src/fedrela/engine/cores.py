"""How many cores this process may keep busy."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path


def usable_cores(root: str | Path = "/") -> int:
    """Return the number of workers that ``workers = "auto"`` stands for.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` lie.

    Returns
    -------
    int
        The cores this process may run on, or the share of them that its control group (a container's limit, say)
        grants, rounded up, where that is less; at least 1.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for folder in _control_groups(Path(root)) for share in _shares(folder)]
    return max(1, min([cores, *map(math.ceil, shares)]))


def _control_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's control group and of all above it, in either version's hierarchy."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, own = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        # Inside a container the path may name folders that only the host sees: the top is then the container's own.
        path = top / own.strip("/")
        yield from [path, *(parent for parent in path.parents if parent.is_relative_to(top))]


def _shares(folder: Path) -> Iterator[float]:
    """Yield the limit set in a control group, as processor time over wall time."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
        except (OSError, ValueError):
            continue
        if quota.isdigit() and int(period) > 0:  # "max" and -1 stand for no limit
            yield int(quota) / int(period)
