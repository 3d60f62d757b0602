"""The contract between models and algorithms, and what happens to a module that does not follow it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedrela.errors import ArgumentError
from fedrela.models import Classifier, FlatModel, Plain, adapt, build, has_split, need_split, num_features
from fedrela.models.contract import model_factory


class Own(nn.Module):
    """A user's model with the split, and with a dropout that must not act during the probe."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(6, 4)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, 3)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.relu(self.trunk(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


def test_a_built_model_has_the_split():
    model = build("mlp", (6,), 3, hidden=[4])
    assert has_split(model)
    need_split(model, "moon")
    assert adapt(model, (6,), 3) is model
    assert num_features(model) == 4


def test_a_user_s_split_is_taken_as_it_is_and_its_modes_are_kept():
    own = Own()
    own.drop.eval()
    assert adapt(own, (6,), 3) is own
    assert own.training
    assert own.trunk.training
    assert not own.drop.training
    assert num_features(own) == 4


def test_a_plain_module_trains_and_is_scored():
    plain = adapt(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)), (6,), 3)
    assert isinstance(plain, Plain)
    flat = FlatModel(plain)
    nn.functional.cross_entropy(plain(torch.ones(5, 6)), torch.arange(5) % 3).backward()
    assert flat.gradient.abs().sum() > 0


def test_a_plain_module_names_the_algorithm_s_need():
    plain = Plain(nn.Linear(6, 3))
    assert not has_split(plain)
    for module in (plain, plain.module):
        with pytest.raises(ArgumentError, match=r"^moon: needs a model's features apart from its head, and Linear"):
            need_split(module, "moon")
    for ask in (lambda: plain.features(torch.ones(1, 6)), lambda: plain.head, lambda: plain.num_features):
        with pytest.raises(ArgumentError, match=r"^this algorithm: needs a model.*another algorithm$"):
            ask()


class Broken(Own):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def features(self, x):
        features = super().features(x)
        if self.kind == "crash":
            raise RuntimeError("mat1 and mat2\ncannot be multiplied")
        return features[:, :2] if self.kind == "narrow" else (features,) if self.kind == "tuple" else features

    def forward(self, x):
        if self.kind == "wide":
            return torch.zeros(len(x), 5)
        return self.head(self.trunk(x)) + (1 if self.kind == "other" else 0)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("wide", r"^Broken: expected logits of shape \(batch, 3\), got \(2, 5\) for two samples$"),
        ("narrow", r"^Broken: expected features of shape \(batch, 4\), got \(2, 2\) for two samples$"),
        ("tuple", r"^Broken.features: expected one tensor as its output, got tuple$"),
        ("other", r"^Broken: its output is not head\(features\(x\)\).*fedrela.models.Plain"),
        ("crash", r"^Broken.features: fails on a batch of shape \(2, 6\): mat1 and mat2$"),
    ],
)
def test_a_wrong_split_is_found_before_training(kind, message):
    module = Broken(kind)
    with pytest.raises(ArgumentError, match=message):
        adapt(module, (6,), 3)
    assert module.training


def test_a_module_for_other_inputs_is_found_before_training():
    with pytest.raises(ArgumentError, match=r"^Linear: fails on a batch of shape \(2, 7\): mat1 and mat2"):
        adapt(nn.Linear(6, 3), (7,), 3)


def test_features_of_unknown_width():
    model = Classifier(nn.Flatten(), 6, 3)
    model.head = nn.Sequential(nn.Linear(6, 3))
    assert num_features(model) == 6
    del model.num_features
    with pytest.raises(ArgumentError, match=r"^Classifier: num_features is missing"):
        num_features(model)


class NoArguments(nn.Linear):
    def __init__(self) -> None:
        super().__init__(4, 2)


def test_a_class_that_takes_no_sizes_is_named():
    with pytest.raises(
        ArgumentError, match=r"^NoArguments: expected a function or class that takes \(input_shape, num_c"
    ):
        model_factory(NoArguments, (4,), 2)
    assert isinstance(model_factory(lambda shape, classes: NoArguments(), (4,), 2)(), nn.Module)
