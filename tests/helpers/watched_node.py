"""A private node in a process of its own that notes what it opens: watched_node.py APP NODE STATE MESSAGES.

MESSAGES is a folder of numbered requests as Flower puts them on the wire; each reply is written beside its request.
Files opened, folders listed, connections and other processes since the start of the process are printed, one per line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NOTED: list[str] = []
PATHS = {"open": "open", "os.listdir": "list", "os.scandir": "list"}
OTHERS = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")


def note(event: str, words: tuple) -> None:
    if event in PATHS and isinstance(words[0], str | bytes):
        NOTED.append(f"{PATHS[event]} {os.fsdecode(words[0])}")
    elif event in OTHERS:
        NOTED.append(f"{event} {words!r}")


sys.addaudithook(note)


def main(config: str, data: str, state: str, messages: Path) -> None:
    from flwr.app import Context, Message, RecordDict
    from flwr.common.serde import message_from_proto, message_to_proto
    from flwr.proto.message_pb2 import Message as Wire
    from flwr.supercore.task_identity import TaskIdentity

    from fedrela.experiment.flower_app import private_client_app
    from fedrela.experiment.load import load_config

    app = private_client_app(load_config(config))
    node = {"data": data, "state-dir": state}
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1007
    context = Context(run_id=1, node_id=1007, node_config=node, state=RecordDict(), run_config={})
    for path in sorted(messages.glob("*.request")):
        message: Message = message_from_proto(Wire.FromString(path.read_bytes()))
        reply = app(message, context)
        path.with_suffix(".reply").write_bytes(message_to_proto(reply).SerializeToString())
    print(*NOTED, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
