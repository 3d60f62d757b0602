"""How many workers "auto" stands for."""

from __future__ import annotations

import os

import pytest

from fedrela.engine.executors.forkserver import usable_cores


@pytest.mark.parametrize(
    ("membership", "limits", "cores"),
    [
        ("0::/", {}, 4),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 2),
        ("0::/a/b", {"a/b/cpu.max": "50000 100000", "cpu.max": "300000 100000"}, 1),
        ("0::/unseen", {"cpu.max": "800000 100000"}, 4),
        ("3:cpuset:/\n2:cpu,cpuacct:/a", {"cpu,cpuacct/a/cpu.cfs": (300000, 100000)}, 3),
        ("2:cpu:/baseline/only\n0::/", {"cpu/cpu.cfs": (100000, 100000)}, 1),
        ("2:cpu:/", {"cpu/cpu.cfs": (-1, 100000)}, 4),
    ],
)
def test_usable_cores_are_those_that_the_control_groups_grant(tmp_path, monkeypatch, membership, limits, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    files = {"proc/self/cgroup": membership + "\n"}
    for name, value in limits.items():
        if isinstance(value, str):
            files[f"sys/fs/cgroup/{name}"] = value + "\n"
        else:
            files |= {
                f"sys/fs/cgroup/{name}_{key}_us": f"{v}\n" for key, v in zip(("quota", "period"), value, strict=True)
            }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores


def test_usable_cores_of_this_machine(tmp_path, monkeypatch):
    assert 1 <= usable_cores() <= os.cpu_count()
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert usable_cores(tmp_path) == os.cpu_count()
