"""Worker processes in whole programs: unguarded, interrupted, killed; and how many ``"auto"`` stands for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from multiprocessing import forkserver, util
from pathlib import Path

import pytest

from fedrela.engine.executors.forkserver import PRELOAD, usable_cores
from fedrela.engine.executors.pool import Pool
from helpers.toy_work import gone, wait_for

HEAD = """
import sys
sys.path.insert(0, {tests!r})
{server}
from fedrela.engine.shared_memory import Block
from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.worker import CannotSendError
from helpers import toy_work
"""
OURS = "from fedrela.engine.executors.forkserver import warm_up; warm_up()"
BARE = "from multiprocessing import forkserver; forkserver.set_forkserver_preload([]); forkserver.ensure_running()"


def start_script(folder, body, server=OURS, **environment):
    path = folder / "script.py"
    path.write_text(HEAD.format(tests=str(Path(__file__).parents[2]), server=server) + body)
    return subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | environment,
    )  # fmt: skip


def test_a_script_needs_no_guard_and_its_own_classes_do_not_travel(tmp_path):
    body = """
print("once", __name__, sys.modules["__main__"].__name__)
class Mine: pass
with Pool(2) as pool:
    pool.load(toy_work.Work(toy_work.power, 2))
    print(sum(done.value for done in pool.run(range(9))))
    try:
        pool.load(toy_work.Work(toy_work.power, Mine()))
    except CannotSendError as error:
        print(error)
"""
    with start_script(tmp_path, body) as script:
        out, err = script.communicate(timeout=120)
    first, total, refusal = out.splitlines()
    assert (first, total) == ("once __main__ __main__", "204")
    assert refusal.startswith("workers: the work cannot be loaded in another process, AttributeError: Can't get attr")
    assert (err, script.returncode) == ("", 0)


def test_a_long_path_of_the_temporary_folder_does_not_prevent_workers(tmp_path):
    long = tmp_path / ("long" * 30)
    long.mkdir()
    body = """
from multiprocessing import util
import tempfile
with Pool(2) as pool:
    pool.load(toy_work.Work(toy_work.power, 2))
    print(sum(done.value for done in pool.run(range(9))))
print(tempfile.gettempdir(), util.get_temp_dir(), sep="\\n")
"""
    with start_script(tmp_path, body, TMPDIR=str(long)) as script:
        out, err = script.communicate(timeout=120)
    total, usual, sockets = out.splitlines()
    assert (total, usual, err) == ("204", str(long), "")
    assert sockets.startswith("/tmp/pymp-")
    wait_for(lambda: not Path(sockets).exists())


def test_nothing_is_left_of_a_killed_parent_in_the_middle_of_a_task(tmp_path, fast_folder):
    body = """
pool = Pool(2)
block = Block.create(8)
pool.load(toy_work.Work(toy_work.counting, block.region))
run = pool.run([("add", 1), ("add", 1), ("tick", 0)])
print(*{next(run).value[0], next(run).value[0]} | {worker._process.pid for worker in pool._workers}, flush=True)
next(run)
"""
    with start_script(tmp_path, body, TMPDIR=str(fast_folder)) as script:
        workers = [int(pid) for pid in script.stdout.readline().split()]
        assert len(workers) == 2
        assert any(fast_folder.iterdir())
        assert not any(map(gone, workers))
        script.kill()
        wait_for(lambda: all(map(gone, workers)) and not any(fast_folder.iterdir()))


def test_ctrl_c_is_quiet_in_workers_from_a_server_that_was_started_elsewhere(tmp_path):
    body = """
try:
    with Pool(2) as pool:
        block = Block.create(8)
        pool.load(toy_work.Work(toy_work.counting, block.region))
        print("running", flush=True)
        list(pool.run([("tick", 0)] * 4))
except KeyboardInterrupt:
    print("interrupted", [worker._process._closed for worker in pool._workers])
"""
    with start_script(tmp_path, body, BARE) as script:
        assert script.stdout.readline() == "running\n"
        os.killpg(script.pid, signal.SIGINT)
        out, err = script.communicate(timeout=120)
    assert (out, err, script.returncode) == ("interrupted [True, True]\n", "", 0)


def test_ctrl_c_while_everything_is_starting_is_the_parents_alone(tmp_path):
    # Ignored after the start of the server, which would inherit it.
    server = (
        f"{OURS}\nimport signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from multiprocessing import forkserver; print(forkserver._forkserver._forkserver_pid, flush=True)\n"
    )
    body = """
with Pool(2) as pool:
    pool.load(toy_work.Work(toy_work.power, 2))
    print(sum(done.value for done in pool.run(range(9))))
"""
    with start_script(tmp_path, body, server) as script:
        maps = Path(f"/proc/{int(script.stdout.readline())}/maps")
        wait_for(lambda: "libtorch" in maps.read_text())
        while script.poll() is None:
            os.killpg(script.pid, signal.SIGINT)
            time.sleep(0.01)
        out, err = script.communicate(timeout=120)
    assert (out, err, script.returncode) == ("204\n", "", 0)


def test_what_workers_preload_is_there():
    assert all(find_spec(name) for name in PRELOAD)


@pytest.mark.parametrize(
    ("membership", "limits", "cores"),
    [
        ("0::/", {}, 4),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 2),
        ("0::/a/b", {"a/b/cpu.max": "50000 100000", "cpu.max": "300000 100000"}, 1),
        ("0::/unseen", {"cpu.max": "800000 100000"}, 4),
        ("3:cpuset:/\n2:cpu,cpuacct:/a", {"cpu,cpuacct/a/cpu.cfs": (300000, 100000)}, 3),
        ("2:cpu:/host/only\n0::/", {"cpu/cpu.cfs": (100000, 100000)}, 1),
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


def test_a_server_that_ends_leaves_the_folder_of_its_parent():
    """The parent starts another one there."""
    with Pool(1):
        folder = util.get_temp_dir()
    forkserver._forkserver._stop()
    assert os.path.isdir(folder)
    with Pool(1):
        pass
