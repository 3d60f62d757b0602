"""B12: the power fails after any step, any part of what was not synced is lost, and the folder still keeps its word."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedrela.files import operations
from fedrela.streams import stream
from helpers.batteries import count, tried
from helpers.disk_faults import Notes
from helpers.power_loss import Disk
from helpers.toy_run import carry_on, check_promises, compared

WAYS = 64  # states tried for each step
Tree = dict[str, bytes | None]


def put(folder: Path, tree: Tree) -> None:
    """Write a state into an empty folder."""
    for name, content in tree.items():
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)


def states(base: Path, notes: Notes) -> Iterator[tuple[Tree, int]]:
    """Yield every different state that a loss may leave, with the number of steps that were done."""
    disk, rng, seen = Disk(base), stream(1, "power loss"), set()
    for step in range(len(notes.done) + 1):
        for tree in disk.after_loss(WAYS, rng):
            key = (tuple(sorted(tree.items(), key=lambda item: item[0])), notes.promised(step))
            if key not in seen:
                seen.add(key)
                yield tree, step
        if step < len(notes.done):
            disk.apply(*notes.done[step])


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the real disk: what it would lose is worked out, not tried."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def test_a_power_loss_breaks_no_promise(fast_folder: Path, no_sync: None) -> None:
    notes = Notes()
    with operations.observed(notes):
        carry_on(fast_folder / "run", tell=notes.tell)
    wanted = compared(fast_folder / "run")
    found = list(states(fast_folder, notes))
    assert len(found) >= 1000
    chosen = np.linspace(0, len(found) - 1, count(500, len(found))).astype(int).tolist()
    for number in chosen:
        tree, step = found[number]
        place = fast_folder / f"state{number}"
        place.mkdir()
        put(place, tree)
        try:
            check_promises(place / "run", notes.promised(step))
            carry_on(place / "run")
        except BaseException as error:
            error.add_note(f"after step {step} of {len(notes.done)}: {notes.done[step - 1][:2]}")
            raise
        assert compared(place / "run") == wanted
        tried(faults=1)
        shutil.rmtree(place)
