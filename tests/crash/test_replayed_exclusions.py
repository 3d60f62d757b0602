"""What was lost to time is noted before anything depends on it: a run that is killed afterwards, and resumed when the
late client is quick again, leaves it out again in that round, and has the same bytes.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path

from fedrela.engine.round import next_round
from fedrela.experiment import begin
from fedrela.files import operations
from fedrela.records import Failure, FailureKind
from fedrela.runfolder import RunFolder
from helpers.batteries import count
from helpers.disk_faults import Kill, Notes
from helpers.failing import Failing
from helpers.forks import KILLED, drive, in_fork
from helpers.kill_points import Point, points, spread
from helpers.tiny_run import Variant

LATE = (4, 5)  # rounds, the first of which is the one of re-labelling; checkpoints follow rounds 3 and 6
DEADLINE = 0.3
TRAIN = (("deadline", DEADLINE),)
QUICK = Variant(Failing(), every=3, train=TRAIN)


def slow(client: int) -> Variant:
    return Variant(Failing(delays={(round, client): 1.2 * DEADLINE for round in LATE}), every=3, train=TRAIN)


def smallest(path: Path) -> int:
    """Return the client that trains last: in one process no other is late because of it."""
    QUICK.carry_on(path, last=1)
    sizes = RunFolder.open(path).manifest["data"]["client_sizes"]
    return max(range(len(sizes)), key=lambda client: (-sizes[client], client))


def killed_run(client: int, path: Path, point: Point) -> None:
    with operations.observed(Kill(point[3], point[2])):
        slow(client).carry_on(path)


def lines(path: Path) -> list[bytes]:
    return [line for line in (path / "rounds.jsonl").read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def try_point(client: int, path: Path, point: Point) -> tuple[list[int], str]:
    """Kill a run with a late client and resume it with a quick one; return the rounds noted, and what is wrong."""
    shutil.rmtree(path, ignore_errors=True)
    ending = in_fork(partial(killed_run, client, path, point))
    if ending != KILLED:
        return [], f"was not killed: {ending}"
    before, noted = lines(path), RunFolder.open(path).exclusions()
    problem = in_fork(partial(QUICK.carry_on, path))
    if problem:
        return [], problem
    decided = [round for round in LATE if client in noted.get(round, ())]
    for round, record in enumerate(RunFolder.open(path).rounds(), 1):
        if round in noted and dict(record["excluded"]) != {k: str(each) for k, each in noted[round].items()}:
            return decided, f"round {round} leaves out others than were noted"
        if round in noted and round <= len(before) and before[round - 1] != lines(path)[round - 1]:
            return decided, f"round {round} is another one than before"
    return decided, check_against_the_never_asked(path)


def check_against_the_never_asked(path: Path) -> str:
    """Compare a run with one in which those left out are not asked, and there is no deadline."""
    shutil.rmtree(path.parent / "reference", ignore_errors=True)
    unhurried = Variant(every=3).config
    with begin(unhurried, out=path.parent / "reference", workers=1, algorithm=Failing()) as execution:
        for line in lines(path):
            late = {k: Failure(FailureKind(reason)) for k, reason in json.loads(line)["excluded"]}
            done = next_round(execution.run, None, late)
            if json.loads(json.dumps(done.record.as_record())) != json.loads(line):
                return f"round {done.record.round} differs from one in which the late are not asked"
            for place, ledger in done.ledgers.items():
                ledger.save(execution.folder.ledger_path(place), overwrite=True)
        result = execution.finish()
    found, ledgers = RunFolder.open(path), result.folder / "ledgers"
    for client, place in found.ledgers():
        if place.read_bytes() != (ledgers / place.name).read_bytes():
            return f"the ledger of client {client} differs"
    same = found.read_json("result.json")["weights_sha256"] == result.weights_sha256
    return "" if same else "other weights"


def main(folder: Path, number: int) -> None:
    client, notes = smallest(folder / "first"), Notes()
    with operations.observed(notes):
        slow(client).carry_on(folder / "whole", notes.tell)
    places = [str(arguments[0]) for _, arguments in notes.tried]
    start = next(k for k, place in enumerate(places) if place.endswith("exclusions.jsonl"))
    found = [point for point in points(notes) if point[3] >= start and point[0] <= 6]
    tried = [(*point, *try_point(client, folder / "killed", point)) for point in spread(found, number, 1)]
    excluded = [dict(record["excluded"]).get(client) for record in RunFolder.open(folder / "whole").rounds()]
    print(json.dumps({"points": len(found), "tried": tried, "excluded": excluded}))


def test_a_late_client_stays_left_out_after_a_kill():
    report = drive(__file__, count(10, 60))
    assert [report["excluded"][round - 1] for round in LATE] == ["deadline", "deadline"]
    assert [point for point in report["tried"] if point[5]] == []
    assert report["points"] >= 60
    assert sum(point[4] == list(LATE) for point in report["tried"]) >= 2  # several rounds were decided already
    assert sum(point[4] == [LATE[0]] for point in report["tried"]) >= 2


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
