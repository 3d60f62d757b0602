"""The posterior of a user's model: one pass in evaluation mode, after which everything is as it was."""

from __future__ import annotations

import collections

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from fedrela.errors import ArgumentError, DataError
from fedrela.plugin import posterior
from helpers.plugin_toys import Scorer, points

X, Y = points()
Scan = collections.namedtuple("Scan", "image label")


FORMS = {
    "tensors": (X, Y),
    "arrays": (X.numpy(), Y.numpy()),
    "tensor data set": TensorDataset(X, Y),
    "rows": list(zip(X, Y.tolist(), strict=True)),
    "mappings": [{"img": x, "label": y} for x, y in zip(X, Y.tolist(), strict=True)],
    "loader": DataLoader(TensorDataset(X, Y), batch_size=7, shuffle=True),
    "loader without batches": DataLoader(TensorDataset(X, Y), batch_size=None),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_every_form_of_data_gives_the_same(data):
    Q, y = posterior(Scorer(), data)
    with torch.no_grad():
        wanted = Scorer().eval()(X).double().softmax(dim=1).numpy()
    assert Q.tolist() == wanted.tolist()
    assert y.tolist() == Y.tolist()


@pytest.mark.parametrize("label", [0, -2])
def test_the_label_may_come_first(label):
    Q, y = posterior(Scorer(), list(zip(Y.tolist(), X, strict=True)), label=label)
    assert Q.tolist() == posterior(Scorer(), (X, Y))[0].tolist()
    assert y.tolist() == Y.tolist()


def test_batches_of_named_rows_keep_their_names():
    rows = [Scan(x, y) for x, y in zip(X, Y.tolist(), strict=True)]
    Q, _ = posterior(Scorer(), rows, forward=lambda model, batch: model(batch.image))
    assert Q.tolist() == posterior(Scorer(), (X, Y))[0].tolist()


def test_a_batch_has_a_row_at_least():
    with pytest.raises(ArgumentError, match="batch_size: expected an integer >= 1, got 0"):
        posterior(Scorer(), (X, Y), batch_size=0)


def test_the_model_and_the_random_generator_are_as_they_were():
    model = Scorer()
    model.train()
    model.drop.eval()
    model(X)  # running statistics that are not the initial ones
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    first, _ = posterior(model, (X, Y))
    assert (model.training, model.norm.training, model.drop.training) == (True, True, False)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert posterior(model, (X, Y))[0].tolist() == first.tolist()


class Counting(nn.Module):
    """Counts its calls in a buffer, also in evaluation mode, and may fail."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.fails = fails

    def forward(self, x):
        self.calls += 1
        if self.fails:
            raise RuntimeError("no")
        return x


@pytest.mark.parametrize("fails", [False, True])
def test_buffers_and_modes_come_back_also_after_an_error(fails):
    model = Counting(fails)
    if fails:
        with pytest.raises(ArgumentError, match="RuntimeError: no; forward="):
            posterior(model, (X, Y))
    else:
        posterior(model, (X, Y))
    assert model.calls == 0
    assert model.training


def test_the_batch_size_is_fixed_and_bounds_a_forward_pass():
    seen = []

    def forward(model, batch):
        seen.append(len(batch[0]))
        return model(batch[0])

    posterior(Scorer(), (X, Y), forward=forward, batch_size=50)
    assert seen == [50, 50, 16]


def test_one_logit_is_two_classes():
    Q, _ = posterior(nn.Linear(2, 1), (X, (Y > 0).long()))
    assert Q.shape == (len(X), 2)
    assert abs(Q.sum(axis=1) - 1).max() < 1e-12


def test_keywords_and_answers_with_logits():
    class Answer:
        def __init__(self, logits):
            self.logits = logits

    class Text(nn.Module):
        def forward(self, ids, mask):
            return Answer(ids * mask)

    rows = [{"ids": x, "mask": torch.ones(2), "target": y} for x, y in zip(X, (Y > 0).long(), strict=True)]
    assert posterior(Text(), rows)[0].shape == (len(X), 2)


class Stream(IterableDataset):
    def __iter__(self):
        yield X[0], 0


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (Stream(), ArgumentError, "labels of a stream cannot be stored"),
        ([], ArgumentError, "at least one row"),
        ([{"img": X[0], "diagnosis": 1}], ArgumentError, "no label among the keys img, diagnosis"),
        ([X[0]], ArgumentError, "rows .x, label. or mappings"),
        ([(X[0], "cat")], DataError, "row 0: expected one class number as label, got 'cat'"),
        ([(X[0], torch.tensor([0.2, 0.8]))], DataError, "one class number"),
        ([(X[0], 0.5)], DataError, "one class number"),
    ],
)
def test_data_that_will_not_do_are_named(data, error, said):
    with pytest.raises(error, match=said):
        posterior(Scorer(), data)


def test_a_model_without_logits_is_named():
    with pytest.raises(ArgumentError, match=r"got shape \(116, 2, 1\)"):
        posterior(nn.Unflatten(1, (2, 1)), (X, Y))


def test_a_label_of_another_name():
    assert posterior(Scorer(), [{"img": X[0], "diagnosis": 1}], label="diagnosis")[1].tolist() == [1]
    assert posterior(Scorer(), [(X[0], "id-7", 2)], label=2)[1].tolist() == [2]
