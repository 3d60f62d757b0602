"""Which arrays of a model travel: every value in one part or in none, and back where it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedrela.errors import ArgumentError
from fedrela.models.flat_model import FlatModel
from fedrela.models.layout import ParameterSlice, ParameterSplit
from helpers.batteries import examples
from helpers.contexts import digest

PARTS = ("body", "norm", "head", "own", "fixed")


def model() -> FlatModel:
    module = nn.ModuleDict({
        "body": nn.Linear(3, 4), "norm": nn.BatchNorm1d(4), "head": nn.Linear(4, 2), "own": nn.Linear(4, 2),
        "fixed": nn.Linear(4, 2),
    })  # fmt: skip
    module["fixed"].requires_grad_(False)
    flat = FlatModel(module)
    flat.vector.copy_(torch.arange(len(flat.vector)))
    return flat


def names(part: ParameterSlice) -> list[str]:
    return [entry.name for entry in part.layout.entries]


@examples(32, 32)
@given(st.sets(st.sampled_from(PARTS)))
def test_every_array_is_shared_private_or_frozen(private):
    flat = model()
    split = ParameterSplit.of(flat.layout, sorted(private))
    parts = set(names(split.shared)), set(names(split.private))
    frozen = {"fixed.weight", "fixed.bias"}
    assert parts[0] | parts[1] | frozen == {entry.name for entry in flat.layout.entries}
    assert not parts[0] & parts[1]
    assert all(name.split(".")[0] in private for name in parts[1])
    for part in (split.shared, split.private):
        kinds = [entry.kind for entry in part.layout.entries]
        assert kinds == sorted(kinds, key=["parameter", "buffer"].index)
        trained = sum(entry.size for entry in part.layout.entries if entry.kind == "parameter")
        assert part.layout.trained == trained
        arrays = flat.read()
        assert all(np.array_equal(arrays[n], a) for n, a in part.layout.split(part.read(flat)).items())


def test_buffers_are_shared_and_counters_are_not():
    split = ParameterSplit.of(model().layout)
    assert names(split.shared) == [
        "body.weight", "body.bias", "norm.weight", "norm.bias", "head.weight", "head.bias", "own.weight", "own.bias",
        "norm.running_mean", "norm.running_var",
    ]  # fmt: skip
    assert split.private.layout.size == 0


@pytest.mark.parametrize("private", [["own"], ["norm"], ["body", "head"], ["norm.weight"], list(PARTS[:4])])
def test_writing_one_part_leaves_the_other(private):
    flat = model()
    split = ParameterSplit.of(flat.layout, private)
    before = flat.read()
    split.private.write(flat, -split.private.read(flat))
    after = flat.read()
    for name, array in before.items():
        expected = -array if name in names(split.private) else array
        assert np.array_equal(after[name], expected)
    split.private.write(flat, -split.private.read(flat))
    assert digest(flat) == digest(model())


def test_a_read_only_vector_and_an_array_of_ones_own():
    flat = model()
    part = ParameterSplit.of(flat.layout, ["own"]).shared
    out = np.zeros(part.layout.size, "f4")
    assert part.read(flat, out) is out
    out.flags.writeable = False
    flat.vector.zero_()
    part.write(flat, out)
    assert np.array_equal(part.read(flat), out)


def test_neighbours_are_copied_at_once():
    split = ParameterSplit.of(model().layout, ["own"])
    assert len(split.shared.slices) == 2
    assert len(split.private.slices) == 1


@pytest.mark.parametrize("size", [0, 5])
def test_a_vector_of_another_length(size):
    flat = model()
    with pytest.raises(ArgumentError, match="got float32 of shape"):
        ParameterSplit.of(flat.layout).shared.write(flat, np.zeros(size, "f4"))


def test_a_private_part_that_is_not_there():
    with pytest.raises(ArgumentError, match="private: the model has no module 'ow'"):
        ParameterSplit.of(model().layout, ["ow"])
