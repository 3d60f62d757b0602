"""Keys that look like FedReLa's and are not, which policy is in force, and calls without the mod."""

from __future__ import annotations

import logging

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.errors import ArgumentError
from helpers.flower_apps import Client, Heard, refused

torch.set_num_threads(1)


@pytest.fixture
def heard():
    handler = Heard()
    logging.getLogger("flwr").addHandler(handler)
    yield handler.lines
    logging.getLogger("flwr").removeHandler(handler)


@pytest.mark.parametrize("key", ["fedrela-polcy", "fedrela_policy", "Fedrela-Policy", "fedrela-policy-file"])
def test_a_misspelt_key_of_the_node_is_an_error_in_the_clients_log(tmp_path, key):
    (tmp_path / "rules.toml").write_text("enabled = false\n")
    with refused(f"node-config: {key}: unknown key; nearest: fedrela-policy$"):
        Client(tmp_path, node={key: str(tmp_path / "rules.toml")}).receive(1)


@pytest.mark.parametrize("key", ["fedrela_tau", "Fedrela-tau", "fedrela.tau", "FEDRELA_TAU"])
def test_a_misspelt_key_of_the_run_is_an_error(tmp_path, key):
    with pytest.raises(ArgumentError, match=f"^run-config: {key}: unknown key; nearest: fedrela-tau$"):
        Client(tmp_path, **{key: 0.1}).receive(1)


def test_keys_of_others_are_left_alone(tmp_path):
    client = Client(
        tmp_path, node={"policy": "mine", "tau": 3}, **{"tau": 3, "relabel": 1, "fedrela-max_fraction": 0.1}
    )
    client.receive(1)
    assert len(client.seen) == 1


def test_the_log_says_once_which_policy_is_in_force(tmp_path, heard):
    (tmp_path / "rules.toml").write_text("enabled = false\n")
    client = Client(tmp_path, node={"fedrela-policy": str(tmp_path / "rules.toml")})
    other = Client(tmp_path, node={"policy": str(tmp_path / "rules.toml"), "partition-id": 3, "client-id": 4})
    for round in (1, 2):
        client.receive(round), other.receive(round)
    said = [line for level, line in heard if level == "INFO" and "own policy" in line]
    assert said[0] == f"FedReLa, round 1, client 3: the client's own policy is {tmp_path}/rules.toml"
    assert said[1].startswith("FedReLa, round 1, client 4: the client's own policy is the defaults, since there is no ")
    assert len(said) == 2
    assert "fedrela-policy in --node-config" in said[1]


@pytest.mark.parametrize("where", ["run-77", "run-77/3"])
def test_a_policy_in_the_wrong_folder_is_an_error(tmp_path, where):
    (tmp_path / where).mkdir(parents=True)
    (tmp_path / where / "policy.toml").write_text("enabled = false\n")
    with refused(f"{where}/policy.toml: a policy is not read there; move it to {tmp_path}/policy.toml"):
        Client(tmp_path).receive(1)
