"""Tasks for an executor, and their results besides the arrays in shared memory."""

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
from fedrela.text import one_line, own_line

# In order: a client re-labels if due, and trains; it answers in an exchange; one batch of an evaluation set is scored;
# the test set is scored with a client's own model; a remote client scores the model on its own test samples.
TaskKind = Literal["train", "ask", "score", "score_local", "score_own"]


@dataclass(frozen=True)
class Task:
    """One piece of work."""

    kind: TaskKind
    round: int
    client: int
    broadcast: RowsHandle  # what every client receives
    output: RowsHandle  # where the resulting arrays go
    row: int  # of the output
    message: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # what this client alone receives
    has_state: bool = False  # whether the client has a state from an earlier round
    relabel: bool = False  # whether re-labelling is due
    subject: str = ""  # name of the exchange, or of the evaluation set


@dataclass(frozen=True, eq=False)
class ClientRelabelling:
    """The result of one client's re-labelling."""

    ledger: Ledger
    threshold: NDArray[np.float64]  # the score that samples had to exceed for each class, (C,)
    expected: NDArray[np.float64]  # expected number of moves into each class, (C,)
    histogram: NDArray[np.int64]  # scores for each class in each bin of `fedrela.metrics.Z_EDGES`, (C, bins)
    agreement: float  # share of the original labels that the model predicts
    seconds: float


@dataclass(frozen=True, eq=False)
class ClientResult:
    """What a client's work returns besides the arrays in its row; a remote client sends an upload instead of a row."""

    samples: int
    relabelling: ClientRelabelling | None = None
    upload: Upload | None = None


class TaskResult(NamedTuple):
    """The outcome of the task at `position`: what the work returned, or why it failed."""

    position: int
    value: Any = None
    failure: Failure | None = None


class NoStepError(FedrelaError):
    """A client had nothing to train on."""


class NoSamplesError(FedrelaError):
    """A client has no samples to score."""


def failure_of(error: Exception) -> Failure:
    r"""Return an error of a client's work as a failure: its type, its message, and the line of the user's code, if any.

    >>> failure_of(ValueError("two\n  lines"))
    Failure(kind=<FailureKind.ERROR: 'error'>, detail='ValueError: two lines', exchange='')
    """
    if isinstance(error, NoStepError):
        return Failure(FailureKind.NO_STEP)
    if isinstance(error, NoSamplesError):
        return Failure(FailureKind.NO_SAMPLES)
    return Failure(FailureKind.ERROR, one_line(error) + own_line(error))
