"""`check_reallocator`: whether your own re-allocator keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Candidates, Reallocator, relabel, undo
from fedrela.core.reallocators import proposal, reallocator
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import DataError
from fedrela.streams import stream
from fedrela.testing.algorithms import problem

TAUS = (0.0, 0.03, 0.2, 1.0)
# Samples per class: long-tailed, an absent class, equal counts, one class only, one sample, one sample of every class.
CASES = ((60, 30, 9, 1), (40, 0, 12, 5), (10, 10, 10), (25, 0), (1, 0), (1, 1, 1))
Client = tuple[NDArray[Any], NDArray[np.int64]]


def check_reallocator(method: Reallocator | type[Reallocator] | str) -> list[str]:
    """Let a re-allocator propose moves for clients with edge cases, and check them.

    Parameters
    ----------
    method
        The re-allocator, its class or its name.

    Returns
    -------
    list
        The names of the checks, all of which passed. The first to fail raises a `DataError` that starts with its name.

    Examples
    --------
    >>> check_reallocator("margin")[:3]
    ['is described', 'leaves its inputs alone', 'proposes possible moves']
    """
    instance = reallocator(method)
    for name, check in CHECKS.items():
        try:
            check(instance)
        except Exception as error:
            raise DataError(f"{name}: {problem(error)}") from error
    return list(CHECKS)


def _clients() -> Iterator[Client]:
    """Yield posteriors and labels of the cases, in both float dtypes; some samples are certain."""
    for case, counts in enumerate(CASES):
        rng = stream(1, "check reallocator", case)
        y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        logits = rng.normal(0, 1.5, (y.size, len(counts))) + 2 * np.eye(len(counts))[y]
        Q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        Q[::7] = np.eye(len(counts))[y[::7]]
        yield Q, y
        yield Q.astype(np.float32), y


def _proposals(method: Reallocator) -> Iterator[tuple[Client, RelabelOptions, Candidates]]:
    for Q, y in _clients():
        for tau in TAUS:
            options = RelabelOptions(tau=tau, method=method)
            yield (Q, y), options, proposal(method, Q, y, Q.shape[1], options, np.random.default_rng(1))


def _described(method: Reallocator) -> None:
    for name in ("label", "description"):
        text = str(getattr(method, name))
        assert text.strip(), f"{name}: expected a line of text"
    assert set(method.unused) <= set(RelabelOptions.__annotations__), f"unused: no such option in {method.unused}"


def _possible(method: Reallocator) -> None:
    for (_, y), _, found in _proposals(method):  # all but this was checked when they were made
        pairs = found.target * y.size + found.sample
        assert np.unique(pairs).size == pairs.size, "a sample is proposed for the same class twice"


def _inputs(method: Reallocator) -> None:
    for Q, y in _clients():
        own, labels = Q.copy(), y.copy()
        method.propose(own, labels, RelabelOptions(method=method), np.random.default_rng(1))
        assert np.array_equal(own, Q), "the posterior was changed"
        assert np.array_equal(labels, y), "the labels were changed"


def _repeats(method: Reallocator) -> None:
    before = str(np.random.get_state(legacy=False))  # noqa: NPY002
    first, again = (list(_proposals(method)) for _ in range(2))
    for (_, options, one), (_, _, other) in zip(first, again, strict=True):
        for name in ("sample", "target", "score", "rho"):
            same = np.array_equal(getattr(one, name), getattr(other, name))
            assert same, f"{name} differs between two calls with the same seed at tau {options.tau}"
    assert before == str(np.random.get_state(legacy=False)), "it draws from NumPy's global generator, not from rng"  # noqa: NPY002


def _budget(method: Reallocator) -> None:
    for Q, y in _clients():
        for tau in TAUS:
            done = relabel(Q, y, tau=tau, method=method)
            most = int(np.bincount(done.ledger.new, minlength=1).max())
            assert most <= int(tau * y.size), f"{most} of {y.size} samples moved into one class at tau {tau}"
        done = relabel(Q, y, tau=1.0, max_fraction=0.1, method=method)
        assert done.moved.size <= int(0.1 * y.size), "more labels changed than max_fraction allows"


def _limits(method: Reallocator) -> None:
    for Q, y in _clients():
        C = Q.shape[1]
        allowed, eligible = np.triu(np.ones((C, C), bool)), np.arange(y.size) % 2 == 0
        ledger = relabel(Q, y, tau=1.0, method=method, allowed=allowed, eligible=eligible).ledger
        assert allowed[ledger.old, ledger.new].all(), "a move happened that `allowed` forbids"
        assert eligible[ledger.index].all(), "a sample moved that is not eligible"


def _refuses(method: Reallocator) -> None:
    for Q, y in _clients():
        Q[-1, 0] = np.nan
        done = relabel(Q, y, tau=1.0, method=method)
        assert done.refusal is not None, "a posterior with NaN was not refused"
        assert np.array_equal(done.labels, y), "a posterior with NaN moved labels"
    assert relabel(np.empty((0, 3)), np.empty(0, int), method=method).moved.size == 0, "labels moved without samples"


def _undone(method: Reallocator) -> None:
    for Q, y in _clients():
        done = relabel(Q, y, tau=1.0, method=method)
        assert np.array_equal(undo(done.ledger, done.labels), y), "undo did not give back the original labels"


CHECKS: dict[str, Callable[[Reallocator], None]] = {
    "is described": _described,
    "leaves its inputs alone": _inputs,
    "proposes possible moves": _possible,
    "repeats with the same seed": _repeats,
    "keeps the budget": _budget,
    "keeps to allowed and eligible": _limits,
    "moves nothing for a bad posterior": _refuses,
    "can be undone": _undone,
}
