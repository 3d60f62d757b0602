"""Readers under fuzzing with coverage feedback: python guided_fuzzing.py TARGET SCRATCH CORPUS [libFuzzer's options].

A target takes bytes and returns, or raises a `FedrelaError`; anything else ends the fuzzing with the bytes that did it.
Where a digest would stop damaged bytes at the door, the target makes one that fits, so that what lies behind is tried.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

PARTS = ("arrays.safetensors", "record.json", "manifest.json")


def ledger(scratch: Path) -> tuple[Callable[[bytes], None], list[bytes]]:
    """A ledger's bytes, as JSON or as an archive; a JSON record also with the digest that it should have."""
    import json

    import fedrela
    from fedrela.core.ledger import Ledger, record_digest, undo
    from fedrela.errors import FedrelaError

    def target(data: bytes) -> None:
        path = scratch / ("a.npz" if data[:1] == b"z" else "a.json")
        body = data[1:]
        if data[:1] == b"s":
            with contextlib.suppress(Exception):
                record = json.loads(body)
                body = json.dumps(record | {"sha256": record_digest(record)}).encode()
        path.write_bytes(body)
        with contextlib.suppress(FedrelaError):
            undo(Ledger.load(path))

    made = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1).ledger
    for name in ("b.json", "b.npz"):
        made.save(scratch / name)
    text = (scratch / "b.json").read_bytes()
    record = {key: value for key, value in json.loads(text).items() if key != "sha256"}
    return target, [b"j" + text, b"s" + json.dumps(record).encode(), b"z" + (scratch / "b.npz").read_bytes()]


def checkpoint(scratch: Path) -> tuple[Callable[[bytes], None], list[bytes]]:
    """One part of a checkpoint, the others being sound; the manifest has the digests of what is there."""
    import json

    import numpy as np

    from fedrela.errors import FedrelaError
    from fedrela.runfolder.checkpoints import ARRAYS, MANIFEST, RECORD, Checkpoints, _file_record
    from fedrela.runfolder.json_records import json_file, sealed

    assert PARTS == (ARRAYS, RECORD, MANIFEST)
    there = Checkpoints(scratch / "sound", "run", scratch / "log")
    there.save(3, {"weights": np.arange(5, dtype="f4"), "steps": np.arange(2)}, {"rounds": [1, 2], "note": "é"})
    (sound,) = (scratch / "sound").iterdir()
    parts = {name: (sound / name).read_bytes() for name in PARTS}

    def target(data: bytes) -> None:
        name = PARTS[data[0] % 3] if data else ARRAYS
        place = scratch / "tried" / sound.name
        place.mkdir(parents=True, exist_ok=True)
        for each, content in parts.items():
            (place / each).write_bytes(data[1:] if each == name else content)
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            manifest = json.loads((place / MANIFEST).read_bytes())
            if name != MANIFEST:
                manifest["files"] = {each: _file_record(place / each) for each in (ARRAYS, RECORD)}
            (place / MANIFEST).write_bytes(json_file(sealed({k: v for k, v in manifest.items() if k != "sha256"})))
        with contextlib.suppress(FedrelaError):
            Checkpoints(scratch / "tried", "run", scratch / "log").load()

    return target, [bytes([number]) + parts[name] for number, name in enumerate(PARTS)]


def configuration(scratch: Path) -> tuple[Callable[[bytes], None], list[bytes]]:
    """The text of a configuration."""
    from fedrela.errors import FedrelaError
    from fedrela.experiment.load import load_config

    starters = Path(sys.modules["fedrela"].__file__ or "").parent / "cli" / "starters"

    def target(data: bytes) -> None:
        (scratch / "a.toml").write_bytes(data)
        with contextlib.suppress(FedrelaError):
            load_config(scratch / "a.toml")

    return target, [path.read_bytes() for path in sorted(starters.glob("*.toml"))]


def flower(scratch: Path) -> tuple[Callable[[bytes], None], list[bytes]]:
    """The bytes of a message's content: a client's reply at the server, and a task at the client."""
    import numpy as np
    from flwr.app import Message, RecordDict
    from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
    from flwr.proto.recorddict_pb2 import RecordDict as Wire

    import helpers.in_process  # noqa: F401  which lets messages be made outside of an app
    from fedrela.algorithms.base import ArraySpec
    from fedrela.engine.admission import admit
    from fedrela.errors import FedrelaError
    from fedrela.flower.codec import TaskMessage, as_content, as_reply, read_reply, read_task
    from fedrela.records import Upload

    specs = {"weights": ArraySpec((4,)), "steps": ArraySpec((), "int64")}
    arrays = {"weights": np.ones(4, "f4"), "steps": np.asarray(7, np.int64)}

    def target(data: bytes) -> None:
        try:
            content = recorddict_from_proto(Wire.FromString(data))
        except Exception:  # Flower turns this into an error reply
            return
        said = read_reply(Message(content, reply_to=Message(RecordDict(), 5, "train")))
        if isinstance(said, Upload):
            admit([said], round=4, expected={0: 12}, specs=specs, reference=np.zeros(4, "f4"))
        with contextlib.suppress(FedrelaError):
            read_task(content)

    task = TaskMessage("train", 4, 2, "", "trial", 3, 2, broadcast=dict(arrays), own={"mine": np.arange(3)})
    sound = (as_reply(Upload(0, 4, 12, arrays)), as_content(task))
    return target, [recorddict_to_proto(each).SerializeToString() for each in sound]


TARGETS = {each.__name__: each for each in (ledger, checkpoint, configuration, flower)}


def main(name: str, scratch: Path, corpus: Path, *options: str) -> None:
    import atheris

    with atheris.instrument_imports(include=["fedrela"]):
        import fedrela.core
        import fedrela.experiment
        import fedrela.runfolder

        if name == "flower":
            import fedrela.flower  # noqa: F401
        target, seeds = TARGETS[name](scratch)
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
    place = scratch / "tried"
    shutil.rmtree(place, ignore_errors=True)
    atheris.Setup([name, f"-artifact_prefix={scratch}/", *options, str(corpus)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
