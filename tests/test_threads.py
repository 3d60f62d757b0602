"""Threads on large arrays: the same bits as one thread, every error raised, small work done at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fedrela import threads
from fedrela.algorithms.average import weighted_sum
from fedrela.algorithms.base import ArraySpec
from fedrela.engine.admission import admit
from fedrela.records import Upload

SIZE = 150_001


@pytest.fixture
def sent():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(20, SIZE)).astype(np.float32)
    vectors[7, 5] = np.nan
    return [Upload(client, 1, 9, {"weights": vector}) for client, vector in enumerate(vectors)]


def averaged(sent: list[Upload]) -> tuple[bytes, dict, tuple]:
    admission = admit(
        reversed(sent), round=1, expected=dict.fromkeys(range(20), 9), specs={"weights": ArraySpec((SIZE,))},
        reference=np.ones(SIZE, np.float32),
    )  # fmt: skip
    found = weighted_sum(admission.admitted, "weights", np.full(19, 1 / 19))
    return found.tobytes(), dict(admission.norms), admission.excluded


def test_any_number_of_threads_gives_the_same_bits(sent, monkeypatch):
    seen = set()
    started = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (seen.add(number), started(thread))[1])
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "usable_threads", lambda number=number: number)
        found.append(averaged(sent))
    assert seen == {2, 5}
    assert found[0] == found[1] == found[2]
    assert found[0][2] == ((7, "not finite: weights"),)


def test_an_error_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        threads.map_threads(lambda item: 1 / item, [1, 0, 2], threads.LARGE)
