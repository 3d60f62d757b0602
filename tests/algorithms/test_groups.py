"""Parts of a model with optimisers of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.local import Group
from fedrela.errors import ArgumentError
from helpers.contexts import batches, bits, blobs, client_context, two_parts


def test_groups_are_optimisers_of_their_own_to_the_bit():
    x, y = blobs(n=45)
    context = client_context(two_parts(), x, y, epochs=2, batch_size=8, momentum=0.9, weight_decay=1e-3)
    context.train(groups=[Group("1", lr=0.3, momentum=0.5, weight_decay=0.0)])
    plain = two_parts()
    optimisers = [
        torch.optim.SGD(plain[0].parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, foreach=False),
        torch.optim.SGD(plain[1].parameters(), lr=0.3, momentum=0.5, foreach=False),
    ]
    for some, labels in batches(context, x, y):
        plain.zero_grad()
        cross_entropy(plain(some), labels).backward()
        for optimiser in optimisers:
            optimiser.step()
    assert bits(context.model.module) == bits(plain)


def test_what_a_group_leaves_open_is_as_for_the_rest():
    x, y = blobs()
    found = []
    own = {"momentum": 0.5, "weight_decay": 0.01}
    for plan, groups, instead in ((own, [], {}), ({"momentum": 0.9}, [], own), ({"momentum": 0.9}, [Group("1")], own)):
        context = client_context(two_parts(), x, y, epochs=2, batch_size=8, **plan)
        context.train(groups=groups, local=replace(context.local, **instead))
        found.append(bits(context.model.module))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["0"], "must be the last trained arrays"),
        (["1", "1"], "must be the last trained arrays"),
        (["0", "2"], "must be the last trained arrays"),
        (["3"], "no trained part '3'"),
    ],
)
def test_groups_that_cannot_be(groups, message):
    x, y = blobs()
    module = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 5))
    with pytest.raises(ArgumentError, match=message):
        client_context(module, x, y).train(groups=[Group(part) for part in groups])
