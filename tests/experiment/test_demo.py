"""The demonstration's configuration: that of the starter files, with the rounds that its help promises."""

from __future__ import annotations

from pathlib import Path

from fedrela.experiment.comparison import DEMO, Compare
from fedrela.experiment.load import config_sha256, load_config, parse_config
from fedrela.experiment.overlay import overlay

STARTERS = Path(__file__).parents[2] / "src/fedrela/cli/starters"


def test_the_starter_is_one_run_of_it():
    example, demo = load_config(STARTERS / "digits.toml"), overlay(parse_config(DEMO), {})
    assert example == demo
    assert config_sha256(example) == config_sha256(demo)


def test_the_starter_of_comparisons_goes_on_with_it(tmp_path):
    configs = (load_config(STARTERS / "compare.toml"), parse_config(DEMO))
    example, demo = ({cell.name for cell in Compare(config, tmp_path).grid.cells} for config in configs)
    assert demo < example


def test_the_demo_is_what_it_promises(tmp_path):
    plan = Compare(parse_config(DEMO), tmp_path)
    assert plan.table.seeds == (1, 2, 3)
    assert {task.last for task in plan.grid.tasks if task.cell is None} == {47}
    assert plan.grid.rounds == 3 * (47 + 4 * 13)
