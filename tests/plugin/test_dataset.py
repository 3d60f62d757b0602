"""A data set with the current labels: rows keep their form, other data are refused, nothing leaks the old labels."""

from __future__ import annotations

import collections
import pickle  # PyTorch's worker processes receive data sets in this way

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import fedrela
from fedrela.errors import ArgumentError, DataError
from fedrela.plugin import OneShot, RelabeledDataset, relabeled_loader
from helpers.batteries import examples
from helpers.plugin_toys import points

X, Y = points()
rng = np.random.default_rng(0)
LEDGER = fedrela.relabel(rng.dirichlet(np.ones(3), len(Y)), Y.numpy(), tau=0.3).ledger
NEW = LEDGER.labels.tolist()
Pair = collections.namedtuple("Pair", "x y")


class Columns:
    """A table in the manner of Hugging Face's: rows are mappings, a name gives a column, many rows come at once."""

    features = ("img", "label")

    def __len__(self):
        return len(Y)

    def __getitem__(self, index):
        if isinstance(index, str):
            return {"img": X, "label": Y.tolist()}[index]
        return {"img": X[index], "label": Y[index].tolist()}

    def __getitems__(self, numbers):
        return [self[number] for number in numbers]

    def shuffle(self):
        return self


FORMS = {
    "tensor data set": TensorDataset(X, Y),
    "tensors": (X, Y),
    "column of one": TensorDataset(X, Y[:, None].float()),
    "rows": [(x, int(y)) for x, y in zip(X, Y, strict=True)],
    "lists": [[x, np.int64(y)] for x, y in zip(X, Y.tolist(), strict=True)],
    "named": [Pair(x, np.array(y)) for x, y in zip(X, Y.tolist(), strict=True)],
    "mappings": [{"img": x, "targets": y} for x, y in zip(X, Y, strict=True)],
    "columns": Columns(),
    "subset": Subset(TensorDataset(X, Y), range(len(Y))),
}


def label(row):
    return next(row[key] for key in ("label", "targets") if key in row) if isinstance(row, dict) else row[1]


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_rows_keep_their_form(data):
    assert LEDGER.index.size > 5
    relabelled = RelabeledDataset(data, LEDGER)
    plain = RelabeledDataset(data)
    assert len(relabelled) == len(plain) == len(Y)
    for number in range(len(Y)):
        old, new = plain[number], relabelled[number]
        assert type(new) is type(old)
        assert type(label(new)) is type(label(old))
        assert np.shape(label(new)) == np.shape(label(old))
        assert int(label(new)) == NEW[number]
        assert int(label(old)) == int(Y[number])
        assert torch.equal(new["img"] if isinstance(new, dict) else new[0], X[number])


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_loaders_give_the_current_labels(data):
    loader = DataLoader(RelabeledDataset(data, LEDGER), batch_size=32)
    assert [int(each) for batch in loader for each in label(batch)] == NEW


def test_worker_processes_give_the_current_labels():
    loader = DataLoader(RelabeledDataset(Columns(), LEDGER), batch_size=64, num_workers=1)
    assert [int(each) for batch in loader for each in batch["label"]] == NEW


@pytest.mark.parametrize("kind", [int, np.int64, np.array, torch.tensor], ids=["int", "int64", "array", "tensor"])
def test_a_list_of_labels_keeps_the_type_of_each(kind):
    rows = TensorDataset(X, Y)
    rows.targets = [kind(label) for label in Y.tolist()]
    new = RelabeledDataset(rows, LEDGER).targets
    assert [int(label) for label in new] == NEW
    for one, other in zip(new, rows.targets, strict=True):
        assert type(one) is type(other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        assert np.shape(one) == ()


def test_an_unchanged_row_is_the_row_itself():
    rows = FORMS["mappings"]
    still = next(number for number in range(len(Y)) if NEW[number] == Y[number])
    assert RelabeledDataset(rows, LEDGER)[still] is rows[still]


@given(st.slices(len(Y)).filter(lambda part: (part.step or 1) > 0) | st.integers(-len(Y), len(Y) - 1))
@examples(60, 2000)
def test_parts_and_counting_from_the_end(index):
    wanted = np.array(NEW)[index].tolist()
    assert label(RelabeledDataset(FORMS["tensors"], LEDGER)[index]).tolist() == wanted
    assert label(RelabeledDataset(FORMS["columns"], LEDGER)[index]) == wanted
    part = RelabeledDataset(FORMS["rows"], LEDGER)[index]
    assert (label(part) if isinstance(part, tuple) else [label(row) for row in part]) == wanted


def test_numbers_as_a_tensor():
    some = torch.tensor([5, 1, 1])
    assert label(RelabeledDataset(FORMS["tensors"], LEDGER)[some]).tolist() == [NEW[5], NEW[1], NEW[1]]
    assert label(RelabeledDataset(FORMS["tensors"], LEDGER)[some[0]]) == NEW[5]


def test_no_door_leads_to_the_old_labels():
    table = RelabeledDataset(Columns(), LEDGER)
    assert table["label"] == NEW
    assert torch.equal(table["img"], X)
    assert table.features == ("img", "label")
    assert RelabeledDataset(TensorDataset(X, Y), LEDGER).tensors[1].tolist() == NEW
    with pytest.raises(AttributeError, match="call it before RelabeledDataset"):
        _ = table.shuffle
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = table.colour
    with_targets = TensorDataset(X, Y)
    with_targets.targets = Y.tolist()
    assert RelabeledDataset(with_targets, LEDGER).targets == NEW
    assert RelabeledDataset(with_targets).targets == Y.tolist()


class Visits:
    """Rows with a label, and another column whose name is usual for labels, too."""

    y = X[:, 0].tolist()
    targets = Y.tolist()

    def __len__(self):
        return len(Y)

    def __getitem__(self, index):
        rows = {"label": Y.tolist(), "y": self.y, "x": X}
        return rows[index] if isinstance(index, str) else {key: value[index] for key, value in rows.items()}


def test_only_the_label_has_new_labels():
    visits = RelabeledDataset(Visits(), LEDGER)
    assert visits["label"] == visits.targets == NEW
    assert visits["y"] == visits.y == Visits.y
    assert RelabeledDataset(Visits(), LEDGER, label="label")["label"] == NEW


def test_it_survives_the_way_to_another_process():
    again = pickle.loads(pickle.dumps(RelabeledDataset(TensorDataset(X, Y), LEDGER)))
    assert [int(row[1]) for row in again] == NEW


def test_other_data_are_refused():
    with pytest.raises(DataError, match="expected 116 rows, as many as there are labels, got 115"):
        RelabeledDataset(TensorDataset(X[1:], Y[1:]), LEDGER)
    shifted = RelabeledDataset(TensorDataset(X.flip(0), Y.flip(0)), LEDGER)
    with pytest.raises(DataError, match="in another order"):
        list(shifted)
    with pytest.raises(DataError, match="in another order"):
        shifted[:]
    backwards = Columns()
    backwards.targets = Y.tolist()[::-1]
    table = RelabeledDataset(backwards, LEDGER)
    with pytest.raises(DataError, match="in another order"):
        _ = table.targets
    ledger = fedrela.relabel(rng.dirichlet(np.ones(3), len(Y)), Y.flip(0).numpy(), tau=0.3).ledger
    with pytest.raises(DataError, match="in another order"):
        RelabeledDataset(Columns(), ledger)["label"]
    with pytest.raises(ArgumentError, match="no label among the keys"):
        RelabeledDataset([{"img": x} for x in X], LEDGER)[0]


def order(loader):
    return [x.tolist() for x, _ in loader]


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 16, "shuffle": True}, {"batch_size": 7, "drop_last": True}, {"batch_size": None}],
    ids=["shuffled", "dropping", "no batches"],
)
def test_a_loader_keeps_order_and_batches(options):
    loader = DataLoader(TensorDataset(X, Y), generator=torch.Generator().manual_seed(1), **options)
    ours = relabeled_loader(loader, LEDGER)
    first = list(ours)
    loader.generator.manual_seed(1)
    assert [x.tolist() for x, _ in first] == order(loader)
    assert len(ours) == len(loader)
    places = {tuple(x.tolist()): number for number, x in enumerate(X)}
    for x, y in first:
        for each, one in zip(x.reshape(-1, 2).tolist(), y.reshape(-1).tolist(), strict=True):
            assert one == NEW[places[tuple(each)]]


def test_a_loader_is_needed():
    with pytest.raises(ArgumentError, match="expected a torch DataLoader"):
        relabeled_loader([1], LEDGER)


WHOLE = TensorDataset(X, Y)
SOME = range(0, len(Y), 4)


def test_a_sampler_of_other_rows_in_every_epoch_is_used_with_a_warning():
    loader = DataLoader(WHOLE, sampler=DistributedSampler(WHOLE, num_replicas=2, rank=0))
    with pytest.warns(
        UserWarning, match=r"data: its DistributedSampler draws 58 of 116 rows per epoch; all rows count"
    ):
        assert len(relabeled_loader(loader, None).dataset) == 116


@pytest.mark.parametrize(
    ("sampler", "number"),
    [
        (SubsetRandomSampler(SOME), 29),
        (SequentialSampler(SOME), 29),
        (RandomSampler(SOME, num_samples=200, replacement=True), 29),
        (WeightedRandomSampler((Y > 0).float(), len(Y)), 36),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("batched", [False, True])
def test_a_sampler_of_some_rows_is_refused(tmp_path, sampler, number, batched):
    """The other rows may be those of other clients, who share the data set."""
    order = {"batch_sampler": BatchSampler(sampler, 8, drop_last=False)} if batched else {"sampler": sampler}
    loader = DataLoader(WHOLE, **order)
    said = rf"data: its {type(sampler).__name__} draws {number} of 116 rows; give a loader of Subset\(data, indices\)"
    with pytest.raises(ArgumentError, match=said):
        OneShot(loader, experiment="toy", client=3, rounds=10, store=tmp_path)
    for source in (None, LEDGER):
        with pytest.raises(ArgumentError, match=said):
            relabeled_loader(loader, source)


@pytest.mark.parametrize(
    "sampler",
    [
        RandomSampler(WHOLE, num_samples=10),
        WeightedRandomSampler(1.0 + Y, 10),
        SubsetRandomSampler(range(len(Y))),
        DistributedSampler(WHOLE, num_replicas=1, rank=0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_sampler_that_may_draw_every_row_is_used(tmp_path, sampler):
    loader = DataLoader(WHOLE, sampler=sampler)
    OneShot(loader, experiment="toy", client=3, rounds=10, store=tmp_path)
    assert len(list(relabeled_loader(loader, LEDGER))) == len(sampler)
