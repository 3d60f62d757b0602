"""`fedrela data split`, `fedrela node check` and `fedrela check` of a private federation."""

from __future__ import annotations

import itertools
import shutil
import subprocess

import pytest
from PIL import Image

from fedrela.experiment import run as carry_out
from fedrela.experiment.disclosure import preview_at_node
from fedrela.experiment.load import config_toml, load_config, load_node, parse_config
from fedrela.experiment.node_samples import load_samples
from fedrela.experiment.split import split

TEXT = """
[data]
partition = { kind = "iid", clients = 3 }
imbalance = { kind = "step", ratio = 5, minority = [0, 1] }
validation = 0.2
[model]
hidden = [8]
[train]
rounds = 2
epochs = 1
[relabel]
start = 2
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("node")
    (folder / "clinic.toml").write_text(TEXT)
    split(load_config(folder / "clinic.toml"), folder / "parts")
    return folder / "parts"


def test_a_configuration_is_split_by_name(run, parts, tmp_path):
    done = run("data", "split", parts.parent / "clinic.toml", tmp_path / "again")
    assert (done.code, done.err) == (0, "")
    assert "3 folders, node-00, node-01, node-02\n" in done.out
    names = {path.relative_to(parts) for path in parts.rglob("*")}
    assert {path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*")} == names
    assert run("data", "split", parts.parent / "clinic.toml", tmp_path / "again").code == 3


def test_the_owner_sees_counts_and_what_would_be_sent(run, parts):
    done = run("node", "check", parts / "nodes" / "node-01" / "node.toml", parts / "config.toml")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("node-01: client 1 of 3; its data fit\n")
    assert "weights, number of training samples" in done.out
    assert "statistics (count, sum, squares of its samples)" in done.out
    assert "confusion matrix of its own test samples" in done.out


def test_a_node_that_cannot_score_is_told_so(run, parts, tmp_path):
    samples, node = parts / "nodes" / "node-01" / "samples.npz", tmp_path / "node.toml"
    text = (parts / "nodes" / "node-01" / "node.toml").read_text().replace("samples.npz", str(samples))
    node.write_text("test_share = 0.0\n" + text)
    done = run("node", "check", node, parts / "config.toml")
    assert done.code == 0
    assert "nodes score the model, and this one has no test samples; see test_share" in done.out


def test_a_preview_with_a_given_model(run, parts, tmp_path):
    carry_out(load_config(parts / "config.toml"), out=tmp_path / "run")
    node = parts / "nodes" / "node-01" / "node.toml"
    done = run("node", "check", node, parts / "config.toml", "--model", tmp_path / "run")
    assert done.code == 0, done.err
    assert "expected moves" in done.out
    assert "agreement of the model with the labels" in done.out


@pytest.mark.parametrize(("policy", "moves"), [("", True), ("enabled = false", False), ("min_agreement = 1.0", False)])
def test_a_preview_heeds_the_policy(parts, tmp_path, policy, moves):
    config = load_config(parts / "config.toml")
    carry_out(config, out=tmp_path / "run")
    folder = shutil.copytree(parts / "nodes" / "node-01", tmp_path / "node")
    text = (folder / "node.toml").read_text().partition("[policy]")[0]
    (folder / "node.toml").write_text(f"{text}\n[policy]\n{policy}\n")
    node = load_node(folder / "node.toml")
    found = preview_at_node(config, node, load_samples(node, config), 1, tmp_path / "run")
    assert bool(found.into.any()) is moves


def test_data_that_do_not_fit_are_one_line(run, parts, tmp_path):
    text = (parts / "config.toml").read_text().replace("shape = [1, 8, 8]", "shape = [1, 9, 8]")
    (tmp_path / "other.toml").write_text(text)
    done = run("node", "check", parts / "nodes" / "node-00" / "node.toml", tmp_path / "other.toml")
    assert done.code == 3
    assert done.line() == "npz:samples.npz: expected samples uint8 (1, 9, 8), got uint8 (1, 8, 8)"
    done = run("node", "check", parts / "nodes" / "node-00" / "node.toml", parts.parent / "clinic.toml")
    assert done.code == 2
    assert "has no table [federation]" in done.line()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen makes keys")
def test_a_key_that_is_not_the_nodes_own_is_noticed_before_it_joins(run, parts, tmp_path):
    pytest.importorskip("flwr", reason="the extra flower is not installed")
    names = [f"node-0{k}" for k in range(3)]
    for name in names:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    config = load_config(parts / "config.toml").as_table()
    config["federation"]["keys"] = {name: (tmp_path / f"{name}.pub").read_text() for name in names}
    (tmp_path / "keys.toml").write_text(config_toml(parse_config(config)))
    text = (parts / "nodes" / "node-00" / "node.toml").read_text()
    text = text.replace("samples.npz", str(parts / "nodes" / "node-00" / "samples.npz"))
    for key, code in (("node-00", 0), ("node-01", 3)):
        (tmp_path / "node.toml").write_text(f"key = '{tmp_path / key}'\n{text}")
        done = run("node", "check", tmp_path / "node.toml", tmp_path / "keys.toml")
        assert done.code == code, done.err
    assert "federation.keys is empty" not in run("check", tmp_path / "keys.toml").out
    assert done.line() == f"{tmp_path / 'node-01'}: is not the private key of 'node-00' in federation.keys"


def test_a_key_that_cannot_be_read_is_noticed_without_public_keys_too(run, parts, tmp_path):
    pytest.importorskip("flwr", reason="the extra flower is not installed")
    folder = shutil.copytree(parts / "nodes" / "node-00", tmp_path / "node")
    text = (folder / "node.toml").read_text()
    for key, reason in (
        ("nokey", "cannot be read: No such file or directory"),
        ("node.toml", "expected a private key, "),
    ):
        (folder / "node.toml").write_text(f"key = '{key}'\n{text}")
        done = run("node", "check", folder / "node.toml", parts / "config.toml")
        assert done.code == 2
        assert f"{folder / key}: {reason}" in done.line()


def test_a_decoded_copy_of_images_is_its_owners_alone_and_nothing_else_is_written(run, parts, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = load_config(parts / "config.toml").as_table()
    (tmp_path / "config.toml").write_text(config_toml(parse_config(config)))
    for part, name in itertools.product(("train", "test"), config["federation"]["classes"]):
        path = tmp_path / "images" / part / name / "1.png"
        path.parent.mkdir(parents=True)
        Image.new("L", (8, 8), int(name)).save(path)
    (tmp_path / "node.toml").write_text(
        "name = 'node-00'\nsource = 'image_folder'\nroot = 'images'\noptions = { size = 8, channels = 1 }\n"
    )
    before = {*tmp_path.rglob("*")}
    done = run("node", "check", tmp_path / "node.toml", tmp_path / "config.toml")
    assert (done.code, done.err) == (0, "")
    new = {*tmp_path.rglob("*")} - before
    assert {path.parent for path in new if path.is_file()} == {tmp_path / "cache" / "fedrela"}
    assert any(path.name.endswith("x_train.npy") for path in new)
    assert {path.stat().st_mode & 0o777 for path in new if path.is_file()} == {0o600}


def test_a_policy_that_keeps_a_node_out_is_said(run, parts, tmp_path):
    config = load_config(parts / "config.toml").as_table() | {"algorithm": {"name": "fedmix"}}
    (tmp_path / "mix.toml").write_text(config_toml(parse_config(config)))
    samples, node = parts / "nodes" / "node-00" / "samples.npz", tmp_path / "node.toml"
    text = (parts / "nodes" / "node-00" / "node.toml").read_text().replace("samples.npz", str(samples))
    node.write_text(text + 'refuse = ["means"]\n')
    done = run("node", "check", node, tmp_path / "mix.toml")
    assert done.code == 3
    assert "its policy refuses 'means' (averages of its samples, and the shares " in done.err


def test_check_says_what_leaves_each_node(run, parts):
    done = run("check", parts / "config.toml")
    assert done.code == 0
    assert "with --private: 3 private nodes; what leaves each:\n  weights, number of training samples: " in done.out
    assert "refuse" not in done.out
    assert "note: federation.keys is empty: any node that the SuperLink admits may take any name" in done.out


def test_an_app_for_private_nodes_names_no_data_and_is_no_simulation(run, parts, tmp_path):
    config = load_config(parts / "config.toml").as_table() | {"algorithm": {"name": "fedmix"}}
    (tmp_path / "mix.toml").write_text(config_toml(parse_config(config)))
    assert run("export-flower", tmp_path / "app", tmp_path / "mix.toml", "--private").code == 0
    there = tmp_path / "app" / "fedrela_app" / "config.toml"
    done = run("check", there)
    assert done.out.startswith(f"{there}: valid: 3 private nodes, fedmix with mlp, 2 rounds")
    assert "  means (averages of its samples, and the shares of all classes in them): once, all clients\n" in done.out
    assert "a node's policy may refuse means; the run then continues without that node" in done.out
    done = run("run", there, "--out", tmp_path / "run")
    assert done.code == 2
    assert "names no data to simulate with; fedrela export-flower DIR CONFIG --private is for private nodes" in done.err
