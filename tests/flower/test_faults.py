"""On Flower: what is lost, late, malformed or restarted costs a client one round, or nothing, and never the run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedrela.errors import ArgumentError, IntegrityError, TooFewClientsError
from fedrela.experiment import begin, run
from fedrela.experiment.flower_app import flower_client, serve
from fedrela.experiment.load import parse_config
from fedrela.flower.client_app import StateStore, StoredState
from fedrela.flower.codec import ARRAYS, METRICS
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.streams import stream
from helpers.batteries import count, tried
from helpers.flower_federations import DIGITS, assert_equal, digits, federate, grid_of
from helpers.in_process import InProcessGrid, StoppingGrid
from helpers.small_runs import bytes_of

torch.set_num_threads(1)


def silent(client, rounds):
    """Return what loses the messages to a client in some rounds."""
    return lambda message, to: to == client and message.metadata.group_id in {str(r) for r in rounds}


def reasons(result):
    return {(record["round"], client): reason for record in result.history() for client, reason in record["excluded"]}


def test_a_node_that_never_replies_costs_its_own_rounds_only(tmp_path):
    config = digits(train={"deadline": 0.3})
    done, _ = federate(config, tmp_path, lose=silent(2, (2, 3, 4)))
    assert reasons(done) == {(round, 2): "deadline" for round in (2, 3, 4)}
    assert [len(record["admitted"]) for record in done.history()] == [4, 3, 3, 3]


def test_a_lost_reply_leaves_nothing_behind_at_the_client(tmp_path):
    """The client trains in round 2, but its reply is lost: it is as if it had never been asked."""

    class Losing(InProcessGrid):
        def mangled(self, reply):
            if self.sent[-1].metadata.group_id == "2" and self.nodes[reply.metadata.src_node_id] == 1:
                return Message(RecordDict(), reply_to=self.sent[-1])
            return reply

    config = digits(algorithm={"name": "scaffold"}, relabel={"start": 2, "tau": 0.3})
    app = grid_of(config, tmp_path / "a").apps
    lossy = serve(config, Losing(app, str(tmp_path / "a")), out=tmp_path / "lossy", experiment="x", timeout=1.0)
    assert set(reasons(lossy)) == {(2, 1)}
    silenced, _ = federate(digits(algorithm={"name": "scaffold"}, relabel={"start": 2, "tau": 0.3},
                                  train={"deadline": 0.3}), tmp_path, lose=silent(1, (2,)))  # fmt: skip
    assert lossy.weights_sha256 == silenced.weights_sha256


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_server_that_was_stopped_goes_on_to_the_same_bytes(tmp_path, algorithm, stop):
    config = digits(algorithm={"name": algorithm}, relabel={"start": 2, "tau": 0.3}, train={"participation": 0.75})

    class Stopping(InProcessGrid):
        def push_messages(self, messages):
            messages = list(messages)
            if any(message.metadata.group_id == str(stop + 1) for message in messages):
                super().push_messages(messages)  # clients have trained, and their replies are never read
                raise KeyboardInterrupt
            return super().push_messages(messages)

    first = Stopping(grid_of(config, tmp_path).apps, str(tmp_path / "states"))
    with pytest.raises(KeyboardInterrupt):
        serve(config, first, out=tmp_path / "flower", experiment="trial", timeout=1.0)
    there, _ = federate(config, tmp_path)
    assert_equal(there, run(config, out=tmp_path / "here"))


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_server_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(tmp_path, algorithm):
    config = digits(algorithm={"name": algorithm}, relabel={"start": 2, "tau": 0.3}, engine={"checkpoint_every": 1})

    def stop(recorded, done):
        if done is not None and done.round == 3:
            raise KeyboardInterrupt

    grid = InProcessGrid(grid_of(config, tmp_path).apps, str(tmp_path / "states"))
    with pytest.raises(KeyboardInterrupt):
        serve(config, grid, out=tmp_path / "flower", experiment="trial", timeout=1.0, on_round=stop)
    newest = max((tmp_path / "flower" / "checkpoint").iterdir())
    for path in newest.iterdir():
        path.write_bytes(b"damaged")
    there, _ = federate(config, tmp_path)
    assert_equal(there, run(config, out=tmp_path / "here"))


@pytest.mark.parametrize("algorithm", ["fedmix", "feddyn"])
def test_what_is_exchanged_once_waits_for_the_first_clients(tmp_path, algorithm):
    """Nobody hears of round 1, so it is skipped, and so is the exchange before it."""
    config = digits(algorithm={"name": algorithm}, train={"deadline": 0.3})
    done, grid = federate(config, tmp_path, lose=lambda message, _: message.metadata.group_id == "1")
    assert [len(record["admitted"]) for record in done.history()] == [0, 4, 4, 4]
    asked = {m.metadata.group_id for m in grid.sent if m.metadata.message_type == "query.ask"}
    assert asked == {"1", "2"}


def test_a_message_that_was_not_taken_is_a_client_that_is_gone(tmp_path):
    class Full(InProcessGrid):
        def push_messages(self, messages):
            messages = list(messages)
            gone = [
                self.nodes[each.metadata.dst_node_id] in (1, 2) and each.metadata.group_id == "2" for each in messages
            ]
            taken = iter(super().push_messages(m for m, lost in zip(messages, gone, strict=True) if not lost))
            return ["" if lost else next(taken) for lost in gone]

    config = digits()
    grid = Full(grid_of(config, tmp_path).apps, str(tmp_path / "states"))
    done = serve(config, grid, out=tmp_path / "flower", experiment="trial", timeout=1.0)
    assert reasons(done) == {(2, 1): "not connected", (2, 2): "not connected"}
    assert [len(record["admitted"]) for record in done.history()] == [4, 2, 4, 4]


def leave_a_run(config, tmp_path, finished):
    """Leave a run in the folder flower, finished or after its first round; return the bytes of its files."""
    if finished:
        federate(config, tmp_path)
    else:
        with begin(config, out=tmp_path / "flower", workers=1) as recorded:
            next(iter(recorded.rounds(1)))
    return bytes_of(tmp_path / "flower")


@pytest.mark.parametrize("finished", [True, False])
def test_another_configuration_neither_goes_on_with_a_run_nor_answers_for_it(tmp_path, finished):
    before = leave_a_run(digits(train={"rounds": 3}), tmp_path, finished)
    edited = digits(train={"rounds": 4, "lr": 0.2})
    with pytest.raises(ArgumentError) as error:
        federate(edited, tmp_path)
    assert str(error.value) == (
        f"{tmp_path / 'flower'}: the run there has a different configuration: train.rounds is 4, there 3, "
        "train.lr is 0.2, there 0.05; give the same configuration to resume it, or another folder to start a new run"
    )
    assert bytes_of(tmp_path / "flower") == before


@pytest.mark.parametrize("finished", [True, False])
def test_other_data_neither_go_on_with_a_run_nor_answer_for_it(tmp_path, finished):
    def edit(value):
        rows = [f"{i % 2 * 2 + i / 50},{i % 7},{i % 2}" for i in range(60)]
        (tmp_path / "table.csv").write_text("\n".join(["a,b,label", f"{value},1,0", *rows, ""]))
        flower_client.cache_clear()

    data = {"source": "csv", "root": str(tmp_path / "table.csv"), "partition": {"kind": "iid", "clients": 3}}
    config = parse_config({**DIGITS, "data": data})
    edit(1)
    before = leave_a_run(config, tmp_path, finished)
    edit(2)
    said = r"arrays\.x_\w+\.sha256 is not what the run started with; .* or start a new run in another folder$"
    with pytest.raises(IntegrityError, match=said):
        federate(config, tmp_path)
    assert bytes_of(tmp_path / "flower") == before


def test_clients_never_use_the_state_of_another_configuration(tmp_path):
    """Two configurations under one experiment, one after the other: the first then goes on with its own labels."""
    config = digits(relabel={"start": 1, "tau": 0.3}, train={"rounds": 4})
    other = digits(relabel={"start": 1, "tau": 0.05}, train={"rounds": 4})
    whole, _ = federate(config, tmp_path / "apart")

    stopping = StoppingGrid(grid_of(config, tmp_path).apps, str(tmp_path / "states"))
    with pytest.raises(KeyboardInterrupt):
        serve(config, stopping, out=tmp_path / "flower", experiment="trial", timeout=1.0)
    federate(other, tmp_path, "other")
    there, _ = federate(config, tmp_path)
    assert_equal(there, whole)


def test_a_client_that_lost_its_disk_says_so_and_is_left_out(tmp_path):
    config = digits(relabel={"start": 2, "tau": 0.3})

    class Wiping(InProcessGrid):
        def push_messages(self, messages):
            messages = list(messages)
            if any(message.metadata.group_id == "3" for message in messages):
                shutil.rmtree(next(tmp_path.glob("states/trial-*/client-1")))
            return super().push_messages(messages)

    grid = Wiping(grid_of(config, tmp_path).apps, str(tmp_path / "states"))
    done = serve(config, grid, out=tmp_path / "flower", experiment="trial", timeout=1.0)
    lost = reasons(done)
    assert set(lost) == {(3, 1), (4, 1)}
    assert "though this round counted; restore the client's folder" in lost[3, 1]


def test_without_any_client_a_run_ends_in_time_with_one_line(tmp_path):
    config = digits(train={"give_up": 2})
    with pytest.raises(TooFewClientsError, match="not connected"):
        serve(config, InProcessGrid({}, str(tmp_path)), out=tmp_path / "flower", experiment="x", timeout=0.2)
    assert RunFolder.open(tmp_path / "flower").status is RunStatus.INTERRUPTED


def test_clients_with_another_configuration_are_ignored(tmp_path):
    others = grid_of(digits(train={"lr": 0.3}), tmp_path).apps
    with pytest.raises(TooFewClientsError, match="not connected"):
        serve(digits(train={"give_up": 1}), InProcessGrid(others, str(tmp_path)), out=tmp_path / "flower",
              experiment="x", timeout=0.2)  # fmt: skip


def mangle(reply, rng):
    """Return a reply with one thing wrong."""
    arrays = {name: array.numpy() for name, array in reply.content.array_records[ARRAYS].items()}
    said = dict(reply.content.metric_records[METRICS])
    weights = arrays["weights"]
    kind = rng.integers(10)
    if kind == 0:
        weights = weights[:-1]
    elif kind == 1:
        weights = weights.astype(np.float64)
    elif kind == 2:
        weights = np.where(np.arange(weights.size) == rng.integers(weights.size), np.nan, weights).astype("f4")
    elif kind == 3:
        arrays["more"] = np.zeros(3, "f4")
    elif kind == 4:
        said["num-examples"] = int(rng.integers(-5, 5))
    elif kind == 5:
        said["round"] = int(rng.integers(5, 50))
    elif kind == 6:
        said = {"loss": 1.0}
    elif kind == 7:
        weights = weights.astype(">f4")
    elif kind == 8:
        weights = weights * np.float32(1e30)
    records = {name: Array(np.asarray(array)) for name, array in (arrays | {"weights": weights}).items()}
    if kind == 9:  # bits of the encoded array
        data = bytearray(records["weights"].data)
        del data[int(rng.integers(1, len(data))) :]
        records["weights"].data = bytes(data)
    if rng.random() < 0.1:
        del records["weights"]
    return Message(RecordDict({ARRAYS: ArrayRecord(records), METRICS: MetricRecord(said)}), reply_to=reply_to(reply))


def reply_to(reply):
    """Return a message that a reply like this one would answer."""
    asked = Message(RecordDict(), reply.metadata.src_node_id, "train")
    asked.metadata._message_id = reply.metadata.reply_to_message_id
    return asked


class Mangling(InProcessGrid):
    """Every training reply of client 0 is malformed."""

    def __init__(self, *args, rng):
        super().__init__(*args)
        self._rng = rng

    def mangled(self, reply):
        is_upload = not reply.has_error() and METRICS in reply.content.metric_records
        return mangle(reply, self._rng) if is_upload and self.nodes[reply.metadata.src_node_id] == 0 else reply


def test_malformed_replies_cost_their_sender_only(fast_folder):
    """B7: whatever client 0 sends, the others' average is as if it had not been asked."""
    config = digits(train={"rounds": 1}, relabel={"start": 1, "enabled": False})
    apps = grid_of(config, fast_folder).apps
    without, _ = federate(digits(train={"rounds": 1, "deadline": 0.2}, relabel={"start": 1, "enabled": False}),
                          fast_folder, lose=silent(0, (1,)))  # fmt: skip
    for case in range(count(25, 1000)):
        grid = Mangling(apps, str(fast_folder / "states"), rng=stream(1, "malformed replies", case))
        done = serve(config, grid, out=fast_folder / str(case), experiment="x", timeout=1.0)
        assert done.history()[0]["admitted"] == [1, 2, 3], (case, reasons(done))
        assert done.weights_sha256 == without.weights_sha256
        shutil.rmtree(done.folder)
        tried(faults=1)


def test_what_a_client_stores(tmp_path):
    store = StateStore(tmp_path, "trial", 3)
    assert store.read(0).labels is None
    for round in (1, 2, 4, 5):
        store.write(StoredState(round, 2 if round > 1 else None, np.arange(round), {"state": np.ones(2) * round}))
    assert store.read(4).arrays["state"].tolist() == [4, 4]
    store.remove_outdated(admitted=4, durable=2)
    assert sorted(path.name for path in store.path.glob("round-*")) == ["round-000002", "round-000004"]
    assert store.read(2).relabelled == 2
    with pytest.raises(IntegrityError, match="round-000005: is missing, though this round counted"):
        store.read(5)
    (store.path / "round-000004").write_bytes(b"0" * 64 + b"\nzip")
    with pytest.raises(IntegrityError, match="round-000004: does not match its digest"):
        store.read(4)


def test_a_message_without_a_task_is_reported_in_one_line(tmp_path):
    config = digits()
    grid = grid_of(config, tmp_path)
    node = next(iter(grid.nodes))
    for content in (RecordDict(), RecordDict({"config": ConfigRecord({"kind": "train"}), "arrays": ArrayRecord()})):
        [reply] = grid.send_and_receive([Message(content, node, "train")])
        assert "no task of a fedrela server" in reply.content["config"]["detail"]
