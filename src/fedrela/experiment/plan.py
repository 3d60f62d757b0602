"""From a configuration and its data to what the engine needs: a problem and a plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms import ALGORITHMS, Algorithm
from fedrela.data.federation import Federation
from fedrela.engine.problem import Plan, Problem
from fedrela.experiment.build import groups_of, located
from fedrela.experiment.schema import check_fits
from fedrela.experiment.schema.problems import WrongConfigError
from fedrela.experiment.schema.table import Fault
from fedrela.models import build
from fedrela.models.contract import Model, given
from fedrela.models.inputs import Scaling
from fedrela.models.runtime import device_of, dtype_of

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config


def build_plan(
    config: Config, federation: Federation, model: Model | None = None, algorithm: Algorithm | None = None
) -> tuple[Problem, Plan]:
    """Return what the engine learns from, and how; model and algorithm may be the user's own.

    A model is a module, or a function of input shape and number of classes that makes one.
    """
    algorithm = algorithm or ALGORITHMS[config.algorithm.name](**config.algorithm.params)
    problem = _problem(config, federation, algorithm)
    keys = {"model": ("model", "name"), **{name: ("model", name) for name in config.model.options}}
    with located(config, keys, ("model", "name")):
        make = _maker(config, problem, model)
        make()
    check_fits(config, clients=len(problem.shards), classes=problem.num_classes)
    if config.train.augment and not problem.is_image:
        what = "crops and flips need images, and these samples are tables"
        raise WrongConfigError([Fault(("train", "augment"), what)], config.origin)
    plan = Plan(config.seed, config.train, config.relabel, algorithm, make, device_of(config.engine.device))
    return problem, plan


def _problem(config: Config, federation: Federation, algorithm: Algorithm) -> Problem:
    trained = np.concatenate([shard.train for shard in federation.shards])
    return Problem(
        x_train=federation.x_train,
        y_train=np.asarray(federation.y_train, np.int64),
        x_test=federation.x_test,
        y_test=np.asarray(federation.y_test, np.int64),
        shards=federation.shards,
        num_classes=federation.source.num_classes,
        groups=groups_of(federation, config.data.protocol),
        scaling=Scaling.fit(federation.x_train, trained, pixel_max=federation.source.pixel_max),
        class_names=tuple(federation.source.class_names),
        auxiliary=_first_of_each(federation.y_train, algorithm.auxiliary) if algorithm.auxiliary else None,
    )


def _maker(config: Config, problem: Problem, model: Model | None) -> Callable[[], Any]:
    table, sizes = config.model, (problem.input_shape, problem.num_classes)
    if model is not None:
        return given(model, *sizes)
    options = {"projection": table.projection, "dtype": dtype_of(table.dtype), **table.options}
    return partial(build, table.name, *sizes, seed=config.seed, **options)


def _first_of_each(labels: NDArray[Any], number: int) -> NDArray[np.int64]:
    """Return the ids of the first samples of every class."""
    return np.concatenate([np.flatnonzero(labels == label)[:number] for label in np.unique(labels)])
