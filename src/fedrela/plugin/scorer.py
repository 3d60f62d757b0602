"""The global model that a client just received, and the rows that it scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.arguments import check_choice
from fedrela.errors import ArgumentError, DataError
from fedrela.models.inputs import FORWARD_BATCH
from fedrela.plugin.dataset import LabelKey, as_rows
from fedrela.plugin.rows import check_same_rows, row_ids, sample_rows
from fedrela.plugin.scoring import OUTPUTS, Forward, Scored, model_digest, rows_of, score
from fedrela.text import shown


class Scorer:
    """A model and the rows that it scores, each fetched when it is first needed.

    Parameters
    ----------
    model, data, ids
        Functions that return the model, the rows, and one id per row or None.
    training
        Returns the training data, if these are not the rows to score; see `scoring_data` of `OneShot`.
    class_names
        Names of the model's outputs in their order; empty for numbers alone.
    forward, label, outputs
        See `fedrela.plugin.posterior`.
    """

    def __init__(
        self,
        model: Callable[[], nn.Module],
        data: Callable[[], Any],
        *,
        training: Callable[[], Any] | None = None,
        ids: Callable[[], Sequence[Any] | None] = lambda: None,
        class_names: Sequence[str] | None = None,
        forward: Forward | None = None,
        label: LabelKey | None = None,
        outputs: str | None = None,
    ) -> None:
        self._fetch_model, self._fetch_data, self._fetch_ids, self._training = model, data, ids, training
        self.class_names = check_names(class_names)
        self.expected_digest = ""  # `sample_digest` in the client's first round, if known
        if outputs is not None:
            check_choice("outputs", outputs, OUTPUTS)
        self._options: dict[str, Any] = {"forward": forward, "label": label, "outputs": outputs}

    @cached_property
    def model(self) -> nn.Module:
        """The global model as it was received."""
        model = self._fetch_model()
        if not isinstance(model, nn.Module):
            what = f"expected a torch.nn.Module with the global weights, got {type(model).__name__}"
            raise ArgumentError(what, argument="model")
        return model

    @cached_property
    def data(self) -> Any:
        """The rows that the model scores."""
        return self._fetch_data()

    def __len__(self) -> int:
        return len(as_rows(self.data)[0])

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """One name per row, or nothing."""
        ids = self._fetch_ids()
        return () if ids is None else row_ids(ids, len(self))

    @cached_property
    def model_sha256(self) -> str:
        """The digest of the model's parameters and buffers."""
        return model_digest(self.model)

    @property
    def model_name(self) -> str:
        """A description of the model."""
        return f"{type(self.model).__name__} with {sum(each.numel() for each in self.model.parameters()):,} parameters"

    @cached_property
    def sample_digest(self) -> str:
        """The digest of a few rows, which are read twice and must not differ."""
        return sample_rows(self.data, self._options["label"])

    def check_rows(self) -> None:
        """Raise if rows cannot be used or differ between two reads, or if there is not one id per row."""
        _ = self.sample_digest, self.ids
        if self._training is not None:
            check_same_rows(self._training(), self.data, self._options["label"])

    def check_batch(self) -> int:
        """Score one batch and check its labels; return the number of classes."""
        scored = self._score(most=FORWARD_BATCH)
        C = int(scored.posterior.shape[1])
        wrong = (scored.labels < 0) | (scored.labels >= C)
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"data: row {row}: expected a class from 0 to {C - 1}, since the model has {C} outputs, got "
                f"{scored.labels[row]}; numbers to predict (regression) cannot be re-labelled"
            )
        if self.class_names and len(self.class_names) != C:
            what = f"expected {C} names, one per output of the model, got {len(self.class_names)}"
            raise ArgumentError(what, argument="class_names")
        return C

    def score(self) -> Scored:
        """Score all rows; raise if they have no ids and differ from those of the client's first round."""
        if not self.ids and self.expected_digest not in ("", self.sample_digest):
            raise DataError(
                "data: not the rows of this client's first round, or in another order; shuffle with a fixed seed, "
                "or give ids"
            )
        return self._score()

    def rows(self) -> tuple[NDArray[np.int64], str]:
        """Return the labels of all rows, and the digest of what the model would score."""
        return rows_of(self.data, self._options["label"])

    def _score(self, most: int | None = None) -> Scored:
        return score(self.model, self.data, most=most, **self._options)


def check_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return distinct class names in the order of the model's outputs; nothing for None."""
    distinct = tuple(() if names is None else names)
    if not all(isinstance(name, str) for name in distinct) or len(set(distinct)) < len(distinct):
        raise ArgumentError(f"expected distinct names, one per class, got {shown(names)}", argument="class_names")
    return distinct
