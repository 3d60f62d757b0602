"""Devices, dtypes, precision, and what makes computations repeatable: addressed seeds and one thread."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from fedrela.errors import ArgumentError
from fedrela.streams import stream

# Instructions of x86 and of ARM processors, as Linux names them, without which a precision would be slow or impossible.
INSTRUCTIONS = {
    "bfloat16": {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"},
    "float16": {"avx512_fp16", "amx_fp16", "asimdhp"},
}
CPU_INFO = Path("/proc/cpuinfo")
# A virtual machine may report instructions that it does not have, which would kill the process that tries them.
PROBE = """
import sys, torch
dtype = getattr(torch, sys.argv[1])
x, images = torch.ones(64, 784, dtype=dtype), torch.ones(8, 16, 14, 14, dtype=dtype)
assert (x @ x.T).float().isfinite().all()
assert torch.conv2d(images, torch.ones(32, 16, 3, 3, dtype=dtype)).float().isfinite().all()
"""


@contextlib.contextmanager
def seeded(seed: int, purpose: str, round: int = 0, client: int = 0) -> Iterator[None]:
    """Seed torch, `random` and `numpy.random` from the stream at this address inside, then restore all three.

    >>> with seeded(0, "example"):
    ...     first = torch.rand(3)
    >>> _ = torch.rand(5)
    >>> with seeded(0, "example"):
    ...     bool((torch.rand(3) == first).all())
    True
    """
    number = int(stream(seed, purpose, round, client).integers(2**63))
    with torch.device("cpu"), torch.random.fork_rng(devices=[]), _seeded_globals(number):
        torch.default_generator.manual_seed(number)
        yield


@contextlib.contextmanager
def restored_globals() -> Iterator[None]:
    """Restore the global generators of Python and NumPy, which user code may use, after the block."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


@contextlib.contextmanager
def _seeded_globals(number: int) -> Iterator[None]:
    with restored_globals():
        random.seed(number)
        np.random.seed(number % 2**32)  # noqa: NPY002
        yield


@contextlib.contextmanager
def torch_stream(
    device: torch.device, seed: int, purpose: str, round: int, client: int = 0, *, own_code: bool = True
) -> Iterator[None]:
    """Let torch, `random` and `numpy.random` draw from the stream at this address inside, and restore them afterwards.

    Only torch's CPU generator is restored. Unlike `seeded`, this does not intercept every operation inside, which would
    slow training. Without user code, only torch is seeded: nothing else uses the other two.

    >>> with torch_stream(torch.device("cpu"), 0, "example", 1):
    ...     first = torch.rand(3)
    >>> with torch_stream(torch.device("cpu"), 0, "example", 1):
    ...     bool((torch.rand(3) == first).all())
    True
    """
    number = int(stream(seed, f"torch {purpose}", round, client).integers(2**63))
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(number)  # torch.manual_seed takes a millisecond even without CUDA
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(number)
    try:
        with deterministic(device), _seeded_globals(number) if own_code else contextlib.nullcontext():
            yield
    finally:
        generator.set_state(before)


@contextlib.contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Make CUDA use deterministic algorithms inside, with a warning where torch has none."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it at its first use
    strict, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=warns)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread inside: the number of threads decides the order of sums, and so the last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_of(name: str) -> str:
    """Return the device of a name; ``"auto"`` takes CUDA or MPS if available.

    >>> device_of("cpu")
    'cpu'
    """
    if name != "auto":
        kind, _, number = name.partition(":")
        counts = {"cuda": torch.cuda.device_count, "mps": lambda: int(torch.backends.mps.is_available())}
        count = counts.get(kind, getattr(getattr(torch, kind, None), "device_count", lambda: 1))()
        if kind != "cpu" and int(number or 0) >= count:
            raise ArgumentError(f"torch finds no {name} here; choose cpu or auto", argument="device")
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def refused_precision(name: str, device: str) -> str:
    """Return why a device cannot compute in a precision, or an empty string; a CPU's flags are checked first.

    >>> refused_precision("float32", "cpu")
    ''
    """
    if name == "float32" or device.startswith("cuda"):
        return ""
    if not device.startswith("cpu"):
        return "" if name == "float16" else f"{device} has no {name}"
    try:
        flags = re.findall(r"^(?:flags|Features)\s*:(.*)$", CPU_INFO.read_text(), re.MULTILINE)
    except OSError:
        flags = []
    if not INSTRUCTIONS[name] & {*" ".join(flags[:1]).split()}:
        return f"this processor has no instructions for {name}"
    probe = subprocess.run([sys.executable, "-c", PROBE, name], capture_output=True, check=False)
    return f"this processor reports instructions for {name}, but they fail" if probe.returncode else ""


@contextlib.contextmanager
def lower_precision(device: torch.device, name: str) -> Iterator[None]:
    """Compute products in a lower precision inside, as torch's autocast does; ``"float32"`` changes nothing."""
    if name == "float32":
        yield
        return
    with torch.autocast(device.type, dtype_of(name), cache_enabled=False):  # weights change from batch to batch
        yield


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype of a name."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def processor() -> str:
    """Return the processor and the vector instructions that torch uses on it: the bits of a result depend on both."""
    try:
        info = dict(re.findall(r"^([a-z ]+?)\s*: (.*)$", CPU_INFO.read_text(), re.MULTILINE))
        name = f"{info['model name']} {info['cpu family']}-{info['model']}"
    except (OSError, KeyError):  # not Linux, or not x86
        name = platform.processor() or platform.machine()
    return f"{name} {torch.backends.cpu.get_cpu_capability()}"
