"""The sparse frame: the official first steps, its geometry, and its cache."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrela.errors import ArgumentError
from fedrela.models.heads import sparse_etf
from fedrela.models.sparse_etf import spread_apart, zero_positions
from goldens.frames_and_losses import load
from helpers import batteries


@pytest.fixture
def golden(request):
    return load("fedloge_sse_c", request.config.getoption("--goldens"))


def off_diagonal(S: torch.Tensor) -> np.ndarray:
    unit = (S / S.norm(dim=0)).double()
    gram = (unit.T @ unit).numpy()
    return gram[~np.eye(len(gram), dtype=bool)]


def test_official_first_steps(golden):
    zeros = torch.from_numpy(golden["zero_flat_indices"]).long()
    options = {"lr": float(golden["adam_lr"]), "norm": float(golden["norm_target"])}
    S = spread_apart(torch.from_numpy(golden["M0"]), zeros, steps=50, **options)
    np.testing.assert_allclose(S.numpy(), golden["S_50steps"], atol=1e-6, rtol=0)
    np.testing.assert_array_equal(np.flatnonzero(S.numpy() == 0), np.sort(golden["zero_flat_indices"]))


@pytest.mark.parametrize(("features", "classes", "zeros"), [(512, 100, 30_720), (512, 10, 3072), (64, 10, 384)])
def test_number_of_zeros(features, classes, zeros):
    positions = zero_positions(features, classes, 0.6, seed=1)
    assert len(np.unique(positions)) == zeros
    S = sparse_etf(features, classes, seed=1, steps=3)
    np.testing.assert_array_equal(np.flatnonzero(S.numpy() == 0), positions)


def test_steps_spread_the_columns_apart():
    start, later = (sparse_etf(32, 6, seed=0, steps=steps) for steps in (0, 300))
    assert off_diagonal(later).max() < off_diagonal(start).max() - 0.02
    assert np.array_equal(start.numpy() == 0, later.numpy() == 0)


def test_ten_thousand_steps(golden):
    """Norms and angles of specification 5.7, from the official start and from one of ours."""
    if not batteries.NIGHTLY:
        pytest.skip("20,000 steps: nightly only")
    zeros = torch.from_numpy(golden["zero_flat_indices"]).long()
    official = spread_apart(torch.from_numpy(golden["M0"]), zeros, steps=10_000)
    for S, more in ((official, 1), (sparse_etf(64, 10, seed=7), 3)):  # chaotic: the official range, and a little more
        norms, cosines = S.norm(dim=0), off_diagonal(S)
        assert (S == 0).sum() == 384
        assert 0.10014 - 5e-5 * more < norms.min() <= norms.max() < 0.10057 + 5e-5 * more
        assert -0.11253 - 5e-4 * more < cosines.min() <= cosines.max() < -0.11015 + 5e-4 * more


def test_cache(tmp_path, monkeypatch):
    options = {"seed": 2, "steps": 20, "cache": tmp_path / "frames"}
    first = sparse_etf(16, 4, **options)
    (file,) = (tmp_path / "frames").iterdir()
    assert torch.equal(first, sparse_etf(16, 4, seed=2, steps=20))

    def never(*_, **__):
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr("fedrela.models.sparse_etf.spread_apart", never)
        assert torch.equal(sparse_etf(16, 4, **options), first)
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], whole[:-4], b"\x80\x04K\x01."):
        file.write_bytes(damaged)
        assert torch.equal(sparse_etf(16, 4, **options), first)
        assert file.read_bytes() == whole
    for other in ({"seed": 3}, {"steps": 21}, {"beta": 0.5}, {"lr": 1e-3}, {"norm": 0.2}):
        assert not torch.equal(sparse_etf(16, 4, **(options | other)), first)
    assert len(list((tmp_path / "frames").iterdir())) == 6


def test_the_global_generator_and_the_threads_are_left_alone():
    before = torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        S = sparse_etf(64, 10, seed=0, steps=30)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(S, sparse_etf(64, 10, seed=0, steps=30))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_column_is_ever_empty():
    for seed in range(20):
        S = sparse_etf(4, 4, seed=seed, steps=2)
        assert S.abs().amax(dim=0).min() > 0
        assert torch.isfinite(S).all()
    with pytest.raises(ArgumentError, match=r"^beta: 0.99 leaves a column of 4 x 4 without a value; lower it$"):
        sparse_etf(4, 4, seed=0, beta=0.99)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 1.0}, "^beta: expected a number >= 0 and < 1, got 1.0$"),
        ({"steps": -1}, "^steps: expected at least 0, got -1$"),
        ({"norm": "x"}, "^norm: expected a number >= 0, got 'x'$"),
        ({"lr": float("nan")}, "^lr: expected a number >= 0, got nan$"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        sparse_etf(8, 4, seed=0, **options)
