"""B10 on whole runs: the process is killed before, amid and after the steps of every write, in every round, and the
resumed run has the bytes of one that was never killed.

A process of its own, with one thread, forks for every kill point and every way on from it. A new write becomes a new
kill point by itself.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest

from fedrela.files import operations
from fedrela.runfolder import RunFolder
from helpers import batteries
from helpers.batteries import tried
from helpers.disk_faults import Kill, Notes
from helpers.forks import KILLED, drive, in_fork
from helpers.kill_points import Point, points, spread
from helpers.tiny_run import ROUNDS, VARIANTS, Variant, difference, everything, newest

PHASES = (*range(1, ROUNDS + 1), ROUNDS + 1)  # rounds, each until it is written, and the end; 0 is the beginning
ALL = 10**6
SHARES = {"fedavg every 1": 30, "fedprox every 2": 21, "clients with a state, every 2, again and again": 21}  # everyday
LEAST = dict(zip(VARIANTS, [470, 300, 390, 300, 470], strict=True))  # points that a run has
PARTS = [{name: ALL} for name in VARIANTS] if batteries.NIGHTLY else [SHARES]  # may run beside each other


def killed_run(variant: Variant, path: Path, point: Point) -> None:
    with operations.observed(Kill(point[3], point[2])):
        variant.carry_on(path)


def try_point(variant: Variant, path: Path, wanted: dict, point: Point) -> str:
    """Kill, look, go on, compare; return what is wrong, or nothing."""
    shutil.rmtree(path, ignore_errors=True)
    tried(faults=1)
    ending = in_fork(partial(killed_run, variant, path, point))
    if ending != KILLED:
        return f"was not killed: {ending}"
    if (path / "manifest.json").exists():
        reached = newest(path)
        if len(RunFolder.open(path).rounds()) < (reached[0] if reached else 0):
            return "a checkpoint of a round that is not written"
    problem = in_fork(partial(variant.carry_on, path))
    return problem or difference(everything(path), wanted)


def main(folder: Path, shares: dict[str, int]) -> None:
    report = {}
    for seed, (name, number) in enumerate(shares.items()):
        variant, notes = VARIANTS[name], Notes()
        with operations.observed(notes):
            variant.carry_on(folder / "whole", notes.tell)
        found, wanted = points(notes), everything(folder / "whole")
        done = [(*point, try_point(variant, folder / "killed", wanted, point)) for point in spread(found, number, seed)]
        report[name] = {"points": len(found), "files": sorted(wanted), "tried": done}
        shutil.rmtree(folder / "whole")
    print(json.dumps(report))


@pytest.mark.parametrize("shares", PARTS, ids=", ".join)
def test_a_run_killed_at_any_step_of_any_write_ends_with_the_same_bytes(shares):
    report = drive(__file__, json.dumps(shares))
    done = [point for found in report.values() for point in found["tried"]]
    assert [point for point in done if point[4]] == []
    assert len(done) >= 72
    check_that_nothing_was_passed_over(report, done)


def check_that_nothing_was_passed_over(report: dict, done: list) -> None:
    numbers = {name: found["points"] for name, found in report.items()}
    assert all(numbers[name] >= LEAST[name] for name in numbers), f"{numbers}: does a write go past fedrela.files?"
    assert {point[0] for point in done} == {0, *PHASES}
    verbs_seen = {"append", "make_folder", "overwrite", "remove", "rename", "sync", "sync_folder", "write_temporary"}
    assert {point[1] for point in done} == verbs_seen
    assert {point[2] for point in done} == {"before", "amid", "after"}
    for found in report.values():
        files = {"checkpoint", "config.toml", "gallery.npz", "manifest.json", "relabelling.json", "result.json"}
        assert files | {"rounds.jsonl"} | {f"ledgers/client-{k:06}.json" for k in range(4)} == set(found["files"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
