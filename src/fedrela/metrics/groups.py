"""Groups of classes by frequency: head, medium, tail; majority, minority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_choice, check_integer
from fedrela.errors import ArgumentError
from fedrela.records import GROUP_PROTOCOLS

HEAD, MEDIUM, TAIL = 0, 1, 2
OFFICIAL_TEST_SIZE = 10_000  # test images of CIFAR-10 and of CIFAR-100


def shot_groups(counts: ArrayLike, cuts: tuple[float, float] = (0.75, 0.95)) -> NDArray[np.int64]:
    """Split classes into head (0), medium (1) and tail (2) by their cumulative share of samples.

    Classes are taken by decreasing count, ties by class id. The class at which the running share reaches the first
    cut is the last head class, the one at which it reaches the second cut the last medium class.

    Parameters
    ----------
    counts : (C,) non-negative numbers
        Samples of each class.
    cuts
        Cumulative shares at which head and medium end.

    Examples
    --------
    >>> shot_groups([5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    """
    try:
        g = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        g = np.empty(0)
    if g.ndim != 1 or g.size == 0 or not np.isfinite(g).all() or g.min() < 0:
        raise ArgumentError("expected one non-negative number per class", argument="counts")
    if not 0 < cuts[0] <= cuts[1] <= 1:
        raise ArgumentError(f"expected two ascending shares in (0, 1], got {cuts}", argument="cuts")
    order = np.argsort(-g, kind="stable")
    total = np.cumsum(g[order])
    percent = 100.0 * total / (total[-1] or 1.0)  # in per cent, as in the official code
    group = np.full(g.size, TAIL)
    for number, cut in ((MEDIUM, cuts[1]), (HEAD, cuts[0])):
        last = int(np.argmax(percent >= 100.0 * cut))  # 0 if the share is never reached, as without samples
        group[order[: last + 1]] = number
    return group


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of classes to report: ``names[of_class[c]]`` is the group of class c.

    Parameters
    ----------
    names
        Names of the groups, from the most frequent classes to the rarest.
    of_class : (C,) integers
        The group of each class.
    protocol
        How the groups were made; see `evaluation_groups`.

    Examples
    --------
    >>> groups = Groups(("majority", "minority"), np.array([0, 0, 1]), "counts")
    >>> groups.sizes, groups.members("majority").tolist()
    ({'majority': 2, 'minority': 1}, [0, 1])
    """

    names: tuple[str, ...]
    of_class: NDArray[np.int64]
    protocol: str

    @property
    def sizes(self) -> dict[str, int]:
        """Number of classes per group, including empty groups."""
        return {name: int((self.of_class == g).sum()) for g, name in enumerate(self.names)}

    def members(self, name: str) -> NDArray[np.int64]:
        """Return the ascending class ids of a group."""
        return np.flatnonzero(self.of_class == self.names.index(check_choice("group", name, self.names)))


def evaluation_groups(
    counts: ArrayLike,
    *,
    minority: Sequence[int] | NDArray[np.int64] | None = None,
    protocol: str = "counts",
    test_counts: ArrayLike | None = None,
) -> Groups:
    """Return the groups in which accuracy is reported.

    Parameters
    ----------
    counts : (C,) or (K, C) integers
        Training samples per class, or per client and class.
    minority
        Ids of the minority classes; the groups are then majority and minority, without a protocol.
    protocol
        Counts that `shot_groups` uses. ``"counts"``: training counts, as in the paper. ``"fedloge"``: the sum of
        floored local test sizes, which fits the published tables. ``"fedrela-release"``: the same, with each client's
        test samples of a class capped at those available. The last two depend on the partition.
    test_counts : (C,) integers
        Test samples per class; required by ``"fedrela-release"``, while ``"fedloge"`` assumes 10,000 in all by default.

    Examples
    --------
    >>> evaluation_groups([[60, 10], [40, 10]], minority=[1]).sizes
    {'majority': 1, 'minority': 1}
    >>> evaluation_groups([[75, 0, 5], [0, 20, 0]], protocol="fedloge").of_class.tolist()
    [0, 1, 2]
    """
    check_choice("protocol", protocol, GROUP_PROTOCOLS)
    n = np.asarray(counts)
    if n.ndim not in (1, 2):
        raise ArgumentError(f"expected (classes,) or (clients, classes), got shape {n.shape}", argument="counts")
    if minority is not None:
        return _majority_minority(n.shape[-1], minority, protocol)
    return Groups(("head", "medium", "tail"), shot_groups(_protocol_counts(n, protocol, test_counts)), protocol)


def _protocol_counts(n: NDArray[np.int64], protocol: str, test_counts: ArrayLike | None) -> NDArray[np.int64]:
    if protocol == "counts":
        return np.asarray(n.reshape(-1, n.shape[-1]).sum(axis=0))
    if protocol == "fedloge":
        return local_test_counts(n, OFFICIAL_TEST_SIZE if test_counts is None else int(np.sum(test_counts)))
    if test_counts is None:
        raise ArgumentError("protocol 'fedrela-release' needs the test samples of each class", argument="test_counts")
    return local_test_counts(n, int(np.sum(test_counts)), cap=test_counts)


def _majority_minority(num_classes: int, minority: Sequence[int] | NDArray[np.int64], protocol: str) -> Groups:
    if protocol != "counts":
        raise ArgumentError(f"not used with minority classes, got {protocol!r}; leave it out", argument="protocol")
    ids = np.asarray(minority)
    known = ids.ndim == 1 and (not ids.size or (ids.dtype.kind in "iu" and 0 <= ids.min() <= ids.max() < num_classes))
    if not known:
        raise ArgumentError(f"expected class ids from 0 to {num_classes - 1}, got {ids.tolist()}", argument="minority")
    of_class = np.zeros(num_classes, np.int64)
    of_class[ids.astype(np.int64)] = 1
    return Groups(("majority", "minority"), of_class, protocol)


def local_test_counts(
    client_counts: ArrayLike, test_size: int = OFFICIAL_TEST_SIZE, cap: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Return per class the sum over clients of their local test sizes.

    A client tests class c on ``floor(n_kc / N * test_size)`` samples, in floating point as in the official code.

    Parameters
    ----------
    client_counts : (K, C) non-negative integers
        Training samples ``n_kc``; N is their sum.
    test_size
        Samples of the whole test set.
    cap : a number, or (C,) numbers
        Largest number of test samples of a class per client; None for no limit.

    Examples
    --------
    >>> local_test_counts([[3, 0], [3, 3]], 100).tolist(), local_test_counts([[3, 0], [3, 3]], 100, cap=30).tolist()
    ([66, 33], [60, 30])
    """
    n = np.asarray(client_counts)
    if n.ndim != 2 or n.dtype.kind not in "iu" or (n.size and n.min() < 0):
        form = "integers >= 0, (clients, classes)"
        raise ArgumentError(f"expected {form}, got {n.dtype} {n.shape}", argument="client_counts")
    check_integer("test_size", test_size)
    most = np.asarray(np.inf if cap is None else cap, np.float64)
    if most.shape not in ((), n.shape[1:]):
        raise ArgumentError(f"expected one number, or {n.shape[1]}, got shape {most.shape}", argument="cap")
    local = np.floor(n / max(int(n.sum()), 1) * test_size)
    return np.asarray(np.minimum(local, most).sum(axis=0), np.int64)
