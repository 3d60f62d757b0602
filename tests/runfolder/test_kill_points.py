"""B10 on the folder's own level: the process is killed at every step of every write, and nothing is ever half done.

A process of its own, with one thread, forks for every kill point. After each kill the folder is sound, and carrying on
leads to the same bytes as never having been killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from fedrela.files import operations
from fedrela.runfolder import RunFolder
from helpers.batteries import tried
from helpers.disk_faults import WRITES, Kill, Notes
from helpers.toy_run import CONFIG, MACHINE, MANIFEST, Tell, carry_on, check_promises, check_sound, compared, nothing


def run(path: Path, tell: Tell = nothing) -> None:
    carry_on(path, tell=tell)


def fork(path: Path, tell: Tell = nothing) -> None:
    """Begin an arm that goes on from a shared prefix, where that has not been done."""
    if check_sound(path) in (None, 0):
        RunFolder.open(path.parent / "prefix").fork(path, MANIFEST | {"arm": 1}, CONFIG, MACHINE)


SCENARIOS: dict[str, Callable[..., None]] = {"run": run, "fork": fork}


def points(notes: Notes) -> Iterator[tuple[int, str, str]]:
    for number, (verb, arguments) in enumerate(notes.tried):
        yield number, verb, "before"
        if verb in WRITES and len(arguments[1]) > 1:
            yield number, verb, "amid"
        yield number, verb, "after"


def killed(scenario: Callable[..., None], path: Path, number: int, moment: str) -> bool:
    """Whether a child that carries out the scenario was killed at that point."""
    child = os.fork()
    if child == 0:
        try:
            with operations.observed(Kill(number, moment)):
                scenario(path)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def try_point(path: Path, scenario: Callable[..., None], notes: Notes, number: int, moment: str) -> str:
    """Kill, look, carry on, compare; return what is wrong, or nothing."""
    tried(faults=1)
    try:
        if not killed(scenario, path, number, moment):
            return "was not killed"
        check_promises(path, notes.promised(number + (moment == "after")))
        scenario(path)
        carry_on(path)
        return "" if compared(path) == compared(path.with_name(scenario.__name__)) else "other bytes after carrying on"
    except Exception:
        return traceback.format_exc()


def main(folder: Path) -> None:
    carry_on(folder / "prefix", 4)
    report: dict[str, list[tuple[str, str, str]]] = {}
    for name, scenario in SCENARIOS.items():
        notes = Notes()
        with operations.observed(notes):
            scenario(folder / name, notes.tell)
        carry_on(folder / name)
        report[name] = [
            (verb, moment, try_point(folder / f"{name}-{number}-{moment}", scenario, notes, number, moment))
            for number, verb, moment in points(notes)
        ]
    print(json.dumps(report))


def in_a_process_of_its_own() -> dict[str, list[tuple[str, str, str]]]:
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a kill does not reach below the file system
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory(dir=place) as folder:
        command = [sys.executable, __file__, folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_no_kill_leaves_anything_half_done():
    report = in_a_process_of_its_own()
    for points_of_scenario in report.values():
        assert [point for point in points_of_scenario if point[2]] == []
    assert len(report["run"]) >= 340, "steps have vanished: does a write go past fedrela.files.operations?"
    assert len(report["fork"]) >= 130
    seen = {verb for found in report.values() for verb, _, _ in found}
    assert seen == {"append", "make_folder", "overwrite", "remove", "rename", "sync", "sync_folder", "write_temporary"}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
