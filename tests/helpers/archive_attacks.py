"""The sixty attacks of battery B15: hostile names and entry kinds, each as a tar.gz and as a zip file."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

OUTSIDE = "/fedrela-attack"
EVIL = b"evil"
NOT_A_FILE = "neither a regular file nor a folder"
ANY = None  # refused or unpacked without harm: the entries stay below the folder, whatever becomes of them

NAMES = {
    "absolute": f"{OUTSIDE}/x",
    "absolute_file": f"{OUTSIDE}.txt",
    "dots_alone": "..",
    "dots_first": "../x",
    "dots_middle": "a/../x",
    "dots_climb": "a/../../x",
    "dots_last": "a/b/..",
    "dot_first": "./x",
    "mixed_backslash": "..\\x",
    "mixed_climb": "a\\..\\..\\x",
    "mixed_both": "a/..\\..\\x",
    "percent": "%2e%2e%2fx",
    "percent_slash": "..%2fx",
    "percent_twice": "%252e%252e%252fx",
    "unicode_full_width": "．．／x",
    "unicode_one_dot_leader": "․․/x",
    "unicode_two_dot_leader": "‥/x",
    "unicode_division_slash": "a∕..∕x",
    "unicode_right_to_left": "a\u202etxt.exe",
    "drive_relative": "C:x",
    "drive_absolute": "C:\\x",
    "alternate_stream": "x.txt:stream",
    "unc": "\\\\host\\share\\x",
    "unc_slashes": "//host/share/x",
    "nul": "x.txt\0.png",
    "newline": "a\nb",
    "escape_code": "a\x1b[2Jb",
    "trailing_dot": "x.",
    "trailing_space": "x ",
    "trailing_dot_folder": "a./b",
    "device": "NUL",
    "device_suffix": "con.txt",
    "device_folder": "a/LPT1/x",
    "device_superscript": "COM¹",
    "long_name": "x" * 300,
    "long_path": "/".join(["d"] * 40),
    "empty": "",
    "empty_component": "a//b",
}


@dataclass(frozen=True)
class Item:
    """One entry to write, by whatever means the format has."""

    name: str
    data: bytes = EVIL
    tar_type: bytes = tarfile.REGTYPE
    zip_type: int = stat.S_IFREG
    link: str = ""
    mode: int = 0o644
    declared: int | None = None


@dataclass(frozen=True)
class Attack:
    """Entries that have to be refused for the reason in `words`, or may be unpacked without harm where that is None."""

    items: tuple[Item, ...]
    words: str | None = "not a plain relative path"


def _link(name: str, link: str, tar_type: bytes = tarfile.SYMTYPE) -> Item:
    # zip knows no hard link: there it is a second symbolic one
    return Item(name, link.encode(), tar_type, stat.S_IFLNK, link)


def _special(tar_type: bytes, zip_type: int) -> Attack:
    return Attack((Item("x", b"", tar_type, zip_type),), NOT_A_FILE)


def _nested() -> bytes:
    return as_zip(Attack((Item("../x"),)))


KINDS: dict[str, Callable[[], Attack]] = {
    "case_clash": lambda: Attack((Item("Read.txt"), Item("read.TXT")), ANY),
    "case_clash_folder": lambda: Attack((Item("Data/a"), Item("data/b")), ANY),
    "normal_form_clash": lambda: Attack((Item("caf\u00e9"), Item("cafe\u0301")), ANY),
    "duplicate": lambda: Attack((Item("x", b"first"), Item("x", b"second")), ANY),
    "file_and_folder": lambda: Attack((Item("x"), Item("x/y")), ANY),
    "symbolic_inside": lambda: Attack((Item("a"), _link("b", "a")), NOT_A_FILE),
    "symbolic_outside": lambda: Attack((_link("b", f"{OUTSIDE}/x"),), NOT_A_FILE),
    "symbolic_chained": lambda: Attack((_link("b", ".."), _link("c", "b/.."), Item("c/x")), NOT_A_FILE),
    "hard_inside": lambda: Attack((Item("a"), _link("b", "a", tarfile.LNKTYPE)), NOT_A_FILE),
    "hard_outside": lambda: Attack((_link("b", "../../canary.txt", tarfile.LNKTYPE),), NOT_A_FILE),
    "fifo": lambda: _special(tarfile.FIFOTYPE, stat.S_IFIFO),
    "character_device": lambda: _special(tarfile.CHRTYPE, stat.S_IFCHR),
    "block_device": lambda: _special(tarfile.BLKTYPE, stat.S_IFBLK),
    "unknown_kind": lambda: _special(b"V", stat.S_IFSOCK),
    "setuid": lambda: Attack((Item("x", mode=0o6777),), None),
    "sparse": lambda: Attack((Item("x", b"", tarfile.GNUTYPE_SPARSE, declared=1 << 40),), ANY),
    "declares_more": lambda: Attack((Item("x", b"short", declared=5000),), ANY),
    "declares_less": lambda: Attack((Item("x", b"long" * 500, declared=4),), ANY),
    "nested_archive": lambda: Attack((Item("inner.zip", _nested()),), None),
    "ratio": lambda: Attack((Item("x", bytes(3 << 20)),), ANY),
    "entry_count": lambda: Attack(tuple(Item(f"f{i}") for i in range(20)), ANY),
    "total_size": lambda: Attack((Item("x", b"y" * 900), Item("z", b"y" * 900)), ANY),
}

ATTACKS: dict[str, Callable[[], Attack]] = {
    **{key: partial(Attack, (Item(name),)) for key, name in NAMES.items()},
    **KINDS,
}


def as_tar(attack: Attack) -> bytes:
    """Write the entries, after a harmless one, as a tar.gz file."""
    buffer = io.BytesIO()
    for item in (Item("good.txt", b"good"), *attack.items):
        info = tarfile.TarInfo("name-in-the-extended-header")
        info.pax_headers = {"path": item.name}  # any string goes, also one that the classic header would cut
        info.type, info.linkname, info.mode = item.tar_type, item.link, item.mode
        data = item.data if item.tar_type == tarfile.REGTYPE else b""
        info.size = len(data) if item.declared is None else item.declared
        if item.tar_type == tarfile.GNUTYPE_SPARSE:
            info.size = 0
        buffer.write(info.tobuf(tarfile.PAX_FORMAT))
        buffer.write(data + bytes(-len(data) % tarfile.BLOCKSIZE))
    buffer.write(bytes(2 * tarfile.BLOCKSIZE))
    return gzip.compress(buffer.getvalue(), mtime=0)


def as_zip(attack: Attack) -> bytes:
    """Write the entries, after a harmless one, as a zip file."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        warnings.simplefilter("ignore")  # of duplicate names
        for item in (Item("good.txt", b"good"), *attack.items):
            info = zipfile.ZipInfo()
            info.filename = item.name
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (item.zip_type | item.mode) << 16
            packed.writestr(info, item.data)
            if item.declared is not None:
                info.file_size = item.declared  # goes into the directory at the end of the file
    return buffer.getvalue()


WRITERS = {"tar": (as_tar, "attack.tar.gz"), "zip": (as_zip, "attack.zip")}
