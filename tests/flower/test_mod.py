"""The plug-in in a client app: when labels change, what they survive, what leaves, and what evaluation sees."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod, fixedclipping_mod

import fedrela
from fedrela.flower import labels_for, relabel_mod, relabeled_dataset
from fedrela.plugin import LabelStore, posterior
from fedrela.streams import stream
from helpers.flower_apps import Client, load_data, message, refused, sent
from helpers.plugin_toys import Scorer, points

torch.set_num_threads(1)
X, Y = points(3)
OLD = Y.tolist()


def new_labels(round, model=None, **options):
    Q, y = posterior(model or Scorer(), (X, Y))
    draws = stream(0, "relabel", round, 3)
    return fedrela.relabel(Q, y, **{"tau": 0.2, "max_fraction": 0.3, "seed": draws} | options).labels.tolist()


def test_labels_change_in_round_t_and_stay(tmp_path):
    client = Client(tmp_path)
    for round in range(1, 11):
        client.receive(round, Scorer(shifted=0 if round < 9 else 1))
    assert client.seen[:7] == [OLD] * 7
    assert client.seen[7:] == [new_labels(8)] * 3 != [OLD] * 3
    store = LabelStore(tmp_path, "run-77", "3")
    assert [ledger.options["round"] for ledger in store.passes()] == [8]
    assert client.context.state["fedrela.labels"]["labels"].numpy().tolist() == new_labels(8)


def test_a_client_re_labels_in_its_next_round(tmp_path):
    client = Client(tmp_path)
    client.receive(3)
    client.receive(10)
    assert client.seen == [OLD, new_labels(10)]


@pytest.mark.parametrize("experiment", [None, "ward"])
def test_a_restarted_node_reads_its_labels(tmp_path, experiment, heard):
    client = Client(tmp_path, mods=[relabel_mod(Scorer, load_data, experiment=experiment)])
    client.receive(8)
    client.restart()
    client.context.node_id = 6
    client.receive(9, Scorer(shifted=1))
    assert client.seen == [new_labels(8)] * 2
    assert any("labels of round 8 read from" in line for _, line in heard)
    client.restart()
    client.context.run_id = 78  # submitted anew: the same experiment only where it has a name
    client.receive(9, Scorer(shifted=1))
    assert client.seen[2] == (new_labels(8) if experiment else new_labels(9, Scorer(shifted=1)))


def test_other_data_are_refused_after_a_restart(tmp_path):
    Client(tmp_path).receive(8)
    client = Client(tmp_path, node={"client-id": "3", "partition-id": 2})
    with refused("other data than client 3 has now"):
        client.receive(9)


def test_a_server_that_goes_back_meets_the_labels_of_then(tmp_path):
    client = Client(tmp_path)
    for round in (8, 5, 8):
        client.receive(round, Scorer(shifted=round == 5))
    assert client.seen == [new_labels(8), OLD, new_labels(8)]


@pytest.mark.parametrize("where", ["the app", "its training function"])
def test_evaluation_never_sees_new_labels(tmp_path, where):
    mod = relabel_mod(Scorer, load_data)
    client = Client(tmp_path, mods=[mod] if where == "the app" else [])
    if where != "the app":
        client.app = ClientApp()
        client.app.train(mods=[mod])(client.train)
        client.app.evaluate()(client.train)
    client.receive(8, kind="evaluate")
    assert LabelStore(tmp_path, "run-77", "3").passes() == []
    client.receive(8)
    client.receive(8, kind="evaluate")
    client.receive(9)
    assert client.seen == [OLD, new_labels(8), OLD, new_labels(8)]


def test_an_error_in_training_ends_its_leave_to_see_new_labels(tmp_path):
    client = Client(tmp_path)
    mod = relabel_mod(Scorer, load_data)

    def failing(message, context):
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        mod(message(8, Scorer()), client.context, failing)
    client.receive(8, kind="evaluate")
    assert client.seen == [OLD]


def test_not_a_byte_is_added(tmp_path):
    plain, plugged = Client(tmp_path / "a", mods=[]), Client(tmp_path / "b")
    blind = Client(tmp_path / "c")
    blind.app = ClientApp(mods=[relabel_mod(Scorer, load_data)])
    blind.app.train()(lambda message, context: plain.train(message, Client(tmp_path, mods=[]).context))
    for round in range(1, 11):
        replies = [client.receive(round) for client in (plain, plugged, blind)]
        wire = [sent(reply) for reply in replies]
        assert wire[0] == wire[2]  # the mod alone changes nothing, whatever it does with labels
        assert (wire[0] == wire[1]) == (round < 8)  # labels change the weights, as they should
        assert len(wire[0]) == len(wire[1])
        records = [{name: list(record) for name, record in reply.content.items()} for reply in replies]
        assert records[0] == records[1] == {"arrays": list(Scorer().state_dict()), "metrics": ["loss", "num-examples"]}
    assert LabelStore(tmp_path / "c", "run-77", "3").passes()


def test_the_count_is_told_only_where_both_sides_say_so(tmp_path):
    for server, own in ((True, True), (True, False), (False, True)):
        folder = tmp_path / f"{server}-{own}"
        folder.mkdir()
        (folder / "policy.toml").write_text(f"share = {str(own).lower()}\n")
        client = Client(folder, **{"fedrela-share": server})
        client.receive(7)
        reply = client.receive(8)
        told = reply.content.config_records
        moved = int(np.sum(np.array(new_labels(8)) != OLD))
        assert {name: dict(record) for name, record in told.items()} == (
            {"fedrela": {"moved": moved}} if server and own else {}
        )


@pytest.mark.parametrize("first", [True, False], ids=["relabel first", "privacy first"])
@pytest.mark.parametrize("private", ["central", "local"])
def test_beside_flowers_privacy_mods(tmp_path, first, private):
    dp = fixedclipping_mod if private == "central" else LocalDpMod(0.1, 0.0, 1.0, 1e-5)
    ours = relabel_mod(Scorer, load_data)
    client = Client(tmp_path, mods=[ours, dp] if first else [dp, ours])
    for round in (7, 8, 9):
        reply = client.receive(round, **{"clipping_norm": 0.1} if private == "central" else {})
        assert not reply.has_error(), reply.error
        update = reply.content["arrays"]["centres"].numpy() - Scorer().centres.detach().numpy()
        assert 0 < np.linalg.norm(update) < 0.1001
    assert client.seen == [OLD, new_labels(8), new_labels(8)]


def test_the_clients_policy_is_obeyed_and_warnings_are_in_its_log(tmp_path, heard):
    policy = tmp_path / "rules.toml"
    policy.write_text("max_fraction = 0.05\nforbidden = [[0, 2]]\n")
    client = Client(tmp_path / "labels", node={"fedrela-policy": str(policy)}, **{"fedrela-tau": 0.5})
    client.receive(8, Scorer(shifted=1))
    ledger = LabelStore(tmp_path / "labels", "run-77", "3").passes()[0]
    assert 0 < len(ledger) <= 0.05 * len(Y)
    assert ledger.options["forbidden"] == [[0, 2]]
    warnings = [line for level, line in heard if level == "WARNING"]
    assert any("the model confirms only" in line for line in warnings)
    assert any("more than half of max_fraction = 0.05" in line for line in warnings)
    policy.write_text("enabled = false\n")
    client.receive(9)
    assert client.seen[-1] == OLD
    policy.write_text("tau = 7\n")
    with refused(r"rules.toml:tau: expected a number from 0 to 1, got 7"):
        client.receive(10)


@pytest.mark.parametrize("restarted", [False, True])
def test_the_server_cannot_switch_off_a_policy_with_resume(tmp_path, restarted, heard):
    client = Client(tmp_path, **{"fedrela-resume": True})
    client.receive(8)
    moved = LabelStore(tmp_path, "run-77", "3").passes()[0].index.tolist()
    (tmp_path / "policy.toml").write_text(f"keep = {moved}\n")
    if restarted:
        client.restart()
    client.receive(9)
    assert client.seen == [new_labels(8), OLD]
    assert any("the labels of round 8 violate the current keep" in line for _, line in heard)


def test_an_undo_from_outside_counts_from_the_next_round_on(tmp_path):
    client = Client(tmp_path)
    client.receive(8)
    assert LabelStore(tmp_path, "run-77", "3").undo().tolist() == OLD
    client.receive(9)
    assert client.seen == [new_labels(8), OLD]


def test_without_its_folder_a_client_trains_on_its_original_labels(tmp_path, heard):
    client = Client(tmp_path / "labels")
    client.receive(8)
    (tmp_path / "labels").rename(tmp_path / "gone")
    client.receive(9, Scorer(shifted=1))
    gone = f"{tmp_path}/labels/run-77/3 is gone, so this client trains on its original labels; restore it"
    assert ("WARNING", f"FedReLa, round 9, client 3: {gone}") in heard
    (tmp_path / "gone").rename(tmp_path / "labels")
    client.receive(10, Scorer(shifted=1))
    assert client.seen == [new_labels(8), OLD, new_labels(8)]


@pytest.mark.parametrize("restarted", [False, True])
def test_an_undo_outlives_the_clients_folder(tmp_path, restarted):
    client = Client(tmp_path)
    client.receive(8)
    LabelStore(tmp_path, "run-77", "3").undo("consent withdrawn")
    if restarted:
        client.restart()
    client.receive(9)
    assert "fedrela.labels" not in client.context.state
    shutil.rmtree(tmp_path / "run-77")
    client.receive(10)
    assert client.seen == [new_labels(8), OLD, OLD]


def test_a_stricter_policy_outlives_the_clients_folder(tmp_path):
    client = Client(tmp_path)
    client.receive(8)
    (tmp_path / "policy.toml").write_text("max_fraction = 0.0\n")
    client.receive(9)
    assert "fedrela.labels" not in client.context.state
    shutil.rmtree(tmp_path / "run-77")
    client.receive(10)
    assert client.seen == [new_labels(8), OLD, OLD]


def test_a_training_function_that_forgets_the_labels_is_told_so(tmp_path, heard):
    client = Client(tmp_path)
    client.receive(8)
    assert not any("does not use the new labels" in line for _, line in heard)
    relabel_mod(Scorer, load_data)(message(9, Scorer()), client.context, lambda message, context: message)
    assert sum("does not use the new labels" in line for _, line in heard) == 1


def test_torchs_generator_is_left_alone(tmp_path):
    client = Client(tmp_path)
    client.app = ClientApp(mods=[relabel_mod(Scorer, load_data)])
    client.app.train()(lambda message, context: message)
    state = torch.get_rng_state()
    client.receive(8)
    assert LabelStore(tmp_path, "run-77", "3").passes()
    assert torch.equal(torch.get_rng_state(), state)


def test_no_value_of_the_client_reaches_the_server(tmp_path):
    """Flower sends the text of an error to the server."""
    ids = [f"patient-{4000 + row}" for row in range(len(Y))]
    (tmp_path / "policy.toml").write_text("keep = ['patient-9071']\n")
    with refused("keep: expected one of the ids, got 'patient-9071'"):
        Client(tmp_path, mods=[relabel_mod(Scorer, load_data, ids=lambda: ids)]).receive(1)
    (tmp_path / "policy.toml").unlink()
    with refused("row 0: expected one class number as label, got 'HIV positive'"):
        Client(tmp_path, mods=[relabel_mod(Scorer, lambda: [(x, "HIV positive") for x in X])]).receive(1)

    def missing():
        raise FileNotFoundError("/data/patient-4071.png")

    with refused("FileNotFoundError: /data/patient-4071.png"):
        Client(tmp_path, mods=[relabel_mod(Scorer, missing)]).receive(1)


@pytest.mark.parametrize("use", [labels_for, relabeled_dataset])
def test_no_label_reaches_the_server_from_the_training_function(tmp_path, use):
    client, mod = Client(tmp_path), relabel_mod(Scorer, load_data)
    texts = ["HIV positive"] * len(Y)

    def train(message, context):
        return labels_for(context, texts) if use is labels_for else list(use([(0, text) for text in texts], context))

    with refused("made for other data|got 'HIV positive'"):
        mod(message(8, Scorer()), client.context, train)
    with pytest.raises(ZeroDivisionError):  # the training function's own errors are its own
        mod(message(9, Scorer()), client.context, lambda message, context: 1 / 0)
