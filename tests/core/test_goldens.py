"""The official implementation's own numbers: labels exact; z, thresholds and rates to 1e-10."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fedrela
from fedrela.core import equations as eq
from goldens.reduce import CASES

TAUS = (1, 5, 10, 20)
OFFICIAL_MOVES = {
    "c10_n500": (21, 62, 92, 144), "tiny_n37": (0, 3, 10, 13), "single_class_n60": (0, 9, 16, 22),
    "constant_n80": (0, 0, 0, 0), "equal_freq_n100": (0, 0, 0, 0),
}  # fmt: skip


@pytest.fixture(params=CASES)
def golden(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    folder = request.config.getoption("--goldens") or Path(__file__).parents[1] / "goldens"
    with np.load(Path(folder) / f"fedrela_{request.param}.npz") as file:
        arrays = dict(file)
    if "U" not in arrays:
        arrays["U"] = np.full(arrays["Q32"].shape, 0.999999)
        arrays["U"].ravel()[arrays["U_at"]] = arrays["U_value"]
    return arrays | {"case": request.param}


def rows(golden: dict[str, np.ndarray], array: np.ndarray) -> np.ndarray:
    return array[:: golden.get("step", 1)]


def all_scores(golden: dict[str, np.ndarray], spread: str) -> np.ndarray:
    groups = eq.ClassGroups.of(golden["y"], np.bincount(golden["y"], minlength=golden["Q32"].shape[1]))
    z = np.empty(golden["Q32"].shape)
    z[groups.order] = eq.z_scores(golden["Q32"].astype(float)[groups.order].T.copy(), groups, spread)[0].T
    return z


@pytest.mark.parametrize(("spread", "key"), [("population", "off64_z"), ("sample", "paper_z")])
def test_scores(golden, spread, key):
    np.testing.assert_allclose(rows(golden, all_scores(golden, spread)), golden[key], atol=1e-10, rtol=0)


@pytest.mark.parametrize("tau", TAUS)
def test_official(golden, tau):
    done = fedrela.relabel(golden["Q32"], golden["y"], tau=tau / 100, preset="official", uniforms=golden["U"])
    np.testing.assert_array_equal(done.labels, golden[f"off64_label_{tau}"])
    np.testing.assert_allclose(done.threshold, golden[f"off64_thr_{tau}"], atol=1e-10, rtol=0)
    np.testing.assert_allclose(done.weights, golden["off64_priors"], atol=1e-15)
    if f"off64_flip_{tau}" in golden:
        flip = np.maximum(golden[f"off64_flip_{tau}"], 0)
        np.testing.assert_allclose(rows(golden, done.rho), flip, atol=1e-10, rtol=0)
    if golden["case"] in OFFICIAL_MOVES:
        assert len(done.ledger) == OFFICIAL_MOVES[golden["case"]][TAUS.index(tau)]


@pytest.mark.parametrize("tau", TAUS)
def test_paper_with_interpolated_quantile(golden, tau):
    done = fedrela.relabel(golden["Q32"], golden["y"], tau=tau / 100, threshold="linear", uniforms=golden["U"])
    np.testing.assert_array_equal(done.labels, golden[f"paper_label_{tau}"])
    np.testing.assert_allclose(done.threshold, golden[f"paper_thr_{tau}"], atol=1e-10, rtol=0)
    if golden["case"] != "equal_freq_n100":  # equal counts: the paper's minmax is 0/0; see class_weights
        np.testing.assert_allclose(done.weights, golden["paper_varpi"], atol=1e-15)
    if f"paper_rho_{tau}" in golden:
        np.testing.assert_allclose(rows(golden, done.rho), golden[f"paper_rho_{tau}"], atol=1e-10, rtol=0)


def test_expected_number_of_moves():
    with np.load(Path(__file__).parents[1] / "goldens" / "fedrela_c10_n500.npz") as golden:
        table = fedrela.preview(golden["Q32"], golden["y"], taus=[0.05], preset="official")
    assert table.total[0] == pytest.approx(64.2406, abs=5e-5)


def test_every_difference_can_be_switched_alone(golden):
    """Switching all three from paper to official one by one ends in the official labels."""
    named = {"spread": "population", "threshold": "order", "target": "winner"}
    done = fedrela.relabel(golden["Q32"], golden["y"], tau=0.05, uniforms=golden["U"], **named)
    np.testing.assert_array_equal(done.labels, golden["off64_label_5"])
    back = {"spread": "sample", "threshold": "linear", "target": "argmax"}
    done = fedrela.relabel(golden["Q32"], golden["y"], tau=0.05, uniforms=golden["U"], preset="official", **back)
    np.testing.assert_array_equal(done.labels, golden["paper_label_5"])
