"""The real files, where they are: known channel means and counts. Where they are not, this says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedrela.data.sources import fashion_mnist, load
from fedrela.testing.sources import doubled_share


def skip_aloud(what: str, how: str) -> None:
    pytest.skip(f"WARNING: {what} was NOT checked on real bytes: {how}")


def channel_means(x: np.ndarray) -> list[float]:
    return (x.mean(axis=(0, 2, 3), dtype=np.float64) / 255).tolist()


def test_fashion_mnist_of_debian(own_cache):
    if not fashion_mnist.DEBIAN.is_dir():
        skip_aloud("Fashion-MNIST", "install Debian's package dataset-fashion-mnist")
    source = load("fashion_mnist", fashion_mnist.DEBIAN)
    assert (source.x_train.shape, source.x_test.shape) == ((60_000, 1, 28, 28), (10_000, 1, 28, 28))
    assert channel_means(source.x_train) == pytest.approx([0.28604], abs=5e-6)
    assert channel_means(source.x_test) == pytest.approx([0.28685], abs=5e-6)
    assert np.bincount(source.y_train).tolist() == [6_000] * 10
    assert np.bincount(source.y_test).tolist() == [1_000] * 10


@pytest.mark.parametrize(
    ("name", "folder", "means", "classes"),
    [
        ("cifar10", "cifar-10-batches-bin", [0.49140, 0.48216, 0.44653], 10),
        ("cifar100", "cifar-100-binary", [0.50708, 0.48655, 0.44092], 100),
    ],
)
def test_cifar(own_cache, request, name, folder, means, classes):
    real = request.config.getoption("--real-data")
    archive = {"cifar10": "cifar-10-binary.tar.gz", "cifar100": "cifar-100-binary.tar.gz"}[name]
    if not real or not any((Path(real) / place).exists() for place in (folder, archive)):
        skip_aloud(name, f"run pytest with --real-data and a folder with {folder} or {archive}")
    source = load(name, real)
    assert (source.x_train.shape, source.x_test.shape) == ((50_000, 3, 32, 32), (10_000, 3, 32, 32))
    assert channel_means(source.x_train) == pytest.approx(means, abs=5e-6)
    assert np.bincount(source.y_train).tolist() == [50_000 // classes] * classes
    assert np.bincount(source.y_test).tolist() == [10_000 // classes] * classes
    assert doubled_share(source) < 0.01
    assert source.class_names[0] == {"cifar10": "airplane", "cifar100": "apple"}[name]
