"""Shared memory: where it lies, who sees it, what is left of it; rows of named arrays, and nothing undeclared."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.algorithms.base import ArraySpec
from fedrela.engine import shared_memory
from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.worker import dumps, loads
from fedrela.engine.shared_memory import (
    ALIGNMENT,
    SHARED_MEMORY,
    Block,
    SharedArrays,
    SharedMemory,
    _offsets,
    copy_declared,
)
from fedrela.errors import ArgumentError, IntegrityError
from fedrela.files import mapped
from helpers import toy_work
from helpers.batteries import examples

needs_shared_memory = pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="this system has no shared memory folder")


def device(place):
    return os.stat(place).st_dev


def script(code, *args):
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=60)


def test_a_block_is_zeros_and_its_arrays_are_views_of_it():
    with closing(Block.create(64)) as block:
        whole, part = block.array(0, (8,), np.int64), block.array(8, (2, 3), "int64")
        assert not whole.any()
        part[:] = [[1, 2, 3], [4, 5, 6]]
        assert whole.tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
        assert Block(loads(dumps(block.region))).array(0, (8,), np.int64).tolist() == whole.tolist()


@needs_shared_memory
def test_a_small_block_lies_in_shared_memory_and_a_large_one_in_the_folder(tmp_path):
    small, large = Block.create(4096, folder=tmp_path, limit=4096), Block.create(4097, folder=tmp_path, limit=4096)
    assert small.region.identity[0] == device(SHARED_MEMORY)
    assert large.region.identity[0] == device(tmp_path)
    large.array(0, (4097,), np.uint8)[:] = 7
    assert list(tmp_path.iterdir()) == []  # no name, so nothing to leave behind
    small.close(), large.close()


@pytest.mark.parametrize("room", [0, 4095])
def test_without_room_in_shared_memory_a_block_is_a_file(tmp_path, monkeypatch, room):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=room))
    with closing(Block.create(4096, folder=tmp_path / "new")) as block:
        assert block.region.identity[0] == device(tmp_path / "new")


def test_where_shared_memory_fails_a_block_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", tmp_path / "file" / "below")
    with closing(Block.create(4096, folder=tmp_path)) as block:
        assert block.region.identity[0] == device(tmp_path)


def test_where_there_is_no_shared_memory_a_block_is_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", tmp_path / "missing")
    with closing(Block.create(4096, folder=tmp_path)) as block:
        assert block.region.identity[0] == device(tmp_path)
    assert not (tmp_path / "missing").exists()


def test_a_block_that_finds_no_room_anywhere_is_one_line(tmp_path):
    done = script(
        "import resource, sys; from fedrela.engine.shared_memory import Block\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try: Block.create(1 << 21, folder=sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error)\n",
        tmp_path,
    )
    assert done.stdout == (
        f"DataError {tmp_path}: cannot store 2097152 bytes: File too large; choose another folder\n"
    ), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("offset", "shape"), [(57, (1,)), (-8, (1,)), (0, (3, 3))])
def test_an_array_outside_the_block_is_refused(offset, shape):
    with closing(Block.create(64)) as block, pytest.raises(ValueError, match="buffer"):
        block.array(offset, shape, np.float64)


def test_an_empty_block_is_no_special_case():
    with closing(Block.create(0)) as block:
        assert block.array(0, (0, 5), np.float32).shape == (0, 5)


def test_arrays_outlive_their_block_and_a_closed_block_gives_no_more():
    block = Block.create(8)
    array = block.array(0, (8,), np.uint8)
    array[:] = 5
    block.close()
    block.close()
    assert array.tolist() == [5] * 8
    with pytest.raises(ArgumentError, match="closed"):
        block.array(0, (8,), np.uint8)


def test_a_closed_block_cannot_be_attached_even_if_another_file_took_its_number(tmp_path):
    block = Block.create(8)
    block.close()
    with pytest.raises(IntegrityError, match="share it again"):
        Block(block.region)
    with contextlib.ExitStack() as taken:
        for number in range(32):
            taken.enter_context(open(tmp_path / str(number), "wb+"))
        with pytest.raises(IntegrityError, match="share it again"):
            Block(block.region)


def test_a_process_may_end_with_arrays_and_blocks_open():
    done = script(
        "import numpy; from fedrela.engine.shared_memory import Block, SharedMemory\n"
        "block = Block.create(100); array = block.array(0, (100,), 'uint8'); again = Block(block.region)\n"
        "view = again.array(50, (50,), 'uint8')\n"
        "memory = SharedMemory(); handle = memory.share(numpy.arange(9)); read = handle.open()\n"
        "block.close()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_killed_owner_leaves_nothing(tmp_path):
    code = (
        "import os, sys; from fedrela.engine.shared_memory import Block\n"
        "a, b = Block.create(1 << 16, folder=sys.argv[1]), Block.create(1 << 16, folder=sys.argv[1], limit=0)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path]) as owner:
        assert owner.wait() == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []
    if SHARED_MEMORY.is_dir():
        assert [name for name in os.listdir(SHARED_MEMORY) if f"-{owner.pid}-" in name] == []


@pytest.mark.parametrize("end", ["close", "forget"])
def test_without_a_folder_of_descriptors_a_block_keeps_its_name_until_the_end(tmp_path, monkeypatch, end):
    monkeypatch.setattr(mapped, "DESCRIPTORS", tmp_path / "missing")
    block = Block.create(8, folder=tmp_path, limit=0)
    assert [str(path) for path in tmp_path.iterdir()] == [block.region.path]
    Block(block.region).array(0, (8,), np.uint8)[:] = 3
    assert block.array(0, (8,), np.uint8).tolist() == [3] * 8
    if end == "close":
        block.close()
    del block
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def on_disk(folder, mode="r"):
    np.save(folder / "a.npy", np.arange(60, dtype=np.int16).reshape(10, 6))
    return np.load(folder / "a.npy", mmap_mode=mode)


@pytest.mark.parametrize(
    "pick",
    [
        lambda array: array,
        lambda array: array[3:7],
        lambda array: array[2:][4, 1:3],
        lambda array: np.asarray(array)[1:],
        lambda array: array.reshape(5, 12)[2],
        lambda array: array.view(np.uint8)[1],
    ],
)
def test_a_mapped_array_is_shared_by_its_file(tmp_path, pick):
    array = pick(on_disk(tmp_path))
    handle = SharedMemory().share(array)
    assert Path(handle.region.path) == tmp_path / "a.npy"
    result = loads(dumps(handle)).open()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)
    assert not result.flags.writeable


def changed(array):
    array[0, 0] = 99
    return array


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: np.arange(12.0).reshape(3, 4).T,
        lambda folder: on_disk(folder)[:, ::2],
        lambda folder: on_disk(folder)[:0],
        lambda folder: on_disk(folder)[[1, 2]],
        lambda folder: changed(on_disk(folder, "c")),
        lambda folder: np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
        lambda folder: np.array(7),
    ],
    ids=["memory", "gaps", "empty", "gathered", "copy on write", "records", "scalar"],
)
def test_any_other_array_is_copied_once(tmp_path, make):
    array = make(tmp_path)
    memory = SharedMemory()
    handle = memory.share(array)
    assert Path(handle.region.path) != tmp_path / "a.npy"
    sent = loads(dumps(handle))
    assert sent == handle
    result = sent.open()
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(result, array)
    assert not result.flags.writeable
    memory.close()
    with pytest.raises(IntegrityError):
        sent.open()


def test_a_file_removed_replaced_or_cut_since_is_noticed(tmp_path):
    array = on_disk(tmp_path)
    memory = SharedMemory()
    handle = memory.share(array)
    (tmp_path / "b.npy").write_bytes((tmp_path / "a.npy").read_bytes())
    os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
    with pytest.raises(IntegrityError, match=r"a\.npy"):
        handle.open()
    os.truncate(tmp_path / "a.npy", 100)
    with pytest.raises(IntegrityError, match=r"a\.npy: expected 248 bytes, got 100"):
        memory.share(array)
    (tmp_path / "a.npy").unlink()
    handle = memory.share(array)
    np.testing.assert_array_equal(handle.open(), array)


def test_an_array_of_objects_is_refused():
    with pytest.raises(ArgumentError, match="plain values"):
        SharedMemory().share(np.array(["text", None], dtype=object))


def test_workers_read_shared_arrays(tmp_path):
    arrays = {"mapped": on_disk(tmp_path)[2:5], "memory": np.arange(5.0)}
    memory = SharedMemory()
    handles = {name: memory.share(array) for name, array in arrays.items()}
    with Pool(2) as pool:
        pool.load(toy_work.Work(toy_work.read, handles))
        done = list(pool.run([*arrays, *arrays]))
    assert {one.position: one.value for one in done} == dict(enumerate(2 * [a.tolist() for a in arrays.values()]))


FORMS = st.tuples(
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.sampled_from(["float32", "float64", "int64", "bool", "int8"]),
)
SPECS = st.dictionaries(st.text("abc", min_size=1, max_size=3), FORMS, min_size=1, max_size=5)


def specs_of(forms):
    return {name: ArraySpec(shape, dtype) for name, (shape, dtype) in forms.items()}


@examples(60, 2000)
@given(SPECS, st.integers(1, 4), st.integers(0, 99))
def test_rows_do_not_touch_each_other(forms, count, seed):
    specs, rng = specs_of(forms), np.random.default_rng(seed)
    shared = SharedArrays.create(specs, count)
    other = SharedArrays.attach(shared.handle)
    written = []
    for row in range(count):
        arrays = {name: rng.integers(0, 2, spec.shape).astype(spec.dtype) for name, spec in specs.items()}
        copy_declared("here", shared.row(row), arrays, specs)
        written.append(arrays)
    for row, arrays in enumerate(written):
        for name, found in other.row(row).items():
            assert found.dtype == specs[name].dtype
            assert found.tolist() == arrays[name].tolist()
    shared.close()


@examples(60, 2000)
@given(SPECS)
def test_every_array_begins_at_a_cache_line(forms):
    specs = specs_of(forms)
    offsets, row_bytes = _offsets(specs)
    ends = [offsets[name] + spec.nbytes for name, spec in specs.items()]
    starts = [*list(offsets.values())[1:], row_bytes]
    assert all(end <= start < end + ALIGNMENT for end, start in zip(ends, starts, strict=True))
    assert all(offset % ALIGNMENT == 0 for offset in [*offsets.values(), row_bytes])


DECLARED = {"a": ArraySpec((2,)), "b": ArraySpec((), "int64")}
GIVEN = {"a": np.ones(2, "f4"), "b": np.array(3)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c": np.ones(1)}, "here: 'c' is not declared"),
        ({"b": None}, "here: 'b' is declared but missing"),
        (
            {"a": np.ones(2)},
            "here: 'a': expected float32 of shape \\(2,\\), got float64 of shape \\(2,\\)",
        ),
        ({"a": np.ones((1, 2), "f4")}, "here: 'a': .* got float32 of shape \\(1, 2\\)"),
        ({"a": np.ones((), "f4")}, "here: 'a': .* got float32 of shape \\(\\)"),
        ({"b": 3.0}, "here: 'b': expected int64 of shape \\(\\), got float64 of shape \\(\\)"),
    ],
)
def test_what_is_not_as_declared(change, message):
    arrays = {name: array for name, array in (GIVEN | change).items() if array is not None}
    target = {"a": np.zeros(2, "f4"), "b": np.zeros((), "int64")}
    with pytest.raises(ArgumentError, match=message):
        copy_declared("here", target, arrays, DECLARED)


def test_a_number_will_do_for_an_array_without_dimensions():
    target = {"a": np.zeros(2, "f4"), "b": np.zeros((), "int64")}
    copy_declared("here", target, GIVEN | {"b": 7}, DECLARED)
    assert target["b"] == 7
    assert target["a"].tolist() == [1, 1]
