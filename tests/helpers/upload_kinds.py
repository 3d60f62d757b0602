"""Uploads of ten good clients, and the 32 kinds of bad ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fedrela.algorithms import ArraySpec, Sizes
from fedrela.algorithms.base import ArraySpecs
from fedrela.records import Upload

ROUND = 7
SIZES = Sizes(shared=30, trained=26, classes=3, features=4, clients=10, inputs=(6,), largest=40)
WEIGHTS: dict[str, ArraySpec] = {"weights": ArraySpec((SIZES.shared,))}
FICTITIOUS: dict[str, ArraySpecs] = {
    "weights": WEIGHTS,
    "control vector": WEIGHTS | {"control": ArraySpec((30,))},
    "float64 scalar": WEIGHTS | {"loss": ArraySpec((), "float64")},
    "block of features": WEIGHTS | {"blocks": ArraySpec((3, 3, 4)), "presence": ArraySpec((3,), "bool")},
    "several pieces": {"weights": ArraySpec((20_001,))},
}


@cache
def federation(fields: tuple[tuple[str, ArraySpec], ...], seed: int) -> tuple[np.ndarray, list[Upload]]:
    """Weights that were sent out, and what ten good clients return; their norms are about as 1 to 10."""
    rng = np.random.default_rng(seed)
    weights = dict(fields)["weights"]
    reference = rng.normal(size=weights.shape).astype(weights.dtype)
    uploads = []
    for client in range(10):
        arrays = {name: np.array(3 * rng.normal(size=field.shape)).astype(field.dtype) for name, field in fields}
        arrays["weights"] = reference + arrays["weights"] * np.float32((client + 1) / 10)
        uploads.append(Upload(client, ROUND, int(rng.integers(1, 500)), arrays))
    return reference, uploads


def cell(values: np.ndarray, value: float) -> np.ndarray:
    values = values.copy()
    values.reshape(-1)[values.size // 2] = value
    return values


def other_dtype(values: np.ndarray, *dtypes: Any) -> np.ndarray:
    return values.astype(next(dtype for dtype in map(np.dtype, dtypes) if dtype != values.dtype))


# kind -> (reason or "" where nobody can see it, what becomes of one array)
VALUES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "NaN in one cell": ("not finite", lambda a: cell(a, np.nan)),
    "NaN in all": ("not finite", lambda a: np.full_like(a, np.nan)),
    "Inf": ("not finite", lambda a: cell(a, -np.inf)),
    "1e30": ("values too large", lambda a: cell(a, 1e30)),
    "subnormal only": ("", lambda a: np.full_like(a, 1e-40)),
    "all zero": ("", np.zeros_like),
}
FORMS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "wrong shape": ("wrong shape", lambda a: np.resize(a, (*a.shape[:-1], sum(a.shape[-1:]) + 1))),
    "broadcastable shape": ("wrong shape", lambda a: a.reshape(-1)[:1].reshape(() if a.ndim else (1,))),
    "zero-size array": ("wrong shape", lambda a: a.reshape(-1)[:0]),
    "extra dimension": ("wrong shape", lambda a: a[None]),
    "transposed": ("wrong shape", lambda a: a[:, None] if a.ndim == 1 else a.T),
    "float64 for float32": ("wrong dtype", lambda a: other_dtype(a, "f8", "f4")),
    "integer dtype": ("wrong dtype", lambda a: other_dtype(a, "i8", "i4")),
    "object dtype": ("wrong dtype", lambda a: a.astype(object)),
    "complex": ("wrong dtype", lambda a: a.astype(complex)),
    "big-endian": ("wrong dtype", lambda a: a.astype(a.dtype.newbyteorder(">"))),
}


class Truncated(Mapping[str, np.ndarray]):
    """Arrays that are decoded from bytes when they are asked for, with the last bytes missing."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.parts = {name: (a.tobytes()[:-3], a.dtype, a.shape) for name, a in arrays.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        data, dtype, shape = self.parts[name]
        return np.frombuffer(data, dtype).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def without_samples(sent: Upload) -> Upload:
    upload = object.__new__(Upload)
    upload.__dict__.update(client=sent.client, round=sent.round, arrays=sent.arrays)
    return upload


def renamed(sent: Upload, name: str) -> Upload:
    *others, (_, last) = sent.arrays.items()
    return replace(sent, arrays=dict(others) | {name: last})


def swapped(sent: Upload) -> list[list[object]]:
    pairs = combinations(sent.arrays.items(), 2)
    alike = [(m, a, n, b) for (m, a), (n, b) in pairs if (a.shape, a.dtype) == (b.shape, b.dtype)]
    return [[replace(sent, arrays={**sent.arrays, m: b, n: a})] for m, a, n, b in alike]


def pushed(sent: Upload, reference: np.ndarray) -> Upload:
    change = sent.arrays["weights"] - reference
    far = change * np.float32(100 * 5.5 / (sent.client + 1))
    return replace(sent, arrays={**sent.arrays, "weights": reference + far})


# kind -> (reason, what may arrive in place of one good upload: a list of cases, each a list of objects)
WHOLE: dict[str, tuple[str, Callable[[Upload, np.ndarray], list[list[object]]]]] = {
    "norm 100x the median": ("norm too large", lambda u, r: [[pushed(u, r)]]),
    "missing key": ("missing array", lambda u, r: [[replace(u, arrays=dict(list(u.arrays.items())[1:]))]]),
    "extra key": ("undeclared array: labels", lambda u, r: [[replace(u, arrays={**u.arrays, "labels": np.zeros(3)})]]),
    "renamed key": ("missing array", lambda u, r: [[renamed(u, "Weights")]]),
    "swapped keys of equal shape": ("", lambda u, r: swapped(u)),
    "weight 0": ("wrong number of samples", lambda u, r: [[replace(u, samples=0)]]),
    "negative weight": ("wrong number of samples", lambda u, r: [[replace(u, samples=-u.samples)]]),
    "weight NaN": ("wrong number of samples", lambda u, r: [[replace(u, samples=np.nan)]]),
    "huge weight": ("wrong number of samples", lambda u, r: [[replace(u, samples=n)] for n in (2**53 + 1, 10**400)]),
    "missing weight": ("wrong number of samples", lambda u, r: [[without_samples(u)], [replace(u, samples=None)]]),
    "weight is text": ("wrong number of samples", lambda u, r: [[replace(u, samples=str(u.samples))]]),
    "past or future round": ("wrong round", lambda u, r: [[replace(u, round=ROUND + d)] for d in (-1, 1)]),
    "duplicate sender": ("sent twice", lambda u, r: [[u, replace(u, arrays=pushed(u, r).arrays)]]),
    "unknown sender": ("sender not chosen", lambda u, r: [[replace(u, client=99)]]),
    "truncated bytes": ("unreadable arrays", lambda u, r: [[replace(u, arrays=Truncated(u.arrays))]]),
    "a key that is a path": ("missing array", lambda u, r: [[renamed(u, "../../weights")], [renamed(u, "/weights")]]),
}


KINDS: dict[str, str] = {kind: reason for kind, (reason, _) in (VALUES | FORMS | WHOLE).items()}


def spoilt(kind: str, sent: Upload, reference: np.ndarray) -> list[list[object]]:
    """All cases of a kind: one for each array that can be spoilt in this way."""
    if kind in WHOLE:
        return WHOLE[kind][1](sent, reference)
    cases: list[list[object]] = []
    for name, values in sent.arrays.items():
        if kind in FORMS or values.dtype.kind == "f":
            bad = (VALUES | FORMS)[kind][1](values)
            if bad.shape != values.shape or bad.dtype != values.dtype or kind in VALUES:
                cases.append([replace(sent, arrays={**sent.arrays, name: bad})])
    return cases


class Hostile(Mapping[Any, Any]):
    """A mapping that has the declared array at first sight."""

    def __init__(
        self, get: Callable[[], object], length: int = 1, keys: Callable[[], Iterator[Any]] | None = None
    ) -> None:
        self.get_one, self.length, self.keys_of = get, length, keys

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: object) -> object:
        return self.get_one()

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return self.keys_of()


class Lying(np.ndarray):
    """An array whose Python side says what it likes."""

    shape = (4,)
    dtype = np.dtype("f4")


def endless() -> Iterator[str]:
    while True:
        yield "weights"


def unreadable() -> Any:
    raise RecursionError


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9)
ARRAY = npst.arrays(npst.scalar_dtypes(), npst.array_shapes(min_dims=0, max_dims=3, max_side=4))
VECTOR = npst.arrays("f4", 4, elements=st.floats(width=32))
JUNK = PLAIN | ARRAY | st.lists(PLAIN) | st.dictionaries(st.just("weights") | PLAIN, ARRAY | PLAIN, max_size=3)
UPLOAD = st.builds(
    Upload,
    client=st.integers(5, 11) | JUNK,
    round=st.just(ROUND) | JUNK,
    samples=st.integers(1, 9) | JUNK,
    arrays=st.fixed_dictionaries({"weights": VECTOR | ARRAY}, optional={"more": PLAIN}) | JUNK,
)
