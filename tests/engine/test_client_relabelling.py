"""Re-labelling at a client: where posteriors come from, who moves what and when, and what does not change."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.client_relabelling import posterior
from fedrela.engine.round import next_round
from fedrela.engine.run_options import RelabelPlan
from fedrela.losses import LOSSES
from fedrela.models.inputs import FORWARD_BATCH
from helpers.contexts import blobs, client_context
from helpers.engine_federations import (
    CLASSES,
    SIDE,
    Made,
    carry_out,
    dropping,
    image_problem,
    normed,
    snapshot,
    table_problem,
    tiny_mlp,
    weights_of,
)
from helpers.relabelled_by_hand import by_hand, plain_pass, softmax
from helpers.relabelling_baselines import Doubling, Silent, Telling, Unsure, told

PICTURES = partial(normed, SIDE * SIDE)
OFFICIAL = {"passes": 3, "augment": True, "train_mode": True}


@pytest.mark.parametrize("executor", ["serial", "pool"])
def test_the_posterior_is_a_plain_pass_of_the_received_model(request, executor):
    run = Made().begin(request.getfixturevalue(executor))
    next_round(run)
    expected = {client: by_hand(run, client, plain_pass(run, client)) for client in range(5)}
    done = next_round(run)
    assert done.ledgers == expected
    assert done.record.relabelled == [(client, len(ledger)) for client, ledger in expected.items()]
    assert sum(map(len, expected.values())) > 10
    run.close()


def test_long_clients_are_scored_in_fixed_batches():
    x, y = blobs(n=2 * FORWARD_BATCH + 7, classes=CLASSES)
    module = tiny_mlp(table_problem())()
    context = client_context(module, x, y)
    Q = posterior(context, FedAvg(), RelabelPlan(), None)
    with torch.no_grad():
        parts = [module.eval()(batch).numpy() for batch in torch.from_numpy(x).split(FORWARD_BATCH)]
    assert Q.tobytes() == softmax(np.concatenate(parts)).tobytes()


@pytest.mark.parametrize("n", [1, 2, 8, 9, 17, 24])
@pytest.mark.parametrize("make", [normed, dropping])
@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_the_model_is_as_it_was(make, n, options):
    x, y = blobs(n=n, classes=CLASSES)
    context = client_context(make(), x, y, batch_size=8)
    module = context.model.module.train()
    context.counts = np.bincount(y, minlength=CLASSES)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(3)
    Q = posterior(context, FedAvg(), RelabelPlan(**options), None)
    torch.manual_seed(4)
    again = posterior(context, FedAvg(), RelabelPlan(**options), None)
    assert all(value.equal(before[name]) for name, value in module.state_dict().items())
    assert module.training
    assert Q.tobytes() == again.tobytes()
    np.testing.assert_allclose(Q.sum(axis=1), 1)


def test_training_mode_and_augmentation_matter(serial):
    problem = image_problem()
    found = {}
    for name, options in {"plain": {}, "train": {"train_mode": True}, "augment": {"augment": True}}.items():
        run = Made(problem=problem, make=PICTURES, relabel=options).begin(serial)
        next_round(run)
        found[name] = next_round(run).ledgers
        run.close()
    assert found["plain"] != found["train"]
    assert found["plain"] != found["augment"]


@pytest.mark.parametrize("options", [{}, OFFICIAL, {"collected": True}, {"moves": "random"}, {"min_agreement": 0.5}])
@pytest.mark.parametrize("make", [normed, dropping])
def test_a_tau_of_zero_equals_switched_off_to_the_bit(serial, options, make):
    parts = {"make": make, "train": {"participation": 0.6, "rounds": 3}}
    off = weights_of(Made(relabel={"enabled": False}, **parts), serial)
    assert weights_of(Made(relabel={"tau": 0.0, **options}, **parts), serial) == off
    on = weights_of(Made(relabel={"tau": 0.3, **options}, **parts), serial)
    assert on[0] == off[0]
    assert on[1] != off[1]


def test_pictures_collected_as_the_official_code_does(serial, pool):
    made = Made(problem=image_problem(), make=PICTURES, relabel=OFFICIAL)
    some = carry_out(made, serial)
    assert some == carry_out(made, pool)
    off = carry_out(Made(problem=image_problem(), make=PICTURES, relabel={"enabled": False}), serial)
    assert some[0][0]["weights"] == off[0][0]["weights"]
    assert some[0][1]["weights"] != off[0][1]["weights"]


def stored_scores(run, client):
    return run.memory["client_state"].row(client)["scores"][: len(run.problem.shards[client].train)]


def test_collected_logits_are_those_of_the_last_epoch(serial):
    run = Made(relabel={"collected": True}).begin(serial)
    next_round(run)
    scores = {client: stored_scores(run, client).copy() for client in range(5)}
    assert all(np.isfinite(each).all() for each in scores.values())
    passes = {client: plain_pass(run, client) for client in range(5)}
    assert np.abs(softmax(scores[0]) - passes[0]).max() > 1e-3
    expected = {client: by_hand(run, client, softmax(each)) for client, each in scores.items()}
    assert next_round(run).ledgers == expected
    assert all(np.isnan(stored_scores(run, client)).all() for client in range(5))
    run.close()


def test_collecting_costs_no_bit_before_its_round(serial):
    assert weights_of(Made(relabel={"collected": True}), serial, 1) == weights_of(Made(), serial, 1)


@pytest.mark.parametrize("baseline", [Silent(), Doubling()])
def test_without_collected_logits_there_is_a_pass(serial, baseline):
    run = Made(algorithm=baseline, relabel={"collected": True}).begin(serial)
    next_round(run)
    assert np.isnan(stored_scores(run, 0)).all()
    expected = {client: by_hand(run, client, plain_pass(run, client)) for client in range(5)}
    assert next_round(run).ledgers == expected
    run.close()


def test_a_client_without_collected_logits_makes_a_pass(serial):
    run = Made(train={"participation": 0.6}, relabel={"collected": True}, seed=13).begin(serial)
    earlier = set(next_round(run).record.chosen)
    expected = {client: by_hand(run, client, plain_pass(run, client)) for client in set(range(5)) - earlier}
    ledgers = next_round(run).ledgers
    new = set(ledgers) - earlier
    assert new
    assert set(ledgers) & earlier
    assert {client: ledgers[client] for client in new} == {client: expected[client] for client in new}
    run.close()


def first_ledgers(serial, **relabel):
    run = Made(relabel=relabel).begin(serial)
    next_round(run)
    ledgers = next_round(run).ledgers
    run.close()
    return ledgers


def test_a_client_may_have_its_own_tau(serial):
    usual = first_ledgers(serial)
    some = first_ledgers(serial, tau={"default": 0.2, "1": 0.0, "3": 0.6})
    assert len(some[1]) == 0
    assert len(some[3]) > len(usual[3])
    assert [some[c] == usual[c] for c in range(5)] == [True, False, True, False, True]
    assert [ledger.options["tau"] for _, ledger in sorted(some.items())] == [0.2, 0.0, 0.2, 0.6, 0.2]


def test_the_control_moves_as_many_from_class_to_class_of_other_samples(serial):
    usual, random = first_ledgers(serial), first_ledgers(serial, moves="random")
    for client in range(5):
        assert random[client].flow.tolist() == usual[client].flow.tolist()
        random[client].check()
    assert any(random[c].index.tolist() != usual[c].index.tolist() for c in range(5))


def test_forbidden_moves_do_not_happen(serial):
    usual = sum(ledger.flow for ledger in first_ledgers(serial).values())
    pairs = np.argwhere(usual)[::2]
    fewer = sum(ledger.flow for ledger in first_ledgers(serial, forbidden=tuple(map(tuple, pairs.tolist()))).values())
    assert len(pairs) > 1
    assert fewer[tuple(pairs.T)].sum() == 0
    assert fewer.sum() > 0


def test_proven_rows_and_classes_with_a_tau_of_their_own(serial):
    usual = first_ledgers(serial)
    shards = Made().begin(serial).problem.shards
    proven = [int(shard.train[usual[c].index[0]]) for c, shard in enumerate(shards) if len(usual[c])]
    assert len(proven) > 1
    kept = first_ledgers(serial, keep=proven)
    for client, ledger in kept.items():
        rows = shards[client].train[ledger.index]
        assert not set(proven) & set(rows.tolist())
        assert ledger.options["ineligible"] == len(set(proven) & set(shards[client].train.tolist()))
    busiest = int(sum(ledger.flow for ledger in usual.values()).sum(axis=0).argmax())
    none = first_ledgers(serial, class_tau={busiest: 0.0})
    assert sum(ledger.flow for ledger in none.values())[:, busiest].sum() == 0
    absent = first_ledgers(serial, absent=False)
    present = [[set(each.new) <= set(each.original) for each in ledgers.values()] for ledgers in (usual, absent)]
    assert [all(each) for each in present] == [False, True]


def test_only_allowed_moves_happen(serial):
    pair = tuple(np.argwhere(sum(ledger.flow for ledger in first_ledgers(serial).values()))[0].tolist())
    flow = sum(ledger.flow for ledger in first_ledgers(serial, allowed=[pair]).values())
    assert flow.sum() == flow[pair] > 0


def test_a_client_whose_labels_the_model_does_not_confirm_moves_nothing(serial):
    run = Made().begin(serial)
    next_round(run)
    labels = [run.problem.y_train[shard.train] for shard in run.problem.shards]
    agreement = [float((plain_pass(run, c).argmax(axis=1) == y).mean()) for c, y in enumerate(labels)]
    run.close()
    floor = sorted(agreement)[2]
    usual, some = first_ledgers(serial), first_ledgers(serial, min_agreement=floor)
    trusted = [share >= floor for share in agreement]
    assert sorted(set(trusted)) == [False, True]
    for client in range(5):
        moves = usual[client].index.tolist() if trusted[client] else []
        assert some[client].index.tolist() == moves


@pytest.mark.parametrize("loss", LOSSES)
def test_a_client_that_gains_a_class_it_lacked_has_a_finite_loss(serial, loss):
    run = Made(algorithm=Telling(), train={"loss": loss, "rounds": 3}, relabel={"tau": 0.6}).begin(serial)
    next_round(run)
    record = next_round(run).record
    ids = run.problem.shards[1].train
    before, after = (np.bincount(y[ids], minlength=CLASSES) for y in (run.problem.y_train, run.current_labels))
    assert before[3] == 0 < after[3]
    assert record.admitted == [0, 1, 2, 3, 4]  # a loss that is not finite would not be admitted
    assert next_round(run).record.admitted == [0, 1, 2, 3, 4]
    run.close()


@pytest.mark.parametrize("late", [True, False])
def test_clients_train_with_the_current_labels_and_their_counts(serial, late):
    made = Made(algorithm=Telling(), train={"participation": 0.6}, relabel={"late": late}, seed=13)
    run = made.begin(serial)
    for _ in range(4):
        record = next_round(run).record
        for row, client in enumerate(record.admitted):
            sent, labels = run.memory["uploads"].row(row), run.current_labels[made.problem.shards[client].train]
            assert sent["labels"] == told(labels)
            assert sent["counts"].tolist() == np.bincount(labels, minlength=CLASSES).tolist()
    moved = [(run.current_labels != made.problem.y_train)[shard.train].any() for shard in made.problem.shards]
    assert moved == [run.state.moved.get(client, 0) > 0 for client in range(5)]
    assert any(client in record.admitted and run.state.relabelled[client] < 4 for client in np.flatnonzero(moved))
    run.close()


def test_with_the_counts_of_the_original_labels_it_would_not_be_finite():
    logits, gained = torch.zeros(1, 4), torch.tensor([3])
    assert not LOSSES["balanced_softmax"](logits, gained, [5, 5, 2, 0]).isfinite()


@pytest.mark.parametrize("late", [True, False])
def test_clients_not_chosen_when_it_was_due(serial, late):
    made = Made(train={"participation": 0.4, "rounds": 8}, relabel={"start": 3, "late": late})
    _, records = carry_out(made, serial)
    chosen: dict[int, list[int]] = {}
    for record in records:
        for client in record.chosen:
            chosen.setdefault(client, []).append(record.round)
    found = {client: record.round for record in records for client, _ in record.relabelled}
    first = {client: min(r for r in rounds if r >= 3) for client, rounds in chosen.items() if max(rounds) >= 3}
    assert found == (first if late else dict.fromkeys(records[2].chosen, 3))
    assert len(set(first.values())) > 1
    assert sum(len(record.relabelled) for record in records) == len(found)


def test_every_pass_starts_from_the_original_labels(serial):
    run = Made(train={"rounds": 5}, relabel={"start": 2, "period": 2}).begin(serial)
    next_round(run)
    first = next_round(run).ledgers
    assert next_round(run).ledgers == {}
    expected = {client: by_hand(run, client, plain_pass(run, client), round=4) for client in range(5)}
    second = next_round(run).ledgers
    assert second == expected
    assert first != second
    current_labels = run.problem.y_train.copy()
    for client, ledger in second.items():
        current_labels[run.problem.shards[client].train[ledger.index]] = ledger.new
    assert run.current_labels.tolist() == current_labels.tolist()
    run.close()


def test_before_its_round_nothing_differs_and_the_rate_drops_in_both_arms(serial):
    arms = {
        (enabled, scale): weights_of(Made(relabel={"enabled": enabled, "lr_scale": scale}), serial, 2)
        for enabled in (True, False) for scale in (1.0, 0.1)
    }  # fmt: skip
    assert len({each[0] for each in arms.values()}) == 1
    assert len({each[1] for each in arms.values()}) == 4
    run = Made(relabel={"enabled": False, "lr_scale": 0.1}).begin(serial)
    next_round(run)
    before = run.state.weights.copy()
    small = next_round(run).record.norm_max
    assert small < 0.5 * np.linalg.norm(before)
    run.close()


def test_the_number_of_samples_stays_the_original_one(serial):
    run = Made(algorithm=Doubling(), train={"loss": "balanced_softmax"}).begin(serial)
    for _ in range(3):
        assert next_round(run).record.samples == [len(shard.train) for shard in run.problem.shards]
    run.close()


def test_what_is_held_back_keeps_its_labels(serial):
    problem = table_problem(validation=6)
    made = Made(problem=problem, relabel={"tau": 0.6})
    run = made.begin(serial)
    for _ in range(2):
        record = next_round(run).record
    held = np.concatenate([shard.validation for shard in problem.shards])
    assert run.current_labels[held].tolist() == problem.y_train[held].tolist()
    assert record.moved > 10
    assert (run.current_labels != problem.y_train).sum() == record.moved == sum(run.state.moved.values())
    assert record.validation is not None
    run.close()


def test_a_model_with_bad_posteriors_changes_nothing(serial):
    run = Made(algorithm=Unsure(), train={"evaluate_every": 9}).begin(serial)
    next_round(run)
    done = next_round(run)
    assert done.record.relabelled == [(client, 0) for client in range(5)]
    assert all(ledger.refusal.startswith("not finite: row 0") for ledger in done.ledgers.values())
    assert run.current_labels.tolist() == run.problem.y_train.tolist()
    run.close()


def test_the_originals_are_never_written_to(serial):
    made = Made()
    before = made.problem.y_train.tobytes(), made.problem.x_train.tobytes()
    run = made.begin(serial)
    some = [(next_round(run), snapshot(run))[1]["labels"] for _ in range(2)]
    assert some[1] != before[0] == some[0]
    assert (made.problem.y_train.tobytes(), made.problem.x_train.tobytes()) == before
    run.close()
