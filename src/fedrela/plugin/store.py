"""A client's new labels on its own disk, by experiment and client: made once, then only read.

Each pass is one ledger file, written atomically by whichever process comes first: a kill leaves all of it or nothing,
and all processes of a client use the same labels. The ledger has the labels, the original labels and their digest. The
log beside the ledgers records what was done when; every ledger that is read must be the one in the log.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from logging import getLogger
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger, undo
from fedrela.core.audit_log import LOG, PASS, AuditLog, check_ledger, record_ledger
from fedrela.core.ledger import labels_digest
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import make_folders, remove_temporary, safe_join, write_bytes
from fedrela.files.scratch import scratch

UNDONE = "undone"
OWN_NAME = "each client needs a name of its own (in Flower, client-id in --node-config)"
WAITS = 50  # of 0.02 s


def default_folder() -> Path:
    """Return where labels are stored by default: below the user's data folder."""
    given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME", "")
    return (Path(given) if given else Path.home() / ".local" / "share") / "fedrela" / "labels"


class LabelStore:
    """The ledgers of one client in one experiment.

    Parameters
    ----------
    folder
        The folder with the labels of all experiments and clients; None for one below the user's data folder.
    experiment, client
        Plain names.

    Attributes
    ----------
    log
        The client's log.

    Examples
    --------
    >>> import tempfile
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LabelStore(folder, "icu", "ward-3")
    ...     _ = store.record(1, done.ledger, round=48)
    ...     print([ledger.labels.tolist() for ledger in store.passes()], store.undo("consent withdrawn").tolist())
    [[0, 1, 0, 1]] [0, 0, 0, 1]
    """

    def __init__(self, folder: str | Path | None, experiment: str, client: str) -> None:
        self.experiment, self.client = experiment, client
        self.root = default_folder() if folder is None else Path(folder)
        self.folder = safe_join(safe_join(self.root, experiment), client)
        self.log = AuditLog(self.folder / LOG)

    def check_writable(self) -> None:
        """Create the client's folder; raise if nothing can be written there."""
        try:
            make_folders(self.folder)
            with scratch(self.folder):
                pass
        except OSError as error:
            what = f"{self.folder}: cannot be written to: {error.strerror}"
            advice = "choose another folder with store= (in Flower, state-dir in --node-config)"
            raise ArgumentError(f"{what}; {advice}") from None

    def passes(self) -> list[Ledger]:
        """Return the ledgers of all passes, in order; raise an `IntegrityError` if one differs from the log."""
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        for missing in sorted(self.log.ledger_entries().keys() - set(names)):
            raise IntegrityError(f"{self.folder / missing}: was removed; {LOG} has an entry for it")
        return [self._read(name) for name in sorted(filter(PASS.fullmatch, names), key=lambda name: (len(name), name))]

    @property
    def undone(self) -> bool:
        """Whether the client went back to its original labels for good."""
        return (self.folder / UNDONE).exists() or self.log.last_undo() is not None

    def record(self, number: int, ledger: Ledger, round: int) -> Ledger:
        """Store the ledger of pass `number`, from 1, made in `round`; return it, or that of a faster process."""
        origin = {"round": round, "experiment": self.experiment, "client": self.client}
        path = self.folder / f"pass-{number:04}.json"
        try:
            ledger = replace(ledger, options=ledger.options | origin)
            ledger.save(path)
        except (ArgumentError, OSError):
            if not path.exists():
                raise
        else:
            record_ledger(self.log, path.name, ledger, round=round)
        remove_temporary(self.folder, keep=f"pass-{number + 1:04}.json")
        return self._read(path.name)

    def undo(self, reason: str = "not given") -> NDArray[np.int64]:
        """Go back to the original labels from the next round on, and make no others; the log holds the reason."""
        passes = self.passes()
        if not passes:
            raise DataError(f"{self.folder}: nothing to undo: no labels were made here")
        write_bytes(self.folder / UNDONE, b"", private=True)
        self.log.append("undo", reason=reason, moved=len(passes[-1]))
        return np.asarray(undo(passes[-1]), np.int64)

    def check_data(self, ledger: Ledger, labels: NDArray[np.int64]) -> None:
        """Raise if a ledger was not made for these labels."""
        if labels_digest(labels) != ledger.labels_sha256:
            raise DataError(
                f"{self.folder}: made for other data than client {self.client} has now; use another experiment name, "
                f"or restore the data in their original order; {OWN_NAME}"
            )

    def _read(self, name: str) -> Ledger:
        ledger = Ledger.load(self.folder / name)
        owner = [ledger.options.get(key) for key in ("experiment", "client")]
        if owner != [self.experiment, self.client] or type(ledger.options.get("round")) is not int:
            raise IntegrityError(f"{self.folder / name}: not made by client {self.client} in {self.experiment}")
        for _ in range(WAITS):  # another process may have written the ledger, and be about to write its entry
            if check_ledger(self.log, name, ledger) is not None:
                return ledger
            time.sleep(0.02)
        message = "FedReLa: %s has no entry in %s: its writer was killed, or the log was removed; see fedrela ledger"
        getLogger("fedrela").warning(message, self.folder / name, LOG)
        record_ledger(self.log, name, ledger, "found", round=ledger.options["round"])
        return ledger
