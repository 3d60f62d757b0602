"""One checked request: what `relabel` and `preview` both take, after the one door of `checks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core import checks
from fedrela.core.budget import permitted
from fedrela.core.candidates import Candidates, find_candidates
from fedrela.core.options import RelabelOptions
from fedrela.errors import ArgumentError


@dataclass(frozen=True)
class Request:
    """A posterior ``(n, C)``, labels ``(n,)``, the options, and the owner's rules; `refusal` where values are bad."""

    Q: NDArray[Any]
    y: NDArray[Any]
    C: int
    options: RelabelOptions
    allowed: NDArray[np.bool_] | None
    eligible: NDArray[np.bool_] | None
    refusal: checks.Refusal | None

    def candidates(self, options: RelabelOptions) -> Candidates:
        """Return the pairs that may move under `options` and the owner's rules."""
        return permitted(find_candidates(self.Q, self.y, options), self.y, self.allowed, self.eligible)

    def as_record(self) -> dict[str, Any]:
        """Return the options and the owner's rules as plain values, for the ledger."""
        forbidden = [] if self.allowed is None else np.argwhere(~self.allowed & ~np.eye(self.C, dtype=bool)).tolist()
        held_back = 0 if self.eligible is None else int(np.count_nonzero(~self.eligible))
        return self.options.as_record(self.C) | {"forbidden": forbidden, "held_back": held_back}


def check_request(
    posterior: ArrayLike,
    labels: ArrayLike,
    options: RelabelOptions,
    *,
    num_classes: int | None,
    allowed: ArrayLike | None,
    eligible: ArrayLike | None,
) -> Request:
    """Check everything; raise for a wrong argument, note a refusal for a bad value."""
    y = checks.as_labels(labels)
    Q = checks.as_array("posterior", posterior)
    if Q.ndim > 0 and Q.shape[0] != y.size:
        raise ArgumentError(f"posterior and labels differ in length: {Q.shape[0]} and {y.size}")
    C = _num_classes(num_classes, Q)
    checks.check_room(y, C)
    options.variant(C)  # raises where the number of thresholds is not that of the classes
    moves = None if allowed is None else checks.check_array("allowed", allowed, (C, C), np.bool_)
    free = None if eligible is None else checks.check_array("eligible", eligible, (y.size,), np.bool_)
    refusal = checks.refuse_posterior(Q, C) or checks.refuse_labels(y, C)
    return Request(Q, y, C, options, moves, free, refusal)


def _num_classes(num_classes: int | None, Q: NDArray[Any]) -> int:
    if num_classes is None:
        return max(Q.shape[1], 1) if Q.ndim == 2 else 1
    if isinstance(num_classes, bool) or not isinstance(num_classes, int | np.integer) or num_classes < 1:
        raise ArgumentError(f"expected an integer >= 1, got {num_classes!r}", argument="num_classes")
    return int(num_classes)
