"""What holds for FedNova, SCAFFOLD, FedDyn, MOON, CLIMB and FedAvg's servers alike, through the engine."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from fedrela.algorithms.base import Sizes
from fedrela.algorithms.climb import Climb
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.feddyn import FedDyn
from fedrela.algorithms.fednova import FedNova
from fedrela.algorithms.moon import Moon
from fedrela.algorithms.scaffold import Scaffold
from fedrela.records import Shard
from helpers.engine_federations import doubled, normed, table_problem
from helpers.through_engine import rounds_of

BASELINES = {
    "fedavgm": FedAvg(server="momentum"),
    "fedadam": FedAvg(server="adam"),
    "fednova": FedNova(),
    "fednova with all": FedNova(mu=0.1, gmf=0.5),
    "scaffold": Scaffold(),
    "scaffold of niid-bench": Scaffold(correction="after_step", weighting="samples"),
    "feddyn": FedDyn(),
    "moon": Moon(),
    "climb": Climb(primal_steps=1),
    "climb on fedavg": Climb(core="fedavg", primal_steps=1),
    "climb as run": Climb(losses="as_run", weights="as_run", primal_steps=1),
}
SIZES = Sizes(shared=30, trained=26, classes=3, features=4, clients=10, inputs=(6,), largest=40)


@pytest.fixture(params=BASELINES)
def baseline(request):
    return BASELINES[request.param]


def one_class_each():
    """Every client has one class only, the last class has no client, and two clients leave a batch of one sample."""
    problem = table_problem(3)
    shards = []
    for client, n in enumerate((17, 9, 12)):
        ids = np.flatnonzero(problem.y_train == client)[:n]
        shards.append(Shard(client, ids, ids[:0]))
    return replace(problem, shards=shards)


@pytest.mark.parametrize("make", [normed, doubled])
def test_clients_of_one_class_and_batches_of_one_sample(baseline, make):
    found = rounds_of(baseline, 3, False, problem=one_class_each(), make=make)
    assert all(after.record.admitted == [0, 1, 2] for after in found)
    assert len({after.weights.tobytes() for after in found}) == 3


def test_it_learns_with_sampled_clients_and_other_labels(baseline):
    found = rounds_of(baseline, 6, make=normed, train={"participation": 0.6})
    assert min(after.record.loss for after in found[1:]) < found[0].record.loss
    assert (found[-1].weights[-6:] > 0).all()  # running variances


def test_a_rate_that_ends_at_zero(baseline):
    found = rounds_of(baseline, 3, train={"schedule": "cosine"})
    assert all(np.isfinite(array).all() for array in found[-1].server.values())
    assert found[-1].record.admitted == [0, 1, 2, 3, 4]


def test_what_leaves_a_client_is_declared(baseline):
    assert set(baseline.uploads) == {"weights", *baseline.sends(SIZES)}
    text = inspect.getsource(inspect.getmodule(type(baseline)))
    assert "What leaves the client: " in text
    assert "relabel" not in text
    assert len(text.splitlines()) <= 200
