"""How the plug-in is told: functions of any signature, the run's configuration, and one line for what is wrong."""

from __future__ import annotations

import logging

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ArrayRecord, ConfigRecord, Context, RecordDict
from torch import nn

from fedrela.errors import ArgumentError
from fedrela.flower import labels_for, relabel_mod
from fedrela.plugin import LabelStore
from helpers.flower_apps import Client, load_data, message, refused
from helpers.plugin_toys import Scorer, points

torch.set_num_threads(1)
X, Y = points(3)


def moved(folder, client="3", experiment="run-77"):
    return [len(ledger) for ledger in LabelStore(folder, experiment, client).passes()]


def of_context(context):
    return points(context.node_config["partition-id"])


def with_a_default(partition_id, batch_size=32):
    assert batch_size == 32  # a parameter with a default keeps it
    return points(partition_id)


def of_the_run(partition_id, *, file_name):
    assert file_name == "x.csv"
    return [({"x": x}, y) for x, y in zip(*points(partition_id), strict=True)]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (of_context, {}),
        (lambda: [{"img": x, "kind": y} for x, y in zip(X, Y.tolist(), strict=True)], {"label": "kind"}),
        (with_a_default, {}),
        (of_the_run, {"forward": lambda model, batch: model(batch[0]["x"])}),
    ],
    ids=["context", "mappings", "default", "run configuration"],
)
def test_any_function_gives_the_data(tmp_path, data, options):
    client = Client(tmp_path, mods=[relabel_mod(Scorer, data, **options)], **{"batch-size": 1, "file-name": "x.csv"})
    client.receive(8)
    assert moved(tmp_path)[0] > 0
    assert client.seen[0] != Y.tolist()


def test_a_models_arguments_and_a_way_to_load_it(tmp_path):
    class Halves(nn.Module):
        def __init__(self, shifted):
            super().__init__()
            self.scorer = Scorer(shifted)

        def forward(self, x):
            return self.scorer(x)

    def load(model, message):
        model.scorer.load_state_dict(message.content["arrays"].to_torch_state_dict())

    mod = relabel_mod(Halves, load_data, load=load)
    client = Client(tmp_path, mods=[mod], shifted=1)
    client.receive(8)
    other = Client(tmp_path / "plain")
    other.receive(8)
    assert client.seen == other.seen


def test_the_run_configuration_has_the_last_word_of_the_server(tmp_path):
    mods = [relabel_mod(Scorer, load_data, start=9, tau=0.01, experiment="mine", rounds=3)]
    options = {"fedrela-start": 2, "fedrela-tau": 0.5, "fedrela-experiment": "theirs", "fedrela-max-fraction": 0.1}
    client = Client(tmp_path, mods=mods, **options)
    client.receive(2)
    (ledger,) = LabelStore(tmp_path, "theirs", "3").passes()
    assert (ledger.options["round"], ledger.options["tau"], ledger.options["max_fraction"]) == (2, 0.5, 0.1)


def test_off_in_the_run_configuration(tmp_path):
    client = Client(tmp_path, **{"fedrela-enabled": False})
    client.receive(8)
    assert moved(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "run", "said"),
    [
        ({}, {"fedrela-tau": 5}, "relabel_mod: tau: expected a number from 0 to 1"),
        ({}, {"fedrela-taus": 0.1}, "relabel_mod: taus: unknown option"),
        ({"rounds": "epochs"}, {}, "the run's configuration has no 'epochs'"),
        ({"round_key": "epoch"}, {}, "the message has no 'epoch' in its configuration; see round_key="),
    ],
)
def test_wrong_settings_of_the_server_are_named_to_it_in_one_line(tmp_path, options, run, said):
    mod = relabel_mod(**{"model": Scorer, "data": load_data} | options)
    with pytest.raises(ArgumentError, match=said) as error:
        Client(tmp_path, mods=[mod], **run).receive(1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"data": lambda path: 1}, "data: neither the node's nor the run's configuration has 'path'"),
        ({"model": lambda: nn.Linear(2, 3)}, "the message's arrays do not fit the model"),
        ({"forward": lambda model, batch: model(batch["x"])}, "forward: failed: TypeError"),
        ({"scoring_data": lambda: (X[1:], Y[1:])}, "scoring_data: expected 116 rows"),
        ({"ids": lambda: [1, 2]}, "ids: expected 116 distinct ids"),
    ],
)
def test_what_is_wrong_at_the_client_is_in_its_log_in_one_line(tmp_path, options, said):
    mod = relabel_mod(**{"model": Scorer, "data": load_data} | options)
    with refused(said):
        Client(tmp_path, mods=[mod]).receive(1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tau": 5}, "tau: expected"),
        ({"outputs": "odds"}, "outputs: expected"),
        ({"class_names": ["a", "a"]}, "class_names: expected"),
        (
            {"model": Scorer()},
            "model: expected the model's class, or a function that creates it, got an object of Scorer",
        ),
        ({"data": (X, Y)}, "data: expected a function, got an object of tuple"),
        ({"scoring_data": X}, "scoring_data: expected a function, got an object of Tensor"),
        ({"ids": ["patient-1"]}, "ids: expected a function, got an object of list"),
        ({"load": 1}, "load: expected a function"),
        ({"forward": "logits"}, "forward: expected a function"),
        ({"device": "gpu"}, "device: expected auto or a device of PyTorch, such as cuda:0, got 'gpu'"),
        ({"device": "cuda:x"}, "device: expected auto or a device of PyTorch"),
        ({"device": 1.5}, "device: expected auto or a device of PyTorch"),
        ({"device": "cuda:99"}, "device: torch finds no cuda:99 here"),
    ],
)
def test_a_wrong_option_is_found_when_the_app_is_loaded(options, said):
    with pytest.raises(ArgumentError, match=said):
        relabel_mod(**{"model": Scorer, "data": load_data} | options)


def test_a_function_that_returns_other_rows_every_time_is_noticed(tmp_path, caplog):
    calls = iter(range(9))

    def shuffled():
        order = torch.randperm(len(Y), generator=torch.Generator().manual_seed(next(calls)))
        return X[order], Y[order]

    client = Client(tmp_path, mods=[relabel_mod(Scorer, shuffled)])
    client.receive(1)
    with caplog.at_level("ERROR", "flwr.fedrela"):
        logger = logging.getLogger("flwr")
        logger.addHandler(caplog.handler)
        client.receive(8)
        logger.removeHandler(caplog.handler)
    assert client.seen == [Y.tolist()] * 2
    assert "not the rows of this client's first round, or in another order" in caplog.text


@pytest.mark.parametrize("named", [False, True])
def test_a_restart_with_rows_in_another_order(tmp_path, named):
    """Within their classes, so that labels alone do not tell."""
    order = torch.cat([torch.nonzero(c == Y).flatten().flip(0) for c in range(3)])
    places = torch.cat([torch.nonzero(c == Y).flatten() for c in range(3)])
    order = order[places.argsort()]
    rows = {"data": lambda: (X, Y)} | ({"ids": lambda: range(len(Y))} if named else {})
    moved = {"data": lambda: (X[order], Y[order])} | ({"ids": lambda: order.tolist()} if named else {})
    first = Client(tmp_path, mods=[relabel_mod(Scorer, **rows)])
    first.receive(8)
    client = Client(tmp_path, mods=[relabel_mod(Scorer, **moved)])
    if not named:
        with refused("for other inputs than client 3 has now"):
            client.receive(9)
    else:
        client.receive(9)
        assert client.seen[0] == torch.tensor(first.seen[0])[order].tolist() != first.seen[0]


@pytest.mark.parametrize("within", [True, False], ids=["within classes", "over classes"])
def test_labels_follow_their_ids_without_a_restart(tmp_path, within):
    rows, seen = torch.arange(len(Y)), []
    order = torch.randperm(len(Y), generator=torch.Generator().manual_seed(1))
    if within:
        order = order[Y[order].argsort(stable=True)][Y.argsort(stable=True).argsort()]
        assert torch.equal(Y[order], Y)
    client = Client(tmp_path)
    mod = relabel_mod(Scorer, lambda: (X[rows], Y[rows]), ids=lambda: rows.tolist())

    def train(message, context):
        seen.append(labels_for(context, Y[rows]))
        return message

    for rows in (order, torch.arange(len(Y))):  # also before the round of re-labelling
        mod(message(7 if rows is order else 8, Scorer()), client.context, train)
    seen.pop(0)
    rows = order
    for round in (9, 10):
        mod(message(round, Scorer()), client.context, train)
    assert torch.equal(seen[1], seen[0][order])
    assert torch.equal(seen[2], seen[1])
    assert not torch.equal(seen[1], seen[0])


def unnamed(folder, node_id, seed):
    """Return a function that passes a round to a node without client-id and partition-id."""
    x, y = points(seed)
    order = y.argsort(stable=True)  # all nodes have the same labels in the same places
    context = Context(77, node_id, {"state-dir": str(folder)}, RecordDict(), {"num-server-rounds": 10})
    mod = relabel_mod(Scorer, lambda: (x[order], y[order]), tau=0.2)
    return lambda round: mod(message(round, Scorer()), context, lambda message, context: message)


def test_two_nodes_without_a_name_are_noticed_before_round_t(tmp_path):
    first, second = unnamed(tmp_path, 5, seed=1), unnamed(tmp_path, 6, seed=2)
    first(1), second(1)
    with refused("another SuperNode uses it; each client needs .* client-id in --node-config"):
        first(2)
    second(8)
    assert len(moved(tmp_path, "client")) == 1


def test_a_node_without_a_name_does_not_use_the_labels_of_another(tmp_path):
    first, second = unnamed(tmp_path, 5, seed=1), unnamed(tmp_path, 6, seed=2)
    second(1), first(8)
    (tmp_path / "run-77" / "client" / "node").unlink()
    with refused("for other inputs than client client has now.* client-id in --node-config"):
        second(8)


def test_a_single_node_needs_no_name_and_may_come_back_with_another_id(tmp_path):
    unnamed(tmp_path, 5, seed=1)(1)
    again = unnamed(tmp_path, 6, seed=1)
    again(2), again(8)
    assert len(moved(tmp_path, "client")) == 1
    unnamed(tmp_path, 7, seed=1)(9)
    assert len(moved(tmp_path, "client")) == 1


def test_messages_that_will_not_do_are_named(tmp_path):
    client, mod = Client(tmp_path), relabel_mod(Scorer, load_data)
    without = message(8, Scorer())
    del without.content["config"]["server-round"]
    with pytest.raises(ArgumentError, match="has no 'server-round' in its configuration and no round as its group"):
        mod(without, client.context, client.train)
    without.content["config"] = ConfigRecord({"server-round": 8})
    arrays = without.content.array_records.pop("arrays")
    without.content["one"], without.content["two"] = arrays, ArrayRecord()
    with refused("expected one record of arrays, got 2"):
        mod(without, client.context, client.train)


def test_labels_of_other_data_are_refused(tmp_path):
    mod = relabel_mod(Scorer, load_data)
    client = Client(tmp_path)
    with refused("made for other data"):
        mod(message(8, Scorer()), client.context, lambda message, context: labels_for(context, points(4)[1]))
    kinds = {}

    def train(message, context):
        for given in (Y, Y.numpy(), Y.tolist()):
            kinds[type(given)] = labels_for(context, given)
        return message

    mod(message(9, Scorer()), client.context, train)
    assert all(type(labels) is kind for kind, labels in kinds.items())
    assert len({str([int(label) for label in labels]) for labels in kinds.values()}) == 1
