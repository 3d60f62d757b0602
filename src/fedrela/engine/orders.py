"""What the server asks of whoever does a client's work, and what comes back beside the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger
from fedrela.engine.areas import AreaHandle
from fedrela.records import Upload

Kind = Literal["train", "ask", "score", "score_local"]


@dataclass(frozen=True)
class Order:
    """One piece of work.

    Attributes
    ----------
    kind
        ``"train"`` a client's turn; ``"ask"`` its answer in an exchange; ``"score"`` one batch of an evaluation set;
        ``"score_local"`` the test set with a client's own model.
    round, client
        Whose turn, and when.
    down, up, row
        Where the received arrays lie, and in which row of which area the result belongs.
    message
        What this client alone receives.
    known
        Whether the client has kept a state.
    relabel
        Whether re-labelling is due.
    subject
        Name of the exchange, or of the evaluation set.
    """

    kind: Kind
    round: int
    client: int
    down: AreaHandle
    up: AreaHandle
    row: int
    message: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    known: bool = False
    relabel: bool = False
    subject: str = ""


@dataclass(frozen=True, eq=False)
class Moves:
    """What one client's re-labelling did, for the ledger and the figures.

    Attributes
    ----------
    ledger
        Every move.
    threshold
        Of each class, (C,); infinite where nothing was computed.
    expected
        Expected moves into each class, (C,).
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
class Answer:
    """What comes back from a turn beside the arrays in its row.

    Attributes
    ----------
    samples, moves, seconds
        The client's n_k, what it re-labelled, and what the turn cost.
    upload
        What came from a client elsewhere, as it came, in place of a row.
    """

    samples: int
    moves: Moves | None = None
    seconds: float = 0.0
    upload: Upload | None = None
