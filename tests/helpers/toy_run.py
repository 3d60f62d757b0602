"""A toy engine: seven rounds on a few numbers, all that a real one does to its folder, and the way back into it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import DataError
from fedrela.files import digest, write_bytes
from fedrela.records import Failure, FailureKind
from fedrela.runfolder import RunFolder

DEADLINE = Failure(FailureKind.DEADLINE)
MANIFEST = {"format": "toy-1", "classes": ["a", "b"]}
CONFIG = "seed = 1\n"
MACHINE = {"started": "today"}
ROUNDS, EVERY, RELABEL, LATE = 7, 2, 4, (3, 5)
NOT_COMPARED = ("lock", "machine.json", "timing.jsonl", "exclusions.jsonl", "report.html", "checkpoint")

Tell = Callable[[str, int], None]


def nothing(what: str, round: int) -> None:
    """Hear what is promised, and do nothing."""


def step(weights: NDArray[np.float64], round: int, late: int) -> NDArray[np.float64]:
    """Return the weights after a round, of which every earlier round is visible."""
    return (weights * 1.7 + np.sin(np.arange(weights.size) + round) - late) % 10


def states() -> list[NDArray[np.float64]]:
    """Return the weights after each round, from round 0."""
    found = [np.arange(5.0)]
    for round in range(1, ROUNDS + 1):
        found.append(step(found[-1], round, round in LATE))
    return found


def arrays_of(weights: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    return {"weights": weights, "half": weights.astype(np.float16), "none": np.zeros((0, 3)), "mask": weights > 5}


def record_of(round: int) -> dict[str, Any]:
    return {"relabelled": [0, 2] if round >= RELABEL else [], "round": round}


def round_record(round: int, weights: NDArray[np.float64]) -> dict[str, Any]:
    return {"round": round, "loss": float(weights.sum()), "excluded": [[1, "deadline"]] if round in LATE else []}


def open_or_create(path: Path) -> RunFolder:
    try:
        return RunFolder.open(path)
    except DataError:
        return RunFolder.create(path, MANIFEST, CONFIG, MACHINE)


def carry_on(path: Path, last: int = ROUNDS, *, tell: Tell = nothing, begin: Any = open_or_create) -> None:
    """Carry the run at `path` to its end from wherever it is; `tell` hears each promise when it is made."""
    folder = begin(path)
    tell("begun", 0)
    with folder.locked():
        if folder.status == "done":
            return
        saved = folder.load_checkpoint()
        reached, weights = (saved.round, saved.arrays["weights"]) if saved else (0, states()[0])
        relabelled = saved.record["relabelled"] if saved else []
        folder.truncate_rounds(reached)
        folder.clear_ledgers(client for client in range(4) if client not in relabelled)
        noted = folder.exclusions()
        if saved is None:
            folder.save_checkpoint(0, arrays_of(weights), record_of(0))
        for round in range(reached + 1, last + 1):
            if round in LATE and round not in noted:
                folder.note_exclusions(round, {1: DEADLINE})
                tell("noted", round)
            weights = step(weights, round, round in LATE)
            if round == RELABEL:
                for client in (0, 2):
                    write_bytes(folder.ledger_path(client), json.dumps({"client": client}).encode())
            folder.append_timing({"round": round, "train_seconds": 0.5})
            folder.append_round(round_record(round, weights))
            if round % EVERY == 0:
                folder.save_checkpoint(round, arrays_of(weights), record_of(round))
                tell("saved", round)
        if last == ROUNDS:
            folder.write_json("relabelling.json", {"moves": [[0, 1], [2, 3]]})
            folder.write("gallery.npz", b"pictures")
            folder.finish({"weights_sha256": digest(weights.tobytes()), "rounds": last})
            tell("done", last)


def compared(path: Path) -> dict[str, bytes]:
    """Return every file of a run folder that must not depend on what happened on the way."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    named = {file.relative_to(path).as_posix(): file for file in files}
    return {name: file.read_bytes() for name, file in named.items() if name.split("/")[0] not in NOT_COMPARED}


def check_sound(path: Path) -> int | None:
    """Check that the folder holds one whole state of the run; return its round, or None where there is no run yet."""
    if not (path / "manifest.json").exists():
        return None
    folder = RunFolder.open(path)
    saved = folder.load_checkpoint()
    rounds, noted = folder.rounds(), folder.exclusions()
    assert all(failures == {1: DEADLINE} for failures in noted.values())
    assert [record["round"] for record in rounds] == list(range(1, len(rounds) + 1))
    if folder.status == "done":
        folder.check()
    if saved is None:
        return 0
    wanted = arrays_of(states()[saved.round])
    assert saved.note == ""
    assert saved.record == record_of(saved.round)
    assert saved.arrays.keys() == wanted.keys()
    assert all(np.array_equal(saved.arrays[name], array) for name, array in wanted.items())
    assert rounds[: saved.round] == [round_record(r, w) for r, w in enumerate(states()[: saved.round + 1]) if r]
    return saved.round


def check_promises(path: Path, promises: frozenset[tuple[str, int]]) -> None:
    """Check that the folder is sound and holds all that callers rely on after the calls that had returned."""
    reached = check_sound(path)
    assert reached is not None or ("begun", 0) not in promises
    assert (reached or 0) >= max((round for what, round in promises if what == "saved"), default=0)
    noted = {round for what, round in promises if what == "noted"}
    assert not noted or noted <= RunFolder.open(path).exclusions().keys()
    assert ("done", ROUNDS) not in promises or RunFolder.open(path).status == "done"
