"""A script that is run again: the same settings and rows read the labels, others are refused by name."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest
import torch
from torch import nn

from fedrela.errors import ArgumentError, DataError
from fedrela.plugin import LabelStore, OneShot, Policy
from helpers.plugin_toys import Scorer, points

X, Y = points()
IDS = [f"patient-{number:03}" for number in range(len(Y))]


def once(folder, data=(X, Y), **options):
    return OneShot(data, **{"experiment": "toy", "client": 3, "rounds": 10, "store": folder, "tau": 0.2} | options)


def labels(client):
    return [int(y) for _, y in client.dataset]


@pytest.fixture
def made(tmp_path):
    """A store with the labels of round 8."""
    return once(tmp_path, ids=IDS).before_round(8, Scorer())


def test_the_ledger_says_where_its_moves_come_from(made):
    where = made.provenance
    assert (where.seed, where.preset, where.limits["tau"], where.limits["max_fraction"]) == (0, "paper", 0.2, 0.3)
    assert all(len(each) == 64 for each in (where.policy_sha256, where.model_sha256, where.inputs_sha256))
    assert 0.5 < where.agreement < 1
    assert where.version.count(".") == 2
    assert made.options["model"] == "Scorer with 10 parameters"
    assert made.ids == tuple(IDS)


def test_class_names_are_kept(tmp_path):
    assert once(tmp_path, class_names=["a", "b", "c"]).before_round(8, Scorer()).class_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tau": 0.5}, r"made with tau 0.2 \(now 0.5\); resume=True uses them"),
        ({"seed": 7}, r"made with seed 0 \(now 7\)"),
        ({"preset": "official"}, r"made with preset paper \(now official\)"),
        (
            {"policy": Policy(max_fraction=0.9), "max_fraction": 0.9},
            r"made with max_fraction 0.3 \(now 0.9\)",
        ),
        ({"tau": 0.5, "seed": 7}, r"made with seed 0 \(now 7\), tau 0.2 \(now 0.5\)"),
        ({"tau": 0.5, "keep": [IDS[0]]}, r"made with tau 0.2 \(now 0.5\); resume"),
    ],
)
def test_labels_made_under_other_settings_are_not_taken_over_in_silence(tmp_path, made, change, said, caplog):
    with pytest.raises(ArgumentError, match=said):
        once(tmp_path, **change).before_round(1, Scorer())
    resumed = once(tmp_path, resume=True, **change)
    resumed.before_round(9, Scorer())
    assert labels(resumed) == made.labels.tolist()
    entry = resumed.store.log.entries()[-1]
    for told in (f"made with {entry['resumed']}", caplog.text):
        assert re.search(said.split(";")[0], told)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    ("change", "limit"),
    [
        ({"tau": 0.1}, "tau"),
        ({"policy": Policy(max_fraction=0.01)}, "max_fraction"),
        ({"policy": Policy(keep=IDS)}, "keep"),
        ({"policy": Policy(allowed=[])}, "allowed or forbidden moves"),
        ({"policy": Policy(class_tau={0: 0.0, 1: 0.0, 2: 0.0})}, "tau"),
    ],
)
def test_a_restart_under_a_stricter_limit_goes_back_to_the_original_labels(
    tmp_path, made, change, limit, resume, caplog
):
    client = once(tmp_path, ids=IDS, resume=resume, **change)
    for round in (8, 9):
        assert client.before_round(round, Scorer()) is None
        assert labels(client) == Y.tolist()
    assert f"the labels of round 8 violate the current {limit}, so this client goes back" in caplog.text


def test_a_restart_under_a_stricter_limit_that_the_labels_obey_uses_them(tmp_path, made):
    never = next(row for row in range(len(Y)) if row not in made.index)
    client = once(tmp_path, ids=IDS, policy=Policy(keep=[IDS[never]], max_fraction=len(made) / len(Y), absent=False))
    client.before_round(9, Scorer())
    assert labels(client) == made.labels.tolist()


def test_what_does_not_decide_about_moves_may_change(tmp_path, made):
    client = once(tmp_path, policy=Policy(tau=0.5, share=True, passes=2), share=True)
    client.before_round(9, Scorer())
    assert labels(client) == made.labels.tolist()


def test_another_model_is_noticed(tmp_path, made):
    with pytest.raises(ArgumentError, match=r"model Scorer with 10 parameters \(now Linear with 9 parameters\)"):
        once(tmp_path).before_round(1, nn.Linear(2, 3))
    again = once(tmp_path)
    for round in (1, 7):  # a run from the beginning: the model in these rounds may be any
        assert again.before_round(round, Scorer(shifted=1)) is None
    with pytest.raises(ArgumentError, match=r"model [0-9a-f]{64} in this round \(now [0-9a-f]{64}\)"):
        again.before_round(8, Scorer(shifted=1))
    assert once(tmp_path).before_round(8, Scorer()) == made
    assert once(tmp_path).before_round(9, Scorer(shifted=1)) == made  # a restart after it: models have moved on
    assert once(tmp_path, resume=True).before_round(8, Scorer(shifted=1)) == made


def test_every_read_is_logged(tmp_path, made, caplog):
    with caplog.at_level(logging.INFO, "fedrela"):
        once(tmp_path).before_round(2, Scorer())
    assert f"FedReLa, round 2, client 3: labels of round 8 read from {tmp_path}/toy/3" in caplog.text
    *_, entry = LabelStore(tmp_path, "toy", "3").log.entries()
    assert (entry["event"], entry["round"], entry["made_in"]) == ("read", 2, 8)


def within_class():
    """Return an order of the rows that changes no label of any place: what a loader that groups by class may do."""
    order = np.arange(len(Y))
    for c in range(3):
        order[np.flatnonzero(c == Y)] = np.random.default_rng(1).permutation(np.flatnonzero(c == Y))
    return order


def test_rows_in_another_order_are_refused_or_follow_their_ids(tmp_path, caplog):
    made = once(tmp_path / "plain").before_round(8, Scorer())
    order = within_class()
    moved = (X[order], Y[order])
    assert moved[1].tolist() == Y.tolist()
    with pytest.raises(DataError, match="for other inputs than client 3 has now, or for the same in another order"):
        once(tmp_path / "plain", moved).before_round(9, Scorer())

    by_id = once(tmp_path / "ids", ids=IDS).before_round(8, Scorer())
    assert by_id.labels.tolist() == made.labels.tolist()
    client = once(tmp_path / "ids", moved, ids=[IDS[i] for i in order])
    for round in (9, 10):
        client.before_round(round, Scorer())
        right = {IDS[i]: label for i, label in enumerate(made.labels.tolist())}
        assert labels(client) == [right[IDS[i]] for i in order]  # 16 of 16
    assert "in another order; labels follow the ids" in caplog.text
    shuffled = torch.randperm(len(Y), generator=torch.Generator().manual_seed(3))
    client = once(tmp_path / "ids", (X[shuffled], Y[shuffled]), ids=[IDS[i] for i in shuffled])
    client.before_round(9, Scorer())
    assert labels(client) == made.labels[shuffled.numpy()].tolist()


def test_labels_that_another_process_made_are_compared_with_the_rows(tmp_path):
    order = within_class()
    mine, other = once(tmp_path), once(tmp_path, (X[order], Y[order]))
    mine.before_round(1, Scorer()), other.before_round(1, Scorer())
    made = other.before_round(8, Scorer())
    for round in (8, 9):
        with pytest.raises(DataError, match=r"for other inputs than client 3 has now.* a name of its own"):
            mine.before_round(round, Scorer())
    assert once(tmp_path, (X[order], Y[order])).before_round(9, Scorer()) == made


@pytest.mark.parametrize("used", [False, True])
def test_undo_returns_the_labels_in_the_order_of_the_rows(tmp_path, made, used):
    order = np.random.default_rng(2).permutation(len(Y))
    client = once(tmp_path, (X[order], Y[order]), ids=[IDS[i] for i in order])
    if used:
        client.before_round(9, Scorer())
    assert client.undo().tolist() == Y[order].tolist() == labels(client)


def test_undo_works_after_a_row_has_left(tmp_path, made):
    client = once(tmp_path, (X[1:], Y[1:]), ids=IDS[1:])
    assert client.undo("left").tolist() == Y.tolist()
    assert client.store.undone


def test_changed_rows_are_refused_or_named(tmp_path, caplog, made):
    changed = X.clone()
    changed[5] += 1
    with pytest.raises(DataError, match="other inputs"):
        once(tmp_path, (changed, Y)).before_round(9, Scorer())
    client = once(tmp_path, (changed, Y), ids=IDS)
    client.before_round(9, Scorer())
    assert labels(client) == made.labels.tolist()
    assert "in the same order, but with other inputs" in caplog.text
    with pytest.raises(DataError, match=r"ledger: made for other rows: no row 'patient-999'"):
        once(tmp_path, ids=[*IDS[:-1], "patient-999"]).before_round(9, Scorer())


def test_the_policy_file_is_read_in_every_round(tmp_path):
    client = once(tmp_path)
    assert client.before_round(8, Scorer()) is not None
    (tmp_path / "policy.toml").write_text("enabled = false\n")
    assert client.before_round(9, Scorer()) is None
    assert labels(client) == Y.tolist()
    (tmp_path / "policy.toml").write_text("enabled = true\n")
    assert client.before_round(10, Scorer()) is not None
    (tmp_path / "policy.toml").write_text("tau = 7\n")
    with pytest.raises(ArgumentError, match=r"policy.toml:tau: expected a number from 0 to 1"):
        client.before_round(10, Scorer())


@pytest.mark.parametrize("resume", [False, True])
def test_labels_that_break_a_stricter_policy_are_not_used(tmp_path, caplog, resume):
    """A policy that becomes stricter in the middle of a run counts from the next round on, and so does its end."""
    client = once(tmp_path, resume=resume)
    made = client.before_round(8, Scorer())
    row, old, new = (each.item(0) for each in (made.index, made.old, made.new))
    share, never = len(made) / len(Y), next(row for row in range(len(Y)) if row not in made.index)
    for policy, limit in (
        (f"keep = [{row}]", "keep"),
        (f"forbidden = [[{old}, {new}]]", "allowed or forbidden moves"),
        (f"allowed = [[{new}, {old}]]", "allowed or forbidden moves"),
        ("tau = 0.1", "tau"),
        (f"class_tau = {{ {new} = 0.1 }}", "tau"),
        (f"max_fraction = {share * 0.9}", "max_fraction"),
        (f"min_agreement = {made.provenance.agreement + 0.01}", "min_agreement"),
        (f"keep = [{never}]\nmax_fraction = {share}\nabsent = false", ""),
    ):
        (tmp_path / "policy.toml").write_text(policy)
        caplog.clear()
        assert (client.before_round(9, Scorer()) is None) == bool(limit)
        assert labels(client) == (Y.tolist() if limit else made.labels.tolist())
        text = f"violate the current {limit}, so this client goes back to its original ones"
        assert (text in caplog.text) == bool(limit)
    absent = np.flatnonzero(new != Y)
    client = once(tmp_path / "absent", (X[absent], Y[absent]))
    client.before_round(8, Scorer())
    (tmp_path / "absent" / "policy.toml").write_text("absent = false")
    assert client.before_round(9, Scorer()) is None


def test_after_a_stricter_policy_the_next_pass_of_a_period_obeys_it(tmp_path):
    (tmp_path / "policy.toml").write_text("tau = 0.2\npasses = 10\n")
    client = once(tmp_path, start=2, period=2)
    assert client.before_round(2, Scorer()) is not None
    (tmp_path / "policy.toml").write_text("tau = 0.05\npasses = 10\n")
    assert client.before_round(3, Scorer()) is None
    assert [client.before_round(round, Scorer()).options["round"] for round in (4, 5, 6)] == [4, 4, 6]
    assert [ledger.options["tau"] for ledger in client.store.passes()] == [0.2, 0.05, 0.05]


def test_a_patient_withdraws(tmp_path, made):
    """The message says what to do, and both ways work."""
    rest = (torch.cat([X[:4], X[5:]]), torch.cat([Y[:4], Y[5:]]))
    ids = [*IDS[:4], *IDS[5:]]
    said = r"115 distinct ids; if rows came or left, undo .* \(LabelStore.undo, or fedrela ledger undo\), or use"
    with pytest.raises(DataError, match=said):
        once(tmp_path, rest, ids=ids).before_round(9, Scorer())
    anew = once(tmp_path, rest, ids=ids, experiment="without-4")
    assert len(anew.before_round(9, Scorer())) > 0
    LabelStore(tmp_path, "toy", "3").undo("patient-004 withdrew")
    client = once(tmp_path, rest, ids=ids)
    for round in (9, 10):
        assert client.before_round(round, Scorer()) is None
        assert labels(client) == rest[1].tolist()
    assert client.store.log.entries()[-1]["reason"] == "patient-004 withdrew"
