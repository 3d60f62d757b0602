"""Files: atomic write, digest, safe names. The only package that opens a file for writing."""

from fedrela.files.arrays import ArrayAside
from fedrela.files.atomic import digest, digest_file, new_folder, write_bytes, write_new
from fedrela.files.names import safe_join, safe_path
from fedrela.files.parts import Part

__all__ = [
    "ArrayAside", "Part", "digest", "digest_file", "new_folder", "safe_join", "safe_path", "write_bytes", "write_new",
]  # fmt: skip
