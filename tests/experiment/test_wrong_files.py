"""Battery B17, first part: each wrong file ends in one line that points at the right place."""

from __future__ import annotations

import pytest

from fedrela.errors import ArgumentError
from fedrela.experiment.load import load_config
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.compare import CompareConfig
from fedrela.experiment.schema.config_table import ConfigTable, comments_of
from helpers.batteries import tried
from helpers.wrong_files import CASES, all_files

FILES = all_files()


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_gets_one_line_with_its_place(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text, line, column, words in FILES[case]:
        (tmp_path / "run.toml").write_bytes(text.encode())
        with pytest.raises(ArgumentError) as error:
            load_config("run.toml")
        message = str(error.value)
        assert message.startswith(f"run.toml:{line}:{column}: {words}"), text
        assert message.isprintable()
        assert error.value.exit_code == 2
        tried()


def test_the_battery_has_its_size():
    assert len(FILES) >= 400
    assert len({text for files in FILES.values() for text, *_ in files}) >= 3000


def test_every_checked_key_has_a_wrong_value():
    for table, config in Config():
        if table in CASES and table != "data":
            keys = {words.split("|")[-1].split(":")[0].strip() for words in CASES[table].splitlines()}
            keys = {key.split("[")[0].split(".")[0] for key in keys}
            kind = CompareConfig if table == "compare" else type(config)  # no table, no comparison
            known = kind.model_fields if issubclass(kind, ConfigTable) else comments_of(config)
            assert set(known) <= keys, table
