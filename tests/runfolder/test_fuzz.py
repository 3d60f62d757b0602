"""B14: damaged and forged run folders. What is read is sound, or older and sound, or refused; nothing is executed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrela.errors import DataError, IntegrityError
from fedrela.runfolder import RunFolder
from fedrela.streams import stream
from helpers.batteries import count, tried
from helpers.damage import CHANGES, by_chance, by_hand, forged_arrays, forged_manifest
from helpers.toy_run import DEADLINE, arrays_of, carry_on, compared, record_of, round_record, states

FORBIDDEN = {
    "code.__new__", "compile", "ctypes.dlopen", "exec", "function.__new__", "import", "marshal.load", "marshal.loads",
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
    "pickle.find_class", "pty.spawn", "socket.connect", "subprocess.Popen",
}  # fmt: skip
WAYS = (by_chance, by_chance, by_hand, forged_manifest, forged_arrays)
ENDS = ("sound", "older", "refused")
WARM_UP = 60
PARTS = count(1, 5)  # of the battery, which may run beside each other


def look(path: Path, *, forged: bool) -> str:
    """Read everything as a resume does; return how that ended, or raise where it is not sound."""
    folder = RunFolder.open(path)
    assert folder.status_text.startswith("interrupted at round")
    saved = folder.load_checkpoint()
    assert saved, "a checkpoint was there"
    reached = saved.round
    if not forged:
        wanted = arrays_of(states()[reached])
        assert saved.record == record_of(reached)
        assert saved.arrays.keys() == wanted.keys()
        assert all(np.array_equal(saved.arrays[name], array) for name, array in wanted.items())
    noted = folder.exclusions()
    assert list(noted.items()) == [(3, {1: DEADLINE}), (5, {1: DEADLINE})][: len(noted)]
    folder.truncate_rounds(reached)
    assert folder.rounds() == [round_record(r, w) for r, w in enumerate(states()[: reached + 1]) if r]
    assert len(folder.timing()) <= reached
    return "sound" if reached == 4 else "older"


def look_finished(path: Path, wanted: dict[str, bytes]) -> str:
    """Check a finished run: what passes must be what was written."""
    folder = RunFolder.open(path)
    folder.check()
    assert compared(path) == wanted
    return "sound"


def one_case(base: Path, place: Path, number: int) -> tuple[str, str]:
    """Damage a copy and read it; return what was done and how it ended."""
    rng = stream(1, "fuzz", number)
    finished = number % 5 == 4
    shutil.copytree(base / ("done" if finished else "open"), place)
    what = ""
    try:
        if finished:
            wanted = compared(place)
            target = place / sorted(wanted)[int(rng.integers(len(wanted)))]
            before = target.read_bytes()
            what = f"finished {_damage(target, rng)}"
            return what, look_finished(place, wanted | {target.relative_to(place).as_posix(): before})
        way = WAYS[int(rng.integers(len(WAYS)))]
        what = way(place, rng)
        return what, look(place, forged=way in (forged_manifest, forged_arrays))
    except (IntegrityError, DataError) as error:
        return what, "refused" if "\n" not in str(error) and len(str(error)) < 1000 else f"several lines: {error}"
    except BaseException as error:
        return what, f"WRONG {type(error).__name__}: {error}"[:300]
    finally:
        shutil.rmtree(place)


def _damage(target: Path, rng: np.random.Generator) -> str:
    change = CHANGES[int(rng.integers(len(CHANGES)))]
    target.write_bytes(change(target.read_bytes(), rng))
    return f"{change.__name__} {target.name}"


class Watch:
    """Notes what must not happen while files are read."""

    def __init__(self) -> None:
        self.armed, self.seen = False, []
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.armed and event in FORBIDDEN:
            self.seen.append(f"{event} {str(arguments)[:80]}")


def main(base: Path, first: int, stop: int) -> None:
    carry_on(base / "open", 5)
    carry_on(base / "done")
    for number in range(WARM_UP):
        one_case(base, base / "case", number)
    watch, ends, wrong = Watch(), Counter[str](), []
    watch.armed = True
    for number in range(first, stop):
        what, end = one_case(base, base / "case", number)
        ends[end] += 1
        tried(faults=1)
        wrong += [] if end in ENDS else [f"{number}: {what}: {end}"]
    watch.armed = False
    print(json.dumps({"ends": ends, "wrong": wrong, "seen": watch.seen}))


def in_a_process_of_its_own(*cases: int) -> dict[str, Any]:
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory(dir=place) as folder:
        command = [sys.executable, __file__, folder, *map(str, cases)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("part", range(PARTS))
def test_damage_is_noticed_or_harmless_and_nothing_is_executed(part):
    cases = count(1000, 50_000) // PARTS
    report = in_a_process_of_its_own(part * cases, (part + 1) * cases)
    assert report["wrong"] == []
    assert report["seen"] == []
    assert min(report["ends"][end] for end in ENDS) >= 100
    assert sum(report["ends"].values()) == cases


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
