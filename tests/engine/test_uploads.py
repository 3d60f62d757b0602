"""What leaves a client: what its algorithm declares, and the same with and without re-labelling."""

from __future__ import annotations

import pytest

from fedrela.algorithms import ALGORITHMS
from fedrela.engine import round
from fedrela.engine.round import next_round
from helpers.engine_federations import dropping, made_of, normed
from helpers.quick import quick
from helpers.throwaway import THROWAWAY

BASELINES = THROWAWAY | {name: quick(name) for name in ALGORITHMS} | {"fedyoyo": quick("fedyoyo", views="none")}
SHORT = {"epochs": 1, "batch_size": 32, "evaluate_every": 9}


def uploads_of(made, executor, monkeypatch):
    """Return what arrived at the gate in each round: sender, number of samples, and the form of each array."""
    arrived, gate = [], round.admit

    def spy(uploads, **rules):
        forms = [
            (u.client, u.samples, [(name, a.shape, a.dtype.str, a.nbytes) for name, a in u.arrays.items()])
            for u in sorted(uploads, key=lambda upload: upload.client)
        ]
        arrived.append(forms)
        return gate(uploads, **rules)

    with monkeypatch.context() as patch:
        patch.setattr(round, "admit", spy)
        run = made.begin(executor)
        moved = sum(next_round(run).record.moved for _ in range(2))
        declared = {"weights", *made.algorithm.sends(run.arrays.sizes)}
        run.close()
    return arrived, moved, declared


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("make", [None, normed, dropping])
def test_uploads_are_the_same_with_and_without_re_labelling(serial, monkeypatch, name, make):
    def of(**relabel):
        return uploads_of(made_of(BASELINES[name](), make=make, train=SHORT, relabel=relabel), serial, monkeypatch)

    (on, moved, declared), (off, unmoved, _), (collected, _, _) = of(), of(enabled=False), of(collected=True)
    assert on == off == collected
    assert moved > 0 == unmoved
    names = {array for array, *_ in on[0][0][2]}
    assert names == declared == set(BASELINES[name]().uploads)
