"""The global model that a client just received, and the rows that it scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.arguments import check_choice
from fedrela.core.input_checks import ROW_SUM_TOLERANCE
from fedrela.errors import ArgumentError, DataError
from fedrela.models.inputs import FORWARD_BATCH
from fedrela.plugin.dataset import LabelKey, as_rows
from fedrela.plugin.rows import are_finite, check_same_rows, row_ids, same_random_numbers, sample_rows
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

    def check_rows(self, every: bool = False) -> None:
        """Raise if rows cannot be used or differ between two reads, or if there is not one id per row.

        If the rows to score are not the training data, the labels of a few rows, or of `every` one, are compared.
        """
        _ = self.sample_digest, self.ids
        self._check_training(every)

    def _check_training(self, every: bool) -> None:
        if self._training is not None:
            check_same_rows(self._training(), self.data, self._options["label"], every)

    def check_batch(self, round: int = 1) -> int:
        """Score one batch and check outputs and labels; return the number of classes.

        After round 1, a model that returns NaN for finite inputs may have diverged: then it is refused later.
        """
        scored = self._score(most=FORWARD_BATCH)
        self._check_outputs(scored.posterior, round)
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

    def _check_outputs(self, Q: NDArray[np.float64], round: int) -> None:
        """Raise if outputs are not finite, or if they should be probabilities and are not."""
        finite = np.isfinite(Q).all(axis=1)
        if not finite.all():
            rows = as_rows(self.data)[0]
            with same_random_numbers():
                wrong = next((row for row in range(len(Q)) if not are_finite(rows[row])), None)
            row = int(finite.argmin())
            if wrong is not None:
                what = (
                    f"row {wrong}: its inputs have NaN or infinity, so the model's outputs for row {row} are not finite"
                )
                raise DataError(f"data: {what}; fill in such values, or leave the rows out")
            if round == 1:
                what = f"its outputs for row {row} are not finite, although all inputs of the batch are"
                raise ArgumentError(f"{what}; see its weights and how they are loaded", argument="model")
        elif self._options["outputs"] == "probabilities":
            total = Q.sum(axis=1)
            off = (np.abs(total - 1) > ROW_SUM_TOLERANCE) | (Q.min(axis=1) < 0)
            if off.any():
                row = int(off.argmax())
                what = f"its outputs for row {row} are not probabilities"
                what += f": smallest {Q[row].min():.3g}, sum {total[row]:.3g}"
                raise ArgumentError(f'{what}; if they are logits, leave out outputs="probabilities"', argument="model")

    def score(self) -> Scored:
        """Score all rows; raise if they have no ids and differ from those of the client's first round.

        They are first compared with all rows of the training data, if these are others.
        """
        if not self.ids and self.expected_digest not in ("", self.sample_digest):
            raise DataError(
                "data: not the rows of this client's first round, or in another order; shuffle with a fixed seed, "
                "or give ids"
            )
        self._check_training(every=True)
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
