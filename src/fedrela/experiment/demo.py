"""The demonstration: FedReLa on imbalanced digits, four matched arms over a few seeds.

Three of the ten digits are rare in training (imbalance ratio 20), and ten clients hold different shares of each; the
test set is balanced. Every seed trains a shared prefix once, and four arms go on from it: FedAvg as it is, FedAvg with
a learning-rate drop, and both with FedReLa. ``examples/digits.toml`` is one run of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrela.engine.run import Crew
from fedrela.experiment.arms import MATCHED, Progress, arm_results, is_done, run_arms
from fedrela.experiment.load import parse_config
from fedrela.experiment.schema import Config
from fedrela.experiment.summary import Comparison

CONFIG: dict[str, Any] = {
    "seed": 1,
    "data": {
        "source": "digits",
        "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]},
        "partition": {"kind": "dirichlet", "clients": 10, "alpha": 0.3, "min_size": 5},
    },
    "model": {"name": "mlp", "hidden": [64]},
    "algorithm": {"name": "fedavg"},
    "train": {
        "rounds": 60, "epochs": 2, "batch_size": 16, "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-5,
    },
    "relabel": {"enabled": True, "start": 0.8, "tau": 0.05, "lr_scale": 1.0},
}  # fmt: skip


class Demo:
    """The arms of a number of seeds below a folder.

    Parameters
    ----------
    out
        Where their run folders lie, or will lie.
    seeds
        How many: 1, 2 and so on.
    config
        What is run.
    """

    def __init__(self, out: Path, seeds: int = 3, config: Config | None = None) -> None:
        self.out, self.seeds = out, range(1, seeds + 1)
        self.config = parse_config(CONFIG, name="demo") if config is None else config
        self.shared = self.config.relabel.schedule().first(self.config.train.rounds) - 1

    @property
    def rounds(self) -> int:
        """Rounds over all seeds and arms, shared ones counted once."""
        return len(self.seeds) * self._rounds_of_a_seed

    @property
    def _rounds_of_a_seed(self) -> int:
        return self.shared + len(MATCHED) * (self.config.train.rounds - self.shared)

    def folder(self, seed: int) -> Path:
        """Return where the arms of a seed lie."""
        return self.out / f"seed-{seed}"

    def finished(self) -> int:
        """Return how many runs of all seeds and arms are done already."""
        return sum(is_done(self.config, arm, seed, self.folder(seed)) for seed in self.seeds for arm in MATCHED)

    def run(self, crew: Crew) -> Iterator[Progress]:
        """Carry out what is not done yet."""
        for seed in self.seeds:
            yield from run_arms(self.config, seed, self.folder(seed), crew)

    def position(self, progress: Progress) -> int:
        """Return how many of all rounds lie behind, those of skipped arms included."""
        earlier = (progress.seed - self.seeds[0]) * self._rounds_of_a_seed
        if progress.arm == "prefix":
            return earlier + progress.done.record.round
        arms = MATCHED.index(progress.arm) * (self.config.train.rounds - self.shared)
        return earlier + arms + progress.done.record.round

    def comparison(self) -> Comparison:
        """Return what the arms reached; all of them must be done."""
        return Comparison([arm_results(self.folder(seed)) for seed in self.seeds])
