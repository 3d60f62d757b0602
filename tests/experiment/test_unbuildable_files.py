"""Battery B17, third part: what shows only when the data are there is told with its place in the file all the same."""

from __future__ import annotations

import pytest

from fedrela.data.sources import load
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.build import build_data
from fedrela.experiment.load import config_sha256, load_config, parse_config
from fedrela.experiment.schema import Config
from helpers.layouts import place_of_mark
from helpers.unbuildable_files import CASES, DATA_ERRORS, WHOLE, all_files, write_data

FILES = all_files()
WRONG = {"data": {"imbalance": {"kind": "step", "ratio": 2, "minority": [0, 12]}}}
WORDS = "data.imbalance.minority: expected different class ids from 0 to 9, got [0, 12]"


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_does_not_fit_its_data_gets_one_line_with_its_place(case, tmp_path, monkeypatch):
    text, line, column, words = FILES[case]
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    (tmp_path / "run.toml").write_bytes(text.encode())
    config = load_config("run.toml")
    with pytest.raises((ArgumentError, DataError)) as error:
        build_data(config)
    message = str(error.value)
    assert message.startswith(f"run.toml:{line}:{column}: {words}")
    assert message.isprintable()
    kind = DataError if any(words in message for words in DATA_ERRORS) else ArgumentError
    assert type(error.value) is kind


def test_the_battery_has_its_size():
    assert len(WHOLE) + sum(len(lines.strip().splitlines()) for lines in CASES.values()) >= 30
    assert len({text for text, *_ in FILES.values()}) >= 60


def test_without_a_text_the_key_is_named_all_the_same():
    with pytest.raises(ArgumentError) as error:
        build_data(parse_config(WRONG))
    assert str(error.value) == f"<config>: {WORDS}"
    made = Config.model_validate({"data": {"imbalance": WRONG["data"]["imbalance"] | {"minority": (0, 12)}}})
    with pytest.raises(ArgumentError) as error:
        build_data(made)
    assert str(error.value) == WORDS


def test_a_source_of_your_own_gets_the_place_too():
    wanted = 'data.imbalance = { kind = "step", ratio = 2, minority = «[0, 12] }'
    text, line, column = place_of_mark(f'data.source = "csv"\n{wanted}\n')
    with pytest.raises(ArgumentError) as error:
        build_data(parse_config(text, name="run.toml"), source=load("digits"))
    assert str(error.value) == f"run.toml:{line}:{column}: {WORDS}"


def test_a_long_path_is_not_cut_out_of_the_message(tmp_path):
    folder = tmp_path.joinpath(*["a" * 100] * 4)
    with pytest.raises(DataError, match=r"fedrela data fetch cifar10"):
        build_data(parse_config({"data": {"source": "cifar10", "root": folder}}))


def test_a_huge_value_is_cut_and_shown_inert(tmp_path):
    write_data(tmp_path)
    options = {"label": "\x1b[31m" + "x" * 100_000}
    with pytest.raises(ArgumentError) as error:
        build_data(parse_config({"data": {"source": "csv", "root": tmp_path / "table.csv", "options": options}}))
    assert str(error.value).startswith("<config>: data.options.label: ")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 2500


def test_where_a_configuration_comes_from_is_no_part_of_it():
    first, second = parse_config("seed = 3", name="a.toml"), parse_config("\n\nseed = 3", name="b.toml")
    third = Config(seed=3)
    assert (first.origin.name, second.origin.name, third.origin.name) == ("a.toml", "b.toml", "")
    assert first == second == third
    assert config_sha256(first) == config_sha256(second) == config_sha256(third)
    assert "origin" not in repr(first) + str(first.as_table())
