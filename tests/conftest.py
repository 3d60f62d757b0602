"""Counts of the batteries: everyday by default, `--nightly` for the long ones, recorded for `tests/nightly.py`."""

from __future__ import annotations

import functools
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Tests run in several processes: a linear-algebra library that starts threads in each only makes them wait.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


PIPE = "NIGHTLY_PIPE"  # the end of a pipe: pytest kills its process group when the other end is closed


@pytest.fixture
def fast_folder() -> Iterator[Path]:
    """Give a fresh folder for thousands of small files, in memory where the system has one there."""
    from helpers.forks import memory

    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        yield Path(folder)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the batteries at their nightly counts")
    parser.addoption("--tenth", action="store_true", help="run the batteries at a tenth of their everyday counts")
    parser.addoption("--goldens", metavar="DIR", help="folder of full FedReLa goldens, in place of the reduced copies")
    parser.addoption("--real-data", metavar="DIR", help="folder with CIFAR's binary editions, to check the real bytes")


def pytest_configure(config: pytest.Config) -> None:
    from helpers import batteries

    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:  # as in the background, under nohup: children would ignore it
            signal.signal(number, handler)

    batteries.NIGHTLY, batteries.TENTH = config.getoption("--nightly"), config.getoption("--tenth")
    is_worker, pipe = hasattr(config, "workerinput"), os.environ.pop(PIPE, None)  # not for what tests start
    if batteries.RECORD in os.environ and (is_worker or pipe):
        folder = Path(os.environ[batteries.RECORD])
        config.pluginmanager.register(Counting(folder))
        if pipe:
            config.pluginmanager.register(Recording(folder, int(pipe)))


class Counting:
    """Counts the inputs of tests, in every process that runs some; leaves out the tests that were done before."""

    def __init__(self, folder: Path) -> None:
        self._done = set(json.loads((folder / "done.json").read_text()))

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self._done])
        items[:] = [item for item in items if item.nodeid not in self._done]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        found = getattr(getattr(item, "obj", None), "hypothesis", None)
        if found is not None and not hasattr(found.inner_test, "counted"):
            found.inner_test = counted(found.inner_test)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        from helpers import batteries

        batteries.write_counts()  # before the end of the test is written: whoever sees that sees all its counts


def counted(test: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Hypothesis test that counts the examples which it does not reject."""
    from helpers import batteries

    @functools.wraps(test)
    def counting(*args: Any, **kwargs: Any) -> Any:
        result = test(*args, **kwargs)
        batteries.tried()
        return result

    counting.counted = True  # type: ignore[attr-defined]
    return counting


class Recording:
    """Writes how each test ended; ends this process and its workers when the one that started it has gone."""

    def __init__(self, folder: Path, pipe: int) -> None:
        self._file = (folder / "ends.jsonl").open("a", buffering=1)
        self._outcomes: dict[str, tuple[str, float]] = {}
        threading.Thread(target=end_with, args=[pipe], daemon=True).start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._write(collected=len(session.items))

    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        self._write(collected=len(list(ids)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome, seconds = self._outcomes.pop(report.nodeid, ("passed", 0.0))
        if report.outcome != "passed" and outcome != "failed":
            outcome = report.outcome
        seconds += report.duration
        if report.when in ("setup", "call"):
            self._outcomes[report.nodeid] = outcome, seconds
        else:  # teardown, or a worker that died
            self._write(test=report.nodeid, outcome=outcome, seconds=round(seconds, 3))

    def pytest_unconfigure(self) -> None:
        self._file.close()

    def _write(self, **record: object) -> None:
        self._file.write(json.dumps(record) + "\n")


def end_with(pipe: int) -> None:
    """Wait until the other end of a pipe is closed, then kill this process and all that it started."""
    os.read(pipe, 1)
    os.killpg(os.getpgrp(), signal.SIGKILL)
