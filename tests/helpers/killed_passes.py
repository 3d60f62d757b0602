"""A process of its own that forks: clients killed at every step of a write, and clients that come at once.

Prints what was found as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fedrela.files import operations
from fedrela.plugin import LabelStore
from helpers.disk_faults import WRITES, Kill, Notes
from helpers.plugin_toys import relabel_in_round


def child(action: object) -> int:
    """Run an action in a child and return its exit code."""
    number = os.fork()
    if number == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def kill_points(folder: Path) -> list[tuple[str, str, int, str, str, str]]:
    """Kill the first round at every step; then come back with other models, twice."""
    folder.mkdir()
    notes = Notes()
    with operations.observed(notes):
        relabel_in_round(folder / "whole", 3, seed=1)
    found = []
    for number, (verb, arguments) in enumerate(notes.tried):
        moments = ("before", "amid", "after") if verb in WRITES and len(arguments[1]) > 1 else ("before", "after")
        for moment in moments:
            place = folder / f"{number}-{moment}"

            def killed(place: Path = place, number: int = number, moment: str = moment) -> None:
                with operations.observed(Kill(number, moment)):
                    relabel_in_round(place, 3, seed=1)

            code = child(killed)
            second, third = relabel_in_round(place, 4, seed=2), relabel_in_round(place, 5, seed=3)
            names = " ".join(sorted(path.name for path in (place / "toy" / "7").iterdir() if path.name[0] != "."))
            found.append((verb, moment, code, second, third, names))
    return found


def all_at_once(folder: Path, clients: int) -> list[str]:
    """Let several processes make the labels of one client at the same moment, each with another model."""
    gate, door = os.pipe()
    answers, pen = os.pipe()
    for seed in range(clients):
        if os.fork() == 0:
            try:
                os.close(door)
                os.read(gate, 1)  # returns when the parent closes the door
                os.write(pen, (relabel_in_round(folder, 3, seed) + "\n").encode())
            finally:
                os._exit(0)
    os.close(door)
    for _ in range(clients):
        os.wait()
    os.close(pen)
    with os.fdopen(answers) as file:
        return file.read().splitlines()


if __name__ == "__main__":
    root = Path(sys.argv[1])
    kills, together = kill_points(root / "kills"), all_at_once(root / "together", 6)
    events = [entry["event"] for entry in LabelStore(root / "together", "toy", "7").log.entries()]
    print(json.dumps({"kills": kills, "together": together, "events": events}))
