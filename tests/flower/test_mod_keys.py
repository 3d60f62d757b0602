"""Keys that look like FedReLa's and are not, which policy is in force, and calls without the mod."""

from __future__ import annotations

import logging

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Context, RecordDict
from torch.utils.data import DataLoader

from fedrela.errors import ArgumentError
from fedrela.flower import current_labels, labels_for, relabel_mod, relabeled_dataset, relabeled_loader
from fedrela.plugin import LabelStore
from helpers.flower_apps import Client, load_data, message, refused
from helpers.plugin_toys import Scorer, points

torch.set_num_threads(1)


@pytest.mark.parametrize("key", ["fedrela-polcy", "fedrela_policy", "Fedrela-Policy", "fedrela-policy-file"])
def test_a_misspelt_key_of_the_node_is_an_error_in_the_clients_log(tmp_path, key):
    (tmp_path / "rules.toml").write_text("enabled = false\n")
    with refused(f"node-config: {key}: unknown key; nearest: fedrela-policy$"):
        Client(tmp_path, node={key: str(tmp_path / "rules.toml")}).receive(1)


@pytest.mark.parametrize("key", ["fedrela_tau", "Fedrela-tau", "fedrela.tau", "FEDRELA_TAU"])
def test_a_misspelt_key_of_the_run_is_an_error(tmp_path, key):
    with pytest.raises(ArgumentError, match=f"^run-config: {key}: unknown key; nearest: fedrela-tau$"):
        Client(tmp_path, **{key: 0.1}).receive(1)


def test_keys_of_others_are_left_alone(tmp_path):
    client = Client(
        tmp_path, node={"policy": "mine", "tau": 3}, **{"tau": 3, "relabel": 1, "fedrela-max_fraction": 0.1}
    )
    client.receive(1)
    assert len(client.seen) == 1


def test_the_log_says_once_which_policy_is_in_force(tmp_path, heard):
    (tmp_path / "rules.toml").write_text("enabled = false\n")
    client = Client(tmp_path, node={"fedrela-policy": str(tmp_path / "rules.toml")})
    other = Client(tmp_path, node={"policy": str(tmp_path / "rules.toml"), "partition-id": 3, "client-id": 4})
    for round in (1, 2):
        client.receive(round), other.receive(round)
    said = [line for level, line in heard if level == "INFO" and "own policy" in line]
    assert said[0] == f"FedReLa, round 1, client 3: the client's own policy is {tmp_path}/rules.toml"
    assert said[1].startswith("FedReLa, round 1, client 4: the client's own policy is the defaults, since there is no ")
    assert len(said) == 2
    assert "fedrela-policy in --node-config" in said[1]


@pytest.mark.parametrize("where", ["run-77", "run-77/3"])
def test_a_policy_in_the_wrong_folder_is_an_error(tmp_path, where):
    (tmp_path / where).mkdir(parents=True)
    (tmp_path / where / "policy.toml").write_text("enabled = false\n")
    with refused(f"{where}/policy.toml: a policy is not read there; move it to {tmp_path}/policy.toml"):
        Client(tmp_path).receive(1)


ROWS = [(0.5, 0), (0.7, 1)]


def unmarked():
    return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


@pytest.mark.parametrize(
    ("call", "given", "said"),
    [
        (labels_for, lambda context: ([0, 1], context), r"labels_for(context, labels), got labels_for(list, Context)"),
        (
            relabeled_dataset,
            lambda context: (context, ROWS),
            "relabeled_dataset(data, context), got relabeled_dataset(C",
        ),
        (
            relabeled_loader,
            lambda context: (context, DataLoader(ROWS)),
            "relabeled_loader(loader, context), got relabeled_loader(Context, DataLoader)",
        ),
    ],
)
def test_arguments_in_the_wrong_order_are_named(call, given, said):
    with pytest.raises(ArgumentError) as error:
        call(*given(unmarked()))
    assert str(error.value).startswith(f"context: expected {said}")


def test_an_app_without_the_mod_is_told_so_once(monkeypatch, heard):
    monkeypatch.setitem(current_labels._APP, "has mod", False)
    context = unmarked()
    for _ in range(2):
        assert labels_for(context, [0, 1]) == [0, 1]
        relabeled_loader(DataLoader(ROWS), context)
    (line,) = heard
    said = "FedReLa: labels_for changes nothing, since the app has no relabel_mod: ClientApp(mods=[relabel_mod(...)])"
    assert line == ("WARNING", said)


@pytest.mark.parametrize("off", [False, True])
@pytest.mark.parametrize("loaded", ["here", "in another process"])
def test_an_app_with_the_mod_is_not_told_that_it_has_none(tmp_path, monkeypatch, heard, loaded, off):
    client = Client(tmp_path, **{"fedrela-enabled": not off})
    monkeypatch.setitem(current_labels._APP, "has mod", loaded == "here")
    if loaded == "here":
        labels_for(unmarked(), [0, 1])
    for round, kind in ((1, "evaluate"), (1, "train"), (2, "evaluate")):
        client.receive(round, kind=kind)
    assert not [line for line in heard if "no relabel_mod" in line[1]]


def test_a_traceback_of_the_users_own_code_stays_at_the_client(tmp_path, caplog):
    def forward(model, batch):
        raise ZeroDivisionError("of patient 7")

    client = Client(tmp_path, mods=[relabel_mod(Scorer, load_data, forward=forward)])
    logger = logging.getLogger("flwr")
    logger.addHandler(caplog.handler)
    try:
        with refused("forward: failed: ZeroDivisionError: of patient 7"):
            client.receive(1)
    finally:
        logger.removeHandler(caplog.handler)
    assert 'raise ZeroDivisionError("of patient 7")' in caplog.text


def test_a_patient_withdraws(tmp_path, heard):
    """After an undo, a client that has lost a row takes part with its original labels."""
    x, y = points(3)
    rows = [list(range(len(y)))]
    mod = relabel_mod(Scorer, lambda: (x[rows[0]], y[rows[0]]), ids=lambda: rows[0])
    seen = []

    def train(message, context):
        seen.append(labels_for(context, y[rows[0]]).tolist())
        return message

    client = Client(tmp_path)
    mod(message(8, Scorer()), client.context, train)
    rows[0] = rows[0][1:]
    client.restart()
    with refused("if rows came or left, undo these labels with a reason"):
        mod(message(9, Scorer()), client.context, train)
    LabelStore(tmp_path, "run-77", "3").undo("withdrawn")
    for _ in ("a restarted node", "a later round"):
        mod(message(9, Scorer()), client.context, train)
    assert seen[0] != y.tolist()
    assert seen[1:] == [y[1:].tolist()] * 2
