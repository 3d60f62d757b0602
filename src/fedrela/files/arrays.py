"""A large array written straight to disk, without a second copy in memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from fedrela.files.atomic import aside_of, sync


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
            self.array = np.lib.format.open_memmap(self.path, mode="w+", dtype=np.dtype(dtype), shape=shape)
            self._reserve()
        except BaseException:
            self.discard()
            raise

    def finish(self) -> None:
        """Write out the values and rename the file to its target."""
        self.array.flush()
        os.replace(self.path, self.target)
        sync(self.target.parent)

    def discard(self) -> None:
        """Remove what is not finished."""
        self.path.unlink(missing_ok=True)

    def _reserve(self) -> None:
        """Claim the disk blocks now: writing to a mapped file on a full disk would kill the process."""
        if not hasattr(os, "posix_fallocate"):
            return
        handle = os.open(self.path, os.O_RDWR)
        try:
            os.posix_fallocate(handle, 0, os.fstat(handle).st_size)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
        finally:
            os.close(handle)
