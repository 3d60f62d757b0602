"""A private federation as the engine sees it: at a node its own samples alone, at the server none or a test set.

In a simulation the engine sees the whole federation. Here it takes the number of clients, the classes and the form of
samples from the configuration; scaling constants from the configuration, from one exchange before the first round, or
from each node's own samples; n_k from the uploads; groups from the configuration, from the server's test set, or from
counts that nodes agree to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms import ALGORITHMS
from fedrela.core.limits import OwnerLimits
from fedrela.data.federation import Moments, array_record
from fedrela.engine.problem import Problem
from fedrela.engine.run_options import RelabelPlan
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.build import errors_at, first_of_each, numbers_of
from fedrela.experiment.node_samples import MismatchError, NodeSamples, is_split, numeric_columns, sample_form
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.federation import FederationConfig, NodeConfig, NodePolicy
from fedrela.metrics.groups import Groups, evaluation_groups
from fedrela.models.inputs import Scaling, pixel_sums
from fedrela.options import options_of
from fedrela.records import Shard
from fedrela.text import nearest_hint

Arrays = Mapping[str, NDArray[Any]]
COUNTS = "classes"  # in an answer: training samples of each class
FORMAT = "fedrela-private-1"
EMPTY = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class PrivateFederation:
    """One party's part of a private federation: the engine's problem there, and a record for the manifest."""

    problem: Problem
    record: dict[str, Any]

    @property
    def shards(self) -> Sequence[Shard]:
        """One per client, empty if its samples are elsewhere."""
        return self.problem.shards

    def manifest(self) -> dict[str, Any]:
        """Return the entry for the data in a run's manifest."""
        return self.record


def federation_of(config: Config) -> FederationConfig:
    """Return the table ``[federation]``; raise an `ArgumentError` if the configuration has none."""
    if config.federation is None:
        raise ArgumentError(
            f"{config.origin.name}: has no table [federation]; it names the nodes and classes and describes the samples"
        )
    return config.federation


def _pools(config: Config) -> bool:
    """Whether inputs are scaled by statistics of all nodes."""
    federation = federation_of(config)
    if federation.columns:
        numbers = bool(numeric_columns(federation).any())
        return federation.statistics and config.data.standardize == "pooled" and numbers
    return federation.statistics and config.data.scaling == "fit" and federation.has_channels


def own_statistics(config: Config, node: NodeConfig, samples: NodeSamples) -> dict[str, NDArray[Any]]:
    """Return the statistics that a node reports before the first round: those requested that its policy permits."""
    federation, reported = federation_of(config), dict[str, NDArray[Any]]()
    if _pools(config) and node.policy.statistics:
        if federation.shape and federation.form == "images":
            count, total, squares = pixel_sums(samples.x_train)
            reported = {"count": np.array(count), "sum": total, "squares": squares}
        else:
            moments = Moments.of(_by_channel(samples.x_train, federation))
            reported = {"count": np.array(moments.count), "mean": moments.mean, "squares": moments.squares}
    if federation.groups == "counts" and node.policy.counts:
        reported[COUNTS] = samples.counts(len(federation.classes))
    return reported


def _by_channel(x: NDArray[Any], federation: FederationConfig) -> NDArray[Any]:
    """Return rows with one value per channel, or the numeric columns of a table."""
    if federation.columns:
        return x[np.ix_(np.arange(len(x)), numeric_columns(federation))]
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def merged_statistics(config: Config, answers: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
    """Merge the statistics that the nodes reported, in the order of their numbers."""
    reported, merged = [each for each in answers if _is_sound(each)], dict[str, NDArray[Any]]()
    if _pools(config):
        if not reported:
            raise DataError("statistics: no node reported any, so inputs cannot be scaled; give mean and std instead")
        if "sum" in reported[0]:
            merged = {name: np.sum([each[name] for each in reported], axis=0) for name in ("count", "sum", "squares")}
        else:
            parts = [Moments(int(each["count"]), each["mean"], each["squares"]) for each in reported]
            whole = reduce(Moments.merge, parts)
            merged = {"count": np.array(whole.count), "mean": whole.mean, "squares": whole.squares}
    if federation_of(config).groups == "counts":
        counts = [each[COUNTS] for each in answers if COUNTS in each and (each[COUNTS] >= 0).all()]
        if not counts:
            raise DataError("federation.groups: no node agrees to report its counts; name the groups instead")
        merged[COUNTS] = np.sum(counts, axis=0)
    return merged


def _is_sound(reported: Arrays) -> bool:
    """Whether statistics of inputs can be those of a node's samples; wrong ones of one node harm no other."""
    if "count" not in reported or int(reported["count"]) <= 0:
        return False
    if "sum" not in reported:
        return bool((reported["squares"] >= 0).all())
    pairs = zip(reported["sum"].tolist(), reported["squares"].tolist(), strict=True)
    return all(squares * int(reported["count"]) >= total**2 for total, squares in pairs)


def statistics_specs(config: Config) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return shape and kind of every array that a node may report in that exchange."""
    federation = federation_of(config)
    width = int(numeric_columns(federation).sum()) if federation.columns else federation.shape[0]
    specs: dict[str, tuple[tuple[int, ...], str]] = {}
    if _pools(config):
        whole = bool(federation.shape) and federation.form == "images"
        specs = {"count": ((), "i"), ("sum" if whole else "mean"): ((width,), "i" if whole else "f")}
        specs["squares"] = ((width,), "i" if whole else "f")
    return specs | ({COUNTS: ((len(federation.classes),), "i")} if federation.groups == "counts" else {})


def check_trainable(node: NodeConfig, samples: NodeSamples) -> None:
    """Raise if there is nothing to train on, or if the policy keeps rows that cannot be told."""
    if not len(samples.y_train):
        raise MismatchError("has no training samples")
    if samples.ids_train:
        known = {*samples.ids_train, *samples.ids_test}
        for i, row in enumerate(node.policy.keep):
            if str(row) not in known:
                raise MismatchError(f"policy.keep[{i}]: expected the id of a sample of this node")
    if node.policy.keep and not samples.ids_train:
        if node.options.get("missing") == "drop":
            raise MismatchError('policy.keep: rows have other numbers after missing = "drop"; fill the cells')
        if is_split(node):
            advice = "name a column of ids, give it test samples of its own, or test_share = 0"
            raise MismatchError(f"policy.keep: rows have other numbers after the source was split; {advice}")
        try:
            node.policy.kept_rows(len(samples.y_train))
        except ArgumentError:  # whose text has the row
            raise MismatchError("policy.keep: expected numbers of training samples, from 0") from None


def at_node(config: Config, samples: NodeSamples, client: int, agreed: Arrays) -> PrivateFederation:
    """Return a node's part: its own samples, as client `client` of the federation."""
    whole = np.arange(len(samples.y_train))
    return _part(config, samples, agreed, {client: whole})


def at_server(config: Config, samples: NodeSamples | None, agreed: Arrays) -> PrivateFederation:
    """Return the server's part: no client's samples, perhaps a test set, and what an algorithm's server needs."""
    federation = federation_of(config)
    if samples is None:
        shape, dtype = sample_form(federation)
        samples = NodeSamples(np.empty((0, *shape), dtype), EMPTY, np.empty((0, *shape), dtype), EMPTY)
    if federation.evaluate != "clients" and not len(samples.y_test):
        why = "the server evaluates the model"
        raise DataError(f"federation.evaluate is {federation.evaluate!r}: {why}, so name a file with its test samples")
    part = _part(config, samples, agreed, {})
    per_class = config.algorithm.make().auxiliary
    missing = set(range(len(federation.classes))) - {*samples.y_train.tolist()}
    if per_class and missing:
        name = federation.classes[min(missing)]
        why = f"{config.algorithm.name} needs {per_class} samples of every class at the server, and {name!r} has none"
        raise DataError(f"{why}; put them into the training part of the server's file")
    return replace(part, problem=replace(part.problem, groups=_groups(federation, samples, agreed)))


def _part(
    config: Config, samples: NodeSamples, agreed: Arrays, own: Mapping[int, NDArray[np.int64]]
) -> PrivateFederation:
    federation = federation_of(config)
    x_train, x_test = _standardized(config, samples, agreed)
    held = {"server": "", "clients": "test", "both": "validation"}[federation.evaluate]
    shards = [Shard(k, own.get(k, EMPTY), EMPTY) for k in range(len(federation.nodes))]
    classes, number = len(federation.classes), config.algorithm.make().auxiliary
    problem = Problem(
        x_train=x_train,
        y_train=samples.y_train,
        x_test=x_test,
        y_test=samples.y_test,
        shards=shards,
        num_classes=classes,
        groups=Groups(("all",), np.zeros(classes, np.int64), "counts"),
        scaling=_scaling(config, x_train if len(x_train) else x_test, agreed),
        class_names=federation.classes,
        auxiliary=first_of_each(samples.y_train, number) if number and len(samples.y_train) else None,
        private=True,
        largest=federation.largest,
        held_by_clients=held,
    )
    return PrivateFederation(problem, _record(federation, samples, agreed))


def _standardized(config: Config, samples: NodeSamples, agreed: Arrays) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return training and test samples, the numbers of a table standardised."""
    federation, mode = federation_of(config), config.data.standardize
    parts: tuple[NDArray[Any], NDArray[Any]] = samples.x_train, samples.x_test
    if not federation.columns or mode == "none" or not numeric_columns(federation).any():
        return parts
    if mode == "pooled":
        moments = Moments(int(agreed["count"]), agreed["mean"], agreed["squares"])
    else:
        moments = Moments.of(_by_channel(parts[0] if len(parts[0]) else parts[1], federation))
    numeric, new = numeric_columns(federation), (parts[0].copy(), parts[1].copy())
    for x in new:
        x[:, numeric] = moments.standardize(_by_channel(x, federation))
    return new


def _scaling(config: Config, own: NDArray[Any], agreed: Arrays) -> Scaling:
    """Return how samples are scaled: by the statistics of all nodes, by this party's own, or as ``[data]`` says."""
    federation, wanted = federation_of(config), config.data.scaling
    pixel_max, dimensions = federation.pixel_max, len(federation.shape) or 1
    if isinstance(wanted, dict):
        unit = pixel_max if federation.shape and federation.form == "images" else 1
        width = federation.shape[0] if federation.shape else len(federation.columns)
        with errors_at(config, {}, ("data", "scaling")):
            if len(wanted["mean"]) != width or not (federation.has_channels or federation.columns):
                raise DataError(f"expected {width} channels, as samples have, got {len(wanted['mean'])}")
        mean, std = (tuple(float(value) * unit for value in wanted[name]) for name in ("mean", "std"))
        return Scaling(mean, std, pixel_max, dimensions)
    if wanted == "none" or not federation.has_channels:
        return Scaling(pixel_max=pixel_max)
    if wanted == "local":
        return Scaling.fit(own, pixel_max=pixel_max) if len(own) else Scaling(pixel_max=pixel_max)
    if "sum" in agreed:
        return Scaling.of_sums(int(agreed["count"]), agreed["sum"], agreed["squares"], pixel_max)
    moments = Moments(int(agreed["count"]), agreed["mean"], agreed["squares"])
    return Scaling(tuple(moments.mean.tolist()), tuple(moments.deviation.tolist()), pixel_max, dimensions)


def _groups(federation: FederationConfig, samples: NodeSamples, agreed: Arrays) -> Groups:
    wanted, classes = federation.groups, federation.classes
    if isinstance(wanted, str):
        counts = agreed[COUNTS] if wanted == "counts" else np.bincount(samples.y_test, minlength=len(classes))
        return evaluation_groups(counts)
    of = {name: g for g, members in enumerate(wanted.values()) for name in members}
    return Groups(tuple(wanted), np.array([of[name] for name in classes], np.int64), "counts")


def _record(federation: FederationConfig, samples: NodeSamples, agreed: Arrays) -> dict[str, Any]:
    """Return what a manifest holds: the parties and this party's own data; the nodes' samples are unknown here."""
    arrays = {name: getattr(samples, name) for name in ("x_train", "y_train", "x_test", "y_test")}
    return {
        "format": FORMAT,
        "source": "private nodes",
        "origin": None,
        "nodes": list(federation.nodes),
        "clients": len(federation.nodes),
        "class_names": list(federation.classes),
        "class_counts": agreed[COUNTS].tolist() if COUNTS in agreed else [],
        "client_sizes": [],
        "feature_names": list(federation.columns),
        "encoded": list(federation.encoded),
        "standardized": {},
        "arrays": {name: array_record(array) for name, array in arrays.items()},
        "statistics": {name: array.tolist() for name, array in agreed.items()},
        "note": "",
    }


def recorded_statistics(manifest: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the statistics that a run started with, from its manifest."""
    return {name: np.array(values) for name, values in manifest["data"].get("statistics", {}).items()}


def within_policy(config: Config, node: NodeConfig, client: int, ids: Sequence[str] = ()) -> Config:
    """Return the configuration as a node runs it: re-labelling by the stricter of federation and policy.

    `ids` are the names of its training samples, if they have any, by which the policy names those to keep.
    """
    _check_refused(config, node.policy)
    relabel, classes = config.relabel, federation_of(config).classes
    if relabel.keep:
        raise MismatchError("relabel.keep: names rows of one data set; a private node names its own in [policy]")
    names = [each.name for each in options_of(OwnerLimits)]
    requested = {name: getattr(relabel, name) for name in names} | {"tau": relabel.tau_of(client)}
    try:
        policy = node.policy.numbered(classes)
    except ArgumentError as error:
        raise MismatchError(f"policy.{error.argument}: {error.reason}; expected the federation's classes") from None
    both = OwnerLimits(**requested).numbered(classes).stricter(policy)
    if ids:
        both = replace(both, keep=numbers_of(both.keep, ids))
    stricter: RelabelPlan = replace(relabel, **{name: getattr(both, name) for name in names})
    return config.model_copy(update={"relabel": stricter})


def refusal(config: Config, policy: NodePolicy) -> str:
    """Return why a policy keeps its node out of the federation; empty if it does not."""
    algorithm = config.algorithm.make()
    for name, what in algorithm.disclosed().items():
        if name in policy.refuse:
            return f"its policy refuses {name!r}{f' ({what})' if what else ''}, which {algorithm.name} needs"
    return ""


def _check_refused(config: Config, policy: NodePolicy) -> None:
    """Raise if a policy refuses what no algorithm sends: a mistyped name would have no effect."""
    disclosed = config.algorithm.make().disclosed()
    known = {*disclosed, *(name for kind in ALGORITHMS.values() for name, _ in kind.discloses)}
    for name in policy.refuse:
        if name not in known:
            raise MismatchError(f"policy.refuse: no algorithm sends {name!r}{nearest_hint(name, sorted(known))}")
