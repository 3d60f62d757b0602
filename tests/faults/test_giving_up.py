"""Too few clients, too often: the run stops with exit code 5, and the round it stopped in can be tried again."""

from __future__ import annotations

import pytest

from fedrela.engine.executors.pool import Pool
from fedrela.engine.round import next_round
from fedrela.errors import RunFailedError, TooFewClientsError
from fedrela.experiment import run
from fedrela.records import Failure, FailureKind
from fedrela.runfolder import RunFolder
from helpers.failing import Dying, Failing
from helpers.hundred import begin, problem
from helpers.small_runs import small
from helpers.tiny_run import Variant, difference, everything

MOST = frozenset({0, 1, 3})  # of four clients
TRAIN = (("min_clients", 2), ("give_up", 2))


def failing_in(*rounds):
    return Variant(Failing(dict.fromkeys(rounds, MOST)), every=2, train=TRAIN)


def test_a_run_whose_every_round_was_skipped_is_not_done(tmp_path):
    """Fewer rounds than it takes to give up."""
    wanted = {"train": {"rounds": 2, "epochs": 1, "min_clients": 2}, "relabel": {"start": 1}}
    lost = Failing(dict.fromkeys((1, 2), frozenset(range(4))))
    with pytest.raises(TooFewClientsError, match="all 2 rounds had fewer than 2 usable updates"):
        run(small(**wanted), out=tmp_path / "run", workers=1, algorithm=lost)
    assert RunFolder.open(tmp_path / "run").status_text == "interrupted at round 2"


def test_a_run_without_clients_stops_and_goes_on_when_they_are_back(tmp_path):
    path, other = tmp_path / "run", tmp_path / "other"
    message = (
        "round 4: fewer than 2 clients for 2 rounds in a row; client 0: ConnectionError: gone .*; see excluded in "
    )
    with pytest.raises(TooFewClientsError, match=f"^{message}rounds.jsonl, then resume$") as raised:
        failing_in(3, 4).carry_on(path)
    assert raised.value.exit_code == 5
    folder = RunFolder.open(path)
    assert folder.status_text == "interrupted at round 3"
    third = folder.rounds()[2]
    assert (third["skipped"], third["admitted"], third["samples"]) == (True, [], [])
    assert [client for client, _ in third["excluded"]] == sorted(MOST)
    before = everything(path)
    with pytest.raises(TooFewClientsError):
        failing_in(3, 4).carry_on(path)
    assert difference(everything(path), before) == ""
    failing_in(3).carry_on(path)
    failing_in(3).carry_on(other)
    assert difference(everything(path), everything(other)) == ""


def test_skipped_rounds_that_are_not_in_a_row_do_not_stop_a_run(tmp_path):
    failing_in(1, 3, 5).carry_on(tmp_path / "run")
    records = RunFolder.open(tmp_path / "run").rounds()
    assert [record["skipped"] for record in records] == [True, False] * 3
    losses = [record["loss"] for record in records]
    assert losses[1] == losses[2]  # the model of a skipped round is the one before
    assert losses[3] == losses[4]


def test_clients_late_in_the_round_it_stopped_in_are_asked_again(tmp_path):
    path, train = tmp_path / "run", (*TRAIN, ("deadline", 0.5))
    late = {(round, client): 0.6 for round in (3, 4) for client in range(4)}
    with pytest.raises(
        TooFewClientsError, match="round 4: fewer than 2 clients for 2 rounds in a row; client 0: deadline; see"
    ):
        Variant(Failing(delays=late), every=2, train=train).carry_on(path)
    folder = RunFolder.open(path)
    everybody = dict.fromkeys(range(4), Failure(FailureKind.DEADLINE))
    assert folder.exclusions()[3] == everybody
    assert 4 not in folder.exclusions()
    Variant(Failing(), every=2, train=train).carry_on(path)
    third, fourth = folder.rounds()[2:4]
    assert (third["skipped"], fourth["skipped"]) == (True, False)
    assert third["excluded"] == [[client, "deadline"] for client in everybody]
    assert folder.exclusions()[3] == everybody


def test_where_all_workers_die_at_once_no_client_is_left_out_for_good(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {}, "", {})
    with Pool(2) as pool:
        run = begin(problem(3), Dying(), pool)
        assert run.note == ""
        with pytest.raises(RunFailedError, match="no client could train; client 0: worker died: twice"):
            next_round(run, folder)
        run.close()
    assert folder.exclusions() == {}
