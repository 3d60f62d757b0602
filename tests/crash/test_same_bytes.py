"""B20, embedded part: the same configuration gives the same bytes, in any process, in whatever order results arrive,
wherever and in whatever environment the process runs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from fedrela.engine.executors.pool import Pool
from fedrela.experiment import begin, resume, run
from helpers.arrivals import Shuffled, Waiting
from helpers.batteries import count
from helpers.tiny_run import difference, everything

CONFIG: dict[str, Any] = {
    "data": {
        "source": "gaussians",
        "options": {"samples": [160, 90, 60, 30, 20], "test_samples": 30, "classes": 5, "dimension": 20},
        "partition": {"kind": "dirichlet", "clients": 6, "alpha": 0.8, "min_size": 12},
        "validation": 0.1,
    },
    "model": {"name": "mlp", "hidden": [32]},
    "train": {"rounds": 4, "epochs": 1, "participation": 0.9},
    "relabel": {"start": 2, "tau": 0.1},
    "engine": {"workers": 1, "checkpoint_every": 2},
}
SEEDS = count(1, 3)


def config(seed: int, **engine: Any) -> dict[str, Any]:
    return CONFIG | {"seed": seed, "engine": CONFIG["engine"] | engine}


def carry_out(seed: int, out: Path, executor: Any = None, **parts: Any) -> None:
    with begin(config(seed), out=out, executor=executor, **parts) as execution:
        assert execution.run.note == ""
        execution.complete()


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """Return what a run in this process gives, by seed."""
    found = {}
    for seed in range(SEEDS + 1):
        path = tmp_path_factory.mktemp("wanted") / "run"
        run(config(seed), out=path)
        found[seed] = everything(path)
    return found


@pytest.fixture(params=range(SEEDS), ids="seed {}".format)
def same(request, wanted, tmp_path):
    """Return a folder for a run, its seed, and a check of what is in the folder afterwards."""
    path = tmp_path / "run"
    yield request.param, path
    assert difference(everything(path), wanted[request.param]) == ""


def test_other_bytes_would_be_noticed(wanted):
    names = [
        "config.toml",
        "gallery.npz",
        "manifest.json",
        "relabelling.json",
        "result.json",
        "rounds.jsonl",
        "checkpoint",
    ]
    ledgers = {name for name in wanted[0] if name.startswith("ledgers/")}
    assert {*names, *ledgers} == set(wanted[0])
    assert len(ledgers) >= 5
    assert set(difference(wanted[0], wanted[SEEDS]).split(", ")) >= {*names, *(ledgers & set(wanted[SEEDS]))}


def test_the_same_run_again(same):
    run(config(same[0]), out=same[1])


@pytest.mark.parametrize("order", range(3))
def test_results_in_any_order(same, order):
    carry_out(*same, Shuffled(order))


@pytest.mark.parametrize("workers", [2, 4])
def test_any_number_of_workers(same, workers):
    run(config(same[0]), out=same[1], workers=workers)


def test_workers_whose_clients_take_their_time(same):
    carry_out(*same, workers=2, algorithm=Waiting())


def test_workers_that_served_another_run_before(same, tmp_path):
    with Pool(2) as pool:
        carry_out(same[0] + 1, tmp_path / "before", pool)
        carry_out(*same, pool)


def test_other_workers_after_an_interruption(same):
    seed, path = same
    with begin(config(seed), out=path, workers=2) as execution:
        assert [done.record.round for done in islice(execution.rounds(), 3)] == [1, 2, 3]
    with resume(path, workers=4) as execution:
        assert execution.run.state.round == 2
        execution.complete()


def test_another_working_directory(same, tmp_path):
    with contextlib.chdir(tmp_path):
        run(config(same[0]), out="run")


def test_other_times_of_checkpoints(same):
    run(config(same[0], checkpoint_every=1), out=same[1])


def test_a_caller_with_two_threads(same):
    former = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(config(same[0]), out=same[1])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(former)


def test_convolutions_in_workers_and_after_an_interruption(tmp_path):
    images = CONFIG["data"] | {"source": "digits", "options": {}}
    network = {"name": "resnet8", "width": 4}
    chosen = CONFIG | {"data": images, "model": network, "train": {"rounds": 3, "epochs": 1, "augment": True}}
    run(chosen, out=tmp_path / "one")
    run(chosen, out=tmp_path / "two", workers=2)
    with begin(chosen, out=tmp_path / "later", workers=2) as execution:
        assert len(list(islice(execution.rounds(), 2))) == 2
    with resume(tmp_path / "later", workers=1) as execution:
        execution.complete()
    one, two, later = (everything(tmp_path / name) for name in ("one", "two", "later"))
    assert (difference(one, two), difference(one, later)) == ("", "")


@pytest.mark.parametrize(
    ("hashes", "threads", "workers"), [(0, 1, (1,)), (1, 2, (1, 2))], ids=["one thread", "two threads"]
)
def test_another_environment(tmp_path, wanted, hashes, threads, workers):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    settings = {"PYTHONHASHSEED": str(hashes), **dict.fromkeys(names, str(threads))}
    environment = os.environ | settings | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, tmp_path, *map(str, (SEEDS, threads, *workers))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    for number in workers:
        for seed in range(SEEDS):
            assert difference(everything(tmp_path / f"{number} {seed}"), wanted[seed]) == ""


def main(folder: Path, seeds: int, threads: int, *workers: int) -> None:
    assert torch.get_num_threads() == threads
    for number in workers:
        for seed in range(seeds):
            run(config(seed), out=folder / f"{number} {seed}", workers=number)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
