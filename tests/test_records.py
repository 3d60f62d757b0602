"""Records that are written to a run folder come back as they were."""

from __future__ import annotations

import json

import pytest

from fedrela.errors import IntegrityError
from fedrela.records import RoundRecord, RunManifest

ROUND = RoundRecord(
    round=3,
    accuracy={"overall": 0.5},
    loss=1.25,
    chosen=[0, 2, 5],
    admitted=[0, 5],
    excluded=[(2, "not finite")],
    moved=None,
    relabelled=[(0, 4)],
    skipped=False,
    samples=[10, 12],
    norm_median=0.1,
    norm_max=0.3,
)
MANIFEST = RunManifest(
    version="1",
    config_sha256="0" * 64,
    data={"clients": 2},
    model={"arrays": [["w", [2], "parameter"]]},
    algorithm={"name": "fedavg"},
    classes=["a", "b"],
    groups={"names": ["majority", "minority"]},
    packages={"numpy": "2"},
)


@pytest.mark.parametrize("record", [ROUND, MANIFEST])
def test_records_come_back(record):
    text = json.dumps(record.as_record(), allow_nan=False)
    again = type(record).from_record(json.loads(text))
    assert again == record
    assert json.dumps(again.as_record()) == text


@pytest.mark.parametrize("record", [ROUND, MANIFEST])
def test_other_keys_are_refused(record):
    plain = record.as_record()
    first = next(iter(plain))
    for odd in ({**plain, "more": 1}, {key: plain[key] for key in plain if key != first}, {}):
        with pytest.raises(IntegrityError, match="was not written by this version of fedrela"):
            type(record).from_record(odd)


def test_another_format_is_refused():
    with pytest.raises(IntegrityError, match=r"manifest.json: was not written by this version"):
        RunManifest.from_record({**MANIFEST.as_record(), "format": "fedrela-run-0"})
