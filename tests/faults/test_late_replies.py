"""B9 in admission: replies of other rounds, copies and contradictions beside what came in time change nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrela.algorithms.average import sample_weights, weighted_sum
from fedrela.algorithms.base import ArraySpec
from fedrela.engine.admission import admit
from fedrela.records import Upload
from helpers.batteries import count, tried

CLIENTS, SIZE = 12, 40
SPECS = {"weights": ArraySpec((SIZE,)), "steps": ArraySpec((), "int64")}


def upload(rng, client, round):
    arrays = {"weights": rng.normal(0, 1, SIZE).astype("f4"), "steps": np.array(rng.integers(1, 9))}
    return Upload(client, round, client + 3, arrays)


def stray(rng, round, chosen, absent):
    """Return something that should not count, and what is said of it."""
    if absent and rng.random() < 0.3:
        return upload(rng, int(rng.choice(absent)), round), "sender not chosen"
    other = int(rng.choice([1, round - 1, round + 1]))
    return upload(rng, int(rng.choice(chosen)), other), "wrong round"


def case(number):
    """Return round, expected numbers of samples, what came in time, all that came, and what must be left out."""
    rng = np.random.default_rng([number, 9])
    round = int(rng.integers(3, 50))
    chosen = np.sort(rng.choice(CLIENTS, rng.integers(3, CLIENTS), replace=False)).tolist()
    absent = [client for client in range(CLIENTS) if client not in chosen]
    prompt = [upload(rng, client, round) for client in chosen if rng.random() < 0.8]
    arrived, excluded = [], []
    strays = [stray(rng, round, chosen, absent) for _ in range(rng.integers(0, 6))]
    for one in prompt:
        arrived += [one] * int(rng.choice([1, 1, 2, 3]))
    good = list(prompt)
    if prompt and number % 3 == 0:
        first = good.pop(int(rng.integers(len(good))))
        arrived.append(replace(first, arrays=first.arrays | {"steps": np.array(first.arrays["steps"] + 1)}))
        excluded = [(first.client, "sent twice") for one in arrived if one.client == first.client]
    arrived += [one for one, _ in strays]
    excluded += [(one.client, reason) for one, reason in strays]
    order = rng.permutation(len(arrived))
    return round, {client: client + 3 for client in chosen}, good, [arrived[k] for k in order], sorted(excluded)


def test_what_came_in_time_is_averaged_as_if_nothing_else_had_come():
    kinds, copies = set(), 0
    for number in range(count(52, 552)):
        round, expected, good, arrived, excluded = case(number)
        reference = np.zeros(SIZE, "f4")
        wanted = admit(good, round=round, expected=expected, specs=SPECS, reference=reference)
        found = admit(arrived, round=round, expected=expected, specs=SPECS, reference=reference)
        assert wanted.excluded == ()
        assert [(client, str(failure)) for client, failure in found.excluded] == excluded, number
        assert [one.client for one in found.admitted] == [one.client for one in good]
        assert found.norms == wanted.norms
        if good:
            means = [
                weighted_sum(each.admitted, "weights", sample_weights(each.admitted)).tobytes()
                for each in (found, wanted)
            ]
            assert means[0] == means[1] == by_hand(good).tobytes()
        kinds |= {reason for _, reason in excluded}
        copies += len(arrived) - len(good) - len(excluded)
        tried(faults=len(arrived) - len(good))
    assert kinds == {"wrong round", "sender not chosen", "sent twice"}
    assert copies > 20


def by_hand(uploads):
    n = float(sum(one.samples for one in uploads))
    mean = np.zeros(SIZE)
    for one in uploads:
        mean += (one.samples / n) * one.arrays["weights"].astype(float)
    return mean
