"""Data sets of Hugging Face from disk, and partitions of flwr-datasets, in an environment of their own."""

from __future__ import annotations

import importlib.util
import json

import pytest

from fedrela.data.sources import load
from fedrela.errors import ArgumentError
from helpers.environments import run_in

NAME = "fedrela.data.sources.huggingface:load"
SCRIPT = """
import json, sys
from pathlib import Path
import datasets, numpy as np
from PIL import Image
from fedrela.data.sources import load
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
pictures = [Image.fromarray(rng.integers(0, 255, (9, 7, 3), np.uint8)) for _ in range(30)]
images = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1] * 15}).cast_column("image", datasets.Image())
datasets.DatasetDict({"train": images, "test": images.select(range(8))}).save_to_disk(folder / "images")
one = load(name, folder / "table", partitioner="dirichlet", partitions=4, alpha=1.0)
two = load(name, folder / "images", size=8)
natural = load(name, folder / "table", partitioner="natural_id", partition_by="ward")
check_source(lambda: load(name, folder / "table"))
result = run({"data": {"source": name, "root": str(folder / "table"),
    "options": {"partitioner": "iid", "partitions": 3}, "partition": {"kind": "natural"}},
    "model": {"name": "logistic"}, "train": {"rounds": 3}, "relabel": {"start": 2}}, out=folder / "run", workers=1)
print(json.dumps([one.class_names, one.feature_names, len(one.y_train), len(set(one.client_train.tolist())),
    two.x_train.shape, two.x_test.shape, len(set(natural.client_train.tolist())), result.rounds]))
"""


def test_without_the_package_one_line_says_so(tmp_path):
    if importlib.util.find_spec("datasets"):
        pytest.skip("datasets is installed")
    with pytest.raises(ArgumentError, match=r"^datasets: is not installed; run `pip install datasets`$"):
        load(NAME, tmp_path)


def test_tables_images_and_partitions(tmp_path, request):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in an environment of its own")
    found = json.loads(run_in("datasets", ["datasets", "flwr-datasets"], SCRIPT, tmp_path, NAME).splitlines()[-1])
    assert found == [["cat", "dog", "owl"], ["a", "b", "ward"], 112, 4, [30, 3, 8, 8], [8, 3, 8, 8], 2, 3]
