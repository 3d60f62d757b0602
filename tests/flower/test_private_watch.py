"""What a private node's process opens, and what crosses the wire: its own data and state, and declared arrays alone."""

from __future__ import annotations

import os
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
from fedrela.algorithms import ALGORITHMS
from fedrela.experiment.flower_app import serve
from fedrela.experiment.split import split
from helpers import watched_node
from helpers.flower_federations import digits
from helpers.private_federations import private_grid
from helpers.quick import QUICK

torch.set_num_threads(1)
SYSTEM = ["/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/var/lib", sys.prefix, sys.base_prefix]
PLAIN = {"client", "round", "num-examples", "fingerprint", "failed", "detail"}


def installed() -> list[str]:
    """Return where interpreter, packages and system files lie."""
    ours = [Path(fedrela.__file__).parents[1], Path(watched_node.__file__).parents[1], *site.getsitepackages()]
    return [os.path.realpath(place) for place in (*SYSTEM, *ours, *(path for path in sys.path if path))]


def talk(tmp_path, name):
    """Carry out a private run, keep what goes to client 1, and what each of all clients sends."""
    config = digits(
        algorithm={"name": name, **QUICK.get(name, {})}, relabel={"start": 2},
        data={"partition": {"kind": "iid", "clients": 3}, "validation": 0.2}, train={"rounds": 2, "norm_limit": 0.0},
    )  # fmt: skip
    split(config, tmp_path / "parts")
    there, grid = private_grid(tmp_path / "parts", tmp_path / "states")
    replies, pass_on = [], grid.mangled
    grid.mangled = lambda reply: replies.append(reply) or pass_on(reply)
    serve(
        there, grid, out=tmp_path / "run", experiment="trial", patience=1.0, private=True,
        data=tmp_path / "parts" / "server" / "server.toml",
    )  # fmt: skip
    return grid, replies


@pytest.mark.parametrize("name", ["fedmix", "scaffold"])
def test_no_array_crosses_the_wire_that_was_not_declared(tmp_path, name):
    kind = ALGORITHMS[name]
    _, replies = talk(tmp_path, name)
    declared = {
        "train": {*kind.uploads},
        "query.ask": {"x", "y", "used"} if name == "fedmix" else set(),
        "query.score": {"confusion", "hits"},
        "query.statistics": {"count", "sum", "squares"},
        "query.hello": set(),
    }
    seen = {}
    for reply in replies:
        content, about = reply.content, reply.metadata.message_type
        arrays = {name for record in content.array_records.values() for name in record}
        plain = {
            key for record in (*content.config_records.values(), *content.metric_records.values()) for key in record
        }
        assert arrays == declared[about], about
        assert plain <= PLAIN
        seen[about] = seen.get(about, 0) + 1
    assert seen["train"] == 6
    assert seen["query.score"] >= 6
    assert seen["query.statistics"] == 3


def test_a_nodes_process_opens_its_own_data_and_state_alone(tmp_path):
    grid, replies = talk(tmp_path, "scaffold")
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
    command = [sys.executable, watched_node.__file__, app, home / "node.toml", state, folder]
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=home, env=environment, timeout=550, check=False
    )
    assert done.returncode == 0, done.stderr
    own = [os.path.realpath(place) for place in (home, state, scratch, folder, app)]
    allowed = [*own, *installed(), os.path.realpath(Path.home() / ".cache")]
    opened = {os.path.realpath(home / line) for line in done.stdout.splitlines() if line}
    assert [path for path in sorted(opened) if not path.startswith(tuple(allowed))] == []
    assert os.path.realpath(home / "samples.npz") in opened
    parts = os.path.realpath(tmp_path / "parts")
    assert {path for path in opened if path.startswith(parts)} == {f"{home}/node.toml", f"{home}/samples.npz"}
    sent = [message_from_proto(Wire.FromString(path.read_bytes())) for path in sorted(folder.glob("*.reply"))]
    trained = [reply for reply in sent if reply.metadata.message_type == "train"]
    before = [
        reply for reply in replies if reply.metadata.message_type == "train" and reply.metadata.src_node_id == 1007
    ]
    assert [reply.content["arrays"]["weights"].numpy().tobytes() for reply in trained] == [
        reply.content["arrays"]["weights"].numpy().tobytes() for reply in before
    ]
