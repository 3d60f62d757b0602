"""One bad client is one bad client: it is left out and named, and the rest is as if it had not been asked."""

from __future__ import annotations

import pytest

from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.errors import RunFailedError
from fedrela.records import Failure, FailureKind
from fedrela.runfolder import RunFolder
from helpers.bad_clients import ANSWERS, BAD, KINDS, ROUND, GoingWrong
from helpers.engine_federations import Made, normed, snapshot


def rounds(executor, missing=None, folder=None, **params):
    """Three rounds, in the second of which client `BAD` goes wrong or is not there."""
    run = Made(algorithm=GoingWrong(**params), make=normed).begin(executor)
    assert run.note == ""
    found = []
    for round in (1, 2, 3):
        record = next_round(run, folder, missing if round == ROUND else None).record
        found.append((record, snapshot(run)))
    run.close()
    return found


@pytest.fixture(scope="module")
def without():
    with SerialExecutor() as serial:
        return rounds(serial, {BAD: Failure(FailureKind.NOT_CONNECTED)})


def check(found, without, reason):
    record = found[1][0]
    ((client, said),) = record.excluded
    assert (client, said[: len(reason)]) == (BAD, reason)
    assert record.admitted == [0, 2, 3, 4]
    for (some, state), (other, expected) in zip(found, without, strict=True):
        assert state == expected
        assert some.as_record() | {"excluded": []} == other.as_record() | {"excluded": []}


@pytest.mark.parametrize("kind", KINDS)
def test_in_training(serial, without, kind):
    check(rounds(serial, kind=kind), without, KINDS[kind])


@pytest.mark.parametrize("kind", ["ruins", "nan"])
def test_in_a_worker(pool, without, kind):
    check(rounds(pool, kind=kind), without, KINDS[kind])


def test_one_that_ends_its_worker(pool, without, tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, "", {})
    check(rounds(pool, folder=folder, kind="dies"), without, "worker died: twice")
    noted = folder.exclusions()
    assert list(noted) == [ROUND]
    check(rounds(pool, noted[ROUND], kind="dies"), without, "worker died: twice")


def test_one_that_ends_its_worker_in_an_exchange(pool, tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, "", {})
    found = rounds(pool, folder=folder, asked="dies")
    noted = folder.exclusions()
    check(rounds(pool, noted[ROUND], asked="dies"), found, "exchange ask: worker died: twice")


def test_the_comparison_would_notice(serial, without):
    good = rounds(serial)
    assert good[0][1] == without[0][1]
    assert good[1][1]["weights"] != without[1][1]["weights"]
    assert without[1][0].relabelled != []
    assert BAD in dict(without[2][0].relabelled)  # it re-labels when it is chosen next


@pytest.mark.parametrize("asked", ANSWERS)
def test_in_an_exchange(serial, asked):
    found = rounds(serial, asked=asked)
    reason = ANSWERS[asked]
    check(found, rounds(serial, {BAD: Failure(FailureKind.DEADLINE, exchange="ask")}), reason)
    answered = rounds(serial, {BAD: Failure(FailureKind.DEADLINE)})  # it answered, and was lost in training
    assert answered[1][1]["server answers"] != found[1][1]["server answers"]
    assert answered[1][1]["weights"] == found[1][1]["weights"]


class Mute(GoingWrong):
    def answer(self, exchange, context):
        raise RuntimeError("nothing to say")

    def absorb(self, exchange, context):
        raise AssertionError("nothing to absorb")


def test_an_exchange_without_any_answer(serial):
    with pytest.raises(RunFailedError, match="no client could train; client 0: exchange ask: RuntimeError: nothing to"):
        next_round(Made(algorithm=Mute()).begin(serial))


class Broken(FedAvg):
    def client(self, context):
        raise ValueError("always")


def test_where_no_client_can_train_the_run_says_why(serial):
    with pytest.raises(RunFailedError, match="round 1: no client could train; client 0: ValueError: always"):
        next_round(Made(algorithm=Broken()).begin(serial))
