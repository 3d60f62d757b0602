"""`relabel` as a sampler, like those of imbalanced-learn."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core import Relabelling, relabel
from fedrela.errors import ArgumentError, DataError
from fedrela.text import unknown


class Relabeler:
    """Re-label with a fitted classifier or with a posterior at hand.

    Parameters
    ----------
    estimator
        A fitted classifier with ``predict_proba`` (and ``classes_``, as scikit-learn's have), or None where the
        posterior itself is given to `fit_resample` in place of the features.
    **options
        The options of `fedrela.relabel`: ``tau``, ``preset``, ``max_fraction``, ``seed`` and so on.

    Attributes
    ----------
    relabelling_ : Relabelling
        The result of the last `fit_resample`, ledger included.
    moved_ : (m,) integers
        Indices of the samples whose label changed.
    classes_ : (C,) array
        The label that each posterior column stands for.

    Examples
    --------
    >>> from fedrela import Relabeler
    >>> posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    >>> sampler = Relabeler(tau=0.4, seed=3)
    >>> X, y = sampler.fit_resample(posterior, [0, 0, 0, 0, 1])
    >>> y.tolist(), sampler.moved_.tolist()
    ([0, 0, 0, 1, 1], [3])
    """

    relabelling_: Relabelling
    classes_: NDArray[Any]

    def __init__(self, estimator: Any = None, **options: Any) -> None:
        self.estimator = estimator
        self.options = options
        known = list(inspect.signature(relabel).parameters)[2:]  # all but posterior and labels
        for name in sorted(options.keys() - set(known)):
            raise ArgumentError(unknown("option", name, known, "fedrela.relabel"), argument=name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, so that scikit-learn's ``clone`` and pipelines take the object."""
        return {"estimator": self.estimator, **self.options}

    def set_params(self, **params: Any) -> Relabeler:
        """Set parameters and return the object itself."""
        changed = Relabeler(**(self.get_params() | params))
        self.estimator, self.options = changed.estimator, changed.options
        return self

    def __sklearn_clone__(self) -> Relabeler:
        """Return an equal sampler with the same fitted estimator, since a cloned estimator could not predict."""
        return Relabeler(**self.get_params())

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return `X` as it is and the new labels; a refusal leaves them unchanged and is given as a warning.

        `X` are features for the estimator, or the posterior ``(n, C)`` where there is none. Labels are any values that
        the estimator knows as ``classes_``; without them integers from 0.
        """
        posterior = X if self.estimator is None else self.estimator.predict_proba(X)
        classes = getattr(self.estimator, "classes_", None)
        codes = np.asarray(y) if classes is None else _codes(y, np.asarray(classes))
        self.relabelling_ = relabel(posterior, codes, **self.options)
        self.classes_ = np.arange(self.relabelling_.threshold.size) if classes is None else np.asarray(classes)
        if self.relabelling_.refusal is not None:
            warnings.warn(f"nothing was re-labelled: {self.relabelling_.refusal}", stacklevel=2)
            return X, y
        new = self.relabelling_.labels
        return X, _like(y, new if classes is None else self.classes_[new])

    @property
    def moved_(self) -> NDArray[np.intp]:
        """Indices of the samples whose label changed."""
        return self.relabelling_.moved


def _codes(y: ArrayLike, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of every label among the classes."""
    place = {value: code for code, value in enumerate(classes.tolist())}
    try:
        return np.array([place[value] for value in np.asarray(y).tolist()], np.int64)
    except KeyError as error:
        raise DataError(f"y: label {error.args[0]!r} is not one of the estimator's classes") from None


def _like(given: Any, new: NDArray[Any]) -> Any:
    """Return the labels in the caller's container: a pandas Series stays one (pandas is not imported for it)."""
    return type(given)(new, index=given.index, name=given.name) if hasattr(given, "iloc") else new
