"""What a client remembers, on its own disk: the state after each of its turns that may still count.

A turn counts only when the server says so in a later message; until then it is one of several that may. A server that
was restarted names an earlier turn, and the client goes on from there. So a restarted client never re-labels anew, and
a turn that the server lost leaves nothing behind.
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

LARGEST = 1 << 34  # bytes of a turn
_TURN = re.compile(r"turn-(\d{6,9})")


@dataclass(frozen=True, eq=False)
class Remembered:
    """A client's state after a turn.

    Attributes
    ----------
    round
        Of the turn; 0 before the first.
    relabelled
        The round in which it re-labelled last, or None.
    labels
        Labels in force, of all its samples; None while they are the original ones.
    kept
        What the algorithm keeps.
    """

    round: int = 0
    relabelled: int | None = None
    labels: NDArray[np.int64] | None = None
    kept: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Memory:
    """The turns of one client in one experiment, below a folder of the client's own."""

    def __init__(self, root: str | Path, experiment: str, client: int) -> None:
        self.path = safe_join(safe_join(root, experiment), f"client-{client}")
        make_folders(self.path)

    def locked(self) -> Any:
        """Keep every other process of this client out while a block runs."""
        return alone(self.path / "lock")

    def recall(self, admitted: int) -> Remembered:
        """Return the state after the turn that counted last; `IntegrityError` where it is lost."""
        if admitted == 0:
            return Remembered()
        path = self._place(admitted)
        try:
            data = read_plain(path, LARGEST)
        except OSError:
            raise IntegrityError(
                f"{path}: is missing, though this turn counted; put the client's folder back"
            ) from None
        seal, _, body = data.partition(b"\n")
        if seal.decode("ascii", "replace") != digest(body):
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in arrays.files}
        relabelled, labels = int(read.pop("relabelled")), read.pop("labels", None)
        return Remembered(admitted, relabelled or None, labels, read)

    def keep(self, turn: Remembered) -> None:
        """Write the state after a turn; on disk before this returns."""
        labels = {} if turn.labels is None else {"labels": turn.labels}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, relabelled=np.int64(turn.relabelled or 0), **labels, **turn.kept)
        body = buffer.getvalue()
        write_bytes(self._place(turn.round), digest(body).encode() + b"\n" + body)

    def forget(self, admitted: int, durable: int) -> None:
        """Remove turns that can never count again: later ones that did not, and all before the last durable one."""
        rounds = sorted(int(found[1]) for path in self.path.iterdir() if (found := _TURN.fullmatch(path.name)))
        safe = max((r for r in rounds if r <= min(admitted, durable)), default=0)
        for r in rounds:
            if r > admitted or r < safe:
                remove_if_there(self._place(r))
        sweep(self.path)

    def _place(self, round: int) -> Path:
        return self.path / f"turn-{round:06}"
