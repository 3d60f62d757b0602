"""`fedrela export-flower DIR CONFIG`."""

from __future__ import annotations

import pytest

from fedrela.experiment.load import load_config

TEXT = "[data]\npartition = { kind = 'iid', clients = 2 }\n[train]\nrounds = 2\n"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "clinic.toml"
    path.write_text(TEXT)
    return path


def test_an_app_is_written_and_its_page_is_named(run, tmp_path, config):
    done = run("export-flower", tmp_path / "app", config)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"app   {tmp_path / 'app'}\nnext  {tmp_path / 'app' / 'README.md'} says how to start it\n"
    assert (tmp_path / "app" / "README.md").read_text().startswith("# clinic on Flower\n")
    there = load_config(tmp_path / "app" / "fedrela_app" / "config.toml")
    assert there.as_table() == load_config(config).as_table()


def test_a_folder_that_is_there_is_left_alone(run, tmp_path, config):
    assert run("export-flower", tmp_path / "app", config).code == 0
    before = (tmp_path / "app" / "README.md").stat().st_mtime_ns
    done = run("export-flower", tmp_path / "app", config)
    assert done.code == 3
    assert done.line().startswith(f"{tmp_path / 'app'}: exists already; ")
    assert (tmp_path / "app" / "README.md").stat().st_mtime_ns == before


def test_what_clients_elsewhere_do_not_do_is_refused_at_its_place(run, tmp_path, config):
    config.write_text(TEXT + "local_test = true\n")
    done = run("export-flower", tmp_path / "app", config)
    assert done.code == 2
    assert done.line().startswith(f"{config}:5:14: train.local_test: remote clients do not score ")
    assert not (tmp_path / "app").exists()


@pytest.mark.parametrize("words", [[], ["app"]])
def test_both_words_are_needed(run, words):
    assert run("export-flower", *words).code == 2


def test_control_characters_of_a_name_do_not_reach_the_terminal(run, tmp_path, config):
    done = run("export-flower", tmp_path / "a\x1b[31mpp", config)
    assert done.code == 0
    assert "\x1b" not in done.out
