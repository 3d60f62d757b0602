"""What would fail in round T fails in the first round, with the fix in the message; after it a round is never lost."""

from __future__ import annotations

import errno
import logging
import tempfile

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fedrela.errors import ArgumentError, DataError
from fedrela.plugin import OneShot, Policy
from helpers.plugin_toys import Scorer, points

X, Y = points()
ONE_HOT = nn.functional.one_hot(Y, 3)


NAMED = [{"img": x, "diagnosis": int(y)} for x, y in zip(X, Y, strict=True)]
TEXT = [(x, "ill") for x in X]


def once(folder, data=(X, Y), **options):
    return OneShot(data, **{"experiment": "toy", "client": 3, "rounds": 10, "store": folder, "tau": 0.2} | options)


def labels(client):
    return [int(y) for _, y in client.dataset]


class Augmented(TensorDataset):
    """Rows with noise, drawn from the generator that transforms of images usually take."""

    def __init__(self, draw, *tensors):
        super().__init__(*tensors)
        self.draw = draw

    def __getitem__(self, number):
        x, y = super().__getitem__(number)
        return x + float(self.draw()), y


def noisy(rows):
    x, y = (torch.stack(part) for part in zip(*rows, strict=True))
    return x + torch.rand(1), y


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (NAMED, "no label among the keys img, diagnosis; name it with label="),
        (TEXT, "row 0: .*'ill'; number the classes from 0, and keep"),
        ((X, ONE_HOT), "row 0: expected one class number .* a one-hot label: give its argmax"),
        ((X, 1 - ONE_HOT), r"row 0: .* samples of several classes \(multi-label\) cannot be re-labelled"),
        ((X, X[:, 0]), r"row 0: .* numbers to predict \(regression\) cannot be re-labelled"),
        ((X, X), r"row 0: .* numbers to predict \(regression\)"),
        ([(x, object()) for x in X], "label= names the key or position"),
        (Augmented(lambda: torch.rand(()), X, Y), "row 0 differs .*: random augmentation.* scoring_data="),
        (Augmented(np.random.random, X, Y), "row 0 differs between two reads"),
        (DataLoader(TensorDataset(X, Y), collate_fn=noisy), "a batch differs between two reads"),
        ([(X[: 1 + i % 2], int(y)) for i, y in enumerate(Y)], "do not make a batch: .* a DataLoader with a collate_fn"),
        ((X[:0], Y[:0]), "expected at least one row"),
        ((X, np.full(len(Y), "ill")), "row 0: .*'ill'; number the classes from 0, and keep"),
        ((X, Y[1:]), "expected one label per row, got 116 rows and 115 labels"),
        ((X, Y.double().masked_fill(Y[0] == Y, torch.nan)), "got nan; a missing label: leave the row out"),
        ([(int(y), x) for x, y in zip(X, Y, strict=True)], "label= names another key or position"),
        ({"train": (X, Y), "test": (X, Y)}, "got dict; give one of its parts: train, test"),
        (pd.DataFrame({"x": Y, "label": Y}), r"got DataFrame; give it with its labels, as a pair \(X, y\)"),
        (iter(NAMED), "labels of a stream cannot be stored"),
    ],
    ids=[
        "no label key",
        "strings",
        "one-hot",
        "multi-label",
        "regression",
        "vectors",
        "objects",
        "augmented",
        "augmented by NumPy",
        "augmented in batches",
        "no batch",
        "no rows",
        "array of strings",
        "arrays that do not fit",
        "missing label",
        "label elsewhere",
        "train and test",
        "table without labels",
        "stream",
    ],
)
def test_data_that_will_not_do_are_refused_when_the_object_is_made(tmp_path, data, said):
    before = torch.get_rng_state(), np.random.get_state()[2]  # noqa: NPY002
    with pytest.raises((ArgumentError, DataError), match=said) as error:
        once(tmp_path, data)
    assert "\n" not in str(error.value)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[2] == before[1]  # noqa: NPY002


class TwoInputs(nn.Module):
    def forward(self, image, age):
        return image + age


class NamedInputs(nn.Module):
    def forward(self, x):
        return torch.stack([*x, x[0]], dim=1)


class NotANumber(nn.Module):
    def forward(self, x):
        return torch.full((len(x), 3), torch.nan)


WITH_NAN = X.clone()
WITH_NAN[5, 0] = torch.nan


class Rounded(nn.Module):
    """Probabilities as short floats hold them: a row sums to nearly 1."""

    def forward(self, q):
        return q.bfloat16()


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (TwoInputs(), {}, r"failed when called as model\(batch\[0\]\): TypeError: .*'age'; forward= takes a function"),
        (nn.Linear(5, 3), {}, r"model: failed when called as model\(batch\[0\]\): RuntimeError: .*shapes"),
        (nn.Linear(2, 3), {"forward": lambda model, batch: model(batch["x"])}, "forward: failed: TypeError"),
        (nn.Linear(2, 2), {}, r"row \d+: expected a class from 0 to 1, since the model has 2 outputs, got 2"),
        (nn.Unflatten(1, (2, 1)), {}, r"expected logits of shape \(batch, classes\), got shape .*; see forward="),
        (
            nn.Sequential(nn.Linear(2, 3), nn.Softmax(1)),
            {},
            '0 and 1 and sum to 1.*use outputs="probabilities"',
        ),
        (
            nn.Sequential(nn.Linear(2, 1), nn.Sigmoid()),
            {},
            'between 0 and 1, .*"probabilities", or outputs="logit"',
        ),
        (
            nn.Sequential(nn.Linear(2, 3), nn.Softmax(1), Rounded()),
            {},
            '0 and 1 and sum to 1.*use outputs="probabilities"',
        ),
        (nn.Sequential(nn.Linear(2, 3), nn.Sigmoid()), {}, 'like one sigmoid per class: .*outputs="logits"'),
        (nn.Linear(2, 3).state_dict(), {}, "model: expected a torch.nn.Module .*, got OrderedDict"),
        (nn.Linear(2, 3), {"outputs": "logit"}, 'it has 3 outputs per sample: use outputs="logits"'),
        (nn.Linear(2, 1), {"outputs": "logits"}, 'it has one output per sample: use outputs="logit"'),
        (nn.Linear(2, 3), {"forbidden": [(3, 0)]}, "forbidden: expected classes from 0 to 2, got 3"),
        (nn.Linear(2, 3), {"class_names": ["a", "b"]}, "class_names: expected 3 names, .* got 2"),
        (
            Scorer(),
            {"outputs": "probabilities"},
            r"model: its outputs for row \d+ are not probabilities: .*; if they are logits, leave out outputs=",
        ),
        (
            Scorer(),
            {"data": (X, Y % 2), "outputs": "probabilities", "forward": lambda model, batch: batch[0][:, :1]},
            r"model: its outputs for row \d+ are not probabilities: smallest -.*, sum 1; if",
        ),
        (
            nn.Sequential(Scorer(), nn.Sigmoid()),
            {"outputs": "probabilities"},
            r"model: its outputs for row \d+ are not probabilities",
        ),
        (NotANumber(), {}, "model: its outputs for row 0 are not finite, although all inputs of the batch are"),
        (nn.Linear(2, 3), {"data": (WITH_NAN, Y)}, "data: row 5: its inputs have NaN or infinity, so .* row 5 are not"),
        (
            NamedInputs(),
            {"data": [{"x": list(map(float, x)), "y": int(y)} for x, y in zip(WITH_NAN, Y, strict=True)]},
            "data: row 5: its inputs have NaN or infinity",
        ),
    ],
)
def test_a_model_that_will_not_do_is_refused_in_round_1(tmp_path, model, options, said):
    client = once(tmp_path, **options)
    with pytest.raises((ArgumentError, DataError), match=said) as error:
        client.before_round(1, model)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"outputs": "odds"}, "outputs: expected one of logits, probabilities, logit, got 'odds'"),
        ({"ids": ["a"] * len(Y)}, "ids: expected 116 distinct ids, one per row, got 1 in 116"),
        ({"class_names": ["a", "a", "b"]}, "class_names: expected distinct names"),
        (
            {"scoring_data": (X[1:], Y[1:])},
            "scoring_data: expected 116 rows, as many as the training data, got 115",
        ),
        ({"scoring_data": (X, Y.roll(1))}, r"scoring_data: row \d+ has label \d here and \d in the training data"),
        ({"resume": "yes"}, "resume: expected true or false"),
        ({"start": 80}, "start: round 80 is after the last of 10: no label would change"),
    ],
)
def test_wrong_options_are_named_when_the_object_is_made(tmp_path, options, said):
    with pytest.raises(ArgumentError, match=said):
        once(tmp_path, **options)


def test_a_store_that_cannot_be_written_to_is_named_in_round_1(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    said = r"/toy/3: cannot be written to: {}; choose another folder with store= \(in Flower, state-dir"
    with pytest.raises(ArgumentError, match=said.format("Not a directory")):
        once(tmp_path / "file").before_round(1, Scorer())
    once(tmp_path).before_round(1, Scorer())
    assert list((tmp_path / "toy" / "3").iterdir()) == []

    def read_only(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "x")

    monkeypatch.setattr(tempfile, "mkdtemp", read_only)
    with pytest.raises(ArgumentError, match=said.format("Permission denied")):
        once(tmp_path).before_round(1, Scorer())


def test_rounds_are_counted_from_1(tmp_path):
    with pytest.raises(ArgumentError, match="round: expected an integer >= 1, got 0"):
        once(tmp_path).before_round(0, Scorer())


def test_a_model_before_its_first_step_and_other_forms_of_rows(tmp_path):
    """Outputs that are all 0 are not probabilities; labels may come first; a table is a pair of pandas."""
    zero = nn.Linear(2, 1)
    nn.init.zeros_(zero.weight), nn.init.zeros_(zero.bias)
    assert once(tmp_path / "zero", (X, Y % 2)).before_round(1, zero) is None
    plain = once(tmp_path / "plain").before_round(8, Scorer())
    first = once(tmp_path / "first", [(int(y), x) for x, y in zip(X, Y, strict=True)], label=0)
    table = once(tmp_path / "table", (pd.DataFrame(X.numpy()), pd.Series(Y.numpy())))
    for client in (first, table):
        assert client.before_round(8, Scorer()).labels.tolist() == plain.labels.tolist()


def test_a_client_that_does_not_re_label_is_not_asked(tmp_path):
    client = once(tmp_path, Augmented(lambda: torch.rand(()), X, Y), enabled=False)
    assert client.before_round(8, TwoInputs()) is None


def test_clean_rows_judge_for_augmented_ones(tmp_path):
    client = once(tmp_path / "a", Augmented(lambda: torch.rand(()), X, Y), scoring_data=(X, Y))
    plain = once(tmp_path / "b")
    for each in (client, plain):
        each.before_round(8, Scorer())
    assert labels(client) == labels(plain) != Y.tolist()
    assert not torch.equal(client.dataset[0][0], X[0])  # training still sees augmented rows


def test_a_failure_in_round_t_costs_no_round(tmp_path, caplog):
    client, model = once(tmp_path), Scorer()
    client.before_round(1, model)
    model.forward = None
    assert client.before_round(8, model) is None
    assert labels(client) == Y.tolist()
    (said,) = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert said.startswith("FedReLa, round 8, client 3: scoring failed, so this client trains on its original labels")
    assert "it tries again in its next round: ArgumentError: model: failed when called as model(batch[0])" in said
    assert client.before_round(9, Scorer()).options["round"] == 9
    assert labels(client) != Y.tolist()


def test_a_refusal_is_recorded_but_uses_up_no_pass(tmp_path):
    client = once(tmp_path, policy=Policy(min_agreement=0.6))
    refused = client.before_round(8, Scorer(shifted=1))
    assert "the model confirms" in refused.refusal
    assert labels(client) == Y.tolist()
    made = client.before_round(9, Scorer())
    assert len(made) > 0
    assert [ledger.refusal is None for ledger in client.store.passes()] == [False, True]
    assert client.before_round(10, Scorer()) == made
    official = once(tmp_path / "official", policy=Policy(min_agreement=0.6), late=False)
    official.before_round(8, Scorer(shifted=1))
    assert official.before_round(9, Scorer()) is None


def test_after_a_refused_pass_the_labels_of_the_last_one_stay(tmp_path):
    client = once(tmp_path, start=3, period=2, policy=Policy(passes=3))
    good = client.before_round(3, Scorer())
    broken = Scorer()
    with torch.no_grad():
        broken.centres.fill_(torch.nan)
    assert client.before_round(5, broken) == good
    assert labels(client) == good.labels.tolist()
    assert [ledger.refusal is None for ledger in client.store.passes()] == [True, False]
    assert client.before_round(6, Scorer()).options["round"] == 6


def test_rows_that_change_between_turns_are_noticed(tmp_path, caplog):
    x = X.clone()
    client = once(tmp_path, (x, Y))
    client.before_round(1, Scorer())
    x.copy_(x.flip(0))
    assert client.before_round(8, Scorer()) is None
    assert "not the rows of this client's first round, or in another order" in caplog.text


@pytest.mark.parametrize("round", [1, 8])
def test_all_labels_are_compared_with_those_of_the_rows_to_score(tmp_path, round, caplog):
    """Two rows that change places are not among the few that are compared when the object is made."""
    order, (first, second) = torch.arange(len(Y)), (2, int(torch.nonzero(Y[2] != Y)[3]))
    clean = X.clone(), Y.clone()
    client = once(tmp_path, scoring_data=clean)
    if round > 1:
        assert client.before_round(1, Scorer()) is None
    order[first], order[second] = second, first
    for part, whole in zip(clean, (X, Y), strict=True):
        part.copy_(whole[order])
    said = rf"scoring_data: row {first} has label {clean[1][2]} here and {Y[2]} in the training data; keep their order"
    if round == 1:
        with pytest.raises(ArgumentError, match=said):
            client.before_round(round, Scorer())
    else:
        assert client.before_round(round, Scorer()) is None
        assert said in caplog.text
    assert client.store.passes() == []  # so the name of the experiment is not used up
    for part, whole in zip(clean, (X, Y), strict=True):
        part.copy_(whole)
    assert client.before_round(9, Scorer()) is not None


def test_a_model_that_diverged_before_a_clients_first_round_is_refused_and_not_an_error(tmp_path):
    assert "not finite" in once(tmp_path).before_round(8, NotANumber()).refusal


def test_an_error_of_the_users_own_code_has_its_traceback_in_the_log(tmp_path, caplog):
    def forward(model, batch):
        if broken:
            raise ZeroDivisionError("in my forward")
        return model(batch[0])

    client, broken = once(tmp_path, forward=forward), False
    client.before_round(1, Scorer())
    broken = True
    assert client.before_round(8, Scorer()) is None
    assert 'raise ZeroDivisionError("in my forward")' in caplog.text
    caplog.clear()
    broken, client.dataset._data.tensors[0][:] = False, 0  # an error of fedrela's own says what is wrong
    assert client.before_round(9, Scorer()) is None
    assert "not the rows of this client's first round" in caplog.text
    assert "Traceback" not in caplog.text
