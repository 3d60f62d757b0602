"""What an executor is asked to do, and what comes back beside the arrays in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger
from fedrela.engine.shared_memory import RowsHandle
from fedrela.errors import FedrelaError
from fedrela.records import Failure, FailureKind, Upload
from fedrela.text import one_line

TaskKind = Literal["train", "ask", "score", "score_local"]


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Attributes
    ----------
    kind
        ``"train"``: a client re-labels where that is due, and trains; ``"ask"``: it answers in an exchange;
        ``"score"``: one batch of an evaluation set; ``"score_local"``: the test set with a client's own model.
    round, client
        For which client, and when.
    broadcast
        Where the arrays lie that every client receives.
    output, row
        Where the resulting arrays belong.
    message
        What this client alone receives.
    has_state
        Whether the client has a state from an earlier round.
    relabel
        Whether re-labelling is due.
    subject
        Name of the exchange, or of the evaluation set.
    """

    kind: TaskKind
    round: int
    client: int
    broadcast: RowsHandle
    output: RowsHandle
    row: int
    message: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    has_state: bool = False
    relabel: bool = False
    subject: str = ""


@dataclass(frozen=True, eq=False)
class ClientRelabelling:
    """What one client's re-labelling did.

    Attributes
    ----------
    ledger
        Which labels were changed.
    threshold
        What a score had to pass for each class, (C,).
    expected
        Expected number of moves into each class, (C,).
    histogram
        How often the samples' scores for each class fall into each bin of `fedrela.metrics.Z_EDGES`, (C, bins).
    seconds
        What it cost.
    """

    ledger: Ledger
    threshold: NDArray[np.float64]
    expected: NDArray[np.float64]
    histogram: NDArray[np.int64]
    seconds: float


@dataclass(frozen=True, eq=False)
class ClientResult:
    """What a client's work returns beside the arrays in its row.

    Attributes
    ----------
    samples, relabelling, seconds
        The client's n_k, what it re-labelled, and what its work cost.
    upload
        What a remote client sent, in place of a row.
    """

    samples: int
    relabelling: ClientRelabelling | None = None
    seconds: float = 0.0
    upload: Upload | None = None


class TaskResult(NamedTuple):
    """What became of the task at `position`: what the work returned, or why it failed."""

    position: int
    value: Any = None
    failure: Failure | None = None


class NoStepError(FedrelaError):
    """A client had nothing to train on."""


def failure_of(error: Exception) -> Failure:
    r"""Return the failure that an error of a client's work is, its type and message on one line.

    >>> failure_of(ValueError("two\n  lines"))
    Failure(kind=<FailureKind.ERROR: 'error'>, detail='ValueError: two lines', exchange='')
    """
    if isinstance(error, NoStepError):
        return Failure(FailureKind.NO_STEP)
    return Failure(FailureKind.ERROR, one_line(error))
