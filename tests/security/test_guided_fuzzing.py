"""B14: ledgers, checkpoints, configurations and Flower's messages: cut bytes, and nightly those that Atheris finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.batteries import count, tried
from security import guided_fuzzing
from security.guided_fuzzing import TARGETS

SEED = 19


@pytest.mark.parametrize("name", TARGETS)
def test_sound_bytes_pass_through_a_target_and_damaged_ones_are_refused(name, fast_folder):
    if name == "flower":
        pytest.importorskip("flwr", reason="the extra flower is not installed")
    target, seeds = TARGETS[name](fast_folder)
    for seed in seeds:
        for data in (seed, seed[:-1], seed[: len(seed) // 2], seed + b"x", seed[:1], b""):
            target(data)
            tried()


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_an_error_of_ours_comes_of_any_bytes(name, fast_folder):
    runs = count(0, 20_000)
    if not runs:
        pytest.skip("in the nightly battery")
    if find_spec("atheris") is None:
        pytest.skip("Atheris is not installed: pip install atheris")
    (fast_folder / "corpus").mkdir()
    (fast_folder / "scratch").mkdir()
    command = [sys.executable, guided_fuzzing.__file__, name, fast_folder / "scratch", fast_folder / "corpus"]
    options = [f"-runs={runs}", f"-seed={SEED}", "-timeout=60", "-max_len=20000", "-rss_limit_mb=8000"]
    paths = [str(Path(__file__).parents[1]), *sys.path]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, errors="replace", timeout=5400,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    finished = re.search(r"Done (\d+) runs", done.stderr)
    assert (done.returncode, bool(finished)) == (0, True), (done.stdout + done.stderr)[-3000:]
    tried(int(finished[1]))
    grown = re.findall(r"cov: (\d+)", done.stderr)
    assert int(grown[-1]) > int(grown[0])  # the feedback has led somewhere
