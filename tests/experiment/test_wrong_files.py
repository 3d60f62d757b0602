"""Battery B17, first part: each wrong file ends in one line that points at the right place."""

from __future__ import annotations

import pytest

from experiment.wrong_files import all_files
from fedrela.errors import ArgumentError
from fedrela.experiment.load import load_config

FILES = all_files()


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_gets_one_line_with_its_place(case, tmp_path, monkeypatch):
    text, line, column, words = FILES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_bytes(text.encode())
    with pytest.raises(ArgumentError) as error:
        load_config("run.toml")
    message = str(error.value)
    assert message.startswith(f"run.toml:{line}:{column}: {words}")
    assert message.isprintable()
    assert error.value.exit_code == 2


def test_the_battery_has_its_size():
    assert len({text for text, *_ in FILES.values()}) >= 400
