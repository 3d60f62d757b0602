"""FedReLa in a plain loop: when, how much, with what warnings, and the way back."""

from __future__ import annotations

import logging
import shutil

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import fedrela
from fedrela.errors import ArgumentError, DataError
from fedrela.plugin import OneShot, Policy, posterior
from fedrela.streams import stream
from helpers.plugin_toys import Scorer, points

X, Y = points()


def client(folder, data=(X, Y), **options):
    return OneShot(data, **{"experiment": "toy", "client": 3, "rounds": 10, "store": folder, "tau": 0.2} | options)


def labels(once):
    return [int(y) for _, y in once.dataset]


def test_five_lines_in_somebodys_loop(tmp_path):
    model = nn.Linear(2, 3)
    train_set = TensorDataset(X, Y)
    seen = []
    once = OneShot(train_set, experiment="icu", client="ward-3", rounds=5, tau=0.2, store=tmp_path)
    loader = DataLoader(once.dataset, batch_size=32, shuffle=True)
    for round in range(1, 6):
        model.load_state_dict(model.state_dict())
        once.before_round(round, model)
        epoch = [y for _, y in loader]
        seen.append(torch.bincount(torch.cat(epoch), minlength=3).tolist())
    assert seen[:3] == [torch.bincount(Y).tolist()] * 3
    assert seen[3] == seen[4] == np.bincount(once.ledger.labels, minlength=3).tolist() != seen[0]


def test_it_is_the_paper_with_the_stream_of_round_and_client(tmp_path):
    once = client(tmp_path)
    assert once.before_round(7, Scorer()) is None
    assert labels(once) == Y.tolist()
    once.before_round(8, Scorer())
    Q, y = posterior(Scorer(), (X, Y))
    by_hand = fedrela.relabel(Q, y, tau=0.2, max_fraction=0.3, seed=stream(0, "relabel", 8, 3))
    assert labels(once) == by_hand.labels.tolist() != Y.tolist()
    assert once.ledger.options["round"] == 8


def test_a_restarted_client_reads_its_labels_and_does_not_ask_its_model(tmp_path):
    first = client(tmp_path)
    first.before_round(8, Scorer())
    again = client(tmp_path)
    model = Scorer()
    model.forward = None  # it would fail if it were asked
    again.before_round(9, model)
    assert labels(again) == labels(first)


def test_other_data_are_refused_at_the_restart(tmp_path):
    client(tmp_path).before_round(8, Scorer())
    with pytest.raises(DataError, match="other data"):
        client(tmp_path, (X.flip(0), Y.flip(0))).before_round(9, Scorer())


def test_a_late_joiner_and_the_official_way(tmp_path):
    assert client(tmp_path / "late").before_round(9, Scorer()).options["round"] == 9
    assert client(tmp_path / "official", late=False).before_round(9, Scorer()) is None


def test_periods_need_the_clients_leave(tmp_path):
    rounds = [3, 5, 7, 9]
    for passes, made in ((1, [3]), (3, [3, 5, 7])):
        once = client(tmp_path / str(passes), start=3, period=2, policy=Policy(passes=passes))
        for round in rounds:
            once.before_round(round, Scorer())
        kept = once.store.passes()
        assert [ledger.options["round"] for ledger in kept] == made
        assert all(ledger.original.tolist() == Y.tolist() for ledger in kept)
        assert once.ledger.options["round"] == made[-1]


@pytest.mark.parametrize("period", [0, 2])
def test_a_period_that_the_client_does_not_permit_is_named_in_round_one(tmp_path, caplog, period):
    client(tmp_path, period=period).before_round(1, Scorer())
    said = "round 1, client 3: period 2 has no effect: the client's policy permits one pass (passes = 1)"
    assert (said in caplog.text) == (period == 2)


def test_labels_of_other_settings_are_refused_also_after_a_round_off(tmp_path):
    client(tmp_path).before_round(8, Scorer())
    policy = tmp_path / "policy.toml"
    policy.write_text("enabled = false\n")
    again = client(tmp_path, seed=7)
    assert again.before_round(8, Scorer()) is None
    policy.write_text("enabled = true\n")
    with pytest.raises(ArgumentError, match=r"seed 0 \(now 7\)"):
        again.before_round(9, Scorer())


def test_the_clients_policy_is_obeyed(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("max_fraction = 0.02\nforbidden = [[0, 2]]\ntau = 0.1\n")
    once = client(tmp_path, tau=0.5, max_fraction=0.9)
    ledger = once.before_round(8, Scorer())
    assert len(ledger) == int(0.02 * len(Y))
    assert (ledger.options["tau"], ledger.options["forbidden"]) == (0.1, [[0, 2]])
    policy.write_text("enabled = false\n")
    off = client(tmp_path)
    assert off.before_round(9, Scorer()) is None
    assert labels(off) == Y.tolist()
    with pytest.raises(ArgumentError, match=r"elsewhere\.toml: cannot be read"):
        client(tmp_path, policy=tmp_path / "elsewhere.toml")


def test_undo_gives_the_original_labels_back_for_good(tmp_path):
    once = client(tmp_path)
    once.before_round(8, Scorer())
    assert once.undo("consent withdrawn").tolist() == labels(once) == Y.tolist()
    assert once.store.log.entries()[-1]["reason"] == "consent withdrawn"
    assert once.before_round(9, Scorer()) is None
    assert client(tmp_path).before_round(10, Scorer()) is None


def test_nothing_else_is_changed(tmp_path):
    model, state = Scorer(), torch.get_rng_state()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    once = client(tmp_path)
    once.before_round(8, model)
    assert once.ledger.index.size
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert Y.tolist() == points()[1].tolist()


def said(caplog):
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def test_a_model_that_agrees_is_no_reason_to_warn(tmp_path, caplog):
    client(tmp_path, tau=0.02).before_round(8, Scorer())
    assert said(caplog) == []


def test_a_model_that_disagrees_is_warned_of(tmp_path, caplog):
    client(tmp_path, tau=0.02).before_round(8, Scorer(shifted=1))
    assert len(said(caplog)) == 1
    assert "round 8, client 3: the model confirms only" in said(caplog)[0]


def test_a_model_that_disagrees_moves_nothing_where_the_client_says_so(tmp_path, caplog):
    ledger = client(tmp_path, policy=Policy(min_agreement=0.9)).before_round(8, Scorer(shifted=1))
    assert len(ledger) == 0
    assert "no label moves: the model confirms" in said(caplog)[0]


def test_an_unusual_share_is_warned_of(tmp_path, caplog):
    ledger = client(tmp_path, policy=Policy(max_fraction=0.05), tau=0.5).before_round(8, Scorer())
    assert len(ledger) > 0.025 * len(Y)
    assert "of the labels changed, more than half of max_fraction = 0.05" in said(caplog)[0]


def test_a_broken_model_moves_nothing_and_is_warned_of(tmp_path, caplog):
    broken = Scorer()
    with torch.no_grad():
        broken.centres[0, 0] = torch.nan
    once = client(tmp_path)
    assert once.before_round(8, broken).refusal.startswith("not finite: row 0")
    assert "nothing was re-labelled: not finite: row 0" in said(caplog)[-1]
    assert labels(once) == Y.tolist()


def test_sample_level_privacy_is_warned_of(tmp_path, caplog, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opacus", logging)  # what counts is that it is loaded
    client(tmp_path, tau=0.02).before_round(8, Scorer())
    assert "sample-level differential privacy (Opacus) does not cover FedReLa" in said(caplog)[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rounds": None}, "rounds: required, since start = 0.8 is a share"),
        ({"tau": 5}, "tau: expected a number from 0 to 1"),
        ({"taus": 0.1}, "taus: unknown option; nearest: tau"),
        ({"start": 0}, "start: expected a round >= 1"),
        ({"preset": "mine"}, "preset: expected one of paper, official"),
        ({"seed": -1}, "seed: expected an integer >= 0"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, said):
    with pytest.raises(ArgumentError, match=said):
        client(tmp_path, **options)


@pytest.mark.parametrize("undo", [False, True])
def test_no_other_labels_are_made_if_the_folder_is_deleted(tmp_path, caplog, undo):
    once = client(tmp_path)
    assert once.before_round(8, Scorer())
    if undo:
        once.undo("consent withdrawn")
    shutil.rmtree(once.store.folder)
    assert once.before_round(9, Scorer()) is None
    assert labels(once) == Y.tolist()
    said = f"FedReLa, round 9, client 3: {once.store.folder} is gone, so this client trains on its original labels"
    assert said in caplog.text
    assert not once.store.folder.exists()
