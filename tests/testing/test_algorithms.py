"""One battery over all algorithms: with and without FedReLa, on three models, in one process and in two."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from fedrela.algorithms import ALGORITHMS
from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.executors.pool import Pool
from fedrela.errors import DataError
from fedrela.testing import check_algorithm
from fedrela.testing.algorithms import MODELS
from helpers import batteries
from helpers.quick import VARIANTS, quick

MODEL_NAMES = tuple(MODELS)


@pytest.fixture(scope="module")
def executor():
    with Pool(2) as pool:
        yield pool


def spread() -> list:
    """Every day each algorithm on one model, another one for the next; nightly all on all, and all variants."""
    cases = []
    for number, name in enumerate(ALGORITHMS):
        for place, model in enumerate(MODEL_NAMES):
            if batteries.NIGHTLY or number % len(MODEL_NAMES) == place:
                cases.append(pytest.param(name, {}, model, id=f"{name}-{model}"))
        for variant in VARIANTS.get(name, []) if batteries.NIGHTLY else []:
            label = ",".join(map(str, variant.values()))
            cases.append(pytest.param(name, variant, MODEL_NAMES[number % 3], id=f"{name}-{label}"))
    return cases


@pytest.mark.parametrize(("name", "params", "model"), spread())
def test_every_algorithm_keeps_the_contract(name, params, model, executor):
    assert len(check_algorithm(quick(name, **params), model=model, executor=executor)) == 8


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "fedyoyo"])
def test_on_tables(name):
    assert check_algorithm(quick(name), inputs="tables")


@pytest.mark.skipif("fedyoyo" not in ALGORITHMS, reason="fedyoyo is not in the table")
def test_views_of_tables_there_are_none():
    with pytest.raises(DataError, match="fedyoyo: expected uint8 images to augment, got other samples"):
        check_algorithm(quick("fedyoyo"), inputs="tables")


class Broken(FedAvg):
    """What leaves the client: weights. Its server fails."""

    def server(self, context):
        raise KeyError("momentum")


class Wide(FedAvg):
    """What leaves the client: weights. Its server returns one number too many."""

    def server(self, context):
        return np.zeros(context.weights.size + 1, np.float32)


@pytest.mark.parametrize(("made", "said"), [(Broken, "KeyError: 'momentum'"), (Wide, "round 1")])
def test_the_first_fault_is_named(made, said):
    with pytest.raises(DataError, match=f"^stays finite and loses no client: .*{said}"):
        check_algorithm(made)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_no_algorithm_knows_of_relabelling(name):
    assert "relabel" not in inspect.getsource(inspect.getmodule(ALGORITHMS[name])).lower()


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_in_words_everything_that_leaves_a_client(name):
    disclosed = quick(name)().disclosed()
    assert all(disclosed.values()), disclosed
    assert {word for word, _ in ALGORITHMS[name].discloses} == {*disclosed}


def test_the_table_is_sorted_and_named_after_its_classes():
    assert list(ALGORITHMS) == sorted(ALGORITHMS)
    assert all(kind.name == name for name, kind in ALGORITHMS.items())
