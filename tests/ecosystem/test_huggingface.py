"""Data sets of Hugging Face from disk, and partitions of flwr-datasets, each in an environment of its own."""

from __future__ import annotations

import importlib.util
import json

import pytest

from fedrela.data.sources import load
from fedrela.errors import ArgumentError
from helpers.environments import run_in

NAME = "fedrela.data.sources.huggingface:load"
WRITE = """
import json, sys
from pathlib import Path
import datasets, numpy as np
from PIL import Image, ImageOps
from fedrela.data.sources import load
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment import run
from fedrela.testing import check_source

folder, name = Path(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
labels = rng.permutation(np.repeat([0, 1, 2], [90, 40, 10]))
table = datasets.Dataset.from_dict(
    {"a": labels + rng.normal(size=140), "b": rng.normal(size=140), "note": ["x"] * 140, "ward": labels % 2,
     "label": labels},
    features=datasets.Features({"a": datasets.Value("float32"), "b": datasets.Value("float64"),
        "note": datasets.Value("string"), "ward": datasets.Value("int64"),
        "label": datasets.ClassLabel(names=["cat", "dog", "owl"])}),
)
table.save_to_disk(folder / "table")
"""
ALONE = """
pictures = [Image.fromarray(rng.integers(0, 255, (9, 7, 3), np.uint8)) for _ in range(30)]
images = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1] * 15}).cast_column("image", datasets.Image())
datasets.DatasetDict({"train": images, "test": images.select(range(8))}).save_to_disk(folder / "images")
one, two = load(name, folder / "table"), load(name, folder / "images", size=8)
check_source(lambda: load(name, folder / "table"))
result = run({"data": {"source": name, "root": str(folder / "table"), "partition": {"kind": "iid", "clients": 3}},
    "model": {"name": "logistic"}, "train": {"rounds": 3}, "relabel": {"start": 2}}, out=folder / "run", workers=1)
refused = []
for kind, wrong in {"deep": Image.fromarray(np.full((9, 7), 40_000, np.uint16)), "missing": None}.items():
    bad = datasets.Dataset.from_dict({"image": [*pictures[:9], wrong], "label": [0, 1] * 5})
    bad = bad.cast_column("image", datasets.Image())
    datasets.DatasetDict({"train": bad, "test": bad}).save_to_disk(folder / kind)
    try:
        load(name, folder / kind, size=8)
    except DataError as error:
        refused.append(str(error).split(": ", 1)[1])
datasets.Dataset.from_dict({"id": range(2**24, 2**24 + 120), "label": [0, 1] * 60}).save_to_disk(folder / "ids")
try:
    load(name, folder / "ids")
except DataError as error:
    refused.append(str(error).split(": ", 1)[1])
whole = load(name, folder / "table", test_share=0)
refused.append([whole.y_train.tolist() == labels.tolist(), len(whole.y_test)])
try:
    load(name, folder / "table", partitioner="iid")
except ArgumentError as error:
    centre = ImageOps.fit(pictures[3], (8, 8), Image.Resampling.BILINEAR)
    same = (two.x_test[3] == np.moveaxis(np.asarray(centre), 2, 0)).all().item()
    print(json.dumps([one.class_names, one.feature_names, len(one.y_train), two.x_train.shape, two.x_test.shape, same,
        result.rounds, str(error), *refused]))
"""
PARTITIONED = """
def sizes(**options):
    ids = load(name, folder / "table", **options).client_train
    return np.bincount(ids).tolist()
by_ward = load(name, folder / "table", partitioner="natural_id", partition_by="ward")
wards = [sorted(set((by_ward.y_train[by_ward.client_train == ward] % 2).tolist())) for ward in (0, 1)]
result = run({"data": {"source": name, "root": str(folder / "table"),
    "options": {"partitioner": "iid", "partitions": 3}, "partition": {"kind": "natural"}},
    "model": {"name": "logistic"}, "train": {"rounds": 3}, "relabel": {"start": 2}}, out=folder / "run", workers=1)
skewed = sizes(partitioner="dirichlet", partitions=4, alpha=1.0)
table.sort("label").save_to_disk(folder / "sorted")
before = sorted((folder / "sorted").iterdir())
mixed = [load(name, folder / "sorted", partitioner="iid", partitions=2, seed=seed, test_share=0) for seed in (0, 0, 1)]
classes = [len(set(mixed[0].y_train[mixed[0].client_train == client].tolist())) for client in (0, 1)]
repeated = [bool((mixed[0].client_train == other.client_train).all()) for other in mixed]
unchanged = before == sorted((folder / "sorted").iterdir())
print(json.dumps([len(skewed), sum(skewed), len(sizes(partitioner="iid", partitions=5)), wards, result.rounds,
    np.bincount(mixed[0].client_train).tolist(), classes, repeated, unchanged]))
"""


def test_without_the_package_one_line_says_so(tmp_path):
    if importlib.util.find_spec("datasets"):
        pytest.skip("datasets is installed")
    with pytest.raises(ArgumentError, match=r"^datasets: is not installed; run `pip install datasets`$"):
        load(NAME, tmp_path)


@pytest.mark.parametrize(("wrong", "message"), [({"channels": 2}, "channels: expected 1"), ({"size": 0}, "size: ")])
def test_a_size_or_number_of_channels_that_no_image_has(tmp_path, wrong, message):
    with pytest.raises(ArgumentError, match=f"^{message}"):
        load(NAME, tmp_path, **wrong)


@pytest.fixture(autouse=True)
def _nightly(request):
    if "found" in request.fixturenames and not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in an environment of its own")


@pytest.fixture
def found(request, tmp_path) -> list:
    packages, script = request.param
    return json.loads(run_in(packages[-1], packages, WRITE + script, tmp_path, NAME).splitlines()[-1])


@pytest.mark.parametrize("found", [(["datasets"], ALONE)], indirect=True, ids=["datasets"])
def test_tables_and_images(found):
    message = "partitioner: flwr-datasets: is not installed; run `pip install flwr-datasets`"
    deep = "column 'image': image 9: expected 8 bits per channel, got mode I;16; convert it first"
    missing = "column 'image': image 9: is missing"
    assert found[:5] == [["cat", "dog", "owl"], ["a", "b", "ward"], 112, [30, 3, 8, 8], [8, 3, 8, 8]]
    rounded = "column 'id': 32-bit numbers cannot tell its values apart; subtract the smallest of them"
    assert found[5:] == [True, 3, message, deep, missing, rounded, [True, 0]]


@pytest.mark.parametrize("found", [(["datasets", "flwr-datasets"], PARTITIONED)], indirect=True, ids=["flwr-datasets"])
def test_partitions(found):
    assert found == [4, 112, 5, [[0], [1]], 3, [70, 70], [3, 3], [True, True, False], True]
