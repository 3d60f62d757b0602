"""B7: replies with flipped bits, cut short or with edited keys never raise, and are admitted only whole."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as Wire

import helpers.in_process  # noqa: F401  which lets messages be made outside of an app
from fedrela.algorithms.base import ArraySpec
from fedrela.engine.admission import admit
from fedrela.flower.codec import ARRAYS, METRICS, TaskMessage, as_content, as_reply, read_reply, read_task
from fedrela.records import Upload
from fedrela.streams import stream
from helpers.batteries import count, tried

SPECS = {"weights": ArraySpec((40,)), "control": ArraySpec((3, 2)), "steps": ArraySpec((), "int64")}
EXPECTED, ROUND = {0: 12, 1: 30}, 4


def upload(client=0):
    rng = stream(client, "an upload")
    arrays = {"weights": rng.normal(size=40).astype("f4"), "control": rng.normal(size=(3, 2)).astype("f4")}
    return Upload(client, ROUND, EXPECTED[client], {**arrays, "steps": np.asarray(7, np.int64)})


def message(content):
    asked = Message(RecordDict(), 5, "train")
    return Message(content, reply_to=asked)


def admission_beside(content):
    """Return the admission of a reply, beside a sound one of another client."""
    said = read_reply(message(content))
    for_itself = isinstance(said, Upload) and said.client == 0  # the executor takes no reply for another client
    uploads = [upload(1), said] if for_itself else [upload(1)]
    return admit(uploads, round=ROUND, expected=EXPECTED, specs=SPECS, reference=np.zeros(40, "f4"))


def test_a_sound_reply_and_a_task_come_back_as_they_went():
    there = admission_beside(as_reply(upload())).admitted[0]
    assert {name: array.tobytes() for name, array in there.arrays.items()} == {
        name: array.tobytes() for name, array in upload().arrays.items()
    }
    assert there.arrays["steps"].shape == ()
    task = TaskMessage("train", 4, 2, "", "trial", 3, 2, broadcast=dict(upload().arrays), own={"mine": np.arange(3)})
    back = read_task(as_content(task))
    assert (back.kind, back.round, back.client, back.admitted, back.durable) == ("train", 4, 2, 3, 2)
    assert back.own["mine"].tolist() == [0, 1, 2]
    assert back.broadcast["control"].tobytes() == upload().arrays["control"].tobytes()


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes with some bits flipped, or cut short, or with something put in."""
    bytes_ = bytearray(data)
    way = rng.integers(3)
    if way == 0:
        for place in rng.integers(len(bytes_), size=rng.integers(1, 4)):
            bytes_[place] ^= 1 << int(rng.integers(8))
    elif way == 1:
        del bytes_[int(rng.integers(len(bytes_))) :]
    else:
        place = int(rng.integers(len(bytes_)))
        bytes_[place:place] = rng.bytes(int(rng.integers(1, 9)))
    return bytes(bytes_)


def wire(rng: np.random.Generator) -> RecordDict | None:
    """Return a reply whose bytes were damaged on the way; None where Flower itself cannot read it."""
    data = flipped(recorddict_to_proto(as_reply(upload())).SerializeToString(), rng)
    try:
        return recorddict_from_proto(Wire.FromString(data))
    except Exception:  # Flower turns this into an error reply
        return None


def edited(rng: np.random.Generator) -> RecordDict:
    """Return a reply with another name, dtype, shape, number or encoded array."""
    arrays: dict[str, Array] = {name: Array(np.asarray(array)) for name, array in upload().arrays.items()}
    said: dict[str, int | float] = {"num-examples": 12, "client": 0, "round": ROUND}
    name = list(arrays)[rng.integers(3)]
    way = rng.integers(7)
    if way == 0:
        arrays[f"{name}{rng.integers(9)}"] = arrays.pop(name)
    elif way == 1:
        arrays[name].data = flipped(arrays[name].data, rng)
    elif way == 2:
        arrays[name].stype = ["torch.save", "", "numpy.ndarray "][rng.integers(3)]
    elif way == 3:
        arrays[name] = Array(arrays[name].numpy().astype(["f8", "f2", ">f4", "i4", "?"][rng.integers(5)]))
    elif way == 4:
        said[list(said)[rng.integers(3)]] = [-1, 2**62, 1.5, 0, 10**9][rng.integers(5)]
    elif way == 5:
        del said[list(said)[rng.integers(3)]]
    else:
        return RecordDict({["arrays", "array", "weights"][rng.integers(3)]: MetricRecord(said)})
    return RecordDict({ARRAYS: ArrayRecord(arrays), METRICS: MetricRecord(said)})


@pytest.mark.parametrize("damage", [wire, edited], ids=["wire", "edited"])
def test_damaged_replies_never_raise_and_are_admitted_only_whole(damage):
    whole = {name: array.tobytes() for name, array in upload(1).arrays.items()}
    outcomes = {"unreadable": 0, "left out": 0, "admitted": 0}
    for case in range(count(500, 25_000)):
        tried(faults=1)
        content = damage(stream(7, f"damaged replies {damage.__name__}", case))
        if content is None:
            outcomes["unreadable"] += 1
            continue
        admission = admission_beside(content)
        clients = {each.client: each for each in admission.admitted}
        assert {name: array.tobytes() for name, array in clients[1].arrays.items()} == whole, case
        outcomes["admitted" if 0 in clients else "left out"] += 1
        if 0 in clients:  # a flipped bit of a value cannot be told from the value
            for name, array in clients[0].arrays.items():
                field = SPECS[name]
                assert array.shape == field.shape, case
                assert array.dtype == field.dtype, case
                assert np.isfinite(array).all(), case
    assert outcomes["left out"] > 50, outcomes
