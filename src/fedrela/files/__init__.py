"""Files: atomic writes, digests, locks, safe names. The only package that opens a file for writing."""

from fedrela.files.atomic import (
    NewArrayFile,
    PartialFile,
    append_line,
    first_free,
    make_folders,
    new_folder,
    sweep,
    write_bytes,
    write_new,
)
from fedrela.files.lock import alone, is_taken
from fedrela.files.reading import digest, digest_file, measure, open_plain, read_plain, safe_join, safe_path

__all__ = [
    "NewArrayFile", "PartialFile", "alone", "append_line", "digest", "digest_file", "first_free", "is_taken",
    "make_folders", "measure", "new_folder", "open_plain", "read_plain", "safe_join", "safe_path", "sweep",
    "write_bytes", "write_new",
]  # fmt: skip
