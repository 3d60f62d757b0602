"""The names in a run folder."""

from __future__ import annotations

from collections.abc import Collection

from fedrela.errors import ArgumentError

MANIFEST, CONFIG, MACHINE, LOCK = "manifest.json", "config.toml", "machine.json", "lock"
ROUNDS, TIMING, EXCLUSIONS = "rounds.jsonl", "timing.jsonl", "exclusions.jsonl"
RELABELLING, GALLERY, RESULT, REPORT = "relabelling.json", "gallery.npz", "result.json", "report.html"
CHECKPOINT, LEDGERS = "checkpoint", "ledgers"

COMPARED = (MANIFEST, CONFIG, ROUNDS, RELABELLING, GALLERY)  # and every ledger
WRITABLE = (MACHINE, RELABELLING, GALLERY, REPORT)
READABLE = (*WRITABLE, MANIFEST, CONFIG, ROUNDS, TIMING, EXCLUSIONS, RESULT)

LIMIT = 1 << 30  # bytes of any of these; checkpoint arrays may be larger


def known(name: str, names: Collection[str]) -> str:
    """Return `name` where it is one of `names`.

    >>> known("../labels", WRITABLE)
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: '../labels': one of machine.json, relabelling.json, gallery.npz, report.html is needed
    """
    if name not in names:
        raise ArgumentError(f"{name[:80]!r}: one of {', '.join(names)} is needed")
    return name
