"""Private nodes when things go wrong: by name and reason a node is out, and the run goes on with the others."""

from __future__ import annotations

import dataclasses
import errno
import shutil
import subprocess

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.core import Ledger
from fedrela.data.sources import load
from fedrela.errors import DataError, IntegrityError, RunFailedError
from fedrela.experiment import run
from fedrela.experiment.flower_app import client_app, flower_client, private_client, serve
from fedrela.experiment.load import config_toml, load_config, parse_config
from fedrela.experiment.private import merged_statistics
from fedrela.experiment.split import split
from fedrela.flower.client_app import FlowerClient, StateStore
from fedrela.metrics.groups import evaluation_groups
from fedrela.report.writing import write_report
from fedrela.runfolder import RunFolder
from helpers.flower_federations import assert_equal, digits, grid_of
from helpers.private_federations import node_of, private_grid, table
from helpers.quick import QUICK

torch.set_num_threads(1)
NAMES = ["node-00", "node-01", "node-02"]


@pytest.fixture(scope="module")
def split_once(tmp_path_factory):
    config = digits(
        data={"partition": {"kind": "iid", "clients": 3}, "validation": 0.2},
        train={"rounds": 3, "norm_limit": 0.0}, relabel={"start": 2}, engine={"checkpoint_every": 1},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("split") / "parts"
    split(config, folder)
    return folder


@pytest.fixture
def parts(split_once, tmp_path):
    shutil.copytree(split_once, tmp_path / "parts")
    private_client.cache_clear()
    return tmp_path / "parts"


def change(parts, **tables):
    """Write the configuration with another algorithm, or other values for some keys of some tables."""
    config = load_config(parts / "config.toml").as_table()
    if "algorithm" in tables:
        config.pop("algorithm")
    text = parse_config({**config, **{name: {**config.get(name, {}), **table} for name, table in tables.items()}})
    (parts / "config.toml").write_text(config_toml(text))


def alter(parts, name, **arrays):
    """Change some arrays of a node's samples."""
    path = parts / "nodes" / name / "samples.npz"
    with np.load(path) as stored:
        np.savez(path, **{**stored, **{key: value(stored[key]) for key, value in arrays.items()}})


def permit(parts, name, text):
    """Write the policy of a node."""
    path = parts / "nodes" / name / "node.toml"
    path.write_text(path.read_text().partition("[policy]")[0] + f"[policy]\n{text}\n")


def carry_out(parts, tmp_path, grid=None, **more):
    config, made = private_grid(parts, tmp_path / "states")
    server = parts / "server" / "server.toml"
    return serve(
        config, grid or made, out=tmp_path / "run", experiment="trial", timeout=0.2, private=True, data=server, **more
    )


def reasons(result, client):
    """Return why a client was left out of each round."""
    return [dict(record["excluded"]).get(client, "") for record in result.history()]


def interrupted(parts, tmp_path, after=2):
    """Begin a run, or go on with one, and stop it after a round, with all nodes."""

    def stop(recorded, done):
        if done is not None and done.round == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(parts, tmp_path, on_round=stop)
    private_client.cache_clear()


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"class_names": lambda names: np.where(names == "3", "three", names)}, "class 'three' is not in the"),
        ({"x_train": lambda x: x[:, :, :4]} | {"x_test": lambda x: x[:, :, :4]}, r"got uint8 (1, 4, 8)"),
        ({"x_train": lambda x: x[:0]} | {"y_train": lambda y: y[:0]}, "has no training samples"),
    ],
    ids=["another class", "another shape", "no samples"],
)
def test_a_node_whose_data_do_not_fit_is_out(parts, tmp_path, arrays, reason):
    alter(parts, "node-01", **arrays)
    result = carry_out(parts, tmp_path)
    assert all(reason in said for said in reasons(result, 1))
    assert [record["admitted"] for record in result.history()] == [[0, 2]] * 3


UNREADABLE = "its file or its data cannot be read; its own log says why"
ODD = 123.456  # a value that nobody else may see


def with_a_nan(x):
    x[3], x[3, 0] = ODD, np.nan
    return x


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"feature_names": lambda names: np.where(names == "age", "years", names)}, "'years' is not in the federation"),
        ({"x_train": with_a_nan}, UNREADABLE),
        ({"class_names": lambda names: names[:1]}, UNREADABLE),
    ],
    ids=["other columns", "NaN", "damaged"],
)
def test_a_table_that_does_not_fit_is_out_and_no_value_of_it_is_told(tmp_path, caplog, arrays, reason):
    config = digits(data=table(tmp_path), train={"rounds": 2}, relabel={"start": 2})
    split(config, tmp_path / "parts")
    alter(tmp_path / "parts", "node-01", **arrays)
    private_client.cache_clear()
    result = carry_out(tmp_path / "parts", tmp_path)
    assert all(reason in said for said in reasons(result, 1))
    assert [record["admitted"] for record in result.history()] == [[0, 2]] * 2
    assert str(ODD) not in (tmp_path / "run" / "rounds.jsonl").read_text()
    assert ("samples.npz" in caplog.text) == (reason == UNREADABLE), "the node's own log"


def test_a_node_whose_file_is_wrong_is_out_by_name(parts, tmp_path, caplog):
    (parts / "nodes" / "node-01" / "node.toml").write_text("sorce = 'npz'")
    _, grid = private_grid(parts, tmp_path / "states")
    for context, name in zip(grid.contexts.values(), NAMES, strict=True):
        context.node_config["name"] = name  # as the start script does
    result = carry_out(parts, tmp_path, grid)
    assert reasons(result, 1) == [UNREADABLE] * 3
    assert "node-01/node.toml:1:1: source: text is missing" in caplog.text


@pytest.mark.parametrize(
    ("algorithm", "refused", "reason"),
    [
        ("fedmix", "means", "'means' (averages of its samples, and"),
        ("fedyoyo", "effective", "'effective' (the effective number of its samples of each class"),
        ("creff", "present", "'present' (which classes it has), which creff needs"),
    ],
)
def test_a_policy_that_refuses_what_an_algorithm_needs_keeps_its_node_out(parts, tmp_path, algorithm, refused, reason):
    change(parts, algorithm={"name": algorithm, **QUICK.get(algorithm, {})}, train={"rounds": 2})
    permit(parts, "node-02", f"refuse = ['{refused}']")
    _, grid = private_grid(parts, tmp_path / "states")
    result = carry_out(parts, tmp_path, grid)
    assert all(f"its policy refuses {reason}" in said for said in reasons(result, 2))
    assert [record["admitted"] for record in result.history()] == [[0, 1]] * 2
    other = [reply for reply in grid.replied if grid.nodes[reply.metadata.src_node_id] == 2]
    assert {reply.metadata.message_type for reply in other} <= {"query.hello", "query.statistics"}
    assert not any(reply.content.array_records.get("arrays") for reply in other), "it sends no array at all"


def test_a_policy_against_re_labelling_is_kept_and_taken_back_labels_are_the_original_ones(parts, tmp_path):
    change(parts, algorithm={"name": "scaffold"})
    permit(parts, "node-00", "enabled = false")

    interrupted(parts, tmp_path)
    ledgers = sorted(tmp_path.glob("states/trial-*/client-*/ledger-000002.json"))
    assert [path.parent.name for path in ledgers] == ["client-1", "client-2"]
    assert all(len(Ledger.load(path)) for path in ledgers)
    permit(parts, "node-01", "enabled = false")  # the undo of a node: from now on the original labels
    carry_out(parts, tmp_path)
    node = node_of(parts, "node-01")
    assert np.array_equal(node.runner.current_labels, node.runner.labels)


@pytest.mark.parametrize(
    "policy", ["forbidden = [[9, 0], [8, 0]]", "max_fraction = 0.0", "tau = 0.001", "min_agreement = 1.0"]
)
def test_a_policy_that_was_tightened_later_applies_to_labels_made_before(parts, tmp_path, caplog, policy):
    interrupted(parts, tmp_path)
    ledger = Ledger.load(next(tmp_path.glob("states/trial-*/client-1/ledger-000002.json")))
    if "forbidden" in policy:
        policy = f"forbidden = [['{ledger.old[0]}', '{ledger.new[0]}']]"
    permit(parts, "node-01", policy)
    carry_out(parts, tmp_path)
    first, other = (node_of(parts, name).runner for name in ("node-01", "node-02"))
    assert np.array_equal(first.current_labels, first.labels)
    assert not np.array_equal(other.current_labels, other.labels)
    assert "the labels of round 2 violate the current" in caplog.text


def test_only_its_owner_may_read_what_a_node_keeps(parts, tmp_path):
    interrupted(parts, tmp_path)
    kept = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("states/trial-*/client-1/*")}
    assert {"data.sha256", "ledger-000002.json", "round-000002"} <= kept.keys()
    assert {mode for name, mode in kept.items() if name != "lock"} == {0o600}


def test_labels_that_the_model_confirmed_well_enough_stay_in_use(parts, tmp_path, caplog):
    permit(parts, "node-01", "min_agreement = 0.2")
    permit(parts, "node-02", "min_agreement = 1.0")
    interrupted(parts, tmp_path)
    ledgers = [Ledger.load(next(tmp_path.glob(f"states/trial-*/client-{k}/ledger-000002.json"))) for k in (1, 2)]
    assert [len(each) > 0 for each in ledgers] == [True, False]
    carry_out(parts, tmp_path)
    assert np.array_equal(node_of(parts, "node-01").runner.current_labels, ledgers[0].labels)
    assert "violate the current" not in caplog.text


def test_rows_that_a_policy_keeps_must_be_there_and_are_not_told(parts, tmp_path):
    permit(parts, "node-01", "keep = ['patient-4711']")
    result = carry_out(parts, tmp_path)
    assert all("policy.keep: expected numbers of training samples, from 0" in said for said in reasons(result, 1))
    assert "4711" not in str(result.history())
    private_client.cache_clear()
    shutil.rmtree(tmp_path / "run")
    path = parts / "nodes" / "node-01" / "node.toml"
    path.write_text("test_share = 0.3\n" + path.read_text())
    permit(parts, "node-01", "keep = [3]")
    said = reasons(carry_out(parts, tmp_path), 1)
    assert all("policy.keep: rows have other numbers after the source was split" in each for each in said)


def named(file):
    """A node's samples, each with a name."""
    source = load("npz", file=file)
    ids = [tuple(f"{part}-{i}" for i in range(len(getattr(source, f"y_{part}")))) for part in ("train", "test")]
    return dataclasses.replace(source, ids_train=ids[0], ids_test=ids[1])


def test_the_ledger_of_a_node_names_its_samples_and_those_to_keep_are_named(parts, tmp_path, caplog):
    path = parts / "nodes" / "node-01" / "node.toml"
    path.write_text(
        f"name = 'node-01'\nsource = '{__name__}:named'\noptions = {{ file = '{path.parent / 'samples.npz'}' }}\n"
    )
    permit(parts, "node-01", "tau = 0.2")
    interrupted(parts, tmp_path)
    ledger = Ledger.load(next(tmp_path.glob("states/trial-*/client-1/ledger-000002.json")))
    assert ledger.ids == node_of(parts, "node-01").ids
    moved = ledger.ids[ledger.index[0]]
    private_client.cache_clear()
    permit(parts, "node-01", f"keep = ['{moved}', 'test-0']")
    carry_out(parts, tmp_path)
    assert "the labels of round 2 violate the current keep" in caplog.text
    assert np.array_equal(node_of(parts, "node-01").runner.current_labels, ledger.original)
    assert moved not in (tmp_path / "run" / "rounds.jsonl").read_text()


def test_a_node_names_the_rows_of_its_own_table_to_keep_whatever_the_shared_configuration_reads(tmp_path):
    config = digits(data=table(tmp_path), train={"rounds": 2}, relabel={"start": 2})
    split(config, tmp_path / "parts")
    header, *rows = (tmp_path / "wards.csv").read_text().splitlines()
    own = [f"p{i},{row}" for i, row in enumerate(rows) if ",east," in row]
    (tmp_path / "own.csv").write_text("\n".join([f"who,{header}", *own]))
    path = next(tmp_path.glob("parts/nodes/*1/node.toml"))
    options = f"file = '{tmp_path / 'own.csv'}', id = 'who', ignore = ['ward'], missing = 'indicate'"
    path.write_text(f"source = 'csv'\nname = '{path.parent.name}'\noptions = {{ {options} }}\ntest_share = 0.2\n")
    for keep, admitted in (("p9999", [0, 2]), (own[3].split(",")[0], [0, 1, 2])):
        permit(tmp_path / "parts", path.parent.name, f"keep = ['{keep}']")
        private_client.cache_clear()
        result = carry_out(tmp_path / "parts", tmp_path)
        assert [record["admitted"] for record in result.history()] == [admitted] * 2, reasons(result, 1)
        shutil.rmtree(tmp_path / "run")


def test_an_unexpected_error_of_a_node_is_told_without_its_text(parts, tmp_path, caplog, monkeypatch):
    def fail(self, message, store):
        raise ValueError(f"value {ODD}")

    _, grid = private_grid(parts, tmp_path / "states")
    monkeypatch.setattr(FlowerClient, "_carry_out", fail)
    with pytest.raises(RunFailedError):
        carry_out(parts, tmp_path, grid)
    replies = [str(reply.content) for reply in grid.replied if reply.has_content()]
    assert any("an unexpected error; its own log says which" in each for each in replies)
    assert not any(str(ODD) in each for each in replies)
    assert f"ValueError: value {ODD}" in caplog.text


def test_a_finished_run_is_not_scored_again(parts, tmp_path):
    change(parts, federation={"evaluate": "clients"})
    carry_out(parts, tmp_path)
    before = (tmp_path / "run" / "result.json").read_bytes()
    private_client.cache_clear()
    _, grid = private_grid(parts, tmp_path / "states")
    again = carry_out(parts, tmp_path, grid)
    assert not grid.sent
    assert (tmp_path / "run" / "result.json").read_bytes() == before
    assert again.accuracy["overall"] > 0


def test_the_server_needs_no_samples_where_nodes_scale_and_score_for_themselves(parts, tmp_path):
    change(parts, data={"scaling": "local"}, federation={"statistics": False, "evaluate": "clients"})
    shutil.rmtree(parts / "server")
    assert carry_out(parts, tmp_path).accuracy["overall"] > 0


WRONG = {"a negative count": {"count": -3}, "squares that cannot be": {"squares": -1}, "no samples": {"count": 0}}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_impossible_statistics_of_one_node_are_left_out(parts, wrong):
    config = load_config(parts / "config.toml")
    good = {"count": np.array(10), "sum": np.array([50]), "squares": np.array([400])}
    bad = good | {name: np.full_like(good[name], value) for name, value in wrong.items()}
    assert merged_statistics(config, [good, bad, good])["count"] == 20


@pytest.mark.parametrize(("algorithm", "collected"), [("fedavg", False), ("scaffold", True), ("fedavg", True)])
def test_an_owner_may_change_their_mind_twice(parts, tmp_path, algorithm, collected):
    change(parts, algorithm={"name": algorithm}, train={"rounds": 4}, relabel={"collected": collected})
    interrupted(parts, tmp_path)
    for after, enabled in ((3, "false"), (4, "true")):
        permit(parts, "node-01", f"enabled = {enabled}")
        if after == 3:
            interrupted(parts, tmp_path, after)
    result = carry_out(parts, tmp_path)
    assert [record["admitted"] for record in result.history()] == [[0, 1, 2]] * 4
    ledger = Ledger.load(next(tmp_path.glob("states/trial-*/client-1/ledger-000002.json")))
    assert np.array_equal(node_of(parts, "node-01").runner.current_labels, ledger.labels)


def test_an_owner_may_permit_it_later(parts, tmp_path):
    change(parts, train={"rounds": 4}, relabel={"start": 4, "collected": True})
    permit(parts, "node-01", "enabled = false")
    interrupted(parts, tmp_path)
    permit(parts, "node-01", "enabled = true")
    result = carry_out(parts, tmp_path)
    assert [record["admitted"] for record in result.history()] == [[0, 1, 2]] * 4


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(parts, tmp_path, algorithm):
    change(parts, algorithm={"name": algorithm})
    interrupted(parts, tmp_path)
    assert_equal(carry_out(parts, tmp_path), run(load_config(parts / "config.toml"), out=tmp_path / "here"))


def test_deadline_and_quorum_hold_with_private_nodes(parts, tmp_path):
    change(parts, train={"deadline": 0.2, "min_clients": 3})

    def lose(message, client):
        return client == 1 and message.metadata.message_type == "train" and message.metadata.group_id == "2"

    _, grid = private_grid(parts, tmp_path / "states", lose=lose)
    result = carry_out(parts, tmp_path, grid)
    assert [record["skipped"] for record in result.history()] == [False, True, False]
    assert "deadline" in reasons(result, 1)[1]
    assert [record["admitted"] for record in result.history()] == [[0, 1, 2], [], [0, 1, 2]]
    relabelled = sorted(path.name for path in tmp_path.glob("states/trial-*/client-*/ledger-*.json"))
    assert relabelled == ["ledger-000003.json"] * 3, "labels of a round that did not count are gone"


def test_a_ledger_whose_round_did_not_count_is_removed(parts, tmp_path, monkeypatch):
    write = StateStore.write

    def fail(self, state):
        if self.path.name == "client-1" and state.round == 2:
            raise OSError(errno.ENOSPC, "No space left on device")  # after the ledger, before the state
        write(self, state)

    monkeypatch.setattr(StateStore, "write", fail)
    result = carry_out(parts, tmp_path)
    assert [record["admitted"] for record in result.history()] == [[0, 1, 2], [0, 2], [0, 1, 2]]
    kept = sorted(path.name for path in tmp_path.glob("states/trial-*/client-1/*") if path.name != "lock")
    assert kept == ["data.sha256", "ledger-000003.json", "round-000003"]
    others = {path.name for path in tmp_path.glob("states/trial-*/client-[02]/ledger-*")}
    assert others == {"ledger-000002.json"}, "a ledger that counts stays, after later states too"


def test_data_that_changed_between_restarts_are_refused_and_old_labels_kept(parts, tmp_path):
    interrupted(parts, tmp_path)
    kept = next(tmp_path.glob("states/trial-*/client-1"))
    before = {path.name: path.read_bytes() for path in kept.iterdir() if path.name != "lock"}
    assert "round-000002" in before
    alter(parts, "node-01", x_train=lambda x: x[::-1], y_train=lambda y: y[::-1])
    result = carry_out(parts, tmp_path)
    assert "its data changed since it joined" in reasons(result, 1)[2]
    assert [record["admitted"] for record in result.history()] == [[0, 1, 2], [0, 1, 2], [0, 2]]
    assert {path.name: path.read_bytes() for path in kept.iterdir() if path.name != "lock"} == before


def test_a_server_with_other_samples_says_how_to_go_on(parts, tmp_path):
    interrupted(parts, tmp_path)
    path = parts / "server" / "samples.npz"
    with np.load(path) as stored:
        np.savez(path, **{**stored, "x_test": stored["x_test"][::-1]})
    with pytest.raises(IntegrityError) as error:
        carry_out(parts, tmp_path)
    assert str(error.value) == (
        f"{tmp_path / 'run'}: the server's samples are not those that the run started with; restore them to resume, or "
        "start a new run in another folder"
    )


@pytest.mark.parametrize("resumed", [False, True])
def test_a_number_that_no_node_has_is_refused_without_statistics_and_after_a_restart(
    parts, tmp_path, caplog, monkeypatch, resumed
):
    change(parts, data={"scaling": "local"}, federation={"statistics": False})
    if resumed:
        interrupted(parts, tmp_path)
    _, grid = private_grid(parts, tmp_path / "states")
    hello, last = FlowerClient.hello, max(grid.nodes)

    def lie(self, message, context):
        reply = hello(self, message, context)
        if context.node_id == last:
            reply.content["config"]["client"] = 2**62
        return reply

    monkeypatch.setattr(FlowerClient, "hello", lie)
    carry_out(parts, tmp_path, grid)
    assert f"node {last}: claims to be client {2**62}, but no client has that number" in caplog.text


def test_a_node_proves_its_name_with_its_key(parts, tmp_path):
    for name in NAMES:
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-C", "", "-f", tmp_path / name], check=True)  # noqa: E501  # fmt: skip
    change(parts, federation={"keys": {name: (tmp_path / f"{name}.pub").read_text() for name in NAMES}})
    _, grid = private_grid(parts, tmp_path / "states")
    keys = dict(zip(grid.contexts, ["node-00", "node-00", "node-02"], strict=True))  # the second is another's
    for node, context in grid.contexts.items():
        context.node_config["key"] = str(tmp_path / keys[node])
    alter(parts, "node-02", class_names=lambda names: np.where(names == "3", "three", names))
    result = carry_out(parts, tmp_path, grid)
    assert reasons(result, 1) == ["not connected: a node without its key claimed to be it"] * 3
    assert all("'three' is not in the federation" in said for said in reasons(result, 2)), "its own key, other data"
    assert [record["admitted"] for record in result.history()] == [[0]] * 3


def test_a_late_joiner_and_one_that_leaves_for_good_change_nobodys_number(parts, tmp_path):
    _, grid = private_grid(parts, tmp_path / "states")
    nodes = dict(grid.nodes)
    late = next(node for node, client in nodes.items() if client == 2)
    del grid.nodes[late]

    def come_and_go(recorded, done):
        if done is not None and done.round == 1:
            grid.nodes[late] = 2
            del grid.nodes[next(node for node, client in nodes.items() if client == 0)]

    result = carry_out(parts, tmp_path, grid, on_round=come_and_go)
    assert [record["admitted"] for record in result.history()] == [[0, 1], [1, 2], [1, 2]]
    assert reasons(result, 0)[1:] == ["not connected"] * 2
    assert reasons(result, 2)[0] == "not connected"


def test_clients_score_the_model_and_a_policy_decides_what_they_tell(parts, tmp_path):
    groups = {"majority": list("23456789"), "minority": ["0", "1"]}
    change(parts, federation={"evaluate": "clients", "groups": groups})
    permit(parts, "node-01", "confusion = false")
    _, grid = private_grid(parts, tmp_path / "states")
    result = carry_out(parts, tmp_path, grid)
    sizes = [len(np.load(parts / "nodes" / name / "samples.npz")["y_test"]) for name in NAMES]
    assert np.sum(result.record["confusion"]) == sizes[0] + sizes[2]
    assert 0.1 < result.accuracy["overall"] <= 1
    assert result.accuracy["overall"] * sum(sizes) == pytest.approx(round(result.accuracy["overall"] * sum(sizes)))
    assert result.record["headline"] == "balanced"
    assert all(record["validation"] is None for record in result.history())
    here = run(load_config(parts / "config.toml"), out=tmp_path / "here")  # its clients score what they hold back
    assert result.weights_sha256 == here.weights_sha256
    ours = [record["validation"]["overall"] for record in here.history()]
    assert [record["accuracy"]["overall"] for record in result.history()] == ours


@pytest.mark.parametrize("groups", ["test", "counts"])
def test_groups_come_from_the_servers_test_set_or_from_counts_that_nodes_permit(parts, tmp_path, groups):
    change(parts, federation={"groups": groups})
    for name in ("node-00", "node-02"):
        permit(parts, name, "counts = true")
    _, grid = private_grid(parts, tmp_path / "states")
    result = carry_out(parts, tmp_path, grid)
    samples = {name: np.load(parts / "nodes" / name / "samples.npz") for name in NAMES}
    told = [each for each in grid.replied if each.metadata.message_type == "query.statistics"]
    counts = {"test": np.bincount(np.load(parts / "server" / "samples.npz")["y_test"], minlength=10)}
    counts["counts"] = sum(np.bincount(samples[name]["y_train"], minlength=10) for name in ("node-00", "node-02"))
    expected = evaluation_groups(counts[groups])
    assert {*result.accuracy["groups"]} == {*expected.names}
    manifest = RunFolder.open(result.folder).manifest
    assert manifest["data"]["class_counts"] == (counts["counts"].tolist() if groups == "counts" else [])
    assert ["classes" in each.content["arrays"] for each in told] == [groups == "counts" and n != 1 for n in range(3)]


def test_each_node_scales_by_its_own_images_and_tells_nothing(parts, tmp_path):
    change(parts, data={"scaling": "local"}, federation={"statistics": False})
    alter(parts, "node-01", x_train=lambda x: x // 2)  # another instrument
    _, grid = private_grid(parts, tmp_path / "states")
    carry_out(parts, tmp_path, grid)
    assert all(message.metadata.message_type != "query.statistics" for message in grid.sent)
    for name in NAMES:
        own = np.load(parts / "nodes" / name / "samples.npz")["x_train"]
        assert node_of(parts, name).runner.setup.scaling.mean == pytest.approx([own.mean()])


def test_where_nobody_has_a_test_sample_nothing_is_scored_and_that_is_said(parts, tmp_path):
    change(parts, federation={"evaluate": "clients"}, train={"rounds": 2})
    for name in NAMES:
        path = parts / "nodes" / name / "node.toml"
        path.write_text("test_share = 0.0\n" + path.read_text())
    result = carry_out(parts, tmp_path)
    assert str(result).startswith("not evaluated: there are no test samples, ")
    assert (result.accuracy, result.groups) == ({}, {})
    assert write_report(result.folder).exists()


def test_a_server_without_what_it_needs_says_so(parts, tmp_path):
    with pytest.raises(DataError, match="'both': the server evaluates the model, so name a file with its test samples"):
        serve(
            load_config(parts / "config.toml"), private_grid(parts, tmp_path)[1], out=tmp_path / "run",
            experiment="trial", timeout=0.2, private=True,
        )  # fmt: skip
    change(parts, algorithm={"name": "ratioloss"})
    with pytest.raises(DataError, match="ratioloss needs 63 samples of every class at the server, and '0' has none"):
        carry_out(parts, tmp_path)


def test_nodes_of_an_exported_app_that_hold_other_data_are_refused_by_digest(tmp_path):
    rows = "\n".join(f"{row % 7},{row % 3},{row % 2}" for row in range(60))
    (tmp_path / "clinic.csv").write_text(f"a,b,label\n{rows}\n8,8,1\n")
    data = {"source": "csv", "root": str(tmp_path / "clinic.csv"), "partition": {"kind": "iid", "clients": 2}}
    config = digits(data={**data, "imbalance": {"kind": "natural"}}, train={"rounds": 2}, relabel={"start": 2})
    flower_client(config_toml(config), ".fedrela-client")  # what the nodes have
    assert client_app(config)
    (tmp_path / "clinic.csv").write_text(f"a,b,label\n{rows}\n9,8,1\n")
    with pytest.raises(RunFailedError, match="client 0: has other data than the configuration: digest "):
        serve(config, grid_of(config, tmp_path / "states"), out=tmp_path / "run", experiment="trial", timeout=0.2)
    flower_client.cache_clear()


def test_the_report_names_what_stayed_at_the_nodes(parts, tmp_path):
    result = carry_out(parts, tmp_path)
    page = write_report(result.folder).read_text()
    assert "3 private nodes" in page
    assert "What stayed at the nodes (node-00, node-01, node-02): samples, labels" in " ".join(page.split())
    assert "0 training samples" not in page
    record = RunFolder.open(result.folder).read_json("relabelling.json")
    assert (record["moved"], record["before"], record["counts"], record["clients"]) == (None, [], [], {})
