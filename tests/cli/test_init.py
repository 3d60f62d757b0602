"""Starter configurations: each is valid, says how to go on, and runs; nothing that exists is overwritten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fedrela.cli.init import Kind
from fedrela.data.sources import load
from fedrela.experiment import Comparison, Result, Sweep

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")


def shorten(path: Path) -> None:
    """Leave a configuration as it is but for its rounds."""
    text, rounds = re.subn(r"^rounds = \d+", "rounds = 3", path.read_text(), flags=re.M)
    assert rounds == 1
    path.write_text(text + "\n[engine]\nworkers = 1\n")


@pytest.mark.parametrize("kind", Kind)
def test_a_starter_runs_as_it_says(run, kind, request):
    done = run("init", "--kind", kind)
    assert (done.code, done.err) == (0, "")
    command = re.search(r"^next   fedrela (\w+) (\S+)$", done.out, re.M)
    assert command[2] == f"{kind}.toml"
    assert run("check", command[2]).code == 0
    if not request.config.getoption("--nightly"):
        if kind not in ("tables", "images"):
            pytest.skip("in the nightly battery; tests/cli/test_demo.py runs the digits")
        shorten(Path(command[2]))
    ran = run(command[1], command[2])
    assert (ran.code, ran.err) == (0, "")
    if command[1] == "run":
        assert Result.load(f"runs/{kind}").moved > 0
    else:
        reader = {"compare": Comparison, "sweep": Sweep}[command[1]]
        assert reader.load(f"runs/{command[1]}/{kind}").record


@pytest.mark.parametrize("kind", Kind)
def test_the_commands_of_a_starter_exist_and_name_its_file(run, kind):
    assert run("init", "sub/my-own.toml", "--kind", kind).code == 0
    text = Path("sub/my-own.toml").read_text()
    assert "$" not in text
    commands = re.findall(r"^#   (fedrela .*?)(?:  .*)?$", text, re.M)
    assert commands
    for command in commands:
        assert "my-own.toml" in command
        assert run(*command.split()[1:], "--help").code == 0


def test_the_table_and_the_images_are_data_like_yours(run):
    replace = "data   tables.csv is an example: put your own table in its place\n"
    assert run("init", "--kind", "tables").out.startswith(f"wrote  tables.toml, tables.csv\n{replace}")
    table = load("csv", "tables.csv", label="diagnosis", client="clinic")
    assert table.class_names == ("flu", "healthy", "sepsis")
    assert len(set(table.client_train.tolist())) == 6
    replace = "data   images/ is an example: put your own images, one folder per class, in its place\n"
    assert run("init", "--kind", "images").out.startswith(f"wrote  images.toml, images/\n{replace}")
    images = load("image_folder", "images", size=32, channels=1)
    assert (images.class_names, len(images.x_train)) == (("eight", "nine", "three"), 210)
    assert (images.y_train == 1).sum() == 10


@pytest.mark.parametrize("taken", ["tables.toml", "tables.csv"])
def test_what_exists_is_left_alone(run, taken):
    Path(taken).write_text("mine")
    done = run("init", "--kind", "tables")
    assert done.code == 2
    assert done.line() == f"{taken}: exists already; name another file: fedrela init FILE --kind tables"
    assert [path.name for path in Path.cwd().iterdir()] == [taken]
    assert Path(taken).read_text() == "mine"


@pytest.mark.parametrize("name", ["run.txt", 'a"b.toml', "a b.toml"])
def test_a_name_that_is_no_configuration_gets_one_line(run, name):
    done = run("init", name)
    assert done.code == 2
    assert "ends in .toml" in done.line()
