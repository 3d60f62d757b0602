"""Where a client's samples are kept, and how a GPU computes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from fedrela.engine.client import resident
from fedrela.models.runtime import deterministic


@pytest.mark.parametrize(("size", "place"), [(50, "cuda"), (51, "here")])
def test_samples_are_resident_on_a_gpu_where_they_fit(monkeypatch, size, place):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    samples = SimpleNamespace(nbytes=size, to=lambda device: device.type)
    found = resident(samples, torch.device("cuda"))
    assert found == ("cuda" if place == "cuda" else samples)


def test_samples_stay_in_shared_memory_without_a_gpu():
    samples = torch.zeros(3)
    assert resident(samples, torch.device("cpu")) is samples


@pytest.mark.parametrize(("name", "inside"), [("cuda", True), ("cpu", False)])
def test_deterministic_algorithms_on_a_gpu_alone(monkeypatch, name, inside):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    with deterministic(torch.device(name)):
        assert torch.are_deterministic_algorithms_enabled() is inside
    assert not torch.are_deterministic_algorithms_enabled()
