"""The pool: real processes that fail, are killed, are late, or are closed early."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from multiprocessing import forkserver, resource_tracker

import numpy as np
import pytest
import torch

from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.executors.worker import END_SECONDS, CannotSendError
from fedrela.engine.shared_memory import Block
from fedrela.engine.tasks import TaskResult
from fedrela.errors import ArgumentError, BusyError
from fedrela.records import Failure, FailureKind
from helpers import toy_work
from helpers.toy_work import gone, wait_for

DEADLINE = Failure(FailureKind.DEADLINE)


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        yield pool


@pytest.fixture
def counter():
    with closing(Block.create(8)) as block:
        yield block


def count(block):
    return int(block.array(0, (1,), np.int64)[0])


def ticks(block):
    """Whether a task still writes to the counter."""
    before = count(block)
    time.sleep(0.05)
    return count(block) != before


def pids(pool):
    pool.load(toy_work.Work(toy_work.process))
    return {done.value for done in pool.run([("pid",)] * 40)}


@pytest.mark.parametrize("make", [lambda pool: pool, lambda pool: SerialExecutor()], ids=["processes", "serial"])
def test_every_task_is_answered_and_a_pool_serves_several_runs(pool, make):
    pool = make(pool)
    for exponent in (2, 3):
        pool.load(toy_work.Work(toy_work.power, exponent))
        for numbers in (range(50), [7], []):
            done = sorted(pool.run(numbers))
            assert done == [TaskResult(place, number**exponent, None) for place, number in enumerate(numbers)]


@pytest.mark.parametrize("make", [lambda pool: pool, lambda pool: SerialExecutor()], ids=["processes", "serial"])
def test_an_error_is_one_line_and_concerns_its_task_alone(pool, make):
    pool = make(pool)
    pool.load(toy_work.Work(toy_work.power, -1))
    at = toy_work.last_line(toy_work.power)
    assert sorted(pool.run([2, 0, "x", 4])) == [
        TaskResult(0, 0.5, None),
        TaskResult(
            1, None, Failure(FailureKind.ERROR, f"ZeroDivisionError: 0.0 cannot be raised to a negative power{at}")
        ),
        TaskResult(
            2,
            None,
            Failure(FailureKind.ERROR, f"TypeError: unsupported operand type(s) for ** or pow(): 'str' and 'int'{at}"),
        ),
        TaskResult(3, 0.25, None),
    ]


def test_what_cannot_be_sent_or_read_is_an_error_of_its_task(pool):
    pool.load(toy_work.Work(toy_work.process))
    tasks = [("fail",), ("closure",), ("unreadable",), (lambda: None,), ("threads",)]
    errors = [done.failure and done.failure.detail for done in sorted(pool.run(tasks))]
    at = toy_work.last_line(toy_work.divide)
    assert errors[0] == f"ZeroDivisionError: two lines{at}"
    assert "pickle" in errors[1]
    assert errors[2] == f"ZeroDivisionError: in the parent{at}"
    assert "pickle" in errors[3]
    assert errors[4] is None


def test_a_worker_has_one_thread_and_starts_no_workers_itself(pool):
    pool.load(toy_work.Work(toy_work.process))
    threads, inner = sorted(pool.run([("threads",), ("pool",)]))
    assert threads.value == 1
    assert inner.failure.detail.startswith("CannotSendError: workers: cannot be started here, AssertionError: daemonic")


def test_tensors_reach_all_workers_and_stay_where_they_are(pool):
    tensors = {"a": torch.arange(5.0)}
    pool.load(toy_work.Work(toy_work.sums, tensors))
    assert [done.value for done in pool.run(["a"] * 6)] == [10.0] * 6
    assert not tensors["a"].is_shared()


def test_large_tasks_and_replies_do_not_block_each_other(pool):
    pool.load(toy_work.Work(toy_work.process))
    tasks = [("bytes", bytes(1 << 20) * (number > 3)) for number in range(12)]
    assert [len(done.value) for done in pool.run(tasks)] == [1 << 20] * 12


def test_tasks_begin_in_the_given_sequence(counter):
    with Pool(1) as single:
        single.load(toy_work.Work(toy_work.counting, counter.region))
        assert [done.value[1] for done in single.run([("add", number) for number in (5, 1, 7)])] == [5, 6, 13]


def test_no_task_waits_behind_a_long_one_while_a_worker_is_free(pool, counter):
    pool.load(toy_work.Work(toy_work.counting, counter.region))
    replies = {done.position: done.value for done in pool.run([("until", 20), *[("add", 1)] * 20])}
    assert replies[0][1] == 20
    assert len({pid for pid, _ in replies.values()}) == 2


def test_a_worker_killed_by_a_task_is_replaced_and_the_task_tried_once_more(pool, tmp_path):
    pool.load(toy_work.Work(toy_work.deadly, tmp_path))
    tasks = [("fine", 0), ("once", 1), ("always", 2), ("fine", 3), ("exit", 4), ("once", 5), *[("fine", 6)] * 20]
    done = sorted(pool.run(tasks))
    assert done[2] == TaskResult(2, None, Failure(FailureKind.WORKER_DIED, "twice (SIGKILL)"))
    assert done[4] == TaskResult(4, None, Failure(FailureKind.WORKER_DIED, "twice (exit code 3)"))
    others = [one for one in done if one.position not in (2, 4)]
    assert others == [TaskResult(place, tasks[place][1], None) for place in range(len(tasks)) if place not in (2, 4)]


def test_tasks_of_a_fast_worker_that_dies_are_not_lost(pool, tmp_path):
    pool.load(toy_work.Work(toy_work.deadly, tmp_path))
    tasks = [("once" if number % 10 == 5 else "fine", number) for number in range(60)]
    assert sorted(pool.run(tasks)) == [TaskResult(number, number, None) for number in range(60)]


def test_workers_killed_between_runs_are_replaced(pool):
    former = pids(pool)
    for pid in former:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(map(gone, former)))
    replies = [done.value for done in pool.run([("pid",)] * 4)]
    assert len(replies) == 4
    assert former.isdisjoint(replies)


def test_ctrl_c_is_the_parents(pool):
    former = pids(pool)
    for pid in former:
        os.kill(pid, signal.SIGINT)
    assert former >= {done.value for done in pool.run([("pid",)] * 4)}


def test_a_late_task_is_ended_before_it_is_reported(pool, counter):
    pool.load(toy_work.Work(toy_work.counting, counter.region))
    run = pool.run([("tick", 0), *[("add", 1)] * 5, ("tick", 0), ("add", 1)], deadline=2.0)
    done = {}
    for one in run:
        done[one.position] = one
        if one.failure:
            assert not ticks(counter)
    assert [done[place].failure for place in range(8)] == [None if 0 < place < 6 else DEADLINE for place in range(8)]
    assert [one.failure for one in pool.run([("add", 1)] * 4)] == [None] * 4


def test_a_reply_in_time_counts_also_if_it_is_read_late(pool, counter):
    pool.load(toy_work.Work(toy_work.counting, counter.region))
    run = pool.run([("add", 1), ("add", 1), *[("tick", 0)] * 3], deadline=2.0)
    errors = [next(run).failure]
    time.sleep(2.1)
    assert [*errors, *(one.failure for one in run)] == [None, None, *[DEADLINE] * 3]


@pytest.mark.parametrize("make", [lambda pool: pool, lambda pool: SerialExecutor()], ids=["processes", "serial"])
def test_after_the_deadline_nothing_is_begun(pool, counter, make):
    pool = make(pool)
    pool.load(toy_work.Work(toy_work.counting, counter.region))
    assert sorted(pool.run([("add", 1)] * 5, deadline=0.0)) == [TaskResult(place, None, DEADLINE) for place in range(5)]
    assert count(counter) == 0


def test_in_this_process_a_task_that_ends_late_is_reported_so(counter):
    with SerialExecutor() as serial:
        serial.load(time.sleep)
        assert [done.failure for done in serial.run([0, 0.2, 0], deadline=0.1)] == [None, DEADLINE, DEADLINE]


def test_a_run_closed_early_leaves_nothing_running(pool, counter):
    pool.load(toy_work.Work(toy_work.counting, counter.region))
    run = pool.run([("add", 1), ("tick", 0), ("tick", 0), ("tick", 0)])
    assert next(run).failure is None
    wait_for(lambda: ticks(counter))
    run.close()
    assert not ticks(counter)
    assert [one.failure for one in pool.run([("add", 1)] * 4)] == [None] * 4


def test_a_closed_pool_leaves_nothing_running(counter):
    other = Pool(1)
    other.load(toy_work.Work(toy_work.counting, counter.region))
    run = other.run([("add", 1), ("tick", 0), ("tick", 0)])
    next(run)
    wait_for(lambda: ticks(counter))
    other.close()
    other.close()
    assert not ticks(counter)
    for use in (lambda: next(run), lambda: other.load(toy_work.Work(toy_work.power, 2)), lambda: list(other.run([1]))):
        with pytest.raises(ArgumentError, match="closed"):
            use()


@pytest.mark.filterwarnings("ignore:resource_tracker. process died")
@pytest.mark.parametrize("helper", ["fork server", "resource tracker"])
def test_a_run_ends_though_a_helper_process_dies(helper):
    """Nobody tells then that a worker lives: without a look at its pipe it is waited for without end."""
    with Pool(2) as other:
        workers = pids(other)
        tracker, server = resource_tracker._resource_tracker._pid, forkserver._forkserver._forkserver_pid
        os.kill(server if helper == "fork server" else tracker, signal.SIGKILL)
        time.sleep(0.1)
        other.load(toy_work.Work(toy_work.power, 2))
        assert sorted(done.value for done in other.run(range(9))) == [n * n for n in range(9)]
        os.kill(min(workers), signal.SIGKILL)  # in its place comes one of a new server
        assert sorted(done.value for done in other.run(range(9))) == [n * n for n in range(9)]
        began = time.monotonic()
    assert time.monotonic() - began < 2 * END_SECONDS
    wait_for(lambda: all(gone(pid) for pid in workers))


def test_one_run_at_a_time(pool):
    pool.load(toy_work.Work(toy_work.power, 2))
    run = pool.run(range(9))
    next(run)
    for use in (lambda: list(pool.run([1])), lambda: pool.load(toy_work.Work(toy_work.power, 2))):
        with pytest.raises(BusyError, match="in progress"):
            use()
    assert len(list(run)) == 8


@pytest.mark.parametrize(
    ("make", "setup", "message"),
    [
        (lambda _: None, None, "expected work that can be pickled, got .*; define it in a module"),
        (toy_work.power, lambda: None, "expected work that can be pickled, got .*; define it in a module"),
        (
            toy_work.divide,
            "by\nnothing",
            "loaded in another process, ZeroDivisionError: by nothing .*; use one process",
        ),
        (toy_work.power, toy_work.Unreadable(), "loaded in another process, ZeroDivisionError: in the parent .*; use"),
        (toy_work.dies, None, "one died while loading the work; use one process"),
    ],
    ids=["function", "setup", "raises", "unreadable", "dies"],
)
def test_work_that_cannot_be_sent_is_one_line_and_the_pool_goes_on(pool, make, setup, message):
    with pytest.raises(CannotSendError, match=f"^workers: .*{message}[^\n]*$"):
        pool.load(toy_work.Work(make, setup))
    with pytest.raises(ArgumentError, match="nothing is loaded"):
        list(pool.run([1]))
    pool.load(toy_work.Work(toy_work.power, 2))
    assert [done.value for done in pool.run([3])] == [9]


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="expected an integer >= 1, got 0"):
        Pool(0)
    with pytest.raises(ArgumentError, match="nothing is loaded"):
        list(SerialExecutor().run([1]))


def test_in_this_process_work_has_one_thread_and_the_rest_as_many_as_before():
    former = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with SerialExecutor() as serial:
            serial.load(toy_work.Work(toy_work.process))
            at = toy_work.last_line(toy_work.divide)
            for done in serial.run([("threads",), ("fail",)]):
                assert done in (
                    TaskResult(0, 1, None),
                    TaskResult(1, None, Failure(FailureKind.ERROR, f"ZeroDivisionError: two lines{at}")),
                )
                assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(former)
    assert serial.size == 1


def test_results_may_lead_to_further_tasks(pool):
    pool.load(toy_work.Work(toy_work.power, 2))
    done = list(pool.run([1, 2, 3], then=lambda result: [result.value + 10] if result.value < 10 else []))
    assert sorted(result.position for result in done) == list(range(6))
    assert sorted(result.value for result in done) == [1, 4, 9, 11**2, 14**2, 19**2]
