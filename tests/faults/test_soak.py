"""B23: a long run of a hundred clients with state neither grows in memory nor leaks open files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fedrela.experiment import begin
from helpers.batteries import count, tried
from helpers.forks import drive

CONFIG: dict[str, Any] = {
    "data": {
        "source": "gaussians",
        "options": {"samples": [1200, 800, 400], "test_samples": 60, "classes": 3, "dimension": 8},
        "partition": {"kind": "dirichlet", "clients": 100, "alpha": 1.0, "min_size": 4},
        "imbalance": {"kind": "natural"},
    },
    "model": {"name": "mlp", "hidden": [16]},
    "algorithm": {"name": "scaffold"},
    "relabel": {"start": 2, "period": 5, "tau": 0.1},
    "engine": {"workers": 2, "checkpoint_every": 2},
}
GROWTH = 1.05  # of resident memory, from the middle of the run to its end


def resident(process: int | str) -> int:
    """Return the resident bytes of a process, without what it shares with others."""
    _, pages, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
    return (int(pages) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def state() -> dict[str, int]:
    """Return the memory and open files of this process, and the number of its threads."""
    own = Path("/proc/self")
    return {
        "bytes": resident("self"),
        "files": len(list((own / "fd").iterdir())),
        "threads": len(os.listdir(own / "task")),
    }


def main(folder: Path, rounds: int) -> None:
    config = CONFIG | {"train": {"rounds": rounds, "epochs": 1, "batch_size": 16}}
    states = []
    with begin(config, out=folder / "run") as execution:
        for done in execution.rounds():
            tried()
            if done.record.round in (rounds // 2, rounds):
                states.append(state())
    print(json.dumps(states))


def test_memory_and_open_files_stay_constant():
    middle, end = drive(__file__, count(20, 200))
    assert end["files"] == middle["files"]
    assert end["threads"] == middle["threads"]
    assert end["bytes"] <= GROWTH * middle["bytes"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
