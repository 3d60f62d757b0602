"""Replay of a client's pass, from the model and the data whose digests it recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils.data import TensorDataset

from fedrela.components import import_object
from fedrela.core import Ledger
from fedrela.core.replay import replay
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.plugin.dataset import training_part
from fedrela.plugin.passes import client_number
from fedrela.plugin.scoring import model_digest, score
from fedrela.streams import stream
from fedrela.text import one_line

ARRAYS = (("x", "y"), ("X", "y"), ("x_train", "y_train"))


def replay_pass(ledger: Ledger, model: nn.Module, data: Any, **options: Any) -> Ledger:
    """Return the ledger that `model` and `data` give; raise `IntegrityError` if they are not those of this ledger.

    `options` are `forward`, `label` and `outputs` as they were given to the plug-in.
    """
    recorded = ledger.provenance
    if recorded is None or "client" not in ledger.options:
        raise DataError("ledger: not made by the plug-in; give the posterior file as data, without a model")
    if not made_by(model, ledger):
        digests = f"expected sha256 {recorded.model_sha256}, got {model_digest(model)}"
        raise IntegrityError(f"model: not the one that made these moves: {digests}")
    scored = score(model, data, **options)
    if recorded.inputs_sha256 not in (None, scored.inputs_sha256):
        raise IntegrityError(
            "data: not the inputs that the model scored, or not in their order: "
            f"expected sha256 {recorded.inputs_sha256}, got {scored.inputs_sha256}"
        )
    if not np.array_equal(scored.labels, ledger.original):
        row = int(np.argmax(scored.labels != ledger.original)) if len(scored.labels) == len(ledger.original) else "all"
        raise IntegrityError(f"data: not the original labels of the ledger: row {row}")
    draws = stream(recorded.seed or 0, "relabel", ledger.options["round"], client_number(ledger.options["client"]))
    return replay(ledger, scored.posterior, seed=draws)


def made_by(model: nn.Module, ledger: Ledger) -> bool:
    """Whether a model is the one whose digest a ledger recorded, if it recorded one."""
    recorded = ledger.provenance.model_sha256 if ledger.provenance is not None else None
    return recorded in (None, model_digest(model))


def load_model(net: str, weights: Path) -> nn.Module:
    """Return the model of the class or function ``module:Name``, with the weights of a ``.safetensors`` file."""
    model = call_object(net, "--net")
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"expected a class or function that returns a model, got {net}", argument="--net")
    try:
        model.load_state_dict(load_file(weights))
    except OSError as error:
        raise DataError(f"{weights}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # not a safetensors file, or that of another model
        raise DataError(f"{weights}: not the weights of {net}, as .safetensors: {one_line(error)}") from None
    return model


def call_object(name: str, option: str) -> Any:
    """Call the class or function ``module:name`` without arguments."""
    function = import_object(name)
    try:
        return function()
    except TypeError as error:
        raise ArgumentError(f"{name} cannot be called without arguments: {one_line(error)}", argument=option) from None


def load_rows(source: str) -> Any:
    """Return the rows that the function ``module:name`` returns, or those of an ``.npz`` file.

    The file has inputs ``x`` and labels ``y``, or ``x_train`` and ``y_train``.
    """
    path = Path(source)
    if ":" in source and not path.exists():
        return training_part(call_object(source, "--data"))
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: expected an .npz file, found a folder, a pipe or a device")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            for x, y in ARRAYS:
                if x in arrays.files and y in arrays.files:
                    return TensorDataset(torch.from_numpy(arrays[x]), torch.from_numpy(arrays[y]))
            has = ", ".join(arrays.files[:6])
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # not an archive, a pickle, or a type that PyTorch does not have
        raise DataError(f"{path}: damaged or invalid .npz file of rows: {one_line(error)}") from None
    raise DataError(f"{path}: expected the arrays x and y, or x_train and y_train; the file has {has}")
