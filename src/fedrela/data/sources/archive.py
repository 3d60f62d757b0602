"""Members of a tar.gz read by exact name in one pass: nothing is unpacked, nothing else is looked at."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from fedrela.data.cache import BLOCK
from fedrela.data.sources.places import Readable
from fedrela.errors import DataError


def archive_members(path: Path, wanted: Sequence[str], limit: int) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield last name part, size and stream of every member in `wanted`, in the archive's order.

    A stream must be read before the next member is asked for. Only plain files count; a member twice or missing is an
    error, and so are more than `limit` unpacked bytes.
    """
    missing = set(wanted)
    with (
        gzip.open(path, "rb") as unpacked,
        tarfile.open(fileobj=cast(IO[bytes], _Limited(unpacked, limit, path)), mode="r|", bufsize=BLOCK) as tar,
    ):
        for member in tar:
            if member.name not in wanted or not member.isreg():
                continue
            if member.name not in missing:
                raise DataError(f"{path}: {member.name} is there twice; get the archive again")
            missing.remove(member.name)
            stream = tar.extractfile(member)
            if stream is None:
                raise DataError(f"{path}: {member.name} is no plain file")
            yield member.name.rsplit("/", 1)[-1], member.size, stream
            if not missing:
                return
    raise DataError(f"{path}: {min(missing)} is not in it; get the archive again")


class _Limited:
    """A stream that refuses to give more than `limit` bytes, so that a small archive cannot fill memory or time."""

    def __init__(self, source: Readable, limit: int, path: Path) -> None:
        self.source, self.left, self.limit, self.path = source, limit, limit, path

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes, or raise where the limit is passed."""
        data = self.source.read(self.left + 1 if size < 0 else min(size, self.left + 1))
        self.left -= len(data)
        if self.left < 0:
            raise DataError(f"{self.path}: unpacks to more than {self.limit} bytes; get the archive again")
        return data
