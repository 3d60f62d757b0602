"""Battery B15: nothing in an archive or a name makes us write outside the folder meant for it."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.archives import Entry, Limits
from fedrela.data.unpack import _Tree, unpack
from fedrela.errors import ArgumentError, DataError
from fedrela.files import safe_join, safe_path
from helpers.archive_attacks import ATTACKS, EVIL, NAMES, OUTSIDE, WRITERS, Attack, Item, as_tar, as_zip
from helpers.batteries import examples


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder: kind and permission bits, and the content of regular files."""
    found = {}
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        found[str(path.relative_to(folder))] = (mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
    return found


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with something to lose beside the place of the archive and the target."""
    (tmp_path / "canary.txt").write_bytes(b"untouched")
    (tmp_path / "inner").mkdir()
    return tmp_path


def check_harmless(world: Path, archive: Path, target: Path, attack: Attack) -> None:
    before = tree(world)
    if attack.words is None:
        unpack(archive, target, limits=attack.limits)
        inside = tree(target)
        assert inside.keys() == {"good.txt", *(item.name for item in attack.items)}
        for item in attack.items:
            mode, data = inside[item.name]
            assert data == item.data
            assert stat.S_ISREG(mode)
            assert not mode & 0o7111, "permissions come from us, not from the archive"
    else:
        with pytest.raises(DataError, match=attack.words) as caught:
            unpack(archive, target, limits=attack.limits)
        assert "\n" not in str(caught.value)
        assert str(archive) in str(caught.value)
        assert tree(world) == before
    left = {name: seen for name, seen in tree(world).items() if not (world / name).is_relative_to(target)}
    assert left == before
    assert not os.path.lexists(OUTSIDE)


def test_there_are_sixty_attacks() -> None:
    assert len(ATTACKS) == 60


@pytest.mark.parametrize("place", ["data_cache", "run_folder"])
@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("key", ATTACKS)
def test_attack_changes_nothing_outside(key: str, form: str, place: str, world: Path) -> None:
    write, file_name = WRITERS[form]
    attack = ATTACKS[key]()
    archive = world / file_name
    archive.write_bytes(write(attack))
    if place == "run_folder" and key in NAMES:
        with pytest.raises(DataError, match="not a plain file name"):
            safe_join(world / "runs", NAMES[key])
    target = world / "inner" / "cache" if place == "data_cache" else safe_join(world / "inner", "run-1")
    check_harmless(world, archive, target, attack)


PLAIN = st.sampled_from(["a", "A", "x.txt", "deep", "Straße", "good.txt"])
HOSTILE = st.sampled_from(["..", ".", "", "C:", "~", "con", " ", "\0", "\\", "%2e%2e", "．．", "\u202e", "x."])
COMPONENTS = PLAIN | PLAIN | PLAIN | HOSTILE | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SEPARATORS = st.sampled_from(["/"] * 12 + ["\\", "//", "∕", "%2f", ":"])


@st.composite
def hostile_names(draw: st.DrawFn) -> str:
    first, *parts = draw(st.lists(COMPONENTS, min_size=1, max_size=5))
    return first + "".join(draw(SEPARATORS) + part for part in parts)


@examples(200, 10000)
@given(hostile_names(), st.sampled_from(sorted(WRITERS)))
def test_fuzzed_names_stay_inside(name: str, form: str) -> None:
    write, file_name = WRITERS[form]
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder).resolve()
        archive, target = world / file_name, world / "inner" / "target"
        archive.write_bytes(write(Attack((Item(name),))))
        (world / "inner").mkdir()
        before = tree(world)
        try:
            unpack(archive, target)
        except DataError:
            assert tree(world) == before
        else:
            made = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
            assert made == {target / "good.txt": b"good", safe_path(target, name.rstrip("/")): EVIL}
            outside = {key: seen for key, seen in tree(world).items() if not key.startswith("inner/target")}
            assert outside == before


@examples(200, 10000)
@given(hostile_names())
def test_fuzzed_names_join_below_their_folder(name: str) -> None:
    for join in (safe_join, safe_path):
        try:
            joined = join("base", name)
        except DataError:
            continue
        assert joined.as_posix() == f"base/{name}"
        assert os.path.normpath(joined) == str(joined)


@examples(100, 5000)
@given(st.data())
def test_damaged_archives_are_refused_in_one_line_or_unpacked(data: st.DataObject) -> None:
    write, file_name = WRITERS[data.draw(st.sampled_from(sorted(WRITERS)))]
    content = bytearray(write(Attack((Item("a/b.txt", b"text" * 300), Item("c", b"")))))
    if file_name.endswith(".gz"):
        content, file_name = bytearray(gzip.decompress(content)), "attack.tar"
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(len(content) // 2, len(content))) :]
    with tempfile.TemporaryDirectory() as folder:
        archive, target = Path(folder, file_name), Path(folder, "target")
        archive.write_bytes(content)
        said = ""
        try:
            unpack(archive, target)
        except DataError as error:
            said = str(error)
        assert "\n" not in said
        assert sorted(os.listdir(folder)) == sorted([file_name] if said else [file_name, "target"])


def tar_of(entries: dict[str, bytes], end: bytes = bytes(1024)) -> bytes:
    buffer = io.BytesIO()
    for name, data in entries.items():
        info = tarfile.TarInfo(name)
        info.size = len(data)
        if name.endswith("/"):
            info.type = tarfile.DIRTYPE
        buffer.write(info.tobuf() + data + bytes(-len(data) % 512))
    return buffer.getvalue() + end


ENTRIES = {"top/": b"", "top/a.bin": b"a" * 70_000, "top/deep/b.txt": b"b", "top/empty": b""}


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".zip"])
def test_good_archive_is_unpacked_whole(suffix: str, tmp_path: Path) -> None:
    archive = tmp_path / f"good{suffix}"
    content = tar_of(ENTRIES)
    if suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for name, data in ENTRIES.items():
                packed.writestr(name, data)
    else:
        archive.write_bytes(content if suffix == ".tar" else gzip.compress(content))
    calls: list[tuple[int, int | None]] = []
    target = unpack(archive, tmp_path / "out", top="top", progress=lambda *call: calls.append(call))
    files = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert files == {name[4:]: data for name, data in ENTRIES.items() if not name.endswith("/")}
    size = archive.stat().st_size
    assert calls[-1] == (size, size)
    assert sorted(calls) == calls
    assert sorted(os.listdir(tmp_path)) == sorted([archive.name, "out"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (tar_of(ENTRIES)[:1500], "unexpected end of data"),
        (tar_of(ENTRIES, end=b""), "mark of its end"),
        (tar_of(ENTRIES, end=b"\1" * 1024), "mark of its end"),
        (tar_of(ENTRIES, end=bytes(1024) + b"more"), "follows the mark"),
        (b"", "empty file"),
        (tar_of({"elsewhere": b""}), "outside the folder 'top'"),
        (tar_of({"top": b"a file"}), "outside the folder 'top'"),
        (tar_of({"top/a/": b"", "top/a": b""}), "already"),
    ],
)
def test_tar_that_is_not_what_it_should_be(content: bytes, words: str, tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(content)
    with pytest.raises(DataError, match=words):
        unpack(archive, tmp_path / "out", top="top")
    assert os.listdir(tmp_path) == ["x.tar"]


def test_gzip_checksum_is_looked_at(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar.gz"
    packed = bytearray(gzip.compress(tar_of(ENTRIES)))
    packed[-8] ^= 1  # the CRC, behind everything that tarfile reads
    archive.write_bytes(packed)
    with pytest.raises(DataError, match="CRC"):
        unpack(archive, tmp_path / "out")


def test_giant_extended_header_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 1 << 32
    archive = tmp_path / "x.tar"
    archive.write_bytes(info.tobuf() + bytes(10_000))
    with pytest.raises(DataError, match="a header of more than"):
        unpack(archive, tmp_path / "out")


def test_bomb_of_headers_is_stopped(tmp_path: Path) -> None:
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 900 * 1024
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(gzip.compress((info.tobuf() + bytes(info.size)) * 3))
    with pytest.raises(DataError, match="beyond all reason"):
        unpack(archive, tmp_path / "out")


def test_content_beyond_the_declared_size_is_not_written(tmp_path: Path) -> None:
    tree = _Tree(tmp_path, None, Limits(), most=1000)
    with pytest.raises(DataError, match="not the 2 bytes"):
        tree.add(Entry("x", 2, io.BytesIO(b"longer"), 0))
    assert (tmp_path / "x").read_bytes() == b""


def test_many_small_bombs_are_one_large_bomb(tmp_path: Path) -> None:
    archive = tmp_path / "x.zip"
    archive.write_bytes(as_zip(Attack(tuple(Item(f"x{i}", bytes(9_000)) for i in range(60)))))
    unpack(archive, tmp_path / "one", limits=Limits(floor=10_000, ratio=100))
    with pytest.raises(DataError, match="more than is accepted"):
        unpack(archive, tmp_path / "two", limits=Limits(floor=10_000, ratio=20))


def test_sparse_file_in_an_extended_header_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": "1000000", "GNU.sparse.numblocks": "1"}
    archive = tmp_path / "x.tar"
    archive.write_bytes(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    with pytest.raises(DataError, match="neither a regular file"):
        unpack(archive, tmp_path / "out")


def test_negative_size_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.size = -512
    archive = tmp_path / "x.tar"
    archive.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(DataError, match="neither a regular file"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("flaw", ["encrypted", "method", "folder_with_data"])
def test_zip_entries_of_other_kinds_are_refused(flaw: str, tmp_path: Path) -> None:
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        info = zipfile.ZipInfo("x/" if flaw == "folder_with_data" else "x")
        info.external_attr = 0
        method = zipfile.ZIP_BZIP2 if flaw == "method" else zipfile.ZIP_STORED
        packed.writestr(info, b"data", compress_type=method)
        info.flag_bits |= flaw == "encrypted"
        info.file_size = 4
    with pytest.raises(DataError, match=r"encrypted|neither"):
        unpack(archive, tmp_path / "out")


def test_existing_target_and_unknown_suffix(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(tar_of(ENTRIES))
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="exists already"):
        unpack(archive, tmp_path / "out")
    with pytest.raises(ArgumentError, match="can be unpacked"):
        unpack(tmp_path / "x.rar", tmp_path / "new")
    with pytest.raises(DataError, match="No such file"):
        unpack(tmp_path / "missing.zip", tmp_path / "new")


def test_writing_that_fails_leaves_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(as_tar(Attack(())))
    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(DataError, match="cannot be unpacked into"):
        unpack(archive, tmp_path / "file" / "out")
    assert sorted(os.listdir(tmp_path)) == ["file", "x.tar.gz"]
