"""Images of floats, time series and token ids through a run; scaling as configured; the examples of both."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fedrela.data.sources import from_arrays, load
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment import run
from fedrela.experiment.build import build_data
from fedrela.experiment.load import config_toml, parse_config
from fedrela.experiment.runner import build_plan
from fedrela.models import inputs
from fedrela.models.inputs import Scaling
from fedrela.report.writing import write_report
from fedrela.testing import check_source

EXAMPLES = Path(__file__).parents[2] / "examples"
RNG = np.random.default_rng(1)
Y = np.repeat([0, 1, 2], [40, 30, 10])
DATA = {"partition": {"kind": "iid", "clients": 2}}


def example(name: str):
    """Return an example as a module that its parts can be found in."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["text", "time_series"])
def test_the_examples_run_and_are_reported(name, tmp_path):
    module = example(name)
    check_source(module.load)
    table = module.config(rounds=3)
    one = run(table, out=tmp_path / "one", workers=1)
    assert one.record == run(table, out=tmp_path / "two", workers=2).record
    assert one.moved > 0
    write_report(tmp_path / "one")


def test_forms_by_dtype_and_shape():
    series = from_arrays(RNG.normal(0, 1, (80, 2, 9)), Y)
    assert (series.x_train.dtype, series.x_train.shape[1:], series.numeric) == (np.float32, (2, 9), None)
    images = from_arrays(RNG.random((80, 5, 5, 3)), Y)
    assert (images.x_train.shape[1:], images.is_image) == ((3, 5, 5), False)
    ids = RNG.integers(0, 50, (80, 7), np.int16)
    assert from_arrays(ids, Y, form="array").x_train.dtype == np.int64
    assert from_arrays(ids, Y).x_train.dtype == np.float32  # two dimensions are a table unless told otherwise
    assert from_arrays(RNG.normal(0, 1, (80, 2, 3, 4, 5)), Y).x_train.ndim == 5
    with pytest.raises(DataError, match="row 3: expected finite numbers"):
        from_arrays(np.where(np.arange(80)[:, None, None] == 3, np.nan, np.ones((80, 2, 2))), Y)
    with pytest.raises(ArgumentError, match="form: expected one of auto, array"):
        from_arrays(ids, Y, form="tokens")


@pytest.mark.parametrize(
    "x", [RNG.integers(0, 9, (80, 4)), RNG.normal(0, 1, (80, 2, 6)).astype("f4")], ids=["ids", "series"]
)
def test_npz_gives_what_from_arrays_gives(x, tmp_path):
    np.savez(tmp_path / "data.npz", x_train=x[::2], y_train=Y[::2], x_test=x[1::2], y_test=Y[1::2])
    read = load("npz", tmp_path / "data.npz", form="array")
    made = from_arrays(x[::2], Y[::2], x[1::2], Y[1::2], form="array")
    np.testing.assert_array_equal(read.x_train, made.x_train)
    assert read.x_train.dtype == made.x_train.dtype


@pytest.mark.parametrize("shape", [(80, 3), (80, 2, 1)])
def test_multi_label_targets_are_refused_by_name(shape, tmp_path):
    y = np.zeros(shape, int)
    with pytest.raises(DataError, match=r"y: multi-label targets of shape .* are not supported"):
        from_arrays(np.zeros((80, 4)), y)
    np.savez(tmp_path / "data.npz", x_train=np.zeros((80, 4)), y_train=y, x_test=np.zeros((80, 4)), y_test=y)
    with pytest.raises(DataError, match=r"y_train: multi-label targets of shape"):
        load("npz", tmp_path / "data.npz")


def scaling_of(table, source=None):
    config = parse_config({"data": {**DATA, **table}})
    assert parse_config(config_toml(config)) == config
    problem, _ = build_plan(config, build_data(config, source=source), nn.Sequential(nn.Flatten(), nn.LazyLinear(10)))
    return problem.scaling


def test_scaling_is_fitted_given_or_left_out():
    assert scaling_of({"scaling": "none"}) == Scaling(pixel_max=16)
    given = scaling_of({"scaling": {"mean": [0.5], "std": [0.25]}})
    assert given == Scaling((8.0,), (4.0,), 16)  # shares of white, which is 16 in the digits
    assert scaling_of({}).mean[0] == pytest.approx(4.9, abs=0.2)


def test_floats_are_fitted_per_channel_over_the_chosen_samples(monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", 777)
    x = RNG.normal([[3.0], [100.0]], [[2.0], [0.5]], (500, 2, 40)).astype("f4")
    index = np.arange(0, 500, 2)
    found = Scaling.fit(x, index)
    chosen = x[index].astype(float)
    assert found.mean == pytest.approx(chosen.mean((0, 2)))
    assert found.std == pytest.approx(chosen.std((0, 2)))
    scaled = found.apply(torch.from_numpy(x[index]))
    assert scaled.mean((0, 2)).tolist() == pytest.approx([0, 0], abs=1e-3)
    assert Scaling.fit(np.full((4, 1, 3), 7.0, "f4")).std == (1.0,)


def test_integers_reach_the_model_as_integers():
    ids = torch.arange(6).reshape(2, 3)
    assert Scaling.fit(ids.numpy()) == Scaling()
    assert Scaling().apply(ids).dtype == torch.int64
    assert Scaling().apply(ids.to(torch.uint8)).dtype == torch.float32


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fitt", "data.scaling: expected one of fit, local, none, or a table"),
        ({"mean": [0.5]}, "data.scaling: expected fit, local, none, or a table"),
        ({"mean": [0.5], "std": [0.0]}, "data.scaling.std: expected a list of numbers above 0"),
        ({"mean": [0.5, 0.5], "std": [0.5]}, "data.scaling: expected as many means as stds"),
        ({"mean": [0.5, 0.5], "std": [0.5, 1]}, "data.scaling: expected one value per channel of samples"),
    ],
)
def test_wrong_scalings(value, message):
    with pytest.raises(ArgumentError, match=message):
        scaling_of({"scaling": value})


def test_networks_of_ours_refuse_integers(tmp_path):
    source = from_arrays(RNG.integers(0, 9, (80, 2, 6)), Y)
    with pytest.raises(ArgumentError, match=r"model\.name: mlp: expected floats, got integer samples"):
        run({"model": {"name": "mlp"}, "data": DATA}, source=source, out=tmp_path / "run", workers=1)


@pytest.mark.parametrize("name", ["fedmix", "smote"])
def test_algorithms_that_mix_samples_refuse_token_ids(name, tmp_path):
    table = example("text").config(rounds=1) | {"algorithm": {"name": name}}
    with pytest.raises(ArgumentError, match=f"{name}: mixes samples, which is impossible with integers"):
        run(table, out=tmp_path / "run", workers=1)
