"""CIFAR's binary edition as folder and tar.gz, on small editions in the true format, and on wrong ones."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from fedrela.data.sources import load
from fedrela.data.sources.cifar import CIFAR10, CIFAR100, load_edition
from fedrela.errors import DataError
from fedrela.files import digest_file

SMALL10 = replace(CIFAR10, train=dict.fromkeys(CIFAR10.train, 12), test={"test_batch.bin": 10})
SMALL100 = replace(CIFAR100, train={"train.bin": 100}, test={"test.bin": 100})


@pytest.fixture(params=[SMALL10, SMALL100], ids=["cifar10", "cifar100"])
def edition(request):
    return request.param


@pytest.fixture
def contents(edition, noise):
    """Name -> bytes of every file, and the arrays they hold."""
    files, x, y = {}, {}, {}
    for part, counts in (("train", edition.train), ("test", edition.test)):
        total = sum(counts.values())
        x[part], y[part] = noise(total, 3, 32, 32), np.arange(total) % edition.classes
        start = 0
        for name, number in counts.items():
            own = slice(start, start + number)
            coarse = [np.full(number, 19, np.uint8)] * (edition.label_bytes - 1)
            labels = np.stack([*coarse, y[part][own].astype(np.uint8)], axis=1)
            files[name] = np.hstack([labels, x[part][own].reshape(number, -1)]).tobytes()
            start += number
    files[edition.names] = "".join(f"thing {c}\n" for c in range(edition.classes)).encode() + b"\n"
    return files, x, y


def put_folder(root, edition, files):
    folder = root / edition.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return root


def put_archive(root, edition, files, extra=()):
    root.mkdir(exist_ok=True)
    with tarfile.open(root / edition.archive, "w:gz") as tar:
        for name, data in [*extra, *reversed([(f"{edition.folder}/{n}", d) for n, d in files.items()])]:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return root


def published(edition, root):
    """Return the edition whose published archive is the one in `root`, if there is one."""
    archive = root / edition.archive
    return replace(edition, sha256=digest_file(archive)) if archive.is_file() else edition


PUT = {"folder": put_folder, "archive": put_archive}


@pytest.mark.parametrize("form", PUT)
def test_every_pixel_and_label(tmp_path, edition, contents, form):
    files, x, y = contents
    root = PUT[form](tmp_path / "set", edition, files)
    steps = []
    source = load_edition(published(edition, root), root, progress=lambda *step: steps.append(step))
    for part in ("train", "test"):
        assert np.array_equal(getattr(source, f"x_{part}"), x[part])
        assert np.array_equal(getattr(source, f"y_{part}"), y[part])
    assert source.class_names[3] == "thing 3"
    assert source.num_classes == edition.classes
    assert isinstance(source.x_train, np.memmap)
    assert not source.x_train.flags.writeable
    assert any(what == f"decoding {edition.name}" and done == total for done, total, what in steps)


def test_the_folder_or_archive_itself_may_be_named(tmp_path, edition, contents):
    root = put_folder(tmp_path, edition, contents[0])
    put_archive(tmp_path, edition, contents[0])
    for place in (root / edition.folder, root / edition.archive):
        assert np.array_equal(load_edition(published(edition, root), place).x_test, contents[1]["test"])


def change(part, how):
    """Alter the first file of a part of the edition."""

    def alter(files, edition):
        name = edition.names if part == "names" else next(iter(getattr(edition, part)))
        return files | {name: how(files[name], edition)}

    return alter


WRONG = {
    "truncated": (change("train", lambda d, e: d[:-1]), "bytes, got"),
    "one record less": (change("train", lambda d, e: d[: -e.record_bytes]), "bytes, got"),
    "one record more": (change("test", lambda d, e: d + d[: e.record_bytes]), "bytes, got"),
    "empty": (change("test", lambda d, e: b""), "bytes, got 0"),
    "label out of range": (
        change("test", lambda d, e: d[: e.label_bytes - 1] + bytes([e.classes]) + d[e.label_bytes :]),
        "record 0: expected a label",
    ),
    "names too few": (change("names", lambda d, e: d[d.index(b"\n") + 1 :]), "class names"),
    "names twice": (change("names", lambda d, e: d.replace(b"thing 1\n", b"thing 0\n")), "occurs twice"),
    "names no text": (change("names", lambda d, e: b"\xff" + d), "expected class names as UTF-8 text"),
}


@pytest.mark.parametrize("form", PUT)
@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(tmp_path, edition, contents, case, form):
    alter, message = WRONG[case]
    root = PUT[form](tmp_path / "set", edition, alter(contents[0], edition))
    with pytest.raises(DataError, match=message) as caught:
        load_edition(published(edition, root), root)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path, edition, contents):
    files = dict(contents[0])
    lost = next(iter(edition.test))
    del files[lost]
    with pytest.raises(DataError, match=lost):
        load_edition(edition, put_folder(tmp_path / "set", edition, files))


def test_other_members_are_not_looked_at(tmp_path, edition, contents):
    strange = [("../../evil", b"x"), ("/etc/evil", b"x"), (f"x/{edition.folder}/{edition.names}", b"wrong")]
    root = put_archive(tmp_path / "a", edition, contents[0], strange)
    assert load_edition(published(edition, root), root).class_names[0] == "thing 0"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("cut", [None, 10, -10, 2000])
def test_an_archive_that_is_not_the_published_one_is_refused(tmp_path, edition, contents, cut):
    path = put_archive(tmp_path / "a", edition, contents[0]) / edition.archive
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError) as caught:
        load_edition(edition, tmp_path / "a")
    what = f"{path}: expected the published SHA-256 {edition.sha256}, got {digest_file(path)}"
    assert str(caught.value) == f"{what}; remove it and run `fedrela data fetch {edition.name}`"


@pytest.mark.parametrize(("name", "pickled"), [("cifar10", "cifar-10-batches-py"), ("cifar100", "cifar-100-python")])
def test_the_pickled_edition_alone_is_told_so(tmp_path, name, pickled):
    (tmp_path / pickled).mkdir()
    with pytest.raises(DataError, match=f"{pickled} is the pickled Python edition.*fedrela data fetch {name}"):
        load(name, tmp_path)


def test_nothing_there_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError, match=r"put cifar-10-binary\.tar\.gz .* or run `fedrela data fetch cifar10`"):
        load("cifar10", tmp_path)


def test_the_real_edition_has_the_real_sizes(tmp_path, noise):
    put_folder(tmp_path, CIFAR100, {"train.bin": b"", "test.bin": b"", "fine_label_names.txt": b""})
    with pytest.raises(DataError, match=r"train\.bin: expected 153700000 bytes, got 0"):
        load("cifar100", tmp_path)
