"""`relabel` as a sampler for scikit-learn and imbalanced-learn."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fedrela.core import Ledger, Relabelling, relabel, undo
from fedrela.core.input_checks import check_array, is_missing
from fedrela.core.limits import is_matrix
from fedrela.core.relabel_options import PreviewKeywords, RelabelOptions, keyword_parameters, show_keywords
from fedrela.errors import ArgumentError, DataError
from fedrela.options import options_of
from fedrela.text import unknown

OPTIONS = ("tau", *PreviewKeywords.__annotations__)


class Relabeler(OneToOneFeatureMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Re-label with a classifier, or with a given posterior.

    Further parameters are the options of `fedrela.relabel`: ``tau``, ``preset``, ``max_fraction`` and so on; limits
    name classes by their labels. Results follow the rows: the same rows in another order get the same labels.

    Parameters
    ----------
    estimator
        A classifier with ``predict_proba``. A fitted one is used as it is; an unfitted one is cloned and fitted to the
        data first. None if the posterior itself is given to `fit_resample` in place of the features.
    cv
        Number of folds, or a splitter of scikit-learn, for out-of-fold posteriors: clones of the estimator are fitted
        in the folds, so that none scores rows that it saw. A splitter, or a list of splits, sees the rows as they are
        given; with a number of folds the result follows the rows when these are permuted. None for no folds.
    eligible, keep
        ``(n,)`` booleans: samples that may move, and samples whose label is verified and stays. In cross-validation,
        enable scikit-learn's metadata routing and give them to ``fit`` instead: each fold gets those of its own rows.
    seed
        Seed of the draws.

    Attributes
    ----------
    ledger_ : Ledger
        Every move, with the labels as class names; `undo` reverses them.
    relabelling_ : Relabelling
        The result of the last `fit_resample`; its rows are in the order of `order_`.
    classes_ : (C,) array
        The label that each column of the posterior stands for.
    estimator_ : classifier
        The estimator that was fitted here, if any.
    order_, sample_indices_ : (n,) integers
        The rows in an order that depends on their values alone; and the rows of the result, which are all.
    n_features_in_ : int
        Number of columns of `X`.

    Examples
    --------
    >>> from fedrela import Relabeler
    >>> posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    >>> sampler = Relabeler(tau=0.4, seed=3)
    >>> X, y = sampler.fit_resample(posterior, ["healthy"] * 4 + ["ill"])
    >>> y, sampler.moved_.tolist()
    (['healthy', 'healthy', 'healthy', 'ill', 'ill'], [3])
    """

    relabelling_: Relabelling
    ledger_: Ledger
    classes_: NDArray[Any]
    __metadata_request__fit_resample: ClassVar = {"eligible": True, "keep": True}  # read by scikit-learn

    @show_keywords(keyword_parameters(*OPTIONS))
    def __init__(
        self, estimator: Any = None, *, cv: Any = None, eligible: Any = None, seed: Any = 0, **options: Any
    ) -> None:
        self.estimator, self.cv, self.eligible, self.seed = estimator, cv, eligible, seed
        for name in sorted(options.keys() - set(OPTIONS)):
            raise ArgumentError(unknown("option", name, OPTIONS, "fedrela.relabel"), argument=name)
        for each in options_of(RelabelOptions):
            setattr(self, each.name, options.get(each.name, each.default))

    def __sklearn_clone__(self) -> Relabeler:
        """Return an unfitted sampler; a fitted estimator is kept."""
        params = self.get_params(deep=False)
        kept = {"estimator": self.estimator} if self.estimator is not None and _is_fitted(self.estimator) else {}
        return type(self)(**{name: clone(value, safe=False) for name, value in params.items()} | kept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if isinstance(self.estimator, BaseEstimator):
            inputs = get_tags(self.estimator).input_tags
            tags.input_tags.allow_nan, tags.input_tags.sparse = inputs.allow_nan, inputs.sparse
        return tags

    def fit(self, X: Any, y: Any, *, eligible: Any = None, keep: Any = None) -> Relabeler:
        """Re-label as `fit_resample` does, and return the object itself; `ledger_` has the result."""
        self.fit_resample(X, y, eligible=eligible, keep=keep)
        return self

    def fit_resample(self, X: Any, y: Any, *, eligible: Any = None, keep: Any = None) -> tuple[Any, Any]:
        """Return `X` unchanged and the new labels in the form of `y`; a refusal gives a warning, and changes nothing.

        Labels are any values, as an array, a list, a Series, a Categorical, or a frame or array of one column.
        `eligible` and `keep` replace the parameters of that name.
        """
        form: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        checked = validate_data(self, X, y="no_validation" if y is not None else None, **form)
        given = _values(y)
        if len(given) != checked.shape[0]:
            raise DataError(f"y: expected {checked.shape[0]} labels, one per row of X, got {len(given)}")
        check_classification_targets(given)
        self.order_ = order = _canonical(checked, given)
        self.sample_indices_ = np.arange(len(given))
        rows = X if hasattr(X, "iloc") else checked
        folds = None if self.cv is None else self._folds(rows, given, order)
        posterior, classes = self._posterior(_safe_indexing(rows, order), given[order], folds)
        codes = _codes(given, classes)
        done = relabel(
            posterior,
            codes[order],
            seed=self.seed,
            eligible=_flags("eligible", self.eligible if eligible is None else eligible, len(given), True)[order],
            keep=_flags("keep", self.keep if keep is None else keep, len(given), False)[order],
            class_names=tuple(map(str, classes.tolist())),
            ids=tuple(map(str, order.tolist())),
            **self._options(classes),
        )
        self.classes_, self.relabelling_ = classes, done
        self.ledger_ = done.ledger.for_rows([str(row) for row in range(len(given))])
        if done.refusal is not None:
            warnings.warn(f"nothing was re-labelled: {done.refusal}", stacklevel=2)
            return X, y
        return X, _like(y, classes[self.ledger_.labels])

    def undo(self) -> NDArray[Any]:
        """Return the labels as they were given to the last `fit_resample`."""
        check_is_fitted(self, "ledger_")
        return np.asarray(self.classes_[undo(self.ledger_)])

    @property
    def moved_(self) -> NDArray[np.int64]:
        """Indices of the samples whose label changed."""
        return self.ledger_.index

    def _options(self, classes: NDArray[Any]) -> dict[str, Any]:
        """Return the options of `relabel` but for `keep`, with classes by their labels."""
        given = {name: getattr(self, name) for name in OPTIONS if name != "keep"}
        names = {label: str(label) for label in classes.tolist()}

        def named(label: Any, argument: str) -> str:
            label = label.item() if isinstance(label, np.generic) else label
            if label not in names and str(label) not in names.values():
                known = ", ".join(map(repr, list(names)[:20]))
                raise ArgumentError(f"expected one of the labels {known}, got {label!r}", argument=argument)
            return names.get(label, str(label))

        for name in ("allowed", "forbidden"):
            limit, may_be_matrix = given[name], name == "allowed"
            if may_be_matrix and classes.dtype == np.bool_ and isinstance(limit, list | tuple):
                may_be_matrix = not all(isinstance(pair, tuple) for pair in limit)
            if isinstance(limit, list | tuple | set | frozenset) and not (may_be_matrix and is_matrix(limit)):
                pairs = [pair if isinstance(pair, list | tuple) else (pair,) for pair in limit]
                given[name] = [tuple(named(label, name) for label in pair) for pair in pairs]
        if isinstance(given["class_tau"], Mapping):
            keys = [named(label, "class_tau") for label in given["class_tau"]]
            if len(set(keys)) < len(keys):
                raise ArgumentError(f"expected each label once, got {given['class_tau']}", argument="class_tau")
            given["class_tau"] = dict(zip(keys, given["class_tau"].values(), strict=True))
        return given

    def _folds(self, X: Any, y: NDArray[Any], order: NDArray[np.intp]) -> Any:
        """Return `cv` for the rows in `order`: splits other than a number of folds may name rows as they were given."""
        if isinstance(self.cv, int | np.integer):
            return self.cv
        place = np.argsort(order)
        return [(place[train], place[test]) for train, test in check_cv(self.cv, y, classifier=True).split(X, y)]

    def _posterior(self, X: Any, y: NDArray[Any], folds: Any) -> tuple[Any, NDArray[Any]]:
        """Return the posterior of rows, and the label of each of its columns."""
        if self.estimator is None:
            whole = np.issubdtype(y.dtype, np.integer)
            classes = np.arange(max(X.shape[1], 1)) if whole else np.unique(y)
            if len(classes) != max(X.shape[1], 1):
                what = f"expected a column per class, got {X.shape[1]} columns and {len(classes)} classes in y"
                raise DataError(f"X: {what}; number the classes by their columns, or name an estimator")
            return X, classes
        if not hasattr(self.estimator, "predict_proba"):
            what = f"expected a classifier with predict_proba, got {type(self.estimator).__name__}"
            raise ArgumentError(f"{what}; CalibratedClassifierCV of scikit-learn adds it", argument="estimator")
        if folds is not None:
            found = cross_val_predict(clone(self.estimator), X, y, cv=folds, method="predict_proba")
            return found, np.unique(y)
        estimator = self.estimator
        if not _is_fitted(estimator):
            estimator = self.estimator_ = clone(estimator).fit(X, y)
        return estimator.predict_proba(X), np.asarray(estimator.classes_)


def _flags(name: str, given: Any, rows: int, otherwise: bool) -> NDArray[np.bool_]:
    """Return one boolean per row; numbers of rows are an error, since they name other rows in a fold."""
    if given is None or (isinstance(given, tuple) and not given):
        return np.full(rows, otherwise)
    try:
        return check_array(name, given, (rows,), np.bool_)
    except ArgumentError as error:
        advice = "give one boolean per row of X; in cross-validation to fit, with scikit-learn's metadata routing"
        raise ArgumentError(f"{error.reason}; {advice}", argument=name) from None


def _is_fitted(estimator: Any) -> bool:
    """Whether a classifier can predict; a user-defined one is fitted if it has ``classes_``."""
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return hasattr(estimator, "classes_") and not isinstance(estimator, BaseEstimator)
    return True


def _values(y: Any) -> NDArray[Any]:
    """Return labels as an array; those of a frame of one column are its column."""
    array = np.asarray(y)
    if array.dtype == object:
        for row, each in enumerate(array.ravel()):
            if is_missing(each):
                raise DataError(f"y: row {row}: expected a label, got none; leave the row out")
    if array.dtype == object and all(isinstance(each, str) for each in array.ravel()):
        array = array.astype(str)  # so that NumPy sorts and compares them as texts
    if array.ndim == 2 and array.shape[1] > 1:
        raise DataError(
            f"y: expected one label per row, got shape {array.shape}; for one-hot labels, pass their argmax"
        )
    return np.asarray(column_or_1d(array))


def _canonical(X: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows in an order that depends only on their values and labels, not on their positions."""
    if hasattr(X, "tocsr"):
        X = X.tocsr(copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        rows = ((X.indices[a:b], X.data[a:b]) for a, b in pairwise(X.indptr))
    else:
        array = np.asarray(X)
        whole = array.dtype == object  # else only values other than 0 count, as in sparse rows
        rows = ((np.arange(0), row) if whole else (np.flatnonzero(row), row[np.flatnonzero(row)]) for row in array)
    parts = [
        at.astype(np.int64).tobytes() + (repr(row.tolist()).encode() if row.dtype == object else row.tobytes())
        for at, row in rows
    ]
    keys = [hashlib.sha256(part + repr(label).encode()).digest() for part, label in zip(parts, y.tolist(), strict=True)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)


def _codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of every label among the classes."""
    code = {value: c for c, value in enumerate(classes.tolist())}
    try:
        return np.array([code[value] for value in y.tolist()], np.int64)
    except KeyError as error:
        raise DataError(f"y: label {error.args[0]!r} is not one of the classes {list(code)[:20]}") from None


def _like(given: Any, new: NDArray[Any]) -> Any:
    """Return labels in the caller's container; pandas is not imported for it."""
    if hasattr(given, "columns"):
        return type(given)(new[:, None], index=given.index, columns=given.columns).astype(given.dtypes.to_dict())
    if hasattr(given, "categories"):
        return type(given)(new, dtype=given.dtype)
    if hasattr(given, "iloc"):
        return type(given)(new, index=given.index, name=given.name, dtype=given.dtype)
    if isinstance(given, list):
        return new.tolist()
    array = np.asarray(given)
    if array.dtype.kind == "O":
        new = new.astype(object)
    return new.reshape(array.shape) if array.ndim == 2 else new
