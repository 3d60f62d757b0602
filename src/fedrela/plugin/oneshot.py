"""FedReLa in somebody's own training loop."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.core import Ledger
from fedrela.plugin.dataset import RelabeledDataset
from fedrela.plugin.policy import Policy, read_policy
from fedrela.plugin.rows import Place, labels_of
from fedrela.plugin.scoring import Forward, posterior
from fedrela.plugin.store import POLICY, LabelStore
from fedrela.plugin.turn import ledger_in_force, plan

LOG = logging.getLogger("fedrela")


class OneShot:
    """One client's training data, re-labelled once by the global model when the time has come.

    Parameters
    ----------
    data
        A map-style data set or tensors ``(X, y)``: training data, never what you evaluate on.
    experiment, client
        Under these names the labels are kept, so that a restarted client reads them and makes no others.
    rounds
        Number of rounds of the run; needed where `start` is a share of them.
    store
        Folder of labels and ledgers; None for one below the user's data folder.
    policy
        The owner's limits: a `Policy`, or its TOML file. None for ``policy.toml`` in `store`, where there is one.
    forward, label
        See `fedrela.plugin.posterior` and `RelabeledDataset`.
    options
        ``start`` (0.8: a share of the rounds; 48: a round), ``tau``, ``period``, ``late``, ``preset``, ``seed``, and
        the limits of `Policy`.

    Attributes
    ----------
    dataset : RelabeledDataset
        The data with the labels in force; give this one to your `DataLoader`.
    ledger : Ledger or None
        What was changed.

    Examples
    --------
    ::

        once = OneShot(train_set, experiment="icu", client="ward-3", rounds=50)
        loader = DataLoader(once.dataset, batch_size=32, shuffle=True)
        for round in range(1, 51):
            model.load_state_dict(receive())
            once.before_round(round, model)
            train(model, loader)
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
        forward: Forward | None = None,
        label: Place | None = None,
        **options: Any,
    ) -> None:
        self.plan = plan(rounds=rounds, **options)
        self.store = LabelStore(store, experiment, str(client))
        self.policy = policy if isinstance(policy, Policy) else own_policy(policy, self.store.root)
        self.dataset = RelabeledDataset(data, label=label)
        self.ledger: Ledger | None = None
        self._data, self._forward, self._label = data, forward, label

    def before_round(self, round: int, model: nn.Module) -> Ledger | None:
        """Put the labels of `round`, from 1, in force; `model` is the global model as it was received."""

        def score() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            return posterior(model, self._data, forward=self._forward, label=self._label)

        ledger, new = ledger_in_force(self.store, self.plan, self.policy, round, score, LOG)
        if ledger is not None and not new and self.ledger is None:
            self.store.check_data(ledger, labels_of(self._data, self._label))
        self.ledger = ledger
        self.dataset.use(ledger)
        return ledger

    def undo(self) -> NDArray[np.int64]:
        """Return to the original labels for the rest of the experiment."""
        original = self.store.undo()
        self.ledger = None
        self.dataset.use(None)
        return original


def own_policy(path: str | Path | None, folder: Path) -> Policy:
    """Return the policy of a file, or of the one in `folder`, or the default where there is none."""
    if path is None and not (folder / POLICY).exists():
        return Policy()
    return read_policy(folder / POLICY if path is None else path)
