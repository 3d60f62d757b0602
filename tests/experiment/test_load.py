"""What loads, what a configuration then holds, and files that are no configuration at all."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from fedrela.data import Imbalance
from fedrela.data.federation import Recipe
from fedrela.data.partition import PartitionPlan
from fedrela.data.sources import SOURCES
from fedrela.errors import ArgumentError
from fedrela.experiment.load import load_config, parse_config
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.compare import CompareConfig
from fedrela.experiment.schema.config_table import ConfigTable, comments_of
from fedrela.experiment.toml.reader import LARGEST_FILE
from fedrela.options import Options
from fedrela.records import GROUP_PROTOCOLS
from helpers.valid_files import EXAMPLE, IMBALANCES, PARTITIONS


def test_the_example_of_the_design():
    config = parse_config(EXAMPLE)
    assert config.seed == 1
    assert config.data.imbalance == Imbalance("step", ratio=20.0, minority=(0, 1, 2))
    plan = PartitionPlan("dirichlet", clients=10, alpha=0.3, scheme="proportional", min_size=5)
    assert config.data.partition == plan
    assert (config.model.name, config.model.options) == ("mlp", {"hidden": (64,)})
    assert config.report.samples is False
    for table in ("algorithm", "train", "relabel", "engine"):  # the example writes the defaults down
        assert getattr(config, table) == getattr(Config(), table)
    assert config.compare == CompareConfig(seeds=3)
    assert config.sweep == {"relabel.tau": [0.01, 0.05]}


def test_an_empty_file_is_the_default_experiment():
    config, recipe = parse_config("# nothing\n"), Recipe()
    assert config == Config() == parse_config({})
    assert (config.seed, config.data.source, config.data.root) == (recipe.seed, "digits", None)
    assert config.data.imbalance == recipe.imbalance
    assert config.data.partition == dataclasses.replace(recipe.partition, scheme="proportional", min_size=10)
    assert (config.data.validation, config.data.standardize) == (recipe.validation, recipe.standardize)


@pytest.mark.parametrize(("table", "plan"), IMBALANCES)
def test_every_kind_of_imbalance(table, plan):
    found = parse_config({"data": {"imbalance": table}}).data.imbalance
    lists = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    assert found == (plan or Imbalance(**lists))


@pytest.mark.parametrize(("table", "filled"), PARTITIONS)
def test_every_kind_of_partition(table, filled):
    assert parse_config({"data": {"partition": table}}).data.partition == PartitionPlan(**(table | filled))


@pytest.mark.parametrize(("table", "_"), PARTITIONS[:6])
def test_defaults_that_are_written_down_are_those_of_the_plan(table, _):
    labels, written = np.arange(400) % 4, parse_config({"data": {"partition": table}}).data.partition
    silent = PartitionPlan(**table).apply(labels, seed=3)
    assert [part.tolist() for part in written.apply(labels, seed=3)] == [part.tolist() for part in silent]


def test_options_are_those_of_the_source():
    options = {"samples": 50, "separation": 1.5}
    assert parse_config({"data": {"source": "gaussians", "options": options}}).data.options == options
    config = parse_config('data.source = "csv"\ndata.options = { header = false, ignore = ["a", 2] }')
    assert config.data.options == {"header": False, "ignore": ("a", 2)}


@pytest.mark.parametrize("source", SOURCES)
def test_the_type_of_every_option_of_every_source_is_known(source):
    for name in SOURCES[source].options:
        with pytest.raises(ArgumentError, match=rf"data\.options\.{name}: expected .+, got a list"):
            parse_config({"data": {"source": source, "options": {name: [1.5, True]}}})


def test_root_is_relative_to_the_file_and_nothing_in_it_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    folder.mkdir()
    for written in ("data", "../sibling/data", "~/data", "$HOME/${HOME}/%HOME%/{seed}"):
        (folder / "run.toml").write_text(f'data.root = "{written}"')
        for path in (folder / "run.toml", "runs/run.toml", Path("runs/../runs/run.toml")):
            root = load_config(path).data.root
            assert root is not None
            assert root.is_absolute()
            assert os.path.normpath(root) == os.path.normpath(folder / written)
    assert parse_config({"data": {"root": Path("x")}}).data.root == tmp_path / "x"
    assert parse_config("data.root = 'x'", folder="y").data.root == tmp_path / "y" / "x"
    assert parse_config("data.root = '/x'", folder="y").data.root == Path("/x")


def test_the_largest_numbers():
    partition = {"kind": "iid", "clients": 10**6, "min_size": 10**9}
    imbalance = {"kind": "long_tail", "factor": 2, "largest": 10**9}
    assert parse_config({"seed": 2**63 - 1, "data": {"partition": partition, "imbalance": imbalance}})
    assert parse_config({"data": {"partition": {"kind": "shards", "clients": 1, "classes_per_client": 10**9}}})
    with pytest.raises(ValueError, match="less than or equal to 9223372036854775807"):
        Config(seed=2**63)


@pytest.mark.parametrize("protocol", GROUP_PROTOCOLS)
def test_a_protocol_goes_with_a_long_tail_and_with_natural_data(protocol):
    for imbalance in ({"kind": "long_tail", "factor": 2}, {"kind": "natural"}):
        assert parse_config({"data": {"protocol": protocol, "imbalance": imbalance}}).data.protocol == protocol


def test_a_configuration_cannot_be_changed():
    config = parse_config("")
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.data.partition.clients = 2


def test_every_field_says_what_it_is():
    config = Config()
    values = [config, *(value for _, value in config), *(value for _, value in config.data), CompareConfig()]
    tables = [value for value in values if isinstance(value, ConfigTable | Options)]
    assert len(tables) == 11
    assert all(comment for table in tables for comment in comments_of(table).values())


FROM_PYTHON = [
    ({"data": {"partition": {"alpah": 1}}}, "data.partition.alpah: unknown key; nearest: alpha"),
    ({"sead": 1}, "sead: unknown key; nearest: seed"),
    ({"seed": "1"}, "seed: expected an integer from 0 to 9223372036854775807, got '1'"),
    ({"data": {"imbalance": {"kind": "step"}}}, "data.imbalance.ratio: a number >= 1 is missing; kind 'step'"),
    ({"data": {1: 2}}, "data: keys are text, got 1"),
    ({"sweep": {"x": {1, 2}}}, "sweep.x: expected a value that TOML can hold, got a Python set"),
    ({"sweep": {"x": [object()]}}, "sweep.x[0]: expected a value that TOML can hold, got a Python object"),
    ({"sweep": {"x": "\ud800"}}, "sweep.x: expected text that UTF-8 can hold, got '\\ud800'"),
    ({"sweep": {"\ud800": 1}}, "sweep: expected text that UTF-8 can hold, got '\\ud800'"),
    ({"sweep": {"x": 10**5000}}, "sweep.x: expected a number of at most 64 bits"),
    ({"a\nb" * 99: 1}, '"a\\nba\\nb'),
    ([1], "expected a table, got a list"),
    (3, "expected a table, got 3"),
    (None, "expected a table, got None"),
    ("a = '\ud800'", "a: expected text that UTF-8 can hold"),
]


@pytest.mark.parametrize(("wrong", "words"), FROM_PYTHON, ids=[words[:30] for _, words in FROM_PYTHON])
def test_dictionaries_get_the_same_words_without_a_place(wrong, words):
    with pytest.raises(ArgumentError) as error:
        parse_config(wrong)
    place = "<config>:1:5: " if isinstance(wrong, str) else "<config>: "
    assert str(error.value).startswith(place + words)
    assert str(error.value).isprintable()


def test_what_python_brings_beside_plain_values():
    raw = {
        "seed": np.int64(4), "data": {"validation": np.float64(0.25), "root": None, "imbalance": {
            "kind": "step", "ratio": np.float32(2), "minority": (np.int8(1), 2)}}, "model": {"hidden": (64, 32)},
        "sweep": {"train.epochs": (np.int64(1), 2)},
    }  # fmt: skip
    config = parse_config(raw)
    assert (config.seed, config.data.validation, config.data.root) == (4, 0.25, None)
    assert config.data.imbalance.minority == (1, 2)
    assert config.model.options == {"hidden": (64, 32)}
    assert config.sweep == {"train.epochs": [1, 2]}
    raw["sweep"]["train.epochs"] = ()
    assert config.sweep == {"train.epochs": [1, 2]}


def test_a_dictionary_that_holds_itself():
    endless: dict = {}
    endless["model"] = endless
    with pytest.raises(ArgumentError, match="nested more than 32 deep"):
        parse_config(endless)


def refusal(path) -> str:
    with pytest.raises(ArgumentError) as error:
        load_config(path)
    assert str(error.value).isprintable()
    assert error.value.exit_code == 2
    return str(error.value)


def test_files_that_are_no_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("closed").symlink_to("closed")
    assert refusal("none.toml").startswith("none.toml: cannot be read: No such file or directory")
    assert refusal("folder") == "folder: a folder; name the TOML file in it"
    assert refusal("pipe") == "pipe: not a plain file"
    assert refusal("closed").startswith("closed: cannot be read: ")
    assert "cannot be read" in refusal("x" * 5000)
    assert refusal("a\0b").startswith("a\\x00b: expected a TOML file, got a name with a null character")
    assert refusal("a\nb").startswith("a\\nb: cannot be read")


BYTES = [
    (b"\xff\xfes\x00", "run.toml:1:1: byte 0xff is not UTF-8; save the file as UTF-8"),
    ("# é\nx = 'ä'".encode("latin-1"), "run.toml:1:3: byte 0xe9 is not UTF-8"),
    ("\ufeff# é\nmodel.x = '語".encode() + b"\xa0'", "run.toml:2:13: byte 0xa0 is not UTF-8"),
    (b"seed = 1\n\x00", "run.toml:2:1: not TOML; expected a key, a [table] or a # comment"),
    (b"#" * (LARGEST_FILE + 1), "run.toml: expected at most 1048576 bytes, got more"),
    (b"model.a = " + b"[" * 500_000, "run.toml:1:42: nested more than 32 deep"),
    (b"model." + b"a." * 500_000 + b"a = 1", "run.toml:1:69: a key of more than 32 parts"),
    (b"[" + b"a." * 500_000, "run.toml:1:66: a key of more than 32 parts"),
    (b"seed = " + b"1" * 1_000_000, "run.toml:1:8: a number or date of more than 200 characters"),
    (b"\x1b]0;title\x07", "run.toml:1:1: not TOML"),
    (
        b"'" + b"a" * 1_000_000 + b"' = 1",
        "run.toml:1:1: " + "a" * 60 + ": unknown key; this table has seed, data, model",
    ),
]


@pytest.mark.parametrize(("content", "words"), BYTES, ids=lambda value: value[:20] if isinstance(value, bytes) else "")
def test_hostile_bytes_end_in_one_line(content, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_bytes(content)
    message = refusal("run.toml")
    assert message.startswith(words)
    assert len(message) < 700


def test_marks_and_line_ends_of_other_systems(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes("\ufeffseed = 7\r\n[data]\r\nroot = '''\r\né'''\r\n".encode())
    assert load_config(path).seed == 7
    assert load_config(path).data.root == tmp_path / "é"


def test_text_may_be_as_long_as_a_file():
    assert parse_config("#" * LARGEST_FILE) == Config()
    with pytest.raises(ArgumentError, match="expected at most"):
        parse_config("#" * (LARGEST_FILE + 1))
