"""A large array written straight to disk, without a second copy in memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fedrela.files.atomic import aside_of, remove_if_there
from fedrela.files.verbs import rename, sync, sync_folder, verb


class ArrayAside:
    """An array on disk to fill, which becomes the .npy file `target` when it is finished.

    Attributes
    ----------
    array
        The values, mapped for writing.
    """

    def __init__(self, target: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.target = target
        self.path = aside_of(target)
        try:
            self.array = map_aside(self.path, shape, dtype)
        except BaseException:
            self.discard()
            raise

    def finish(self) -> None:
        """Write out the values and rename the file to its target."""
        self.array.flush()
        sync(self.path)
        rename(self.path, self.target)
        sync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove what is not finished."""
        remove_if_there(self.path)


@verb
def map_aside(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> np.memmap[Any, Any]:
    """Make an .npy file to fill through memory."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    _reserve(path)
    return array


def _reserve(path: Path) -> None:
    """Claim the disk blocks now: writing to a mapped file on a full disk would kill the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    handle = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(handle, 0, os.fstat(handle).st_size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(handle)
