"""Real federations on loopback when things go wrong: foreign keys, killed nodes, a killed SuperLink, a silent node.

Minutes each, nearly all of it Flower's own waiting; every wait is bounded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.core import Ledger
from fedrela.experiment import Result, begin, run
from fedrela.experiment.flower_app import export_flower
from fedrela.experiment.load import load_config, parse_config
from fedrela.experiment.split import split
from fedrela.flower.client_app import StateStore
from fedrela.runfolder import RunFolder
from helpers.deployment import BIN, deployed, free_port
from helpers.flower_federations import assert_equal, digits

torch.set_num_threads(1)
CLIENTS = range(3)
EXAMPLES = Path(__file__).parents[2] / "examples" / "federate"


@pytest.fixture(autouse=True)
def _nightly(request):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery")


def three_clients(rounds, **train):
    """Return a configuration that re-labels in round 2."""
    return digits(
        data={"partition": {"kind": "dirichlet", "clients": len(CLIENTS), "alpha": 0.5, "min_size": 5}},
        train={"rounds": rounds, **train},
        relabel={"start": 2, "tau": 0.3},
        engine={"checkpoint_every": 1},
    )


def start_all(federation):
    federation.superlink()
    for client in CLIENTS:
        federation.supernode(client)


def rounds_in(folder):
    """Return how many rounds are written."""
    path = folder / "rounds.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def with_the_same_losses(config, out, there):
    """Return the embedded run in which the same clients are lost as in the run at `there`."""
    with begin(config, out=out) as execution:
        for round, failures in RunFolder.open(there).exclusions().items():
            execution.folder.note_exclusions(round, failures)
        return execution.complete()


def store_of(states, client):
    """Return the folder of a client's state, below a name that ends with the configuration's digest."""
    folder = states / f"state-{client}"
    return next(folder.glob(f"app-*/client-{client}"), folder / "none yet")


def assert_relabelled_once(states, history, here):
    """Check that each client has the labels of the first round from 2 on that counted, and no others."""
    for client in CLIENTS:
        counted = [record["round"] for record in history if client in record["admitted"]]
        place = store_of(states, client)
        state = StateStore(place.parents[1], place.parent.name, client).read(counted[-1])
        assert state.relabelled == min(round for round in counted if round >= 2)
        ledger = Ledger.load(RunFolder.open(here).ledger_path(client))
        assert state.labels is not None
        assert state.labels.tolist() == ledger.labels.tolist()


def make_keys(app, folder):
    subprocess.run([app / "make-trial-keys.sh", folder], check=True, timeout=60, capture_output=True)
    return folder


def register_all(federation):
    for client in CLIENTS:
        done = federation.flwr("supernode", "register", federation.keys / f"node{client}.pub", "trial")
        assert done.returncode == 0, done.stdout + done.stderr


def refused(federation, client, *options):
    """Return what a SuperNode says that is not let in, and ends of itself."""
    before = len(federation.log(f"node{client}"))
    federation.supernode(client, *options)
    assert federation.wait_for_end(f"node{client}") != 0
    return federation.log(f"node{client}")[before:]


def test_over_tls_only_registered_keys_are_let_in_and_the_run_is_the_same(tmp_path):
    config = three_clients(3)
    app = export_flower(config, tmp_path / "app")
    keys, others = make_keys(app, tmp_path / "keys"), make_keys(app, tmp_path / "others")
    mixed = shutil.copytree(others, tmp_path / "mixed")  # a key of its own, and the right authority
    shutil.copy(keys / "ca.pem", mixed / "ca.pem")
    with deployed(app, keys=keys) as federation:
        federation.superlink()
        assert "Exit Code: 305" in refused(federation, 0)  # not registered yet
        register_all(federation)
        assert "Exit Code: 305" in refused(federation, 0, "--keys", mixed)
        assert "CERTIFICATE_VERIFY_FAILED" in refused(federation, 0, "--keys", others)
        federation.supernode(0, "--insecure")  # tries for ever
        federation.wait_until(lambda: federation.log("node0").count("Connection attempt failed") >= 3)
        federation.kill("node0")
        federation.start("keyless", [
            BIN / "flower-supernode", "--superlink", f"127.0.0.1:{federation.port}", "--host", "127.0.0.1",
            "--port", free_port(), "--root-certificates", keys / "ca.pem",
        ])  # fmt: skip
        assert federation.wait_for_end("keyless") != 0
        assert "Exit Code: 305" in federation.log("keyless")
        for client in CLIENTS:
            federation.supernode(client)
        federation.submit(tmp_path / "run")
        federation.wait_until((tmp_path / "run" / "result.json").exists)
    assert_equal(Result.load(tmp_path / "run"), run(config, out=tmp_path / "here"))


def test_over_tls_a_private_node_with_a_good_key_cannot_take_anothers_place(tmp_path):
    names = split(three_clients(2), tmp_path / "parts")
    config = load_config(tmp_path / "parts" / "config.toml")
    keys = make_keys(export_flower(config, tmp_path / "draft", private=True), tmp_path / "keys")
    table = config.as_table()
    table["federation"]["keys"] = {name: (keys / f"{name}.pub").read_text() for name in names}
    app = export_flower(parse_config(table), tmp_path / "app", private=True)
    stolen = shutil.copytree(keys, tmp_path / "stolen")
    shutil.copy(keys / "node-02", stolen / "node-01")  # a good key, and another's name
    out, homes = tmp_path / "run", {name: tmp_path / "parts" / "nodes" / name for name in names}
    with deployed(app, keys=keys) as federation:
        federation.superlink()
        for name in names:
            done = federation.flwr("supernode", "register", keys / f"{name}.pub", "trial")
            assert done.returncode == 0, done.stdout + done.stderr
        federation.private_supernode("node-00", homes["node-00"])
        federation.private_supernode("node-01", homes["node-01"], "--keys", stolen)
        said = f"out='{out}' data='{tmp_path / 'parts' / 'server' / 'server.toml'}' timeout=120.0"
        assert federation.flwr("run", ".", "trial", "--run-config", said).returncode == 0
        federation.wait_until((out / "result.json").exists, 3 * 240)
    for record in Result.load(out).history():
        assert record["admitted"] == [0]
        why = [(1, "not connected: a node without its key claimed to be it"), (2, "not connected")]
        assert [tuple(each) for each in record["excluded"]] == why


def test_the_trial_of_the_examples_gives_what_one_process_gives(tmp_path):
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    words = [EXAMPLES / "trial.sh", EXAMPLES / "digits.toml", tmp_path / "trial", free_port()]
    done = subprocess.run(
        list(map(str, words)),
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    there = Result.load(tmp_path / "trial" / "run")
    assert_equal(there, run(load_config(EXAMPLES / "digits.toml"), out=tmp_path / "here"))
    assert (tmp_path / "trial" / "run" / "report.html").exists()


def let_in_again(federation, client):
    """Start a node until it stays, as a supervisor would: it is refused while its last heartbeat is young."""
    name = f"node{client}"
    before = federation.log(name).count("SuperNode ID")

    def stays():
        if name in federation.processes and federation.processes[name].poll() is not None:
            federation.wait_for_end(name)
        if name not in federation.processes:
            federation.supernode(client)
        return federation.log(name).count("SuperNode ID") > before

    federation.wait_until(stays)


def test_a_node_with_a_key_comes_back_as_itself_with_its_labels(tmp_path):
    config = three_clients(6, deadline=90.0)
    app, out = export_flower(config, tmp_path / "app"), tmp_path / "run"
    with deployed(app, keys=make_keys(app, tmp_path / "keys")) as federation:
        federation.superlink()
        register_all(federation)
        for client in CLIENTS:
            federation.supernode(client)
        federation.submit(out)
        federation.wait_until(lambda: rounds_in(out) >= 2)
        federation.kill("node1")
        let_in_again(federation, 1)
        federation.wait_until((out / "result.json").exists)
        assert "Exit Code: 305" in federation.log("node1")
    history = Result.load(out).history()
    assert 1 in history[1]["admitted"]
    assert any(1 not in record["admitted"] for record in history[2:])  # in which round depends on the moment
    assert 1 in history[-1]["admitted"]
    assert_equal(Result.load(out), with_the_same_losses(config, tmp_path / "here", out))
    assert_relabelled_once(tmp_path, history, tmp_path / "here")


def test_a_node_killed_before_in_and_after_the_round_of_re_labelling_keeps_its_labels(tmp_path):
    config = three_clients(5)
    app, out = export_flower(config, tmp_path / "app"), tmp_path / "run"

    with deployed(app) as federation:
        start_all(federation)
        federation.submit(out)
        moments = [
            lambda: (store_of(tmp_path, 0) / "lock").exists(),  # before: in its first round, with nothing to store yet
            lambda: (store_of(tmp_path, 1) / "round-000002").exists(),  # labels on its disk, reply hardly on its way
            lambda: rounds_in(out) >= 2,  # after
        ]
        for client, moment in enumerate(moments):
            federation.wait_until(moment)
            federation.kill(f"node{client}")
            federation.supernode(client)
        federation.wait_until((out / "result.json").exists, 2 * 240)
    history = Result.load(out).history()
    assert sum(len(record["excluded"]) for record in history) >= 1
    assert history[-1]["admitted"] == list(CLIENTS)
    assert_equal(Result.load(out), with_the_same_losses(config, tmp_path / "here", out))
    assert_relabelled_once(tmp_path, history, tmp_path / "here")


def test_a_superlink_that_was_killed_goes_on_to_the_same_bytes(tmp_path):
    config = three_clients(4)
    app, out = export_flower(config, tmp_path / "app"), tmp_path / "run"
    with deployed(app) as federation:
        start_all(federation)
        federation.submit(out)
        federation.wait_until(lambda: rounds_in(out) >= 2)
        for name in list(federation.processes):
            federation.kill(name)
        assert not (out / "result.json").exists()
        start_all(federation)
        federation.submit(out)
        federation.wait_until((out / "result.json").exists)
    there = Result.load(out)
    assert_equal(there, run(config, out=tmp_path / "here"))
    assert_relabelled_once(tmp_path, there.history(), tmp_path / "here")


def test_a_node_that_never_answers_is_left_out_and_the_run_ends(tmp_path):
    config = three_clients(4, deadline=45.0)
    app, out = export_flower(config, tmp_path / "app"), tmp_path / "run"
    with deployed(app) as federation:
        start_all(federation)
        federation.submit(out)
        federation.wait_until(lambda: rounds_in(out) >= 1)
        federation.halt("node2")
        federation.wait_until((out / "result.json").exists)
        federation.kill("node2")
    history = Result.load(out).history()
    reasons = {record["round"]: dict(record["excluded"]).get(2, "") for record in history}
    assert all(reasons[round].startswith(("deadline", "no reply", "not connected")) for round in (2, 3, 4)), reasons
    assert_equal(Result.load(out), with_the_same_losses(config, tmp_path / "here", out))
