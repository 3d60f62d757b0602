"""Every test at its nightly counts, group by group: python tests/nightly.py [--workers 2] [--keep] [--only GROUP ...].

A group is a folder of tests; the slowest files come first, together; the last group measures coverage. Killed at any
moment, the same command goes on with the tests that had not ended, as long as the source tree is the same. What they
tried is in .nightly/counts.json, which `python docs/guarantees.py --publish` shows in docs/explanation/guarantees.md.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from helpers.nightly_counts import Tests, by_battery, failed, progress, results, too_little_covered

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".nightly"
SOURCES = (  # all that tests read
    "src", "tests", "examples", "benchmarks", "docs", "results", "tools", ".github", ".ci", "*.md", "Makefile",
    "LICENSE", "CITATION.cff", "pyproject.toml", "constraints.txt", "requirements.lock",
)  # fmt: skip
MADE = {"__pycache__", "_build", "jupyter_execute", ".envs"}  # folders that are no part of the source tree
SLOW = (
    "crash/test_kill_points.py", "crash/test_random_kills.py", "flower/test_deployment_nightly.py",
    "runfolder/test_fuzz.py", "data/test_unpack.py", "core/test_repeated_requests.py", "flower/test_faults.py",
    "core/test_properties.py", "faults/test_dropouts.py",
)  # fmt: skip


def groups() -> dict[str, list[str]]:
    """Return the arguments of pytest for each group."""
    tests = ROOT / "tests"
    slow = [f"tests/{name}" for name in SLOW if (tests / name).exists()]
    folders = sorted({path.relative_to(tests).parts[0] for path in tests.glob("*/**/test_*.py")})
    found = {"slow": slow}
    found |= {name: [f"tests/{name}", *(f"--ignore={path}" for path in slow)] for name in folders}
    found["top"] = sorted(path.relative_to(ROOT).as_posix() for path in tests.glob("test_*.py"))
    found["src"] = ["src", "tests/conftest.py"]  # which has the options
    nightly = {name: [*arguments, "--nightly"] for name, arguments in found.items() if arguments}
    report = f"--cov-report=json:{STATE / 'coverage.json'}"
    return nightly | {"coverage": ["tests", "src", "--cov=fedrela", "--cov-branch", report]}


def sources() -> list[Path]:
    """Return every file that the tests depend on."""
    files = {each for name in SOURCES for path in ROOT.glob(name) for each in (path, *path.rglob("*"))}
    return sorted(path for path in files if path.is_file() and not MADE & {*path.relative_to(ROOT).parts})


def tree() -> str:
    """Return the digest of all that the tests depend on."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def write(path: Path, content: Any) -> None:
    """Write JSON so that a kill leaves the file as it was or as it should be."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)


def start(arguments: list[str], workers: int, attempt: Path, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start pytest; return it, and the end of a pipe: pytest kills itself and its children when that is closed."""
    reader, writer = os.pipe()
    environment = {"NIGHTLY_RECORD": str(attempt), "NIGHTLY_PIPE": str(reader), "COVERAGE_FILE": str(STATE / "cov")}
    options = ["-n", str(workers), "--dist", "worksteal", "-q", "--timeout=5400"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            pass_fds=[reader], start_new_session=True,
        )  # fmt: skip
    os.close(reader)
    return process, writer


class Nightly:
    """A run of all groups. What each start has done stays in a folder of its own, numbered."""

    def __init__(self, keep: bool) -> None:
        try:
            self.state = json.loads((STATE / "state.json").read_text())
        except (OSError, ValueError):
            self.state = {}
        digest, commit = tree(), git("rev-parse", "HEAD")
        if not self.state or (self.state["tree"] != digest and not keep):
            for attempt in self.attempts():
                shutil.rmtree(attempt)
            self.state = {"groups": {}, "seconds": 0.0, "retry": 0, "kept_from": []}
        elif keep:  # look at every group again: for tests that failed before, and for new ones
            self.state |= {"groups": {}, "retry": len(self.attempts())}
            self.state["kept_from"] = sorted({*self.state["kept_from"], self.state["commit"]} - {commit})
        changed = git("status", "--porcelain", "--", "src", "tests") != ""
        self.state |= {"tree": digest, "commit": commit, "uncommitted_changes": changed}
        write(STATE / "state.json", self.state)

    def attempts(self, kind: str = "*") -> list[Path]:
        return sorted(STATE.glob(f"[0-9]*-{kind}"))

    def ended(self) -> Tests:
        """Return every test that has ended at nightly counts, but for failures that are to be tried again."""
        found: Tests = {}
        for attempt in self.attempts("nightly"):
            again = int(attempt.name.split("-")[0]) < self.state["retry"]
            ended = results(attempt)[0].items()
            found |= {name: test for name, test in ended if not (again and test["outcome"] == "failed")}
        return found

    def is_done(self, name: str) -> bool:
        return self.state["groups"].get(name, {}).get("problem") == ""

    def run(self, name: str, arguments: list[str], workers: int, minutes: float) -> None:
        """Run the tests of a group that have not ended yet, for at most so many minutes."""
        kind = "coverage" if name == "coverage" else "nightly"
        attempt = STATE / f"{len(self.attempts()):04}-{kind}"
        attempt.mkdir()
        write(attempt / "done.json", sorted(self.ended()) if kind == "nightly" else [])
        end, said = time.monotonic() + 60 * minutes, time.monotonic()
        process, pipe = start(arguments, workers, attempt, STATE / f"{name}.log")
        try:
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
                if time.monotonic() - said >= 60:
                    said = self.spend(said)
                    self.say(f"{name}: {progress(attempt)}")
            code = process.poll()
        finally:
            os.close(pipe)
            process.wait()
        problem = f"stopped after {minutes:g} minutes" if code is None else f"pytest ended with exit code {code}"
        reached = {test: found["inputs"] for test, found in results(attempt)[1].items()}
        problem = "" if code in (0, 1, 5) else problem  # 5: no test was left to run
        self.state["groups"][name] = {"problem": problem, "reached": reached}
        self.spend(said)
        self.say(f"{name}: {problem or 'done'}: {progress(attempt)}")

    def spend(self, since: float) -> float:
        """Add the time since then to that of the whole run; return the time now."""
        self.state["seconds"] += time.monotonic() - since
        write(STATE / "state.json", self.state)
        return time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{self.state['seconds'] / 60:6.1f} min] {text}", flush=True)

    def counts(self) -> dict[str, Any]:
        """Return the counts of every battery, what failed, and what did not come to its end."""
        ended, page = self.ended(), (ROOT / "docs/explanation/guarantees.md").read_text()
        rows, failures = by_battery(ended, page), failed(ended)
        if self.is_done("coverage"):
            tests, below = results(self.attempts("coverage")[-1])[0], too_little_covered(STATE / "coverage.json")
            rows["B25"] = by_battery(tests, "")["other tests"] | {"violations": len(below)}
            failures += [f"coverage: {text}" for text in (*below, *failed(tests))]
        problems = {name: group for name, group in self.state["groups"].items() if group["problem"]}
        return {
            **{key: self.state[key] for key in ("commit", "uncommitted_changes", "kept_from")},
            "complete": all(map(self.is_done, groups())),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "minutes": round(self.state["seconds"] / 60),
            "batteries": rows,
            "failures": failures,
            "not_ended": problems,
        }


def tell(counts: dict[str, Any]) -> int:
    """Print the counts of every battery, then what is wrong; return the exit code."""
    for name, row in counts["batteries"].items():
        print(
            f"{name:11} {row['inputs']:>11,} inputs {row['faults']:>9,} faults {row['violations']:>4,} violations "
            f"{row['passed']:>6,} passed {row['failed']:>4,} failed {row['skipped']:>4,} skipped {row['seconds']:>7,} s"
        )
    for text in counts["failures"]:
        print(f"FAILED {text}")
    for name, group in counts["not_ended"].items():
        print(f"NOT ENDED {name}: {group['problem']}; see {STATE / name}.log")
        for test, inputs in group["reached"].items():
            print(f"  {test}: reached {inputs:,} inputs")
    return 1 if counts["failures"] or counts["not_ended"] else 0


def main() -> int:
    names = list(groups())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests (default: 2)")
    parser.add_argument("--minutes", type=float, default=90, help="time limit of a group (default: 90)")
    parser.add_argument(
        "--keep", action="store_true", help="keep what passed, also on another source tree, and retry the rest"
    )
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="GROUP", help="groups to run, e.g. core"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    STATE.mkdir(exist_ok=True)
    with (STATE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{STATE}: another nightly run is going on")
        nightly = Nightly(options.keep)
        for number, name in enumerate(options.only, 1):
            if not nightly.is_done(name):
                nightly.say(f"{name}: group {number} of {len(options.only)}")
                nightly.run(name, groups()[name], options.workers, options.minutes)
                write(STATE / "counts.json", nightly.counts())
    return tell(nightly.counts())


if __name__ == "__main__":
    sys.exit(main())
