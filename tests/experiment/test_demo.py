"""The demonstration's configuration, its folders, and how far it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from experiment.small_runs import small
from fedrela.engine.serial import SerialPool
from fedrela.experiment.arms import MATCHED
from fedrela.experiment.demo import CONFIG, Demo
from fedrela.experiment.load import config_sha256, load_config, parse_config

torch.set_num_threads(1)
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.toml"


def test_the_example_file_is_what_the_demo_runs():
    example = load_config(EXAMPLE)
    assert example == parse_config(CONFIG)
    assert config_sha256(example) == config_sha256(parse_config(CONFIG))


def test_the_demo_is_what_it_promises(tmp_path):
    plan = Demo(tmp_path)
    assert list(plan.seeds) == [1, 2, 3]
    assert plan.shared == 47
    assert plan.rounds == 3 * (47 + 4 * 13)


def test_seeds_and_arms_lie_in_folders_of_their_own_and_the_position_counts_every_round(tmp_path):
    plan = Demo(tmp_path, 2, parse_config(small(engine={"checkpoint_every": 1})))
    assert plan.finished() == 0
    with SerialPool() as crew:
        begun = plan.run(crew)
        positions = [plan.position(next(begun)) for _ in range(8)]
        begun.close()
        assert plan.finished() == 1  # host of the first seed, after three shared rounds and three of its own
        positions += [plan.position(progress) for progress in plan.run(crew)]
    assert positions == list(range(1, plan.rounds + 1))
    assert plan.finished() == 8
    assert {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("result.json")} == {
        f"seed-{seed}/{arm}" for seed in (1, 2) for arm in MATCHED
    }
    found = plan.comparison()
    moved = [result["fedrela"].moved for result in found.results]
    assert found.spread("fedrela", "moved").mean == np.mean(moved)
    assert found.spread("host", "moved").mean == 0
    first, second = ([result[arm].accuracy["overall"] for result in found.results] for arm in ("fedrela", "host"))
    paired = found.difference("fedrela", "host", "overall")
    assert np.isclose(paired.mean, np.mean(first) - np.mean(second))
    assert np.isclose(paired.deviation, np.std(np.subtract(first, second), ddof=1))
    assert Demo(tmp_path, 1, plan.config).comparison().spread("host", "minority").deviation is None
