"""The control for re-labelling: the same moves, of other samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.ledger import Ledger


def random_moves(ledger: Ledger, posterior: NDArray[Any], rng: np.random.Generator) -> Ledger:
    """Return a ledger with the same number of moves from class a to class b, of samples drawn at random.

    What differs between the two is only which samples moved. The drawn samples have no score and no probability, so
    both are 0.

    Parameters
    ----------
    ledger
        What re-labelling did.
    posterior
        The one it used, ``(n, C)``.
    rng
        Draws the samples.

    Examples
    --------
    >>> import fedrela
    >>> Q = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]])
    >>> done = fedrela.relabel(Q, [0, 0, 0, 1], tau=0.5, seed=1)
    >>> control = random_moves(done.ledger, Q, np.random.default_rng(0))
    >>> bool((control.flow == done.ledger.flow).all())
    True
    """
    moved = [np.empty(0, np.int64)]
    new = [np.empty(0, np.int64)]
    for old in range(ledger.num_classes):
        targets = ledger.new[ledger.old == old]
        samples = rng.permutation(np.flatnonzero(ledger.original == old))
        moved.append(samples[: targets.size])
        new.append(targets)
    index, targets = np.concatenate(moved), np.concatenate(new)
    order = np.argsort(index)
    index, targets = index[order], targets[order]
    return replace(
        ledger,
        index=index,
        old=ledger.original[index].astype(np.int64),
        new=targets,
        posterior=posterior[index, targets].astype(np.float64),
        z=np.zeros(index.size),
        rho=np.zeros(index.size),
        options=ledger.options | {"moves": "random"},
    )
