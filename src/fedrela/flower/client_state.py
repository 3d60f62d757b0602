"""What a client stores on its own disk: its state after each round that may still count.

A client's round counts only when the server says so in a later message; until then it is one of several that may. A
server that was restarted names an earlier round, and the client continues from there. So a restarted client never
re-labels anew, and a round that the server lost leaves nothing behind.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import IntegrityError
from fedrela.files import alone, digest, make_folders, read_plain, safe_join, sweep, write_bytes
from fedrela.files.atomic import remove_if_there

LARGEST = 1 << 34  # bytes of a file
_FILE = re.compile(r"round-(\d{6,9})")


@dataclass(frozen=True, eq=False)
class StoredState:
    """A client's state after a round."""

    round: int = 0  # 0 before the first
    relabelled: int | None = None  # the round in which it re-labelled last
    labels: NDArray[np.int64] | None = None  # current ones of all its samples; None while they are the original ones
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # what the algorithm keeps


class StateStore:
    """The stored states of one client in one experiment, below a folder of the client's own."""

    def __init__(self, root: str | Path, experiment: str, client: int) -> None:
        self.path = safe_join(safe_join(root, experiment), f"client-{client}")
        make_folders(self.path)

    def locked(self) -> Any:
        """Hold a lock that no other process of this client can hold."""
        return alone(self.path / "lock")

    def read(self, admitted: int) -> StoredState:
        """Return the state after the round that counted last; `IntegrityError` where it is lost."""
        if admitted == 0:
            return StoredState()
        path = self._path(admitted)
        try:
            data = read_plain(path, LARGEST)
        except OSError:
            what = f"{path}: is missing, though this round counted; restore the client's folder"
            raise IntegrityError(what) from None
        seal, _, body = data.partition(b"\n")
        if seal.decode("ascii", "replace") != digest(body):
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in arrays.files}
        relabelled, labels = int(read.pop("relabelled")), read.pop("labels", None)
        return StoredState(admitted, relabelled or None, labels, read)

    def write(self, state: StoredState) -> None:
        """Write the state after a round; on disk before this returns."""
        labels = {} if state.labels is None else {"labels": state.labels}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, relabelled=np.int64(state.relabelled or 0), **labels, **state.arrays)
        body = buffer.getvalue()
        write_bytes(self._path(state.round), digest(body).encode() + b"\n" + body)

    def remove_outdated(self, admitted: int, durable: int) -> None:
        """Remove states that can never count again: later ones that did not, and all before the last durable one."""
        rounds = sorted(int(found[1]) for path in self.path.iterdir() if (found := _FILE.fullmatch(path.name)))
        safe = max((r for r in rounds if r <= min(admitted, durable)), default=0)
        for r in rounds:
            if r > admitted or r < safe:
                remove_if_there(self._path(r))
        sweep(self.path)

    def _path(self, round: int) -> Path:
        return self.path / f"round-{round:06}"
