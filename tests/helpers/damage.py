"""Ways to damage a run folder: by chance, by a careless hand, and by somebody who forges digests too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedrela.files import digest
from fedrela.runfolder.json_records import json_file, sealed

Rng = np.random.Generator
GENERATIONS = ("checkpoint/000002", "checkpoint/000004")
PARTS = ("arrays.safetensors", "record.json", "manifest.json")
TARGETS = (
    "manifest.json", "config.toml", "rounds.jsonl", "exclusions.jsonl", "timing.jsonl",
    *(f"{generation}/{part}" for generation in GENERATIONS for part in PARTS),
)  # fmt: skip


def _place(data: bytes, rng: Rng) -> int:
    return int(rng.integers(len(data) + 1))


def flip(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if changed:
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    return data[: _place(data, rng)]


def grow(data: bytes, rng: Rng) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 50)))


def blank(data: bytes, rng: Rng) -> bytes:
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:first] + bytes(last - first) + data[last:]


def noise(data: bytes, rng: Rng) -> bytes:
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:first] + rng.bytes(last - first) + data[last:]


def repeat(data: bytes, rng: Rng) -> bytes:
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:last] + data[first:last] + data[last:]


def lose_line(data: bytes, rng: Rng) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[int(rng.integers(len(lines)))]
    return b"".join(lines)


def digit(data: bytes, rng: Rng) -> bytes:
    """Replace a digit by another, so that all still looks right."""
    digits = [found.start() for found in re.finditer(rb"\d", data)]
    if not digits:
        return data + b"0"
    place = digits[int(rng.integers(len(digits)))]
    return data[:place] + b"%d" % ((int(data[place : place + 1]) + int(rng.integers(1, 10))) % 10) + data[place + 1 :]


def giant(data: bytes, rng: Rng) -> bytes:
    """Replace a number by one that is far too large, or by none."""
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data + b"9" * 5000
    found = numbers[int(rng.integers(len(numbers)))]
    other = (b"9" * 18, b"-1", b"1e999", b"NaN", b"9" * 5000, b"[" * 90_000)[int(rng.integers(6))]
    return data[: found.start()] + other + data[found.end() :]


CHANGES: tuple[Callable[[bytes, Rng], bytes], ...] = (flip, cut, grow, blank, noise, repeat, lose_line, digit, giant)


def by_chance(path: Path, rng: Rng) -> str:
    """Change the bytes of one file."""
    target = path / TARGETS[int(rng.integers(len(TARGETS)))]
    change = CHANGES[int(rng.integers(len(CHANGES)))]
    target.write_bytes(change(target.read_bytes(), rng))
    return f"{change.__name__} {target.name}"


def by_hand(path: Path, rng: Rng) -> str:
    """Lose, swap or replace whole files and folders."""
    one, other = (path / TARGETS[int(each)] for each in rng.choice(len(TARGETS), 2, replace=False))
    older, newer = (path / generation for generation in GENERATIONS)
    kind = int(rng.integers(8))
    if kind == 0:
        one.unlink()
    elif kind == 1:
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif kind == 2:
        os.rename(newer, newer.with_name(("000006", "000004-1", "000005")[int(rng.integers(3))]))
    elif kind == 3:
        part = PARTS[int(rng.integers(3))]
        (newer / part).write_bytes((older / part).read_bytes())
    elif kind == 4:
        one.unlink()
        one.symlink_to(other if rng.random() < 0.5 else path / "nowhere")
    elif kind == 5:
        one.unlink()
        os.mkfifo(one)
    elif kind == 6:
        one.unlink()
        one.mkdir()
    else:
        os.rename(older, older.with_name("away"))
        os.rename(newer, older)
        os.rename(older.with_name("away"), newer)
    return f"by hand {kind} {one.name} {other.name}"


VALUES: tuple[Any, ...] = (2**62, 2**70, -1, 0, 1.5, True, None, "9", "../../x", [], {}, [[1]], "0" * 64)


def forged_manifest(path: Path, rng: Rng) -> str:
    """Change one value of a manifest and seal it again."""
    target = path / ("manifest.json", *(f"{each}/manifest.json" for each in GENERATIONS))[int(rng.integers(3))]
    record = json.loads(target.read_bytes())
    del record["sha256"]
    places: list[tuple[dict[str, Any], str]] = [(record, key) for key in record]
    places += [(each, key) for each in record.values() if isinstance(each, dict) for key in each]
    places += [(e, k) for each in record.get("files", {}).values() if isinstance(each, dict) for e in [each] for k in e]
    owner, key = places[int(rng.integers(len(places)))]
    if rng.random() < 0.3:
        owner[("../record.json", "/etc/passwd", "a/../../b", "")[int(rng.integers(4))]] = owner.pop(key)
    else:
        owner[key] = VALUES[int(rng.integers(len(VALUES)))]
    target.write_bytes(json_file(sealed(record)))
    return f"forged {target.parent.name}/{target.name} {key}"


def forged_arrays(path: Path, rng: Rng) -> str:
    """Change the array file of a checkpoint and vouch for it."""
    generation = path / GENERATIONS[int(rng.integers(2))]
    arrays, manifest = generation / "arrays.safetensors", generation / "manifest.json"
    data = arrays.read_bytes()
    kind = int(rng.integers(5))
    if kind == 0:
        data = int(rng.choice([0, 1, 2**40, 2**62])).to_bytes(8, "little") + data[8:]
    elif kind == 1:
        data = CHANGES[int(rng.integers(len(CHANGES)))](data, rng)
    elif kind == 2:
        data = b"\x80\x04cposix\nsystem\n(S'touch executed'\ntR."
    else:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        entry = header[sorted(header)[int(rng.integers(len(header)))]]
        key = ("dtype", "shape", "data_offsets")[int(rng.integers(3))]
        entry[key] = {
            "dtype": ("F8_E4M3", "BF16", "O", 7, "C64", "F64")[int(rng.integers(6))],
            "shape": ([2**62], [2**32, 2**32], [-1], [0, 2**63], "x", [1.5])[int(rng.integers(6))],
            "data_offsets": ([0, 2**62], [5, 0], [0], [-1, 8], "x")[int(rng.integers(5))],
        }[key]
        text = json.dumps(header).encode()
        data = len(text).to_bytes(8, "little") + text + data[8 + size :]
    arrays.write_bytes(data)
    record = json.loads(manifest.read_bytes())
    del record["sha256"]
    record["files"]["arrays.safetensors"] = {"bytes": len(data), "sha256": digest(data)}
    manifest.write_bytes(json_file(sealed(record)))
    return f"forged arrays {kind}"
