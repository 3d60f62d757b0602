"""From a configuration to a federation that knows where it comes from."""

from __future__ import annotations

import json

from fedrela.data.federation import rebuild
from fedrela.data.sources import load
from fedrela.experiment.build import build_data
from fedrela.experiment.load import parse_config

TEXT = """
[data]
source = "gaussians"
options = { samples = [40, 30], test_samples = 5 }
partition = { kind = "iid", clients = 3 }
"""


def test_the_manifest_alone_builds_the_federation_again():
    federation = build_data(parse_config(TEXT))
    assert federation.origin == {"source": "gaussians", "options": {"samples": (40, 30), "test_samples": 5}}
    manifest = json.loads(json.dumps(federation.manifest()))
    again = rebuild(manifest)
    assert again.client_counts.tolist() == federation.client_counts.tolist()
    assert (again.x_train == federation.x_train).all()


def test_a_source_of_your_own_has_no_origin():
    source = load("digits")
    federation = build_data(parse_config(TEXT), source=source)
    assert federation.source is source
    assert federation.origin is None
