"""What leaves a node and when, by configuration and policy; and what FedReLa would move there with a given model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Preview, preview
from fedrela.core.equations import agreement
from fedrela.core.limits import eligible_by_agreement
from fedrela.core.previews import TAUS
from fedrela.core.relabel_options import PreviewKeywords
from fedrela.engine.client import ClientRunner
from fedrela.engine.client_relabelling import posterior
from fedrela.engine.shared_memory import SharedMemory
from fedrela.engine.tasks import Task
from fedrela.errors import DataError
from fedrela.experiment.node_samples import NodeSamples
from fedrela.experiment.private import (
    COUNTS,
    at_node,
    federation_of,
    recorded_statistics,
    statistics_specs,
    within_policy,
)
from fedrela.experiment.registries import when
from fedrela.experiment.runner import build_plan
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.federation import NodeConfig, NodePolicy
from fedrela.models.runtime import one_thread
from fedrela.runfolder import RunFolder
from fedrela.text import plural


def disclosures(config: Config, policy: NodePolicy | None = None) -> list[tuple[str, str]]:
    """Return everything that leaves a node, and when; without a policy, everything the federation asks for.

    >>> from fedrela.experiment.load import parse_config
    >>> table = {"nodes": ["a", "b"], "classes": ["x", "y"], "columns": ["age"], "statistics": True}
    >>> for what, time in disclosures(parse_config({"federation": table, "algorithm": {"name": "fedmix"}})):
    ...     print(f"{what}: {time}")
    weights, number of training samples: after training in each of its rounds
    means (averages of its samples, and the shares of all classes in them): once, all clients
    statistics (count, mean, squares of its samples): once, before the first round
    """
    federation, train = federation_of(config), "after training in each of its rounds"
    policy = policy or NodePolicy(counts=True, confusion=True)
    algorithm = config.algorithm.make()
    times = {exchange.name: when(exchange) for exchange in algorithm.exchanges()}
    rows = [("weights, number of training samples", train)]
    rows += [
        (f"{name} ({what})" if what else name, times.get(name, train)) for name, what in algorithm.disclosed().items()
    ]
    reported = [name for name in statistics_specs(config) if (policy.counts if name == COUNTS else policy.statistics)]
    if reported:
        names = ", ".join({COUNTS: "number per class"}.get(name, name) for name in reported)
        rows.append((f"statistics ({names} of its samples)", "once, before the first round"))
    if federation.evaluate != "server":
        what = "confusion matrix of its own test samples" if policy.confusion else "hits and number of its test samples"
        every = config.train.evaluate_every
        rows.append((what, f"when the model is scored, every {plural(every, 'round') if every > 1 else 'round'}"))
    return rows


def _statistics(config: Config, run: RunFolder) -> dict[str, NDArray[Any]]:
    """Return the statistics that a run started with; for images, a simulation records them as scaling constants."""
    agreed, federation = recorded_statistics(run.manifest), federation_of(config)
    if "count" not in statistics_specs(config) or "count" in agreed:
        return agreed
    if not federation.has_channels:
        raise DataError(f"{run.path}: holds no statistics of columns; expected a run with private nodes")
    mean, std = (np.array(run.manifest["model"]["scaling"][name]) for name in ("mean", "std"))
    return agreed | {"count": np.array(1), "mean": mean, "squares": np.square(std)}


def preview_at_node(config: Config, node: NodeConfig, samples: NodeSamples, client: int, folder: Path) -> Preview:
    """Return what FedReLa would move at a node, on average, with the newest model of the run in a folder."""
    run, own = RunFolder.open(folder), within_policy(config, node, client, samples.ids_train)
    saved = run.load_checkpoint()
    if saved is None:
        raise DataError(f"{folder}: holds no model yet")
    with one_thread():
        memory = SharedMemory()
        part = at_node(own, samples, client, _statistics(own, run))
        runner = ClientRunner.create(*build_plan(own, part), memory)
        if saved.arrays["weights"].shape != (runner.arrays.layout.size,):
            raise DataError(f"{folder}: its model is not the one that the configuration describes")
        algorithm, plan = runner.plan.algorithm, runner.plan.relabel
        state = {name.removeprefix("server."): a for name, a in saved.arrays.items() if name.startswith("server.")}
        sent = memory.write_broadcast({"weights": saved.arrays["weights"], **algorithm.broadcast(state)}).handle
        task = Task("train", saved.round + 1, client, sent, sent, 0, message=algorithm.message(state, client))
        context = runner.context(task, runner.labels)
        Q = posterior(context, algorithm, plan, None)
    keywords = {name: each for name, each in plan.keywords(client).items() if name in PreviewKeywords.__annotations__}
    taus = sorted({*TAUS, plan.tau_of(client)})
    found = np.asarray(Q)
    confirmed = agreement(found, samples.y_train) if plan.enabled else -1.0
    eligible = eligible_by_agreement(confirmed, plan.min_agreement, len(found))
    return preview(found, samples.y_train, taus, num_classes=Q.shape[1], eligible=eligible, **keywords)
