"""Replay of a client's pass, from the model and the data that it names by digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils.data import TensorDataset

from fedrela.core import Ledger
from fedrela.core.replay import replay
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.parts import import_part
from fedrela.plugin.dataset import training_part
from fedrela.plugin.passes import client_number
from fedrela.plugin.scoring import model_digest, score
from fedrela.streams import stream
from fedrela.text import one_line

ARRAYS = (("x", "y"), ("X", "y"), ("x_train", "y_train"))


def replay_pass(ledger: Ledger, model: nn.Module, data: Any, **how: Any) -> Ledger:
    """Return the ledger that `model` and `data` give; an `IntegrityError` if they are not those that made this one.

    `how` has `forward`, `label` and `outputs` as they were given to the plug-in.
    """
    then = ledger.provenance
    if then is None or "client" not in ledger.options:
        raise DataError("ledger: not made by the plug-in; give the posterior file as data, without a model")
    if not made_by(model, ledger):
        raise IntegrityError(
            f"model: not the one that made these moves: expected sha256 {then.model_sha256}, got {model_digest(model)}"
        )
    scored = score(model, data, **how)
    if then.inputs_sha256 not in (None, scored.inputs_sha256):
        raise IntegrityError(
            "data: not the inputs that the model scored, or not in their order: "
            f"expected sha256 {then.inputs_sha256}, got {scored.inputs_sha256}"
        )
    if not np.array_equal(scored.labels, ledger.original):
        row = int(np.argmax(scored.labels != ledger.original)) if len(scored.labels) == len(ledger.original) else "all"
        raise IntegrityError(f"data: not the original labels of the ledger: row {row}")
    draws = stream(then.seed or 0, "relabel", ledger.options["round"], client_number(ledger.options["client"]))
    return replay(ledger, scored.posterior, seed=draws)


def made_by(model: nn.Module, ledger: Ledger) -> bool:
    """Whether a model is the one that a ledger names, if it names one."""
    then = ledger.provenance.model_sha256 if ledger.provenance is not None else None
    return then in (None, model_digest(model))


def load_model(net: str, weights: Path) -> nn.Module:
    """Return the model that ``module:Name`` makes without arguments, with the weights of a ``.safetensors`` file."""
    model = called(net, "--net")
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"expected a class or function that returns a model, got {net}", argument="--net")
    try:
        model.load_state_dict(load_file(weights))
    except OSError as error:
        raise DataError(f"{weights}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # no safetensors file, or that of another model
        raise DataError(f"{weights}: not the weights of {net}, as .safetensors: {one_line(error)}") from None
    return model


def called(name: str, option: str) -> Any:
    """Return what the class or function ``module:name`` gives without arguments."""
    part = import_part(name)
    try:
        return part()
    except TypeError as error:
        raise ArgumentError(f"{name} cannot be called without arguments: {one_line(error)}", argument=option) from None


def load_rows(source: str) -> Any:
    """Return the rows that the function ``module:name`` returns, or those of an ``.npz`` file.

    The file has inputs ``x`` and labels ``y``, or ``x_train`` and ``y_train``.
    """
    path = Path(source)
    if ":" in source and not path.exists():
        return training_part(called(source, "--data"))
    try:
        with np.load(path, allow_pickle=False) as arrays:
            for x, y in ARRAYS:
                if x in arrays.files and y in arrays.files:
                    return TensorDataset(torch.from_numpy(arrays[x]), torch.from_numpy(arrays[y]))
            has = ", ".join(arrays.files[:6])
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # no archive, a pickle, a type that PyTorch does not have
        raise DataError(f"{path}: damaged, or no .npz file of rows: {one_line(error)}") from None
    raise DataError(f"{path}: expected the arrays x and y, or x_train and y_train; the file has {has}")
