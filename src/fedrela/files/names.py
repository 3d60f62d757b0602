"""Names from outside, made safe: what they name lies below a folder of ours, on every system."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from urllib.parse import unquote

from fedrela.errors import DataError


def safe_join(folder: str | Path, name: str) -> Path:
    """Join a folder of ours with a name from outside; anything that is not one plain component is an error.

    >>> safe_join("ledgers", "client-3.json").as_posix()
    'ledgers/client-3.json'
    >>> safe_join("ledgers", "../labels")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: '../labels': not a plain file name
    """
    if not _is_plain(name):
        raise DataError(f"{name[:80]!r}: not a plain file name")
    return Path(folder) / name


def safe_path(folder: str | Path, name: str) -> Path:
    """Join a folder of ours with a relative path from outside, every component of which is plain.

    >>> safe_path("cache", "train/cat/1.png").as_posix()
    'cache/train/cat/1.png'
    >>> safe_path("cache", "train/../../labels")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: 'train/../../labels': not a plain relative path
    """
    parts = name.split("/")
    if len(parts) > 32 or len(name) > 1000 or not all(map(_is_plain, parts)):
        raise DataError(f"{name[:80]!r}: not a plain relative path")
    return Path(folder, *parts)


_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$|clock\$) *(\..*)?", re.IGNORECASE)
_LOOK_ALIKE = str.maketrans({"⁄": "/", "∕": "/", "⧸": "/", "∖": "\\", "⧵": "\\", "꞉": ":"})


def _is_plain(name: str) -> bool:
    """Whether `name`, also when read by a program that decodes percents or look-alikes, is one file name."""
    while _is_plain_as_written(name):
        decoded = unquote(unicodedata.normalize("NFKC", name).translate(_LOOK_ALIKE))
        if decoded == name:
            return True
        name = decoded
    return False


def _is_plain_as_written(name: str) -> bool:
    printable = bool(name) and all(ch.isprintable() and ch not in '/\\:*?"<>|' for ch in name)
    if not printable or name != name.strip(" .") or len(name.encode()) > 200:
        return False
    return not _DEVICE.fullmatch(name)
