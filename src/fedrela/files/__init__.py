"""Files: atomic writes, digests, locks, safe names. The only package that opens a file for writing."""

from fedrela.files.atomic import (
    NewArrayFile,
    PartialFile,
    append_line,
    first_free,
    make_folders,
    new_folder,
    remove_temporary,
    write_bytes,
    write_new,
)
from fedrela.files.lock import hold_lock, is_locked, wait_for_lock
from fedrela.files.reading import (
    array_bytes,
    digest,
    digest_file,
    open_plain,
    read_arrays,
    read_plain,
    safe_join,
    safe_path,
    size_and_digest,
)

__all__ = [
    "NewArrayFile", "PartialFile", "append_line", "array_bytes", "digest", "digest_file", "first_free", "hold_lock",
    "is_locked", "make_folders", "new_folder", "open_plain", "read_arrays", "read_plain", "remove_temporary",
    "safe_join", "safe_path", "size_and_digest", "wait_for_lock", "write_bytes", "write_new",
]  # fmt: skip
