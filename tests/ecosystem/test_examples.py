"""The plug-in with Lightning and with Hugging Face's Trainer: the examples run in environments of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.environments import run_in

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = {"lightning_plugin.py": ["lightning"], "trainer_plugin.py": ["transformers", "accelerate"]}


@pytest.mark.parametrize("name", NEEDED)
def test_an_example_runs(name, request):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in an environment of its own")
    script = f"import runpy, sys; sys.argv = [{name!r}]; runpy.run_path({str(EXAMPLES / name)!r}, run_name='__main__')"
    printed = run_in(name.partition("_")[0], NEEDED[name], script)
    shares = [float(share) for share in re.findall(r"([\d.]+)%", printed)]
    assert len(shares) == 4, printed
    assert shares[3] >= shares[1], printed
    assert int(re.search(r"(\d+) labels moved", printed)[1]) > 0
