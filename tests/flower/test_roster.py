"""Who is who at the server: nodes that claim the same client or an impossible one are logged."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ConfigRecord, Message, RecordDict

import helpers.in_process  # noqa: F401  which lets messages be made outside of an app
from fedrela.flower.codec import CONFIG
from fedrela.flower.roster import Roster


class Nodes:
    """A grid whose nodes say that they are these clients."""

    def __init__(self, clients):
        self.clients = clients

    def get_node_ids(self):
        return [*self.clients]

    def send_and_receive(self, messages, timeout):
        for asked in messages:
            node = asked.metadata.dst_node_id
            said = ConfigRecord({"client": self.clients[node], "fingerprint": "f"})
            reply = Message(RecordDict({CONFIG: said}), reply_to=asked)
            reply.metadata._src_node_id = node
            yield reply


def test_two_nodes_of_one_number_and_impossible_numbers_are_logged(caplog):
    grid = Nodes({11: 0, 12: 1, 13: 1, 14: 9, 15: "two", 16: -1})
    roster = Roster(grid, "f", 0.1, {})
    roster.clients = range(3)
    with caplog.at_level(logging.WARNING, "flwr"):
        logging.getLogger("flwr").addHandler(caplog.handler)
        found = roster.find({0, 1})
        again = roster.find({0, 1})
        logging.getLogger("flwr").removeHandler(caplog.handler)
    assert found == again == {0: 11, 1: 13}
    said = {record.getMessage() for record in caplog.records}
    assert said == {
        "client 1: two nodes claim to be it, 12 and 13; the first is ignored",
        "node 14: claims to be client 9, but no client has that number",
        "node 15: claims to be client 'two', but no client has that number",
        "node 16: claims to be client -1, but no client has that number",
    }
    del grid.clients[13]
    assert roster.find({1}) == {}  # the one left out is asked again when it comes back
    grid.clients[17] = 1
    assert roster.find({1}) == {1: 17}
