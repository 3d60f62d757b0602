"""A result in a notebook and in pandas, and the log of rounds read by pandas itself."""

from __future__ import annotations

import json
import math
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas
import pytest
import torch

from fedrela.errors import ArgumentError
from fedrela.experiment import Result, run
from fedrela.experiment.result import accuracy_line, round_columns
from fedrela.text import percent
from helpers.small_runs import small

torch.set_num_threads(1)
COLUMNS = [
    "round", "overall", "balanced", "macro_f1", "majority", "minority", "loss", "moved",
    "relabelled", "chosen", "admitted", "lost", "skipped",
]  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Result:
    return run(small(), out=tmp_path_factory.mktemp("views") / "run")


def view(result: Result) -> ET.Element:
    return ET.fromstring(result._repr_html_().replace("<br>", "<br/>"))


def test_a_plain_copy(done):
    plain = done.to_dict()
    assert plain == done.record
    plain["accuracy"]["overall"] = 2
    assert done.accuracy["overall"] <= 1


def test_a_row_a_round(done):
    frame, records = done.to_pandas(), done.history()
    assert list(frame.columns) == COLUMNS
    assert frame["round"].tolist() == [1, 2, 3, 4, 5, 6]
    for name in ("overall", "balanced", "macro_f1"):
        assert frame[name].tolist() == [record["accuracy"][name] for record in records]
    assert frame["minority"].tolist() == [record["accuracy"]["groups"]["minority"] for record in records]
    assert frame["loss"].tolist() == [record["loss"] for record in records]
    assert frame["moved"].sum() == done.moved > 0
    assert frame.loc[frame["moved"] > 0, "round"].tolist() == [4]
    assert frame["chosen"].tolist() == frame["admitted"].tolist() == [5] * 6
    assert frame["overall"].iloc[-1] == done.accuracy["overall"]
    assert {str(kind) for kind in frame.dtypes} == {"int64", "float64", "bool"}


def test_what_is_not_known_is_nan_and_validation_samples_have_columns(done):
    record = done.history()[0]
    silent = {**record, "round": 2, "accuracy": None, "loss": None, "moved": None}
    silent |= {"excluded": [[3, "late"], [None, "unknown"]], "skipped": True}
    held = {**record, "round": 3, "validation": {"overall": 0.25, "balanced": None}}
    columns = round_columns([record, silent, held])
    assert [*columns] == [*COLUMNS, "validation_overall", "validation_balanced"]
    assert all(math.isnan(columns[name][1]) for name in ("overall", "balanced", "majority", "loss", "moved"))
    assert columns["lost"] == [0, 2, 0]
    assert columns["skipped"] == [False, True, False]
    assert math.isnan(columns["validation_overall"][0])
    assert columns["validation_overall"][2] == 0.25
    assert math.isnan(columns["validation_balanced"][2])


def test_pandas_reads_the_log_in_one_line(done):
    frame = pandas.read_json(done.folder / "rounds.jsonl", lines=True)
    assert frame["round"].tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["loss"].tolist() == pytest.approx([record["loss"] for record in done.history()])
    assert frame["moved"].sum() == done.moved
    flat = pandas.json_normalize(done.history())
    assert flat["accuracy.groups.minority"].tolist() == done.to_pandas()["minority"].tolist()


def test_without_pandas_one_line_says_what_to_do(done, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match=r"^to_pandas: needs pandas, .* run `pip install pandas`$"):
        done.to_pandas()


def test_the_view_says_what_the_result_says(done):
    root = view(done)
    rows = {row[0].text: row[1].text for row in root.iter("tr")}
    expected = {"overall": done.accuracy["overall"], "balanced": done.accuracy["balanced"], **done.groups}
    assert rows == {"test set": "accuracy", **{name: percent(value) for name, value in expected.items()}}
    words = "".join(root.itertext())
    assert f"{done.moved:,} labels moved; 6 rounds" in words
    assert str(done.folder) in words
    assert "re-labelling in round 4" in words


def test_the_line_has_a_point_a_scored_round_and_the_colour_of_the_text(done):
    markup, records = done._repr_html_(), done.history()
    root = view(done)
    svg = root.find("svg")
    points = [tuple(map(float, pair.split(","))) for pair in svg.find("polyline").get("points").split()]
    heights, values = [y for _, y in points], [record["accuracy"]["overall"] for record in records]
    assert len(points) == 6
    assert [x for x, _ in points] == sorted({x for x, _ in points})
    assert heights.index(min(heights)) == values.index(max(values))  # further up is better
    assert heights.index(max(heights)) == values.index(min(values))
    assert all(0 <= x <= float(svg.get("width")) and 0 <= y <= float(svg.get("height")) for x, y in points)
    assert svg.get("stroke") == "currentColor"
    assert svg.find("title").text == root.findall("p")[0].text
    assert not any(word in markup for word in ("#", "color:", "background", "rgb(", "script", "href"))


def test_a_line_needs_two_scored_rounds_and_stands_level_where_nothing_changes(done):
    record = done.history()[0]
    assert accuracy_line([record, {**record, "round": 2, "accuracy": None}], "overall") == ""
    level = accuracy_line([record, {**record, "round": 7}], "overall")
    assert 'points="4.0,28.0 256.0,28.0"' in level


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a&b\"c'", "tab\there \u202eturned"])
def test_the_folder_is_text_and_may_be_gone(done, tmp_path, name):
    there = tmp_path / name.replace("/", "_")
    shutil.copytree(done.folder, there)
    result = Result.load(there)
    assert [e.tag for e in view(result).iter()] == [e.tag for e in view(done).iter()]
    assert "".join(view(result).itertext()).isprintable()
    shutil.rmtree(there)
    bare = view(result)
    assert bare.find("svg") is None
    assert "labels moved" in "".join(bare.itertext())


def test_a_group_without_classes_and_moves_that_nobody_tells(done):
    record = json.loads(json.dumps(done.record))
    record["accuracy"]["groups"] = {"<i>": None}
    record["moved"] = None
    root = view(Result(Path("gone"), record))
    assert {row[0].text: row[1].text for row in root.iter("tr")}["<i>"] == "-"
    assert "moved labels not reported; 6 rounds" in "".join(root.itertext())
