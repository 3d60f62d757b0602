"""Flower's simulator obeys the signals that stop a run, and leaves a folder to resume and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")
pytest.importorskip("ray", reason="the extra flower-sim is not installed")

from flwr.app import Message, RecordDict

from fedrela.experiment import Result, run
from fedrela.experiment.flower_app import serve
from fedrela.experiment.load import config_toml
from fedrela.flower import simulator
from fedrela.flower.simulator import StoppableGrid
from helpers.flower_federations import assert_equal, digits, grid_of

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def short():
    """Return a folder with a short path, as Ray's sockets need."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["process", "group"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_leaves_a_folder_to_resume_and_nothing_else(run_cli, request, tmp_path, short, number, send):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery")
    config = digits(train={"rounds": 8}, engine={"checkpoint_every": 1})
    path, out = tmp_path / "small.toml", tmp_path / "there"
    path.write_text(config_toml(config))
    command = [sys.executable, "-m", "fedrela.cli.main", "run", str(path), "--engine", "flower", "--out", str(out)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"TMPDIR": str(short)},
    )  # fmt: skip
    try:
        wait_for(lambda: (out / "rounds.jsonl").exists() and (out / "rounds.jsonl").read_bytes().count(b"\n") >= 2)
        send(process.pid, number)
        shown, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 130, said
    what = re.escape(str(out))
    assert re.fullmatch(
        rf"fedrela: {what}: interrupted at round \d; continue with `fedrela resume {what}`\nfedrela: interrupted\n",
        said,
    ), said
    assert "ray" not in shown
    assert list(short.iterdir()) == []
    wait_for(lambda: not members(process.pid))
    done = run_cli("resume", out)
    assert done.returncode == 0, done.stderr
    assert_equal(Result.load(out), run(config, out=tmp_path / "here"))


def wait_for(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.1)


def members(session):
    """Return the processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == session and state != "Z":
            found.append(path.parent.name)
    return found


def test_a_stopped_grid_ends_the_run_at_its_next_use(tmp_path):
    stopped = threading.Event()

    def stop(recorded, done):
        if done is not None and done.round == 2:
            stopped.set()

    config = digits()
    grid = StoppableGrid(grid_of(config, tmp_path), stopped)
    with pytest.raises(KeyboardInterrupt):
        serve(config, grid, out=tmp_path / "run", experiment="trial", timeout=60.0, on_round=stop)
    stopped.clear()
    done = serve(config, grid, out=tmp_path / "run", experiment="trial", timeout=60.0)
    assert_equal(done, run(config, out=tmp_path / "here"))


def test_waiting_for_replies_ends_when_the_grid_is_stopped(tmp_path):
    stopped = threading.Event()
    grid = StoppableGrid(grid_of(digits(), tmp_path, lose=lambda message, client: True), stopped)
    asked = [Message(RecordDict(), node, "query.hello") for node in grid.get_node_ids()]
    assert grid.send_and_receive(asked, timeout=0.1) == []
    threading.Timer(0.2, stopped.set).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        grid.send_and_receive(asked, timeout=60.0)
    assert time.monotonic() - began < 30


def test_waiting_installs_the_handlers_again_and_acts(monkeypatch):
    ended, before, seen = threading.Event(), signal.getsignal(signal.SIGTERM), []

    def act():
        seen.append(signal.getsignal(signal.SIGTERM))
        if len(seen) == 2:
            ended.set()

    simulator._wait(ended, act)
    assert seen == [before, before]
    thread = threading.Thread(target=simulator._wait, args=[ended])
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_without_ray_there_is_nothing_to_end(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    simulator._end_clients()


@pytest.mark.parametrize("started", [True, False])
def test_clients_are_ended_where_ray_runs(monkeypatch, started):
    ended = []
    worker = SimpleNamespace(core_worker=SimpleNamespace(kill_actor=lambda actor, now: ended.append((actor, now))))
    private = SimpleNamespace(
        state=SimpleNamespace(actors=lambda actor_state_name: ["a", "b"]), worker=SimpleNamespace(global_worker=worker)
    )
    named = SimpleNamespace(from_hex=lambda name: f"actor {name}")
    ray = SimpleNamespace(is_initialized=lambda: started, _private=private, ActorID=named)
    monkeypatch.setitem(sys.modules, "ray", ray)
    simulator._end_clients()
    assert ended == ([("actor a", True), ("actor b", True)] if started else [])


@pytest.mark.parametrize("ends", [True, False])
def test_an_interrupted_run_does_not_wait_for_ever(ends):
    ended, calls = threading.Event(), []

    def act():
        calls.append(1)
        if ends:
            ended.set()

    start = time.monotonic()
    simulator._wait(ended, act, seconds=600 if ends else 0.2)
    assert ended.is_set() == ends
    assert calls
    assert time.monotonic() - start < 60


def test_rays_folder_is_short(tmp_path):
    with simulator._ray_folder(Path("/tmp/short")) as folder:
        assert folder == Path("/tmp/short")
    with simulator._ray_folder(tmp_path / ("long" * 30)) as folder:
        assert folder.is_dir()
        assert len(str(folder)) < 40
    assert not folder.exists()
