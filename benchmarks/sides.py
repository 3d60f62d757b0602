"""The processes of one side of a comparison: told when to do a round, and watched from outside (Linux)."""

from __future__ import annotations

import contextlib
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

LOOK_EVERY = 0.05  # seconds between two looks at the memory


class Side:
    """Processes that do their rounds at the same time, the first one at once.

    Each writes ``done`` to its output after a round, and begins the next when it reads a line.

    Attributes
    ----------
    own, mapped
        Peak memory in bytes where it was watched, see `memory_of`.
    """

    def __init__(self, *commands: list[str]) -> None:
        self.began, self.own, self.mapped = time.perf_counter(), 0, 0
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in commands
        ]

    def wait(self, *, watch: bool = False) -> float:
        """Return the seconds from the beginning of the round until all have done it."""
        for process in self.processes:
            assert process.stdout is not None
            while watch and not select.select([process.stdout], [], [], LOOK_EVERY)[0]:
                self.look_at_memory()
            while (line := process.stdout.readline()) != "done\n":  # peers may write lines of their own
                if not line:
                    raise SystemExit("a process ended before its time; see above")
        return time.perf_counter() - self.began

    def round(self, *, watch: bool = False) -> tuple[float, float]:
        """Do a round and return its wall and CPU seconds."""
        members = self.members()
        before, self.began = sum(map(cpu, members)), time.perf_counter()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return self.wait(watch=watch), sum(map(cpu, members)) - before

    def members(self) -> list[int]:
        """Return the ids of the processes and of all that descend from them."""
        return family([process.pid for process in self.processes])

    def look_at_memory(self) -> None:
        """Note the memory of now, where it is more than before."""
        now = [memory_of(process) for process in self.members()]
        self.own = max(self.own, sum(own for own, _ in now))
        self.mapped = max(self.mapped, sum(mapped for _, mapped in now))

    def close(self) -> None:
        """Let the processes end."""
        for process in self.processes:
            process.communicate()


def cpu(process: int) -> float:
    """Return the CPU seconds of a process, by the clock that Linux has for each: /proc counts in hundredths only."""
    return time.clock_gettime(~process << 3 | 2)


def memory_of(process: int) -> tuple[int, int]:
    """Return a process's anonymous and shared memory, and its mapped files, in bytes; shared pages are divided."""
    found = {}
    with contextlib.suppress(OSError):  # it has ended
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]:
            name, size = line.split()[:2]
            found[name] = int(size) * 1024
    return found.get("Pss_Anon:", 0) + found.get("Pss_Shmem:", 0), found.get("Pss_File:", 0)


def family(processes: Sequence[int]) -> list[int]:
    """Return the ids of processes and of all that descend from them."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = list(processes)
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found
