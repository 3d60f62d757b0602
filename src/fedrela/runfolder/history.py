"""The logs of a run: its rounds, what they took, and which clients were left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedrela.errors import IntegrityError
from fedrela.files.verbs import sync, sync_folder
from fedrela.records import Failure
from fedrela.runfolder.log import Log
from fedrela.runfolder.names import EXCLUSIONS, ROUNDS, TIMING
from fedrela.runfolder.text import Record


class History:
    """The logs in the run folder `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rounds = Log(path / ROUNDS)
        self.timing = Log(path / TIMING)
        self.exclusions = Log(path / EXCLUSIONS, seals=True)
        self._notes: int | None = None  # how many exclusions the log holds, where that is known

    def sync(self) -> None:
        """Wait until every round is on disk."""
        for log in (self.rounds, self.timing):
            if log.path.exists():
                sync(log.path)
        sync_folder(self.path)

    def read_rounds(self) -> list[Record]:
        """Return the records of all rounds, the first of which is round 1."""
        records = self.rounds.read()
        self._check_order(records, len(records))
        return records

    def heads(self, after: int) -> dict[str, bytes]:
        """Return, by name, the two logs of rounds up to round `after`."""
        self._check_order(self.rounds.sound()[:after], after)
        return {ROUNDS: self.rounds.head(after), TIMING: self.timing.head(self._timed(after))}

    def cut(self, after: int) -> None:
        """Drop every round later than `after`."""
        self._check_order(self.rounds.sound()[:after], after)
        self.rounds.cut(after)
        self.timing.cut(self._timed(after))

    def _timed(self, after: int) -> int:
        """Return how many timings from the start are of rising rounds up to `after`: nobody vouches for this log."""
        count = last = 0
        for record in self.timing.sound():
            if record.get("round") not in range(last + 1, after + 1):
                break
            count, last = count + 1, int(record["round"])
        return count

    def _check_order(self, records: list[Record], count: int) -> None:
        if [record.get("round") for record in records] != list(range(1, count + 1)):
            raise IntegrityError(f"{self.rounds.path}: rounds 1 to {count} in order are needed; it was damaged")

    def note(self, round: int, failures: Mapping[int, Failure]) -> None:
        """Note which clients a round leaves out, and wait until that is on disk."""
        if failures:
            count = len(self.exclusions.read()) if self._notes is None else self._notes
            self._notes = None
            excluded = [[client, failure.as_record()] for client, failure in sorted(failures.items())]
            self.exclusions.append({"note": count + 1, "round": round, "excluded": excluded})
            sync(self.exclusions.path)
            sync_folder(self.path)
            self._notes = count + 1

    def noted(self) -> dict[int, dict[int, Failure]]:
        """Return the failures by round and client; the first note on a client in a round counts."""
        noted: dict[int, dict[int, Failure]] = {}
        try:
            for number, record in enumerate(self.exclusions.read(), 1):
                if record["note"] != number:
                    raise ValueError("a line is missing")
                failures = noted.setdefault(record["round"], {})
                for client, failure in record["excluded"]:
                    failures.setdefault(client, Failure.from_record(failure))
        except (KeyError, TypeError, ValueError):
            raise IntegrityError(f"{self.exclusions.path}: does not hold every note in order; it was damaged") from None
        return noted
