"""Work spread over processes: tasks go in sequence to whichever worker is free, results come as they arrive.

A worker that dies is replaced and its tasks are tried once more. Nothing of a task still runs once its result has been
reported, or once the run has been closed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from multiprocessing.connection import wait
from typing import Any

from fedrela.engine.executors.worker import LOAD, TASK, CannotSendError, Job, Reply, Worker, WorkerDiedError, dumps
from fedrela.engine.tasks import TaskResult, failure_of
from fedrela.errors import ArgumentError, BusyError
from fedrela.records import Failure, FailureKind
from fedrela.text import one_line

DEADLINE = Failure(FailureKind.DEADLINE)
AHEAD_SECONDS = 0.005  # behind a longer task, one sent ahead could wait while another worker has nothing to do
AHEAD_BYTES = 1 << 15  # a larger task must not wait in the pipe of a worker that may itself wait to send a reply


class Pool:
    """Worker processes for several runs, one after the other; `CannotSendError` where they cannot be started."""

    remote_clients = False

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ArgumentError(f"expected at least 1, got {size}", argument="workers")
        self.size = size
        self._load: bytes | None = None
        self._busy = self._closed = False
        self._workers: list[Worker] = []
        try:
            for _ in range(size):
                self._workers.append(Worker())
        except BaseException:
            self.close()
            raise

    def load(self, make: Callable[[Any], Any], setup: Any) -> None:
        """Let every worker call ``work = make(setup)`` once, in place of what it had loaded before.

        Where either cannot be pickled, or the call fails in a worker, that is a `CannotSendError`.
        """
        with self._exclusive():
            self._load = None
            try:
                message = LOAD + dumps((make, setup))
            except Exception as error:
                text = f"workers: expected work that can be pickled, got {one_line(error)}; define it in a module"
                raise CannotSendError(text) from error
            self._replace_ended()
            _load_all(self._workers, message)
            self._load = message

    def run(self, tasks: Iterable[Any], deadline: float | None = None) -> Generator[TaskResult, None, None]:
        """Call ``work(task)`` with each task in some worker, and yield what becomes of them, in order of arrival.

        A task not finished `deadline` seconds after the first was handed out fails with `FailureKind.DEADLINE`.
        """
        end = math.inf if deadline is None else time.monotonic() + deadline
        jobs = deque(Job(position, task) for position, task in enumerate(tasks))
        with self._exclusive():
            if self._load is None:
                raise ArgumentError("nothing is loaded; load work first", argument="workers")
            try:
                self._replace_ended()
                for worker in self._workers:
                    worker.is_swift = False
                yield from self._hand_out(jobs, end)
                while busy := [worker for worker in self._workers if worker.jobs]:
                    timeout = None if end == math.inf else max(0.0, end - time.monotonic())
                    ready = wait([worker.connection for worker in busy], timeout)
                    if not ready:
                        break
                    done = [one for w in busy if w.connection in ready for one in self._collect(w, jobs, end)]
                    # Before yielding, so that no worker waits for the caller.
                    done += self._hand_out(jobs, end)
                    yield from done
                self._check_open()
                late = [*(job for worker in self._workers for job in worker.jobs), *jobs]
                self._end_busy()
                yield from (TaskResult(job.position, failure=DEADLINE) for job in late)
            finally:
                self._end_busy()

    def _hand_out(self, jobs: deque[Job], end: float) -> list[TaskResult]:
        """Give each idle worker a task, and each swift one a second while there are enough left for all."""
        failed: list[TaskResult] = []
        for ahead, least in ((0, 1), (1, self.size)):
            for worker in self._workers:
                if ahead and not worker.is_swift:
                    continue
                while len(worker.jobs) == ahead and len(jobs) >= least and time.monotonic() < end:
                    job = jobs.popleft()
                    try:
                        job.message = job.message or TASK + dumps(job.task)
                    except Exception as error:
                        failed.append(TaskResult(job.position, failure=failure_of(error)))
                        continue
                    if ahead and len(job.message) > AHEAD_BYTES:
                        jobs.appendleft(job)
                        break
                    worker.jobs.append(job)
                    with contextlib.suppress(WorkerDiedError):  # the end of its pipe is seen when it is waited for
                        worker.send(job.message)
        return failed

    def _collect(self, worker: Worker, jobs: deque[Job], end: float) -> list[TaskResult]:
        """Read a reply; where the worker died, put its tasks back."""
        try:
            reply = worker.receive()
        except WorkerDiedError:
            return self._replace_dead(worker, jobs)
        except Exception as unreadable:
            reply = Reply(None, failure_of(unreadable), 0.0, 0.0)
        job = worker.jobs.popleft()
        worker.is_swift = reply.finished - reply.began < AHEAD_SECONDS
        if reply.finished > end:
            return [TaskResult(job.position, failure=DEADLINE)]
        return [TaskResult(job.position, reply.value, reply.failure)]

    def _replace_dead(self, worker: Worker, jobs: deque[Job]) -> list[TaskResult]:
        """Replace a worker that died and put its tasks back, unless the first of them has now killed two workers."""
        first, *rest = worker.jobs
        cause = worker.end()
        self._replace_ended()
        jobs.extendleft(reversed(rest))
        first.deaths += 1
        if first.deaths > 1:
            return [TaskResult(first.position, failure=Failure(FailureKind.WORKER_DIED, f"twice ({cause})"))]
        jobs.appendleft(first)
        return []

    def _replace_ended(self) -> None:
        """Start new workers for those that have ended, with the same work loaded."""
        ended = [place for place, worker in enumerate(self._workers) if not worker.jobs and not worker.is_alive()]
        for place in ended:
            self._workers[place].end()
            self._workers[place] = Worker()
        if self._load is not None:
            _load_all([self._workers[place] for place in ended], self._load)

    def _end_busy(self) -> None:
        for worker in self._workers:
            if worker.jobs:
                worker.end()

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._check_open()
        if self._busy:
            raise BusyError("workers: a run is under way; read it to its end or close it first")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the pool is closed; make another", argument="workers")

    def close(self) -> None:
        """End all workers."""
        self._closed = True
        for worker in self._workers:
            worker.end()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _load_all(workers: list[Worker], message: bytes) -> None:
    """Load work in some workers at the same time; where one of them fails, all are ended."""
    try:
        for worker in workers:
            worker.send(message)
        for worker in workers:
            failure = worker.receive().failure
            if failure is not None:
                text = f"workers: the work cannot be loaded in another process, {failure}; use one process"
                raise CannotSendError(text)
    except BaseException as error:
        for worker in workers:
            worker.end()
        if isinstance(error, WorkerDiedError):
            raise CannotSendError("workers: one died while loading the work; use one process") from None
        raise
