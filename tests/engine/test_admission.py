"""Admission: battery B6, 32 kinds of upload from one client among ten, at every place; and whatever else may arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.algorithms import ALGORITHMS, ArraySpec
from fedrela.algorithms.average import sample_weights, weighted_sum
from fedrela.algorithms.base import ArraySpecs
from fedrela.engine.admission import Admission, admit
from fedrela.records import FailureKind, Upload
from helpers import batteries
from helpers.upload_kinds import (
    FICTITIOUS,
    JUNK,
    KINDS,
    ROUND,
    SIZES,
    UPLOAD,
    WEIGHTS,
    Hostile,
    Lying,
    endless,
    federation,
    spoilt,
    unreadable,
)  # fmt: skip


def means(uploads: list[Upload] | tuple[Upload, ...], specs: ArraySpecs) -> dict[str, bytes]:
    return {name: weighted_sum(uploads, name, sample_weights(uploads)).tobytes() for name in specs}


def kind_of(reason: str) -> FailureKind:
    """Return the kind that a reason begins with; in others, it is an array that is not as declared."""
    return next((kind for kind in FailureKind if reason == kind.value), FailureKind.MALFORMED)


def one_bad_among_ten(kind: str, specs: ArraySpecs, place: int, seed: int) -> int:
    """Check every case of a kind at one place, and return their number."""
    reference, good = federation(tuple(specs.items()), place + 10 * seed)
    expected = {upload.client: upload.samples if place % 2 else None for upload in good}
    rest = good[:place] + good[place + 1 :]
    reason = KINDS[kind]
    cases = spoilt(kind, good[place], reference)
    batteries.tried(len(cases), faults=len(cases))
    for bad in cases:
        arrived = [*rest[place // 2 :], *bad, *rest[: place // 2]]
        admission = admit(arrived, round=ROUND, expected=expected, specs=specs, reference=reference)
        if not reason:  # cannot be seen
            assert [upload.client for upload in admission.admitted] == list(range(10))
            assert admission.excluded == ()
            continue
        assert [client for client, _ in admission.excluded] == [upload.client for upload in bad]
        assert all(str(why).startswith(reason) for _, why in admission.excluded), admission.excluded
        assert {why.kind for _, why in admission.excluded} == {kind_of(reason)}
        assert [upload.client for upload in admission.admitted] == [upload.client for upload in rest]
        assert means(admission.admitted, specs) == means(rest, specs)
        alone = admit(rest, round=ROUND, expected=expected, specs=specs, reference=reference)
        assert (alone.excluded, alone.norms) == ((), admission.norms)
    return len(cases)


def test_there_are_32_kinds():
    assert len(KINDS) == 32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", FICTITIOUS)
def test_one_bad_client_is_one_bad_client(method, kind):
    cases = [
        one_bad_among_ten(kind, FICTITIOUS[method], place, seed)
        for seed in range(batteries.count(1, 10))
        for place in range(10)
    ]
    assert all(cases) or (kind.startswith("swapped") and method != "control vector")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_bad_client_of_every_algorithm(name):
    specs = WEIGHTS | ALGORITHMS[name]().sends(SIZES)
    for seed in range(batteries.count(1, 10)):
        for kind in KINDS:
            assert sum(one_bad_among_ten(kind, specs, place, seed) for place in range(10)) or kind.startswith("swapped")


def admission_of(*uploads: object, n: int = 4, **options: Any) -> Admission:
    """The admission on uploads of weights of four zeros, from clients 0 to 9 whose n_k nobody knows."""
    given = {
        "expected": dict.fromkeys(range(10)),
        "specs": {"weights": ArraySpec((n,))},
        "reference": np.zeros(n, "f4"),
    }
    return admit(uploads, **({"round": ROUND} | given | options))


def sent(client: Any, *values: float, samples: Any = 5, round: Any = ROUND) -> Upload:
    return Upload(client, round, samples, {"weights": np.resize(np.array(values or 1.0, "f4"), 4)})


def excluded(admission: Admission) -> list[tuple[int | None, str]]:
    return [(client, str(failure)) for client, failure in admission.excluded]


def reasons(admission: Admission) -> list[str]:
    return [str(failure) for _, failure in admission.excluded]


@pytest.mark.parametrize("count", [1, 2**53, np.int64(5), np.uint8(255)])
def test_whole_numbers_of_samples(count):
    (upload,) = admission_of(sent(0, samples=count)).admitted
    assert (type(upload.samples), upload.samples) == (int, int(count))


@pytest.mark.parametrize("count", [True, 5.0, np.float32(5), 0, 2**53 + 1, np.array(5), b"5", np.timedelta64(5)])
def test_what_is_no_number_of_samples(count):
    assert reasons(admission_of(sent(0, samples=count))) == ["wrong number of samples"]


def test_a_number_of_samples_other_than_the_known_one_is_refused():
    known = admission_of(sent(0), sent(1, samples=6), expected={0: 5, 1: 5})
    assert excluded(known) == [(1, "wrong number of samples: expected 5, got 6")]


def test_senders():
    strange = [sent(client) for client in (10, -1, True, "1", 1.0, None, 2**53 + 1, 10**5000)]
    admission = admission_of(*strange, "no upload", sent(np.int64(3)))
    assert excluded(admission) == [(10, "sender not chosen"), (None, "not an upload"), *[(None, "unknown sender")] * 7]
    assert [(type(upload.client), upload.client) for upload in admission.admitted] == [(int, 3)]


def test_everybody_who_is_left_out_is_named_by_ascending_client():
    twice = [sent(client, value) for client in (3, 2) for value in (1.0, 2.0)]
    admission = admission_of(*twice, sent(1, np.nan), sent(0, round=ROUND + 1), "no upload", sent(4))
    both = [(client, "sent twice") for client in (2, 2, 3, 3)]
    assert excluded(admission) == [(0, "wrong round"), (1, "not finite: weights"), *both, (None, "not an upload")]


@pytest.mark.parametrize(
    ("parts", "left_out"),
    [
        ({}, (None, "unknown sender")),
        ({"client": 1}, (1, "wrong round")),
        ({"client": 1, "round": ROUND}, (1, "wrong number of samples")),
        ({"client": 1, "round": ROUND, "samples": 5}, (1, "no named arrays")),
    ],
)
def test_an_upload_that_lacks_a_part(parts, left_out):
    """As from a sender that does not build it as we do."""
    upload = object.__new__(Upload)
    upload.__dict__.update(parts)
    assert excluded(admission_of(upload)) == [left_out]


@pytest.mark.parametrize("round", [ROUND - 1, ROUND + 1, float(ROUND), str(ROUND), None, -ROUND])
def test_a_late_upload_does_no_harm_not_even_to_its_sender(round):
    admission = admission_of(sent(4, 2.0, round=round), sent(4, 1.0))
    assert excluded(admission) == [(4, "wrong round")]
    assert admission.admitted[0].arrays["weights"].tolist() == [1, 1, 1, 1]
    assert reasons(admission_of(sent(4, round=True), round=1)) == ["wrong round"]


def test_copies_count_once_and_only_where_all_bits_agree():
    assert [upload.client for upload in admission_of(sent(1), sent(1), sent(1)).admitted] == [1]
    for other in (sent(1, -1.0), sent(1, samples=6)):
        assert excluded(admission_of(sent(1), other, sent(1))) == [(1, "sent twice")] * 3
    assert reasons(admission_of(sent(1, 0.0), sent(1, -0.0))) == ["sent twice"] * 2
    assert reasons(admission_of(sent(1), sent(1, np.nan))) == ["not finite: weights", "sent twice"]
    assert reasons(admission_of(sent(1, np.nan), sent(1, np.nan))) == ["not finite: weights"] * 2
    assert reasons(admission_of(*[sent(1, 100.0)] * 5, sent(2), sent(3)))[0].startswith("norm too large: 100 times")


def test_the_limit_is_relative_to_the_median_of_the_others():
    kept = admission_of(sent(0, 1.0), sent(1, 3.0), sent(2, 100.0))
    assert (kept.excluded, kept.norms) == ((), {0: 2, 1: 6, 2: 200})
    over = admission_of(sent(0, 1.0), sent(1, 3.0), sent(2, 100.5))
    assert excluded(over) == [(2, "norm too large: 50.25 times the median of the others")]
    assert over.norms == {0: 2, 1: 6}
    assert admission_of(sent(0), sent(1), sent(2, 60.0), sent(3, 70.0)).norms == {0: 2, 1: 2}  # both, at half of all
    assert reasons(admission_of(sent(0), sent(1), sent(2, 2.5), norm_limit=2)) != []
    assert len(admission_of(sent(0), sent(1, 1e6)).admitted) == 2  # too few
    assert len(admission_of(sent(0, 0.0), sent(1, 0.0), sent(2, 1.0)).admitted) == 3  # nobody else moved
    assert len(admission_of(sent(0), sent(1), sent(2, 1e6), norm_limit=0).admitted) == 3
    without = admission_of(sent(0), sent(1), sent(2, 1e6), reference=None)
    assert (len(without.admitted), without.norms) == (3, {})
    assert len(admission_of(sent(0), sent(1), sent(2), reference=None, norm_limit=0.5).admitted) == 3


@pytest.mark.parametrize("clients", range(3, 11))
def test_the_limit_against_a_literal_median(clients):
    rng = np.random.default_rng(clients)
    for limit in (1, 1.5, 3):
        values = rng.integers(0, 9, clients) / 1024
        admission = admission_of(*(sent(client, value) for client, value in enumerate(values)), norm_limit=limit)
        others = [np.median(np.delete(values, client)) for client in range(clients)]
        beyond = [client for client in range(clients) if 0 < limit * others[client] < values[client]]
        assert [client for client, _ in admission.excluded] == beyond


def test_zeros_are_seen_where_they_are_far_from_the_reference():
    reference = np.full(4, 1000, "f4")
    near = [sent(client, 1000.5) for client in range(3)]
    assert [client for client, _ in admission_of(*near, sent(3, 0.0), reference=reference).excluded] == [3]


def test_answers_need_no_weights():
    specs = {"losses": ArraySpec((2,), "float16"), "seen": ArraySpec((), "int64")}
    answer = Upload(1, ROUND, 5, {"seen": np.array(3), "losses": np.array([6e4, 0], "f2")})
    admission = admission_of(answer, specs=specs, reference=None)
    assert list(admission.admitted[0].arrays) == ["losses", "seen"]


@pytest.mark.parametrize("n", [1, 9_999, 10_000, 10_001, 79_999, 80_000, 80_001, 200_001])
def test_norms_and_non_finite_values_in_every_piece(n):
    rng = np.random.default_rng(n)
    reference, values = rng.normal(size=(2, n)).astype("f4")
    wide = np.repeat(values, 2)
    uploads = [
        Upload(k, ROUND, 5, {"weights": v}) for k, v in enumerate([values, wide[::2], values[::-1].copy()[::-1]])
    ]
    admission = admission_of(*uploads, n=n, reference=reference)
    true = float(np.linalg.norm(values.astype("f8") - reference))
    assert admission.norms == dict.fromkeys(range(3), pytest.approx(true, rel=1e-6))
    assert len(set(admission.norms.values())) == 1
    for place in {0, n // 2, n - 1, *range(0, n, 10_000), *range(9_999, n, 10_000)}:
        for bad, reason in ((np.nan, "not finite"), (np.inf, "not finite"), (3e38, "values too large")):
            upload = Upload(0, ROUND, 5, {"weights": values.copy()})
            upload.arrays["weights"][place] = bad
            assert reasons(admission_of(upload, n=n, reference=reference)) == [f"{reason}: weights"]


def test_the_largest_magnitude_is_the_same_for_every_dtype():
    for dtype in ("f4", "f8"):
        specs = {"weights": ArraySpec((4,), dtype)}
        for value, count in ((0.9e19, 1), (0.95e19, 0)):
            upload = Upload(0, ROUND, 5, {"weights": np.full(4, value, dtype)})
            assert len(admission_of(upload, specs=specs, reference=np.zeros(4, dtype)).admitted) == count


def test_the_largest_square_of_a_norm_is_the_largest_float32():
    root = np.array([4095, 90, 9, 3])  # of 2**24 - 1
    assert float(root @ root) * 2.0**104 == float(np.finfo("f4").max)
    assert admission_of(sent(0, *(root * 2.0**52))).excluded == ()
    assert reasons(admission_of(sent(0, *(np.array([4095, 90, 9, 4]) * 2.0**52)))) == ["values too large: weights"]


def test_a_callers_own_handling_of_overflow_does_not_matter():
    with np.errstate(all="raise"):
        admission = admission_of(sent(0, 3e38), reference=np.full(4, -3e38, "f4"))
    assert reasons(admission) == ["values too large: weights"]


def test_integers_have_no_norm():
    upload = Upload(0, ROUND, 5, {"weights": np.full(4, 7)})
    admission = admission_of(upload, specs={"weights": ArraySpec((4,), "int64")}, reference=np.zeros(4, int))
    assert admission.norms == {0: 0.0}


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ([("weights", np.ones(4, "f4"))], "no named arrays"),
        (None, "no named arrays"),
        ({"weights": [1.0] * 4}, "not an array: weights"),
        ({"weights": np.float32(1)}, "not an array: weights"),
        ({"weights": np.ones(3, "f4").view(Lying)}, "wrong shape: weights: expected (4,), got (3,)"),
        ({"weights": np.ma.masked_invalid(np.array([1, 1, 1, np.nan], "f4"))}, "not finite: weights"),
        ({"weights": np.ones(4, "f4"), 3: None}, "undeclared array"),
        ({"labels": None, "more": None, "weights": np.ones(4, "f4")}, "undeclared array: labels"),
        ({"weights": np.ones(4, "f4"), "\x1b[2J\n\ud800é": None}, "undeclared array: \\x1b[2J\\n\\ud800é"),
        ({"weights": np.ones(4, "f4"), "\n" * 10**6: None}, "undeclared array: " + "\\n" * 60 + "..."),
        (
            {"weights": np.zeros(4, [("\n<b>", "f4")])},
            "wrong dtype: weights: expected float32, got [('\\n<b>', '<f4')]",
        ),
        ({"weights": np.ones((1,) * 60, "f4")}, f"wrong shape: weights: expected (4,), got ({'1, ' * 19}1,..."),
        (Hostile(unreadable), "unreadable arrays"),
        (Hostile(lambda: None, length=2, keys=unreadable), "unreadable arrays"),
        (Hostile(lambda: None, length=2, keys=endless), "undeclared array"),
    ],
)
def test_hostile_arrays(arrays, reason):
    admission = admission_of(Upload(0, ROUND, 5, arrays), sent(1))
    assert excluded(admission) == [(0, reason)]
    assert [upload.client for upload in admission.admitted] == [1]


def test_what_was_checked_is_what_is_admitted():
    answers = iter([np.ones(4, "f4"), np.full(4, np.nan, "f4")])
    (upload,) = admission_of(Upload(0, ROUND, 5, Hostile(lambda: next(answers)))).admitted
    assert type(upload.arrays) is dict
    assert upload.arrays["weights"].tolist() == [1, 1, 1, 1]


@given(junk=st.lists(UPLOAD | JUNK, max_size=4), order=st.permutations(range(9)))
@batteries.examples(300, 5_000)
def test_whatever_arrives_the_good_ones_stay(junk, order):
    good = [sent(client, 1.0 + client) for client in range(5)]
    claimed = [getattr(each, "client", None) for each in junk]
    strangers = [each for each, client in zip(junk, claimed, strict=True) if not isinstance(client, int) or client > 4]
    arrived: list[object] = [*good, *strangers]
    admission = admission_of(*arrived)
    kept = {upload.client: upload for upload in admission.admitted}
    assert list(kept) == sorted(kept)
    for upload in good:
        assert kept[upload.client].arrays["weights"].tobytes() == upload.arrays["weights"].tobytes()
    for upload in admission.admitted:
        values = upload.arrays["weights"]
        assert (upload.round, list(upload.arrays), values.shape, values.dtype) == (ROUND, ["weights"], (4,), np.float32)
        assert np.isfinite(values).all()
        assert type(upload.samples) is int
        assert upload.samples > 0
    for client, reason in excluded(admission):
        assert client is None or 5 <= client <= 2**53
        assert reason.isprintable()
        assert reason.isascii()
        assert len(reason) < 120
    again = admission_of(*(arrived[place] for place in order if place < len(arrived)))
    assert (again.excluded, again.norms) == (admission.excluded, admission.norms)
