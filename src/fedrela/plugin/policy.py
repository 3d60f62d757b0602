"""What the owner of the data permits. If a federation asks for more, the stricter of the two applies."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fedrela.core.limits import OwnerLimits
from fedrela.errors import ArgumentError
from fedrela.options import option, options_of, redeclared
from fedrela.text import one_line, unknown

if TYPE_CHECKING:
    from fedrela.plugin.store import LabelStore

POLICY = "policy.toml"
NOT_OF_MOVES = ("enabled", "passes", "share")


@dataclass(frozen=True, kw_only=True)
class Policy(OwnerLimits):
    """Limits of re-labelling: those of a client's file, or those that a federation asks for.

    Parameters
    ----------
    enabled
        False: train on the original labels, even if new ones were made before.
    tau
        Largest tau.
    max_fraction
        Largest share of a client's labels that may change.
    min_agreement
        If the model confirms a smaller share of the labels, none moves.
    passes
        How often labels may be made, each time from the original ones.
    share
        Whether the server may learn the number of moved labels.
    allowed, forbidden
        The only moves that may happen, and moves that may not, as pairs of classes (from, to).
    keep
        Rows whose labels are verified and stay, by number or id.
    absent
        Whether samples may move into a class that the client does not have.
    class_tau
        Tau of single classes, by number or name.

    Examples
    --------
    >>> federation, client = Policy(tau=0.2, share=True), Policy(tau=0.05, forbidden=[(3, 0)])
    >>> both = federation.stricter(client)
    >>> both.tau, both.share, sorted(both.forbidden)
    (0.05, False, [(3, 0)])
    """

    max_fraction: float = redeclared(OwnerLimits, "max_fraction", default=0.3)
    passes: int = option(1, "how often labels may be made, each time from the original ones", ge=1)
    share: bool = option(False, "whether the server may learn the number of moved labels")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("allowed", "forbidden", "keep"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else frozenset(value))

    def stricter(self, other: Self) -> Self:
        """Return the policy that permits only what both permit."""
        both = super().stricter(other)
        return replace(both, passes=min(self.passes, other.passes), share=self.share and other.share)

    def looser_than(self, before: Mapping[str, Any]) -> list[str]:
        """Return the names of the limits that permit more than those of an earlier record.

        >>> Policy(tau=0.2, absent=False).looser_than({"tau": 0.1, "absent": True})
        ['tau']
        """
        names = self.as_record().keys()
        both = self.stricter(replace(self, **{name: before[name] for name in names & before.keys()}))
        now = replace(self, class_tau={c: self.tau_of(c) for c in both.class_tau or ()}).as_record()
        return [name for name, strictest in both.as_record().items() if now[name] != strictest]

    def as_record(self) -> dict[str, Any]:
        """Return the settings that decide which labels move, as plain values."""
        values = {each.name: getattr(self, each.name) for each in options_of(Policy) if each.name not in NOT_OF_MOVES}
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, frozenset):
        return value
    return sorted([list(each) if isinstance(each, tuple) else each for each in value], key=str)


def read_policy(path: str | Path) -> Policy:
    r"""Return the policy in a TOML file, whose keys are the parameters of `Policy`; errors name file and key.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "policy.toml").write_text("tau = 0.03\nforbidden = [[3, 0]]")
    ...     policy = read_policy(folder + "/policy.toml")
    >>> policy.tau, sorted(policy.forbidden)
    (0.03, [(3, 0)])
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}; a policy is a TOML file") from None
    except ValueError as error:
        raise ArgumentError(f"{path}: not TOML: {one_line(error)}") from None
    names = [each.name for each in options_of(Policy)]
    for key in table:
        if key not in names:
            raise ArgumentError(f"{path}:{key}: {unknown('key', key, names, 'a policy')}")
    try:
        return Policy(**table)
    except ArgumentError as error:
        raise ArgumentError(f"{path}:{error.argument}: {error.reason}") from None


def own_policy(given: Policy | str | Path | None, store: LabelStore) -> tuple[Policy, Path | None]:
    """Return a client's policy and its file; without a file, the default policy.

    The file is by default the one in the root of the store. One in the folder of an experiment or client is an error.
    """
    right = store.root / POLICY
    file: Path | None
    if isinstance(given, Policy):
        file = None
    elif given is not None:
        file = Path(given)
    else:
        file = right if right.exists() else None
    for misplaced in (store.folder.parent / POLICY, store.folder / POLICY):
        if misplaced.is_file() and not (file is not None and file.exists() and misplaced.samefile(file)):
            raise ArgumentError(
                f"{misplaced}: a policy is not read there; move it to {right}, or name it with policy= "
                "(in Flower, fedrela-policy in --node-config)"
            )
    if isinstance(given, Policy):
        return given, None
    return (Policy(), None) if file is None else (read_policy(file), file)


@contextlib.contextmanager
def named_file(file: Path | None) -> Iterator[None]:
    """Name the file of a policy in the errors that its keys cause inside."""
    try:
        yield
    except ArgumentError as error:
        if file is None:
            raise
        raise ArgumentError(f"{file}:{error}") from None
