"""FedReLa in anyone's training loop: `OneShot`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.core import Ledger
from fedrela.errors import DataError
from fedrela.plugin.dataset import LabelKey, RelabeledDataset
from fedrela.plugin.passes import ClientRound, plan_passes
from fedrela.plugin.policy import Policy, own_policy
from fedrela.plugin.received_model import Scorer
from fedrela.plugin.rows import reorder
from fedrela.plugin.scoring import Forward
from fedrela.plugin.store import LabelStore

LOG = getLogger("fedrela")


class OneShot:
    """One client's training data, re-labelled once by the global model, in the round set by the schedule.

    Parameters
    ----------
    data
        A map-style data set or tensors ``(X, y)``: training data, never what you evaluate on.
    experiment, client
        Names under which the labels are stored, so that a restarted client reads them instead of making new ones.
    rounds
        Number of rounds of the run; required if `start` is a share of them.
    store
        Folder of labels and ledgers; None for one below the user's data folder.
    policy
        The owner's limits: a `Policy`, or its TOML file. None for ``policy.toml`` in `store`, if there is one.
    scoring_data
        The same rows as `data` in the same order, without random augmentation, for the model to score.
    ids
        One name per row, such as a patient's number: labels follow them if a restarted client has its rows in another
        order. Without ids such a restart is refused.
    class_names
        Names of the model's outputs, in their order, for the ledger and for limits that name classes.
    forward, label, outputs
        See `fedrela.plugin.posterior` and `RelabeledDataset`.
    options
        ``start`` (0.8: a share of the rounds; 48: a round), ``tau``, ``period``, ``late``, ``preset``, ``seed``,
        ``resume`` (true: use stored labels even if they were made with another seed, preset or model, or under
        stricter limits), and the limits of `Policy`.

    Attributes
    ----------
    dataset : RelabeledDataset
        The data with the current labels; pass this to your `DataLoader`.
    ledger : Ledger or None
        Every changed label.

    Examples
    --------
    In the loop of a client::

        once = OneShot(train_set, experiment="icu", client="ward-3", rounds=50)
        loader = DataLoader(once.dataset, batch_size=32, shuffle=True)
        for round in range(1, 51):
            model.load_state_dict(receive())
            once.before_round(round, model)
            train(model, loader)

    With eight rows that are their own logits, of which the seventh looks most like the rare class:

    >>> import tempfile
    >>> import torch
    >>> x = torch.tensor([[3.0, 0.0]] * 6 + [[1.0, 0.0], [0.0, 3.0]])
    >>> y = torch.tensor([0, 0, 0, 0, 0, 0, 0, 1])
    >>> with tempfile.TemporaryDirectory() as store:
    ...     once = OneShot((x, y), experiment="icu", client="ward-3", rounds=2, start=2, tau=0.2, store=store)
    ...     for round in (1, 2):
    ...         _ = once.before_round(round, nn.Identity())
    ...         print(round, [int(label) for _, label in once.dataset])
    1 [0, 0, 0, 0, 0, 0, 0, 1]
    2 [0, 0, 0, 0, 0, 0, 1, 1]
    """

    def __init__(
        self,
        data: Any,
        *,
        experiment: str,
        client: str | int,
        rounds: int | None = None,
        store: str | Path | None = None,
        policy: Policy | str | Path | None = None,
        scoring_data: Any = None,
        ids: Sequence[Any] | None = None,
        class_names: Sequence[str] | None = None,
        forward: Forward | None = None,
        label: LabelKey | None = None,
        outputs: str | None = None,
        **options: Any,
    ) -> None:
        self.plan = plan_passes(rounds=rounds, **options)
        self.store = LabelStore(store, experiment, str(client))
        self._policy = policy
        self.policy, _ = own_policy(policy, self.store)
        self._told = ""  # what the log says about the policy
        self.dataset = RelabeledDataset(data, label=label)
        self.ledger: Ledger | None = None
        self._taken_over: int | None = None  # None before its first round in which it is on
        self._had_labels = False
        self._scoring: dict[str, Any] = {"forward": forward, "label": label, "outputs": outputs}
        self._scoring["class_names"] = class_names
        self._data, self._scoring_data, self._ids = data, scoring_data, ids
        self._sample_digest = ""
        scorer = self._scorer(nn.Identity())
        if self.plan.limits.stricter(self.policy).enabled:
            scorer.check_rows()
            self._sample_digest = scorer.sample_digest

    def before_round(self, round: int, model: nn.Module) -> Ledger | None:
        """Use the labels of `round`, from 1; `model` is the global model as it was received.

        The policy's file is read again. The first call also checks everything that could fail in a later one.
        """
        self.policy, file = own_policy(self._policy, self.store)
        client_round = ClientRound(self.store, self.plan, self.policy, round, self._scorer(model), LOG, file)
        self._told = client_round.tell_policy(self._told)
        if self._had_labels and client_round.folder_is_gone():
            self.ledger = None
        else:
            if self._taken_over is None and not client_round.off:
                self._taken_over = client_round.begin()
            used = 0 if self.ledger is None else int(self.ledger.options["round"])
            self.ledger = client_round.labels(self._taken_over or 0, used)
            self._had_labels |= self.ledger is not None or self.store.undone
        self.dataset.use(self.ledger)
        return self.ledger

    def _scorer(self, model: nn.Module) -> Scorer:
        rows = self._data if self._scoring_data is None else self._scoring_data
        training = None if self._scoring_data is None else lambda: self._data
        scorer = Scorer(lambda: model, lambda: rows, training=training, ids=lambda: self._ids, **self._scoring)
        scorer.expected_digest = self._sample_digest
        return scorer

    def undo(self, reason: str = "not given") -> NDArray[np.int64]:
        """Go back to the original labels for the rest of the experiment, and return them; the log holds the reason.

        They are in the order of the current rows; if rows have come or gone since, in that of the ledger.
        """
        self.store.undo(reason)
        self.ledger, self._had_labels = None, True
        self.dataset.use(None)
        last = self.store.passes()[-1]
        with contextlib.suppress(DataError):
            last = reorder(last, self._scorer(nn.Identity()).ids, self.store.folder)
        return np.asarray(last.original, np.int64)
