"""B11: SIGKILL at any instant of runs with two workers, several times in a run; the bytes are those of a run that was
left alone, no worker outlives its parent, and nothing stays in shared memory.

Most runs are children of a warmed process, whose workers come from one server. Some are the real command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pytest

from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.worker import CannotSendError
from fedrela.experiment.toml.writer import toml_text
from fedrela.files import is_locked
from helpers.batteries import count, tried
from helpers.forks import KILLED, drive, ended, fork
from helpers.survivors import PARENT, SESSION, processes, shared_bytes, wait_for
from helpers.tiny_run import ROUNDS, VARIANTS, Variant, difference, everything

SEED, MOST = 20260, 5  # kills of one run
PARTS = count(1, 4)  # of the battery, which may run beside each other
SECONDS_A_ROUND = 0.05  # about
NAMES = ("fedavg every 1", "fedprox every 2", "clients with a state, every 2, again and again")
FEDRELA = "import sys; from fedrela.cli.main import main; sys.exit(main())"


def with_workers(variant: Variant, path: Path) -> None:
    """Carry on with two workers of the server that the parent of this child has started."""
    server = forkserver._forkserver
    forkserver.ensure_running = server.ensure_running = lambda: None  # it would wait for its child, and is none
    variant.carry_on(path, workers=2)


def have_a_server() -> None:
    """Start a server where there is none: a kill amid the start of a worker ends it, and here it is not the run's own.

    One that is about to end may still seem to be there, so this is tried until it works.
    """
    for attempt in range(200):
        try:
            with Pool(1):
                return
        except CannotSendError:
            time.sleep(0.05 if attempt < 199 else 0)
    raise AssertionError("no server can be started")


def strike(variant: Variant, path: Path, seconds: float | None) -> tuple[str, list[str]]:
    """Carry on and kill after so many seconds; return how it ended, and what is wrong."""
    have_a_server()
    workers = partial(processes, PARENT, forkserver._forkserver._forkserver_pid)
    child, reader = fork(partial(with_workers, variant, path))
    if seconds is not None:
        time.sleep(seconds)
        SEEN.append(len(workers()))
        os.kill(child, signal.SIGKILL)
    ending = ended(child, reader)
    wait_for(lambda: not workers(), "workers outlive their parent")
    left = shared_bytes(child)
    wrong = [f"{left} bytes in shared memory"] if left else []
    return ending, wrong + ([] if ending in ("", KILLED) else [ending])


SEEN: list[int] = []  # how many workers there were when a run was killed


def try_run(variant: Variant, path: Path, wanted: dict, instants: list[float]) -> tuple[int, list[str]]:
    """Kill a run at some instants of its attempts, then let it end; return how many kills hit, and what is wrong."""
    tried()
    hits, wrong = 0, []
    for seconds in [*instants, None]:
        ending, found = strike(variant, path, seconds)
        hits, wrong = hits + (ending == KILLED), wrong + found
        tried(0, faults=ending == KILLED)
        if ending != KILLED:
            break
    return hits, wrong + list(filter(None, [difference(everything(path), wanted)]))


def main(folder: Path, part: int, kills: int) -> None:
    rng, hits, runs, wrong = np.random.default_rng(SEED + part), 0, 0, []
    wanted, took = {}, {}
    for name in NAMES:
        VARIANTS[name].carry_on(folder / name)
        start = time.monotonic()
        assert strike(VARIANTS[name], folder / f"{name}, two workers", None) == ("", [])
        took[name] = time.monotonic() - start
        wanted[name] = everything(folder / name)
        wrong += filter(None, [difference(everything(folder / f"{name}, two workers"), wanted[name])])
    while hits < kills:
        name, number = NAMES[runs % len(NAMES)], min(int(rng.integers(1, MOST + 1)), kills - hits)
        instants = (took[name] * rng.random(number)).tolist()
        more, found = try_run(VARIANTS[name], folder / f"run {runs}", wanted[name], instants)
        wrong += [f"{name}, run {runs}, killed after {instants}: {each}" for each in found]
        hits, runs = hits + more, runs + 1
    print(json.dumps({"hits": hits, "runs": runs, "wrong": wrong, "seen": max(SEEN)}))


@pytest.mark.parametrize("part", range(PARTS))
def test_runs_killed_at_random_instants_end_with_the_same_bytes(part):
    kills = count(18, 480) // PARTS
    report = drive(__file__, part, kills)
    assert report["wrong"] == []
    assert report["hits"] == kills
    assert report["runs"] >= kills / MOST
    assert report["seen"] == 2  # workers: those that must be gone can be seen


def command(config: Path, path: Path) -> subprocess.Popen[bytes]:
    """Start the command that a user would give next."""
    words = ["resume", path] if (path / "manifest.json").exists() else ["run", config, "--out", path]
    line = [sys.executable, "-c", FEDRELA, *words, "--workers", "2"]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def carry_out(config: Path, path: Path, progress: float | None = None) -> bool:
    """Start the command and kill it when it has made so many rounds of progress; return whether it was killed."""

    def far_enough() -> bool:
        there = (path / "rounds.jsonl").read_bytes().count(b"\n") if (path / "rounds.jsonl").exists() else 0
        return there >= int(progress or 0) and is_locked(path / "lock")

    with command(config, path) as process:
        if progress is not None:
            wait_for(lambda: far_enough() or process.poll() is not None, "the run does not begin")
            time.sleep(SECONDS_A_ROUND * (progress % 1))
            process.kill()
        said, _ = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), said.decode()
    wait_for(lambda: not processes(SESSION, process.pid), "processes outlive the command")
    assert shared_bytes(process.pid) == 0
    return process.returncode != 0


def test_the_command_killed_at_random_instants_ends_with_the_same_bytes(tmp_path):
    config, rng, kills, runs = tmp_path / "tiny.toml", np.random.default_rng(SEED), 0, 0
    variant, wanted_kills = VARIANTS["fedavg every 1"], count(2, 20)
    config.write_text(toml_text(variant.config))
    variant.carry_on(tmp_path / "whole")
    while kills < wanted_kills:
        path, most = tmp_path / f"run {runs}", min(MOST, wanted_kills - kills)
        progress = sorted((ROUNDS * rng.random(most)).tolist())
        hit = [carry_out(config, path, at) for at in progress]
        assert not carry_out(config, path)
        assert difference(everything(path), everything(tmp_path / "whole")) == ""
        kills, runs = kills + sum(hit), runs + 1
        tried(faults=sum(hit))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
