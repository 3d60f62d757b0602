"""Who is who at the server: nodes that claim the same client or an impossible one, or say nothing, are logged."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict

import helpers.in_process  # noqa: F401  which lets messages be made outside of an app
from fedrela.errors import ArgumentError
from fedrela.flower.client_app import client_of
from fedrela.flower.codec import CONFIG
from fedrela.flower.roster import Roster


class Nodes:
    """A grid whose nodes say that they are these clients, and what else they say."""

    def __init__(self, clients, said=None):
        self.clients, self.said = clients, said or {}

    def get_node_ids(self):
        return [*self.clients]

    def send_and_receive(self, messages, timeout):
        for asked in messages:
            node = asked.metadata.dst_node_id
            said = ConfigRecord({"client": 0, "fingerprint": "f", "data": "d", **self.said.get(node, {})})
            said.__dict__["_data"]["client"] = self.clients[node]  # of any type
            reply = Message(RecordDict({CONFIG: said}), reply_to=asked)
            reply.metadata._src_node_id = node
            yield reply


@pytest.fixture
def log():
    """Return the lines that are logged, as they come."""
    lines, handler = [], logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("flwr").addHandler(handler)
    yield lines
    logging.getLogger("flwr").removeHandler(handler)


def test_two_nodes_of_one_number_and_impossible_numbers_are_logged(log):
    grid = Nodes({11: 0, 12: 1, 13: 1, 14: 9, 15: "two", 16: -1})
    roster = Roster(grid, "f", 0.1, {})
    roster.clients = range(3)
    found = roster.find({0, 1})
    again = roster.find({0, 1})
    assert found == again == {0: 11, 1: 13}
    assert set(log) == {
        "client 1: two nodes claim to be it, 12 and 13; the first is ignored",
        "node 14: claims to be client 9, but no client has that number",
        "node 15: claims to be client 'two', but no client has that number",
        "node 16: claims to be client -1, but no client has that number",
    }
    del grid.clients[13]
    assert roster.find({1}) == {}  # the one left out is asked again when it comes back
    grid.clients[17] = 1
    assert roster.find({1}) == {1: 17}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"data": "e"}, "has other data than the configuration: digest e, expected d"),
        ({"refused": "its owner said no"}, "its owner said no"),
        ({"fingerprint": "g"}, "a node with another configuration claimed to be it"),
    ],
    ids=["data", "refusal", "configuration"],
)
def test_a_second_node_that_may_not_take_part_is_logged_and_the_first_stays(log, said, problem):
    grid = Nodes({11: 0}, {12: said})
    roster = Roster(grid, "f", 0.1, {})
    roster.data_sha256 = "d"
    assert roster.find({0}) == {0: 11}
    grid.clients[12] = 0
    assert roster.find({0}) == roster.find({0}) == {0: 11}
    assert log == [f"client 0: two nodes claim to be it, 11 and 12; the second is ignored: {problem}"]
    del grid.clients[11]
    assert roster.find({0}) == {}
    assert str(roster.why_absent(0)) == f"not connected: {problem}"


@pytest.mark.parametrize("keys", [{}, {0: "key"}], ids=["no keys", "keys"])
@pytest.mark.parametrize("claimed", [[0], [], {"client": 0}, 1.0, True, None, b"1", "1"], ids=repr)
def test_a_node_whose_number_is_no_integer_is_logged_and_ignored(log, claimed, keys):
    roster = Roster(Nodes({11: 1, 12: claimed}), "f", 0.1, keys)
    assert roster.find({0, 1}) == {1: 11}
    assert log == [f"node 12: claims to be client {claimed!r}, but no client has that number"]


@pytest.mark.parametrize("config", [{"partition-id": -1}, {}], ids=["negative", "missing"])
def test_a_node_that_cannot_say_which_client_it_is_is_logged_once_while_it_stays(log, config):
    context = Context(run_id=1, node_id=12, node_config=config, state=RecordDict(), run_config={})
    with pytest.raises(ArgumentError) as raised:
        client_of(context)

    class Failing(Nodes):
        def send_and_receive(self, messages, timeout):
            for asked in messages:
                reply = Message(Error(0, str(raised.value)), reply_to=asked)
                reply.metadata._src_node_id = asked.metadata.dst_node_id
                yield reply

    grid = Failing({12: None})
    roster = Roster(grid, "f", 0.5, {})
    assert roster.find({0}) == {}
    assert roster.find({0}) == {}
    line = f"node 12: cannot say which client it is: {raised.value}"
    assert log == [line]
    del grid.clients[12]
    roster.find({0})
    grid.clients[12] = None
    roster.find({0})
    assert log == [line, line]


def test_a_node_that_was_repaired_is_asked_again(log):
    grid = Nodes({11: 0, 12: 1}, {12: {"refused": "its data do not fit"}})
    roster = Roster(grid, "f", 0.1, {})
    assert roster.find({0, 1}) == {0: 11}
    assert str(roster.why_absent(1)) == "its data do not fit"
    grid.said.clear()
    assert roster.find({0, 1}) == {0: 11, 1: 12}
    assert not roster.refused
