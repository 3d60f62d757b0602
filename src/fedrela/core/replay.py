"""Replay the moves of a ledger, and report where they differ from the recorded ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.ledger import Ledger
from fedrela.core.relabel_options import RelabelOptions
from fedrela.core.relabelling import relabel
from fedrela.errors import DataError
from fedrela.options import options_of
from fedrela.text import shown


def replay(
    ledger: Ledger, posterior: NDArray[Any], *, eligible: NDArray[Any] | None = None, seed: Any = None
) -> Ledger:
    """Re-label the original labels of a ledger under its options, and return the new ledger.

    `seed` is required if the ledger has none because its draws came from a generator. `eligible` defaults to what the
    ledger recorded.

    >>> import fedrela
    >>> Q = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]])
    >>> done = fedrela.relabel(Q, [0, 0, 0, 1], tau=0.5, seed=1)
    >>> first_difference(done.ledger, replay(done.ledger, Q)) is None
    True
    """
    options, C = ledger.options, ledger.num_classes
    if options.get("moves") == "random":
        raise DataError("ledger: its samples were drawn at random, as a control; it cannot be replayed")
    seed = options.get("seed") if seed is None else seed
    if seed is None:
        raise DataError("ledger: its draws came from a generator; without its seed they cannot be replayed")
    if eligible is None and "ineligible" in options:
        eligible = np.ones(ledger.original.size, np.bool_)
        all_rows = options["ineligible"] == eligible.size
        eligible[slice(None) if all_rows else np.array(options.get("ineligible_rows", []), np.int64)] = False
    ineligible = 0 if eligible is None else int(np.count_nonzero(~np.asarray(eligible)))
    if options.get("ineligible", 0) != ineligible:
        raise DataError(f"ledger: {options.get('ineligible', 0)} samples were not eligible, got {ineligible}")
    keywords = {each.name: options[each.name] for each in options_of(RelabelOptions) if each.name in options}
    return relabel(posterior, ledger.original, num_classes=C, eligible=eligible, seed=seed, **keywords).ledger


def first_difference(recorded: Ledger, replayed: Ledger) -> str | None:
    """Return a description of the first row whose move differs; None if all are equal."""
    old, new = recorded.labels.astype(np.int64), replayed.labels.astype(np.int64)
    differ = np.flatnonzero(old != new)
    if differ.size == 0:
        return None
    row = int(differ[0])
    moves = [_move(recorded, row, int(label)) for label in (old[row], new[row])]
    where = f"row {row}" + (f" (id {shown(recorded.ids[row])})" if recorded.ids else "")
    return f"{where}: the ledger {moves[0]}, the replay {moves[1]}; {differ.size} of {old.size} rows differ"


def _move(ledger: Ledger, row: int, new: int) -> str:
    old = int(ledger.original[row])
    names = ledger.class_names or tuple(map(str, range(ledger.num_classes)))
    return (
        f"moves it from {shown(names[old])} to {shown(names[new])}"
        if new != old
        else f"leaves it in {shown(names[old])}"
    )
