"""Starts at the same time take folders of their own; what fails leaves none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fedrela.files import first_free


def test_every_start_gets_a_folder_of_its_own(tmp_path):
    def take(_):
        with first_free(tmp_path / "runs" / "digits") as folder:
            (folder / "file").write_text("x")  # fails where two have got the same
            return folder.name

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, range(40)))
    assert sorted(taken) == sorted({"digits", *(f"digits-{number}" for number in range(2, 41))})


def test_an_empty_folder_is_removed(tmp_path):
    with pytest.raises(KeyError), first_free(tmp_path / "runs" / "digits"):
        raise KeyError
    assert not any(tmp_path.iterdir())
    (tmp_path / "runs").mkdir()
    with first_free(tmp_path / "runs" / "digits"):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text("[model]\nname = 'none'\n")
    assert run("run", "wrong.toml").code == 2
    assert not (tmp_path / "runs").exists()
