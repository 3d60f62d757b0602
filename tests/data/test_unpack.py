"""Battery B15: nothing in an archive or a name makes us write outside the folder meant for it."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.download import unpack
from fedrela.errors import ArgumentError, DataError
from fedrela.files import safe_join, safe_path
from helpers.archive_attacks import ATTACKS, EVIL, NAMES, OUTSIDE, WRITERS, Attack, Item, as_tar
from helpers.batteries import examples, tried
from helpers.forks import memory


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
    """Unpack, and check that it was refused or that nothing but plain files below `target` came of it."""
    before, said = tree(world), ""
    try:
        unpack(archive, target)
    except DataError as error:
        said = str(error)
    if said:
        assert re.search(attack.words or "", said)
        assert "\n" not in said
        assert str(archive) in said
        assert tree(world) == before
    else:
        assert attack.words is None, "it had to be refused"
        inside = tree(target)
        assert inside["good.txt"][1] == b"good"
        assert {name.split("/")[0] for name in inside} <= {"good.txt", *(i.name.split("/")[0] for i in attack.items)}
        for mode, _ in inside.values():
            assert stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not mode & 0o7111), "permissions come from us"
    left = {name: seen for name, seen in tree(world).items() if not (world / name).is_relative_to(target)}
    assert left == before
    assert not os.path.lexists(OUTSIDE)


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("key", ["setuid", "nested_archive", "ratio", "entry_count", "total_size"])
def test_what_is_harmless_is_unpacked(key: str, form: str, world: Path) -> None:
    write, file_name = WRITERS[form]
    attack = ATTACKS[key]()
    (world / file_name).write_bytes(write(attack))
    inside = tree(unpack(world / file_name, world / "inner" / "target"))
    assert {name: data for name, (_, data) in inside.items()} == {"good.txt": b"good"} | {
        item.name: item.data for item in attack.items
    }


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
    tried(faults=1)
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
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
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
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
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
        (b"", "could not be opened"),
        (tar_of({"elsewhere": b""}), "outside the folder 'top'"),
        (tar_of({"top": b"a file"}), "outside the folder 'top'"),
        (tar_of({"top/a/": b"", "top/a": b""}), "cannot be unpacked"),
    ],
)
def test_tar_that_is_not_what_it_should_be(content: bytes, words: str, tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(content)
    with pytest.raises(DataError, match=words):
        unpack(archive, tmp_path / "out", top="top")
    assert os.listdir(tmp_path) == ["x.tar"]


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


@pytest.mark.parametrize("flaw", ["encrypted", "folder_with_data"])
def test_zip_entries_of_other_kinds_are_refused(flaw: str, tmp_path: Path) -> None:
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        info = zipfile.ZipInfo("x/" if flaw == "folder_with_data" else "x")
        info.external_attr = 0
        packed.writestr(info, b"data")
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
    with pytest.raises(ArgumentError, match=r"expected a \.tar"):
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
