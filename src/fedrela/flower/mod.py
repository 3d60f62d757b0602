"""The plug-in: a Flower mod that re-labels a client's training data, in anyone's app.

It reads the round and the global model from the message, and adds nothing to what the client sends. The current labels
reach the training function through the state of Flower's context, which never leaves the client. New labels are for
training only: outside a training call through the mod, everything here returns the original ones, so that evaluation
uses those, whichever function loads its data.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp.typing import ClientAppCallable, Mod
from torch import nn

from fedrela.core import Ledger
from fedrela.errors import ArgumentError, FedrelaError
from fedrela.files import write_bytes
from fedrela.flower.config_keys import PREFIX, check_keys
from fedrela.flower.current_labels import (
    LABELS,
    LOGGER,
    MADE,
    StoredLabels,
    note_mod,
    store_labels,
    stored_labels,
    training_labels,
)
from fedrela.models.runtime import device_of
from fedrela.plugin.dataset import LabelKey, training_part
from fedrela.plugin.passes import UNLIMITED, ClientRound, PassPlan, is_unexpected, plan_options, plan_passes
from fedrela.plugin.policy import own_policy
from fedrela.plugin.received_model import Scorer
from fedrela.plugin.rows import same_random_numbers
from fedrela.plugin.scoring import Forward
from fedrela.plugin.store import OWN_NAME, LabelStore
from fedrela.text import one_line, shown

LOG = logging.getLogger(LOGGER)
CHECKED, TOLD = "fedrela.checked", "fedrela.told"
ROUND = "server-round"
UNNAMED = "client"  # of a node without client-id and partition-id
NODE = "node"  # file in the folder of an unnamed client: the id of the last node that began to use it


def relabel_mod(
    model: Callable[..., nn.Module],
    data: Callable[..., Any],
    *,
    rounds: int | str = "num-server-rounds",
    round_key: str | None = None,
    experiment: str | None = None,
    load: Callable[[nn.Module, Message], None] | None = None,
    scoring_data: Callable[..., Any] | None = None,
    ids: Callable[..., Sequence[Any]] | None = None,
    class_names: Sequence[str] | None = None,
    forward: Forward | None = None,
    label: LabelKey | None = None,
    outputs: str | None = None,
    device: str = "auto",
    **options: Any,
) -> Mod:
    """Return a mod that re-labels each client's training data once, by the global model it receives.

    Parameters
    ----------
    model
        The model's class, or a function that creates it.
    data
        Returns the client's training data, without augmentation and in the same order every time: a data set, a
        `DataLoader`, tensors ``(X, y)``, or a tuple that begins with one of these, as the usual ``load_data`` does.
        Required arguments of `model` and `data` are filled by name: ``context``, or keys of the node's or the run's
        configuration (``partition_id`` is ``partition-id``).
    rounds
        Number of rounds, or the key of the run's configuration that has it.
    round_key
        Key of the message's configuration that has the round; None for ``server-round``, or else the message's group.
    experiment
        Name under which clients store their labels; None for the run's id, which is new in every ``flwr run``.
    load
        Loads the message's arrays into the model, in place of ``load_state_dict`` of the record ``arrays`` (numbered
        arrays, as a `NumPyClient` has them, in the order of the model's ``state_dict``).
    scoring_data, ids
        Functions like `data`: the rows to score, if those of `data` are augmented, and one name per row; see `OneShot`.
    class_names
        Names of the model's outputs, in their order, for the ledger and for limits that name classes.
    forward, label, outputs
        See `fedrela.plugin.posterior` and `fedrela.plugin.RelabeledDataset`.
    device
        Where the posterior is computed; "auto" takes CUDA or MPS if available.
    options
        ``start`` (0.8: a share of the rounds; 48: a round), ``tau``, ``period``, ``late``, ``preset``, ``seed``,
        ``resume``, and the limits of `fedrela.plugin.Policy`. A key ``fedrela-tau`` in the run's configuration
        overrides ``tau`` here, and so on.

    Examples
    --------
    >>> import torch
    >>> from flwr.clientapp import ClientApp
    >>> def load_data(partition_id):
    ...     return torch.zeros(8, 4), torch.zeros(8, dtype=torch.int64)
    >>> mod = relabel_mod(lambda: nn.Linear(4, 3), load_data, rounds=60, tau=0.1)
    >>> app = ClientApp(mods=[mod])
    """
    plan_passes(rounds=UNLIMITED, **options)  # a wrong option raises when the app is loaded, not in a round
    scoring: dict[str, Any] = {"class_names": class_names, "forward": forward, "label": label, "outputs": outputs}
    Scorer(nn.Identity, tuple, **scoring)  # likewise
    _check_functions(model=model, data=data, load=load, scoring_data=scoring_data, ids=ids, forward=forward)
    _check_device(device)
    note_mod()

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        note_mod()  # the app may have come from another process
        if message.metadata.message_type.split(".")[0] != "train":
            return call_next(message, context)

        def fetch(what: str, function: Callable[..., Any]) -> Any:
            with same_random_numbers():  # a new model draws its weights, which must not affect training
                return _call(what, function, context)

        def network() -> nn.Module:
            module: nn.Module = fetch("model", model)
            (load or _load)(module, message)
            return module.to(device_of(device))

        scorer = Scorer(
            network,
            lambda: training_part(fetch("scoring_data", scoring_data) if scoring_data else fetch("data", data)),
            training=(lambda: training_part(fetch("data", data))) if scoring_data else None,
            ids=(lambda: fetch("ids", ids)) if ids else lambda: None,
            **scoring,
        )
        plan, round = _plan(rounds, options, context.run_config), _round(message, round_key)
        with _private(Exception, round):
            call = _TrainCall(context, experiment, plan, round, scorer)
            source = call.labels()
        with _private(FedrelaError, round), training_labels(context, call.store.experiment, source is not None):
            reply = call_next(message, context)
        if source is not None and call.client_round.limits.share and not reply.has_error():
            moved = int(np.count_nonzero(source.labels != source.original))
            reply.content["fedrela"] = ConfigRecord({"moved": moved})
        return reply

    return mod


@contextlib.contextmanager
def _private(kind: type[Exception], round: int) -> Iterator[None]:
    """Log an error of a kind, and raise one without its text: Flower sends that to the server, and it may hold data."""
    try:
        yield
    except kind as error:
        LOG.error("FedReLa, round %d: %s", round, one_line(error, 2000), exc_info=is_unexpected(error))
        what = f"relabel_mod: failed in round {round} with {type(error).__name__}; the client's log says why"
        raise FedrelaError(what) from None


def _check_functions(**functions: Any) -> None:
    for name, function in functions.items():
        what = "the model's class, or a function that creates it" if name == "model" else "a function"
        if (name == "model" and isinstance(function, nn.Module)) or not (function is None or callable(function)):
            raise ArgumentError(f"expected {what}, got an object of {type(function).__name__}", argument=name)


def _check_device(device: str) -> None:
    try:
        torch.device("cpu" if device == "auto" else device)
        device_of(device)
    except (RuntimeError, TypeError, AttributeError):
        what = f"expected auto or a device of PyTorch, such as cuda:0, got {shown(device)}"
        raise ArgumentError(what, argument="device") from None


class _TrainCall:
    """One training call of one client."""

    def __init__(self, context: Context, experiment: str | None, plan: PassPlan, round: int, scorer: Scorer) -> None:
        self.context = context
        node, run = context.node_config, context.run_config
        name = str(run.get(PREFIX + "experiment") or experiment or f"run-{context.run_id}")
        client = str(node.get("client-id", node.get("partition-id", UNNAMED)))
        self.store = LabelStore(_path(node.get("state-dir")), name, client)
        check_keys("node-config", node, (f"{PREFIX}policy", "state-dir", "client-id"))
        policy, file = own_policy(_path(node.get(f"{PREFIX}policy")), self.store)
        self.client_round = ClientRound(self.store, plan, policy, round, scorer, LOG, file)
        record = context.state.config_records.get(TOLD)
        told = self.client_round.tell_policy("" if record is None else str(record["policy"]))
        context.state[TOLD] = ConfigRecord({"policy": told})

    def labels(self) -> Ledger | None:
        """Return the current labels, None for the original ones, and put them into the context's state.

        The state also remembers that there were labels, so that an undo or a policy outlives the client's folder.
        """
        state, experiment = self.context.state, self.store.experiment
        ledger = self._ledger(stored_labels(self.context, experiment))
        if ledger is None:
            state.array_records.pop(LABELS, None)
            if self.store.undone:
                state[MADE] = ConfigRecord({"round": self.client_round.round, "experiment": experiment})
        return ledger

    def _ledger(self, before: StoredLabels | None) -> Ledger | None:
        made = self.context.state.config_records.get(MADE)
        had_labels = made is not None and made["experiment"] == self.store.experiment
        if had_labels and self.client_round.folder_is_gone():
            return None
        ledger = self.client_round.labels(self._begin(), 0 if before is None else before.round)
        if ledger is None or ledger.refusal is not None:
            return None
        store_labels(self.context, ledger, self.store.experiment)
        return ledger

    def _begin(self) -> int:
        """Check this client in its first round; return the round of labels of an earlier process, or 0."""
        state, scorer = self.context.state, self.client_round.scorer
        checked = state.config_records.get(CHECKED)
        if self.client_round.off:
            return 0
        first = checked is None or checked["experiment"] != self.store.experiment
        if checked is None or first:
            taken_over = self.client_round.begin()
            rows = scorer.sample_digest if self.client_round.may_relabel else ""
            record: dict[str, Any] = {"experiment": self.store.experiment, "taken-over": taken_over, "rows": rows}
            checked = state[CHECKED] = ConfigRecord(record)
        if self.store.client == UNNAMED:
            self._check_alone(first)
        scorer.expected_digest = str(checked["rows"])
        return int(str(checked["taken-over"]))

    def _check_alone(self, first: bool) -> None:
        """Raise if another node has begun to use this client's folder; a restarted one may have a new id."""
        path, own = self.store.folder / NODE, str(self.context.node_id).encode()
        if first:
            write_bytes(path, own, private=True)
        elif path.exists() and path.read_bytes() != own:
            raise ArgumentError(f"{self.store.folder}: another SuperNode uses it; {OWN_NAME}")


def _plan(rounds: int | str, options: dict[str, Any], run: dict[str, Any]) -> PassPlan:
    """Return the app's options, overridden by those of the run's configuration."""
    others = [key for key in run if key != rounds and not key.startswith(PREFIX)]  # plan_passes knows its options
    check_keys("run-config", others, [f"{PREFIX}{name.replace('_', '-')}" for name in ("experiment", *plan_options())])
    given = {key.removeprefix(PREFIX).replace("-", "_"): value for key, value in run.items() if key.startswith(PREFIX)}
    given.pop("experiment", None)
    number: Any = run.get(rounds) if isinstance(rounds, str) else rounds
    try:
        return plan_passes(**{"rounds": number} | options | given)
    except ArgumentError as error:
        key = f"; the run's configuration has no {rounds!r}" if number is None else ""
        raise ArgumentError(f"relabel_mod: {error}{key}") from None


def _round(message: Message, key: str | None) -> int:
    """Return the round of a message: a number in its configuration, or its group, which Flower's strategies set."""
    for record in message.content.config_records.values():
        if isinstance(round := record.get(key or ROUND), int):
            return round
    group = message.metadata.group_id
    if key is None and group.isascii() and group.isdecimal() and int(group) > 0:
        return int(group)
    what = f"the message has no {(key or ROUND)!r} in its configuration"
    raise ArgumentError(f"relabel_mod: {what}{'' if key else ' and no round as its group'}; see round_key=")


def _call(what: str, function: Callable[..., Any], context: Context) -> Any:
    """Call a function of the app with arguments chosen by the names of its parameters."""
    required = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    values: dict[str, Any] = {"context": context, "ctx": context}
    for config in (context.run_config, context.node_config):
        values |= {key.replace("-", "_"): value for key, value in config.items()}
    for each in required:
        if each.name not in values:
            raise ArgumentError(
                f"relabel_mod: {what}: neither the node's nor the run's configuration has {each.name!r}; "
                "give a function of `context`"
            )
    return function(**{each.name: values[each.name] for each in required})


def _load(model: nn.Module, message: Message) -> None:
    records = message.content.array_records
    if len(records) != 1 and "arrays" not in records:
        raise ArgumentError(f"relabel_mod: expected one record of arrays, got {len(records)}; see load=")
    record = records["arrays"] if "arrays" in records else next(iter(records.values()))
    names = list(model.state_dict())
    try:
        arrays = record.to_torch_state_dict()
        if list(arrays) == [str(i) for i in range(len(names))] and set(arrays) != set(names):
            arrays = OrderedDict(zip(names, arrays.values(), strict=True))  # as a NumPyClient sends them
        model.load_state_dict(arrays)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = one_line(error)
        raise ArgumentError(f"relabel_mod: the message's arrays do not fit the model: {reason}; see load=") from None


def _path(value: Any) -> Path | None:
    return None if value is None else Path(str(value))
