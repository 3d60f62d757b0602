"""Work spread over processes: tasks go in order to whichever worker is free, and results are yielded as they arrive.

Short tasks share a message, and so do their results: a message costs about as much as such a task.

A worker that dies is replaced and its tasks are tried once more. No part of a task is still running once its result has
been reported, or once the run has been closed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import count, islice
from multiprocessing.connection import wait
from typing import Any

from fedrela.arguments import check_integer
from fedrela.engine.executors.worker import (
    LOAD,
    TASKS,
    CannotSendError,
    Job,
    Worker,
    WorkerDiedError,
    dumps,
    loads,
)
from fedrela.engine.tasks import TaskResult, failure_of
from fedrela.errors import ArgumentError, BusyError
from fedrela.records import Failure, FailureKind
from fedrela.text import one_line

DEADLINE = Failure(FailureKind.DEADLINE)
AHEAD_BYTES = 1 << 15  # a larger message could deadlock with a worker that is waiting to send a reply
MOST_AT_ONCE = 8  # tasks in one message


class Pool:
    """Worker processes for several runs, one after the other; raises `CannotSendError` if they cannot be started."""

    remote_clients = False

    def __init__(self, size: int) -> None:
        self.size = check_integer("workers", size)
        self._load: bytes | None = None
        self._busy = self._closed = False
        self._workers: list[Worker] = []
        try:
            for _ in range(size):
                self._workers.append(Worker())
        except BaseException:
            self.close()
            raise

    def load(self, work: Callable[[Any], Any]) -> None:
        """Send a copy of `work` to every worker, in place of what was loaded before.

        If it cannot be pickled, or not be unpickled in a worker, this raises a `CannotSendError`.
        """
        with self._exclusive():
            self._load = None
            try:
                message = LOAD + dumps([work])
            except Exception as error:
                text = f"workers: expected work that can be pickled, got {one_line(error)}; define it in a module"
                raise CannotSendError(text) from error
            self._replace_ended()
            _load_all(self._workers, message)
            self._load = message

    def run(
        self,
        tasks: Iterable[Any],
        deadline: float | None = None,
        then: Callable[[TaskResult], Iterable[Any]] | None = None,
    ) -> Generator[TaskResult, None, None]:
        """Call ``work(task)`` with each task in some worker, and yield the results in order of arrival.

        A task not finished `deadline` seconds after the first was handed out fails with `FailureKind.DEADLINE`. `then`
        is called with each result and returns further tasks, which have the next positions.
        """
        end = math.inf if deadline is None else time.monotonic() + deadline
        jobs = deque(Job(position, task) for position, task in enumerate(tasks))
        positions = count(len(jobs))
        with self._exclusive():
            if self._load is None:
                raise ArgumentError("nothing is loaded; load work first", argument="workers")
            try:
                self._replace_ended()
                for worker in self._workers:
                    worker.seconds = math.inf
                yield from self._hand_out(jobs, end)
                while busy := [worker for worker in self._workers if worker.jobs]:
                    timeout = None if end == math.inf else max(0.0, end - time.monotonic())
                    ready = wait([worker.connection for worker in busy], timeout)
                    if not ready:
                        break
                    done = [result for w in busy if w.connection in ready for result in self._collect(w, jobs, end)]
                    if then is not None:
                        jobs.extend(Job(next(positions), task) for result in done for task in then(result))
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
        """Send each idle worker a message, and each that is soon idle a second while enough tasks are left for all."""
        failed: list[TaskResult] = []
        for ahead, least in ((False, 1), (True, 2 * self.size)):
            for worker in self._workers:
                while worker.has_room(ahead) and len(jobs) >= least and time.monotonic() < end:
                    batch = self._next(jobs, worker.is_fast)
                    try:
                        message = TASKS + dumps([job.task for job in batch])
                    except Exception as error:
                        failed += self._one_by_one(batch, failure_of(error), jobs)
                        continue
                    if ahead and len(message) > AHEAD_BYTES:
                        jobs.extendleft(reversed(batch))
                        break
                    with contextlib.suppress(WorkerDiedError):  # `wait` reports the closed pipe
                        worker.give(batch, message)
        return failed

    def _next(self, jobs: deque[Job], is_fast: bool) -> list[Job]:
        """Take the tasks of the next message: one, or several short ones if enough are left for the other workers."""
        number = max(1, min(MOST_AT_ONCE, len(jobs) // (4 * self.size))) if is_fast else 1
        number = next((i for i, job in enumerate(islice(jobs, number)) if job.is_alone), number)
        return [jobs.popleft() for _ in range(max(1, number))]

    def _one_by_one(self, batch: list[Job], failure: Failure, jobs: deque[Job]) -> list[TaskResult]:
        """Put tasks back that cannot be sent together; a single one has failed."""
        if len(batch) == 1:
            return [TaskResult(batch[0].position, failure=failure)]
        for job in reversed(batch):
            job.is_alone = True
            jobs.appendleft(job)
        return []

    def _collect(self, worker: Worker, jobs: deque[Job], end: float) -> list[TaskResult]:
        """Read replies; if the worker died, put its tasks back."""
        try:
            number, body = worker.receive()
        except WorkerDiedError:
            return self._replace_dead(worker, jobs)
        batch = worker.take(number)
        try:
            replies = loads(body)
        except Exception as unreadable:
            replies = failure_of(unreadable)
        if isinstance(replies, Failure):
            return self._one_by_one(batch, replies, jobs)
        worker.seconds = replies[-1].finished - replies[-1].began
        return [
            TaskResult(job.position, failure=DEADLINE)
            if reply.finished > end
            else TaskResult(job.position, reply.value, reply.failure)
            for job, reply in zip(batch, replies, strict=True)
        ]

    def _replace_dead(self, worker: Worker, jobs: deque[Job]) -> list[TaskResult]:
        """Replace a worker that died and put its tasks back, except a task that has now killed two workers.

        Any task of its current message may have killed it, so each of them is retried by itself.
        """
        tried, rest = worker.take(), list(worker.jobs)
        cause = worker.end()
        self._replace_ended()
        jobs.extendleft(reversed(rest))
        failed = []
        for job in reversed(tried):
            job.is_alone = True
            job.deaths += 1
            if job.deaths > 1:
                why = Failure(FailureKind.WORKER_DIED, f"twice ({cause})")
                failed.append(TaskResult(job.position, failure=why))
            else:
                jobs.appendleft(job)
        return failed

    def _replace_ended(self) -> None:
        """Start new workers for those that have ended, with the same work loaded."""
        ended = [i for i, worker in enumerate(self._workers) if not worker.jobs and not worker.is_alive()]
        for i in ended:
            self._workers[i].end()
            self._workers[i] = Worker()
        if self._load is not None:
            _load_all([self._workers[i] for i in ended], self._load)

    def _end_busy(self) -> None:
        for worker in self._workers:
            if worker.jobs:
                worker.end()

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._check_open()
        if self._busy:
            raise BusyError("workers: a run is in progress; exhaust or close it first")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the pool is closed; create another", argument="workers")

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
    """Load work in some workers at the same time; if one of them fails, all are ended."""
    try:
        for worker in workers:
            worker.send(message)
        for worker in workers:
            replies = loads(worker.receive()[1])
            failure = replies if isinstance(replies, Failure) else replies[0].failure
            if failure is not None:
                text = f"workers: the work cannot be loaded in another process, {failure}; use one process"
                raise CannotSendError(text)
    except BaseException as error:
        for worker in workers:
            worker.end()
        if isinstance(error, WorkerDiedError):
            raise CannotSendError("workers: one died while loading the work; use one process") from None
        raise
