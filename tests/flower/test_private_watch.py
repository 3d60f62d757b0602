"""What a private node's process opens: its own data and state, and nothing of others.

What crosses the wire is checked for every algorithm in `test_private.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as Wire

import fedrela
from fedrela.experiment.flower_app import serve
from fedrela.experiment.split import split
from helpers import watched_node
from helpers.flower_federations import digits
from helpers.private_federations import private_grid

torch.set_num_threads(1)
SYSTEM = ["/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/var/lib", sys.prefix, sys.base_prefix]
NAMES = ("", "/node.toml", "/samples.npz")


def installed() -> list[str]:
    """Return where interpreter, packages and system files lie."""
    ours = [Path(fedrela.__file__).parents[1], Path(watched_node.__file__).parents[1], *site.getsitepackages()]
    return [os.path.realpath(place) for place in (*SYSTEM, *ours, *(path for path in sys.path if path))]


def talk(tmp_path):
    """Carry out a private run, with a split in parts; return its grid, which has all messages."""
    config = digits(
        algorithm={"name": "scaffold"}, relabel={"start": 2},
        data={"partition": {"kind": "iid", "clients": 3}, "validation": 0.2}, train={"rounds": 2, "norm_limit": 0.0},
    )  # fmt: skip
    split(config, tmp_path / "parts")
    there, grid = private_grid(tmp_path / "parts", tmp_path / "states")
    serve(
        there, grid, out=tmp_path / "run", experiment="trial", timeout=1.0, private=True,
        data=tmp_path / "parts" / "server" / "server.toml",
    )  # fmt: skip
    return grid


def traced(log: Path) -> list[str]:
    """Return a command that has the kernel note every file that a process opens, where that can be had."""
    command = ["strace", "-f", "-qq", "-y", "--seccomp-bpf", "-e", "trace=open,openat,creat,connect,execve", "-o", log]
    trial = subprocess.run([*command, "true"], capture_output=True, check=False) if shutil.which("strace") else None
    return [*map(str, command)] if trial is not None and trial.returncode == 0 else []


OPENED = re.compile(r'(?:open|creat|openat)\((?:AT_FDCWD(?:<(.*?)>)?, |\d+<(.*?)>, )?"(.*?)".*\) = \d+')


def opened_by(log: Path, home: Path) -> set[str]:
    """Return what the kernel noted: the paths of files that were opened."""
    found = [match for line in log.read_text().splitlines() if (match := OPENED.search(line))]
    return {os.path.realpath(Path(match[1] or match[2] or home, match[3])) for match in found}


def test_a_nodes_process_opens_its_own_data_and_state_alone(tmp_path):
    grid = talk(tmp_path)
    mine = [message for message in grid.sent if grid.nodes[message.metadata.dst_node_id] == 1]
    folder = tmp_path / "messages"
    folder.mkdir()
    for number, message in enumerate(mine):
        (folder / f"{number:03}.request").write_bytes(message_to_proto(message).SerializeToString())
    app, home = tmp_path / "app.toml", tmp_path / "parts" / "nodes" / "node-01"
    app.write_bytes((tmp_path / "parts" / "config.toml").read_bytes())
    state, scratch = tmp_path / "fresh-state", tmp_path / "scratch"
    scratch.mkdir()
    state.mkdir()
    log = tmp_path / "strace.log"
    command = [*traced(log), sys.executable, watched_node.__file__, app, home / "node.toml", state, folder]
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=home, env=environment, timeout=550, check=False
    )
    assert done.returncode == 0, done.stderr
    allowed = [Path(os.path.realpath(place)) for place in (home, state, scratch, folder, app, *installed())]
    kinds = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [line for line in kinds if line[0] not in ("open", "list")] == [], "a connection, or another process"
    opened = {os.path.realpath(home / path) for _, _, path in kinds}
    if log.exists():
        noted = log.read_text()
        assert noted.count("execve(") == 1
        assert "connect(" not in noted
        assert os.path.realpath(home / "samples.npz") in opened_by(log, home)
        opened |= opened_by(log, home)
    assert [path for path in sorted(opened) if not any(Path(path).is_relative_to(place) for place in allowed)] == []
    assert os.path.realpath(home / "samples.npz") in opened
    parts = os.path.realpath(tmp_path / "parts")
    assert {path for path in opened if path.startswith(parts)} <= {f"{home}{name}" for name in NAMES}
    sent = [message_from_proto(Wire.FromString(path.read_bytes())) for path in sorted(folder.glob("*.reply"))]
    trained = [reply for reply in sent if reply.metadata.message_type == "train"]
    before = [each for each in grid.replied if each.metadata.message_type == "train"]
    before = [reply for reply in before if reply.metadata.src_node_id == 1007]
    assert len(before) == 2
    assert [reply.content["arrays"]["weights"].numpy().tobytes() for reply in trained] == [
        reply.content["arrays"]["weights"].numpy().tobytes() for reply in before
    ]
