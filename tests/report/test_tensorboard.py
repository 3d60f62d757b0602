"""What is written for TensorBoard, read back by TensorBoard."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from functools import partial

import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fedrela.errors import ArgumentError
from fedrela.experiment import compare, run
from fedrela.plots import client_classes
from fedrela.report.page import Figure
from fedrela.report.run_page import run_page
from fedrela.report.tensorboard import TensorBoardLog, scalars, write_tensorboard
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import GridFolder
from helpers.small_runs import small

NAMES = ["<cat>", "![dog](https://example.org/a.png)"]
FIGURE = Figure("clients", "Pets", partial(client_classes, [[30, 0], [10, 20]], names=NAMES), "Pets")


def record(number: int, **changes: object) -> dict[str, object]:
    accuracy = {"overall": number / 10, "balanced": number / 20, "groups": {"head": 0.5, "tail": None}, "macro_f1": 0.4}
    plain = {"round": number, "accuracy": accuracy, "loss": 1 / number, "moved": 0, "excluded": [], "validation": None}
    return plain | changes


def read(path) -> EventAccumulator:
    events = EventAccumulator(str(path))
    events.Reload()
    return events


def values(events: EventAccumulator, tag: str) -> dict[int, float]:
    return {event.step: event.value for event in events.Scalars(tag)}


def test_rounds_come_back_as_scalars(tmp_path):
    log = TensorBoardLog(tmp_path / "new" / "board")
    log.add_round(record(1))
    log.add_round(record(2, accuracy=None, loss=None, moved=None, excluded=[[4, "late"], [None, "unknown"]]))
    log.add_round(record(3, moved=12, validation={"overall": 0.75}))
    events = read(log.path)
    assert set(events.Tags()["scalars"]) == {
        "accuracy/overall", "accuracy/balanced", "accuracy/macro_f1", "accuracy/head",
        "validation/overall", "loss/test", "labels/moved", "clients/lost",
    }  # fmt: skip
    assert values(events, "accuracy/overall") == pytest.approx({1: 0.1, 3: 0.3})
    assert values(events, "loss/test") == pytest.approx({1: 1.0, 3: 1 / 3})
    assert values(events, "labels/moved") == {1: 0.0, 3: 12.0}
    assert values(events, "clients/lost") == {1: 0.0, 2: 2.0, 3: 0.0}
    assert values(events, "validation/overall") == {3: 0.75}


def test_a_round_can_be_seen_before_the_next(tmp_path):
    log = TensorBoardLog(tmp_path)
    for number in (1, 2, 3):
        log.add_round(record(number))
        assert list(values(read(tmp_path), "loss/test")) == list(range(1, number + 1))


def test_plots_come_back_as_pictures_without_words_that_are_markdown(tmp_path):
    TensorBoardLog(tmp_path).add_figures([FIGURE], step=7)
    (image,) = read(tmp_path).Images("figures/clients")
    assert image.step == 7
    with Image.open(io.BytesIO(image.encoded_image_string)) as picture:
        assert picture.size == (image.width, image.height) == (550, picture.height)
    (events,) = tmp_path.iterdir()
    assert b"example.org" not in events.read_bytes()


def test_a_whole_run(tmp_path):
    done = run(small(), out=tmp_path / "run")
    folder = RunFolder.open(done.folder)
    write_tensorboard(folder, tmp_path / "board")
    events = read(tmp_path / "board")
    overall = {record["round"]: record["accuracy"]["overall"] for record in folder.rounds()}
    assert values(events, "accuracy/overall") == pytest.approx(overall)
    assert sum(values(events, "labels/moved").values()) == done.moved > 0
    named = {f"figures/{figure.name}" for figure in run_page(folder).figures}
    assert set(events.Tags()["images"]) == named >= {"figures/accuracy", "figures/flow"}
    assert {image.step for tag in named for image in events.Images(tag)} == {6}
    write_tensorboard(folder, tmp_path / "bare", figures=False)
    bare = read(tmp_path / "bare").Tags()
    assert (bare["images"], set(bare["scalars"])) == ([], set(events.Tags()["scalars"]))
    with pytest.raises(ArgumentError, match=r"already holds TensorBoard events; choose another folder$"):
        write_tensorboard(folder, tmp_path / "board")


def test_a_grid_is_not_written_twice_and_leaves_no_thread(tmp_path):
    before = threading.active_count()
    compare(small(compare={"seeds": 1, "arms": ["baseline"], "baselines": [{"name": "fedavg"}]}), out=tmp_path / "grid")
    write_tensorboard(GridFolder.open(tmp_path / "grid"), tmp_path / "board")
    assert len(list((tmp_path / "board").iterdir())) == 1
    with pytest.raises(ArgumentError, match=r"already holds TensorBoard events; choose another folder$"):
        write_tensorboard(GridFolder.open(tmp_path / "grid"), tmp_path / "board")
    assert threading.active_count() == before


def test_two_runs_are_not_mixed(tmp_path):
    (tmp_path / "events.out.tfevents.1700000000.machine.1.0").write_bytes(b"")
    with pytest.raises(ArgumentError, match=r"already holds TensorBoard events; choose another folder$"):
        TensorBoardLog(tmp_path)


def test_nothing_is_written_before_there_is_something_to_write(tmp_path):
    TensorBoardLog(tmp_path / "board").add_figures([], step=1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArgumentError, match=r"file: is a file; name a folder for TensorBoard$"):
        TensorBoardLog(tmp_path / "file")
    with pytest.raises(ArgumentError, match=r"cannot be written: .*; choose another place$"):
        TensorBoardLog(tmp_path / "file" / "below").add_round(record(1))


def test_without_tensorboard_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ArgumentError) as caught:
        TensorBoardLog(tmp_path)
    assert str(caught.value) == "tensorboard: is not installed; run `pip install fedrela[tensorboard]`"


def test_a_log_loads_torch_only_when_it_writes():
    code = (
        "import sys, fedrela.report.tensorboard as t; t.TensorBoardLog('/nowhere/at/all')\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_number_of_a_round_has_a_tag_of_its_own():
    full = record(1, validation=record(1)["accuracy"])
    assert len(scalars(full)) == 4 + 4 + 3
