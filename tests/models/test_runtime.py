"""Precision: refused where a device has none, and what local training does in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrela.algorithms.local import CROSS_ENTROPY, Local, Samples, train
from fedrela.errors import ArgumentError
from fedrela.experiment import run
from fedrela.models import FlatModel, build, runtime
from fedrela.streams import stream
from helpers.small_runs import small


@pytest.fixture
def processor(monkeypatch, tmp_path):
    """A function that sets what the processor says of itself, and what trying it does."""

    def pretend(flags: str, tried: str = "") -> None:
        (tmp_path / "cpuinfo").write_text(f"model name\t: any\n{flags}\n")
        monkeypatch.setattr(runtime, "CPU_INFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(runtime, "PROBE", tried)

    return pretend


@pytest.mark.parametrize("flags", ["flags\t\t: fpu avx2 avx512f", "Features\t: fp asimd", "", "bugs\t\t: avx512_bf16"])
def test_a_run_is_refused_before_it_begins_where_the_processor_has_no_such_instructions(processor, tmp_path, flags):
    processor(flags, "raise SystemExit('it must not be tried')")
    with pytest.raises(ArgumentError) as caught:
        run(small(train={"precision": "bfloat16"}), out=tmp_path / "run", workers=1)
    message = "<config>: train.precision: this processor has no instructions for bfloat16; use float32"
    assert (str(caught.value), caught.value.exit_code) == (message, 2)
    assert not (tmp_path / "run").exists()


def test_instructions_that_are_named_are_tried_in_another_process(processor):
    processor("flags\t\t: fpu avx512_bf16", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert runtime.refused_precision("bfloat16", "cpu") == (
        "this processor reports instructions for bfloat16, but they fail"
    )
    processor("Features\t: fp asimdhp bf16", "import sys; assert sys.argv[1] in ('bfloat16', 'float16')")
    assert runtime.refused_precision("bfloat16", "cpu") == runtime.refused_precision("float16", "cpu") == ""


@pytest.mark.parametrize(("precision", "dtype"), [("float32", None), ("float16", torch.float16)])
def test_the_loss_is_computed_in_the_precision_and_float16_scales_it(precision, dtype):
    """A model of float64 keeps its own precision, so that the gradients are the same to the bit."""
    seen, weights = set(), []

    def loss(batch):
        seen.add(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None)
        return CROSS_ENTROPY(batch)

    for chosen in ("float32", precision):
        seen.clear()
        model = FlatModel(build("mlp", (1, 3, 3), 4, seed=1, hidden=[5], dtype=torch.float64))
        x, y = torch.randn(20, 1, 3, 3, generator=torch.Generator().manual_seed(1)), np.arange(20) % 4
        samples = Samples.ready(x, y, torch.device("cpu"), torch.float64)
        train(model, samples, Local(lr=0.1, batch_size=8, precision=chosen), lambda name: stream(1, name), loss=loss)
        weights.append(model.array.tobytes())
    assert seen == {dtype}
    assert weights[0] == weights[1]


def test_the_processor_is_named_with_family_and_model(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "CPU_INFO", tmp_path / "cpuinfo")
    assert runtime.processor().endswith(torch.backends.cpu.get_cpu_capability())  # also where there is no such file
    names = set()
    for model in (17, 18):
        (tmp_path / "cpuinfo").write_text(f"cpu family\t: 25\nmodel\t\t: {model}\nmodel name\t: Fast\n")
        names.add(runtime.processor().removesuffix(torch.backends.cpu.get_cpu_capability()))
    assert names == {"Fast 25-17 ", "Fast 25-18 "}
