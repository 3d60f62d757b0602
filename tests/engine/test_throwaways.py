"""The three throw-away algorithms through the engine, and what each of them comes to by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.engine.evaluation import evaluate, evaluate_locally
from fedrela.engine.round import next_round
from fedrela.models.runtime import seeded
from fedrela.streams import stream
from helpers.engine_federations import CLASSES, COLUMNS, Made, carry_out, made_of, normed, tiny_mlp
from helpers.throwaway import DrawingServer, Heads, OwnNorm, ServerHead, TwoHeads, Weighted

# Two heads, by hand


def two_heads_by_hand(problem, seed, rounds, participation):
    """Two optimisers of torch, a second head for each client, a mean over n_k: shared weights, and the heads."""
    with seeded(seed, "module"):
        model = Heads(tiny_mlp(problem)(), CLASSES)
    shared = [*model.body.parameters(), *model.head.parameters()]
    x = [p.detach().clone() for p in shared]
    first = [p.detach().clone() for p in model.own.parameters()]
    own: dict[int, list[torch.Tensor]] = {}
    number = int(np.rint(participation * len(problem.shards)))
    for round in range(1, rounds + 1):
        chosen = np.sort(stream(seed, "participation", round).choice(len(problem.shards), number, replace=False))
        sent = []
        for client in chosen.tolist():
            load(shared, x)
            load(model.own.parameters(), own.get(client, first))
            descend(model, shared, problem, seed, round, client)
            own[client] = [p.detach().clone() for p in model.own.parameters()]
            sent.append([p.detach().numpy().astype("f8") for p in shared])
        n = np.array([len(problem.shards[client].train) for client in chosen], float)
        means = [sum(w * a for w, a in zip(n / n.sum(), each, strict=True)) for each in zip(*sent, strict=True)]
        x = [torch.from_numpy(mean.astype("f4")) for mean in means]
    return flat(x), {client: flat(head) for client, head in own.items()}


def load(parameters, values):
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(value)


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors]).numpy().tobytes()


def descend(model, shared, problem, seed, round, client):
    optimisers = [
        torch.optim.SGD(shared, lr=0.05, momentum=0.9, weight_decay=1e-5, foreach=False),
        torch.optim.SGD(model.own.parameters(), lr=0.3, momentum=0.5, foreach=False),
    ]
    ids = problem.shards[client].train
    x, y = torch.from_numpy(problem.x_train[ids]), torch.from_numpy(problem.y_train[ids])
    order = stream(seed, "order", round, client)
    for _ in range(2):
        places = torch.from_numpy(order.permutation(len(ids)))
        for at in places.split(8):
            model.zero_grad()
            features = model.features(x[at])
            cross_entropy(model.head(features), y[at]).backward()
            cross_entropy(model.own(features.detach()), y[at]).backward()
            for optimiser in optimisers:
                optimiser.step()


def test_two_heads_equal_two_optimisers_of_torch_and_a_head_for_each_client(pool):
    made = made_of(TwoHeads(), train={"participation": 0.5}, relabel={"enabled": False})
    run = made.begin(pool)
    turns = np.zeros(5, int)
    for _ in range(4):
        turns[next_round(run).record.admitted] += 1
    weights, heads = two_heads_by_hand(made.problem, made.seed, 4, 0.5)
    assert run.state.weights.tobytes() == weights
    kept = {client: run.memory["client_state"].row(client) for client in np.flatnonzero(run.state.has_state).tolist()}
    assert {client: arrays["private"].tobytes() for client, arrays in kept.items()} == heads
    assert {client: int(arrays["state.turns"]) for client, arrays in kept.items()} == dict(enumerate(100 + turns))
    assert len(set(heads.values())) == len(heads)
    run.close()


def test_a_private_head_is_never_sent(serial):
    run = made_of(TwoHeads()).begin(serial)
    names = [entry.name for entry in run.arrays.layout.entries]
    assert names == ["body.1.weight", "body.1.bias", "head.weight", "head.bias"]
    assert run.arrays.upload["weights"].shape == (sum(entry.size for entry in run.arrays.layout.entries),)
    assert set(run.arrays.upload) == {"weights"}
    assert run.arrays.sizes.shared == run.arrays.sizes.trained == COLUMNS * 6 + 6 + 6 * CLASSES + CLASSES
    run.close()


def test_a_clients_own_model_scores_with_its_own_head(serial, pool):
    found = []
    for executor in (serial, pool):
        run = made_of(TwoHeads(), train={"participation": 0.5}).begin(executor)
        next_round(run)
        found.append((evaluate_locally(run), evaluate(run).overall))
        run.close()
    assert found[0] == found[1]
    local, overall = found[0]
    assert len(set(local["clients"])) > 1
    assert local["mean"] != overall


def test_a_clients_own_score_by_hand(serial):
    run = made_of(TwoHeads(), train={"participation": 0.5}).begin(serial)
    next_round(run)
    shared = run.arrays.layout.split(run.state.weights)
    x = torch.from_numpy(run.problem.x_test)
    f = torch.relu(x @ torch.tensor(shared["body.1.weight"]).T + torch.tensor(shared["body.1.bias"])).numpy()
    expected = []
    for client, shard in enumerate(run.problem.shards):
        own = (
            run.memory["client_state"].row(client)["private"]
            if run.state.has_state[client]
            else run.runner.first_private
        )
        W, b = own[: 6 * CLASSES].reshape(CLASSES, 6), own[6 * CLASSES :]
        guess = (f @ (shared["head.weight"] + W).T + shared["head.bias"] + b).argmax(axis=1)
        recall = [(guess[run.problem.y_test == c] == c).mean() for c in range(CLASSES)]
        counts = np.bincount(run.problem.y_train[shard.train], minlength=CLASSES)
        expected.append(counts @ recall / counts.sum())
    np.testing.assert_allclose(evaluate_locally(run)["clients"], expected)
    run.close()


def test_clients_with_own_arrays_are_scored_one_by_one(serial):
    run = made_of(OwnNorm(), make=normed).begin(serial)
    next_round(run)
    local = evaluate_locally(run)
    recall = np.array(evaluate(run).per_class)
    counts = [np.bincount(run.problem.y_train[s.train], minlength=CLASSES) for s in run.problem.shards]
    assert not np.allclose(local["clients"], [c @ recall / c.sum() for c in counts])
    run.close()


def test_clients_that_share_everything_are_scored_at_once(serial):
    run = Made().begin(serial)
    same = evaluate_locally(run)
    recall = np.array(evaluate(run).per_class)
    counts = [np.bincount(run.problem.y_train[s.train], minlength=CLASSES) for s in run.problem.shards]
    np.testing.assert_allclose(same["clients"], [c @ recall / c.sum() for c in counts])
    run.close()


# An exchange with all clients, by hand


def losses_by_hand(run):
    with seeded(run.plan.seed, "module"):
        model = run.plan.make()
    values = iter(run.arrays.layout.split(run.state.weights).values())
    load(model.parameters(), [torch.from_numpy(next(values).copy()) for _ in model.parameters()])
    x, y, ids = run.problem.x_train, run.current_labels, [shard.train for shard in run.problem.shards]
    with torch.no_grad():
        return np.array([cross_entropy(model(torch.from_numpy(x[i])), torch.from_numpy(y[i])).item() for i in ids])


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_all_clients_answer_before_training_and_have_the_servers_weights(serial, participation):
    made = made_of(Weighted(), train={"participation": participation})
    run, lam, seen = made.begin(serial), np.zeros(5), np.zeros(5)
    for round in range(1, 5):
        F, before = losses_by_hand(run), run.state.weights.astype("f8")
        lam += F - F.mean()
        record = next_round(run).record
        np.testing.assert_allclose(run.state.server["lam"], lam, atol=1e-6)
        seen[record.chosen] += round % 2
        up = run.memory["uploads"]
        w = (1 + lam - lam.mean())[record.admitted] / len(record.admitted)
        sent = [up.row(row)["weights"].astype("f8") for row in range(len(record.admitted))]
        step = sum(weight * (y - before) for weight, y in zip(w, sent, strict=True))
        np.testing.assert_allclose(run.state.weights, before + step, atol=1e-5)
    assert run.state.server["seen"].tolist() == seen.tolist()
    everything = np.concatenate([s.train for s in made.problem.shards])
    assert run.state.server["counts"].tolist() == np.bincount(made.problem.y_train[everything]).tolist()
    assert np.ptp(lam) > 0.1
    run.close()


def test_each_client_gets_its_own_message(serial):
    run = made_of(Weighted()).begin(serial)
    next_round(run)
    weights = run.plan.algorithm.weights(run.state.server)
    messages = [run.plan.algorithm.message(run.state.server, client)["w"].item() for client in range(5)]
    assert messages == weights.tolist()
    assert len(set(messages)) == 5
    run.close()


# A server that trains its own head


def test_the_scored_head_is_the_servers(serial):
    made = made_of(ServerHead())
    run = made.begin(serial)
    next_round(run)
    trained = run.arrays.layout.split(run.state.weights)
    head = run.state.server["head"]
    assert np.abs(trained["head.weight"] - head).max() > 0.01
    with torch.no_grad():
        body = nn.Sequential(nn.Linear(COLUMNS, 6), nn.ReLU())
        load(body.parameters(), [torch.tensor(trained["body.1.weight"]), torch.tensor(trained["body.1.bias"])])
        logits = body(torch.from_numpy(made.problem.x_test)) @ torch.tensor(head).T
    expected = (logits.numpy() + run.state.server["bias"]).argmax(axis=1)
    assert evaluate(run).overall == pytest.approx((expected == made.problem.y_test).mean())
    run.close()


def test_the_servers_state_is_its_own(serial, pool):
    """A head that the server took from its model must not change when the model serves clients."""
    for executor in (serial, pool):
        run = made_of(ServerHead()).begin(executor)
        start = run.state.server["head"].copy()
        evaluate(run)
        run.runner.load(np.ones_like(run.state.weights))
        assert run.state.server["head"].tobytes() == start.tobytes()
        next_round(run)
        kept = run.state.server["head"].copy()
        run.runner.load(np.zeros_like(run.state.weights))
        assert run.state.server["head"].tobytes() == kept.tobytes()
        run.close()


def test_a_server_that_draws_and_looks_at_its_model(serial, pool):
    made = Made(algorithm=DrawingServer())
    alone, _ = carry_out(made, serial, 2)
    assert carry_out(made, pool, 2)[0] == alone
    assert alone[0]["server noise"] != alone[1]["server noise"]


def test_the_classes_in_an_exchange_are_those_of_the_current_labels(serial):
    run = Made(algorithm=Weighted()).begin(serial)
    for _ in range(2):
        next_round(run)
    changed = run.current_labels != run.problem.y_train
    assert changed.any()
    F = losses_by_hand(run)
    before = run.state.server["lam"].copy()
    next_round(run)
    np.testing.assert_allclose(run.state.server["lam"], before + F - F.mean(), atol=1e-6)
    run.close()
