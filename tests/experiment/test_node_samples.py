"""A node's own samples: what fits, what does not, and what its file may say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fedrela.data.sources import Source, from_arrays
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.disclosure import disclosures
from fedrela.experiment.load import load_node, parse_config
from fedrela.experiment.node_samples import class_table, is_split, load_samples
from fedrela.experiment.private import check_trainable, merged_statistics, own_statistics, refusal, within_policy

CLASSES = ("normal", "sickle", "other")
TABLE = {"columns": ["age", "sex=f", "sex=m", "bmi"], "encoded": ["sex=f", "sex=m"]}
ROWS = "age,sex,bmi,diagnosis\n" + "\n".join(
    f"{40 + i},{'fm'[i % 2]},{20 + i / 7:.3f},{CLASSES[i % 3]}" for i in range(30)
)


def federation(**more):
    table = {"nodes": ["north", "south"], "classes": list(CLASSES), "statistics": True, **more}
    return {"federation": table}


def write_node(folder, rows=ROWS, more="", options="label = 'diagnosis'"):
    (folder / "cells.csv").write_text(rows)
    text = f"source = 'csv'\nroot = '.'\noptions = {{ file = 'cells.csv', {options} }}\n{more}"
    (folder / "node.toml").write_text(text)
    return load_node(folder / "node.toml")


def refused(folder, message, config=None, **more):
    with pytest.raises(DataError, match=message) as caught:
        load_samples(write_node(folder, **more), parse_config(config or federation(**TABLE)))
    assert "\n" not in str(caught.value)


def test_a_table_gets_the_agreed_columns_and_classes(tmp_path):
    config = parse_config(federation(**TABLE))
    samples = load_samples(write_node(tmp_path, more="test_share = 0.2"), config)
    assert samples.x_train.shape == (24, 4)
    assert samples.x_test.shape == (6, 4)
    assert set(samples.x_train[:, 1] + samples.x_train[:, 2]) == {1.0}
    assert class_table(CLASSES, samples) == [("normal", 8, 2), ("sickle", 8, 2), ("other", 8, 2)]
    swapped = parse_config(federation(columns=["bmi", "sex=m", "sex=f", "age"], encoded=["sex=m", "sex=f"]))
    again = load_samples(write_node(tmp_path, more="test_share = 0.2"), swapped)
    assert np.array_equal(again.x_train, samples.x_train[:, ::-1])


def test_a_value_that_a_node_never_met_is_a_column_of_zeros(tmp_path):
    samples = load_samples(write_node(tmp_path, rows=ROWS.replace(",m,", ",f,")), parse_config(federation(**TABLE)))
    assert samples.x_train[:, 2].max() == 0
    assert samples.x_train[:, 1].min() == 1


@pytest.mark.parametrize(("share", "sizes"), [("0.0", (30, 0)), ("1.0", (0, 30)), ("0.5", (15, 15))])
def test_the_share_of_test_samples(tmp_path, share, sizes):
    samples = load_samples(write_node(tmp_path, more=f"test_share = {share}"), parse_config(federation(**TABLE)))
    assert (len(samples.y_train), len(samples.y_test)) == sizes


@pytest.mark.parametrize("part", ["train", "test"])
def test_rows_that_are_not_split_keep_their_order_and_their_categories(tmp_path, part):
    rows = ROWS.replace("52,f", "52,x")
    columns = {"columns": ["age", "sex=f", "sex=m", "sex=x", "bmi"], "encoded": ["sex=f", "sex=m", "sex=x"]}
    share = {"train": 0, "test": 1}[part]
    samples = load_samples(write_node(tmp_path, rows, f"test_share = {share}"), parse_config(federation(**columns)))
    x, y = getattr(samples, f"x_{part}"), getattr(samples, f"y_{part}")
    assert x[:, 0].tolist() == list(range(40, 70))  # so policy.keep means rows of the file
    assert y.tolist() == [i % 3 for i in range(30)]
    assert x[12, 1:4].tolist() == [0, 0, 1]
    assert (x[:, 1:4].sum(axis=1) == 1).all()


def test_a_test_file_joins_the_training_rows_if_no_test_samples_are_wanted(tmp_path):
    (tmp_path / "more.csv").write_text("age,sex,bmi,diagnosis\n90,m,30.0,other\n91,f,31.0,normal\n")
    rows, options = ROWS.replace(",m,", ",f,"), "label = 'diagnosis', test_file = 'more.csv'"
    node = write_node(tmp_path, rows, "test_share = 0.0", options)
    samples = load_samples(node, parse_config(federation(**TABLE)))
    assert samples.x_train[:, 0].tolist() == [*range(40, 70), 90, 91]
    assert samples.x_train[30:, 1:3].tolist() == [[0, 1], [1, 0]]
    assert not len(samples.y_test)


def test_rows_are_named_by_their_ids_wherever_they_are(tmp_path):
    config, (header, *rows) = parse_config(federation(**TABLE)), ROWS.splitlines()
    named = "\n".join([f"who,{header}", *(f"p{i},{row}" for i, row in enumerate(rows))])
    policy = 'test_share = 0.2\n[policy]\nkeep = ["p4", "p7", "p29"]\n'
    node = write_node(tmp_path, named, policy, "label = 'diagnosis', id = 'who'")
    samples = load_samples(node, config)
    assert samples.ids_train == tuple(f"p{int(age) - 40}" for age in samples.x_train[:, 0])
    check_trainable(node, samples)
    kept = within_policy(config, node, 0, samples.ids_train).relabel.keep
    assert {samples.ids_train[row] for row in kept} == {"p4", "p7", "p29"} - {*samples.ids_test}
    assert len(kept) > 0
    wrong = write_node(tmp_path, named, policy.replace("p29", "p30"), "label = 'diagnosis', id = 'who'")
    with pytest.raises(DataError, match=r"^policy\.keep\[0\]: expected the id of a sample of this node$"):
        check_trainable(wrong, samples)


def split_in_half(test_share: float = 0.5) -> Source:
    """A source of ones own, which cannot leave its samples whole."""
    assert 0 < test_share < 1
    x, y = np.arange(60, dtype=np.float32).reshape(20, 3), np.arange(20) % 2
    return from_arrays(x, y, class_names=["a", "b"], test_share=test_share)


@pytest.mark.parametrize(("share", "sizes"), [("0.0", (20, 0)), ("1.0", (0, 20))])
def test_a_source_of_ones_own_that_splits_is_joined_again(tmp_path, share, sizes):
    (tmp_path / "node.toml").write_text(f"source = '{__name__}:split_in_half'\ntest_share = {share}\n")
    node = load_node(tmp_path / "node.toml")
    samples = load_samples(node, parse_config(federation(classes=["a", "b"], columns=["x0", "x1", "x2"])))
    assert (len(samples.y_train), len(samples.y_test)) == sizes
    assert is_split(node), "so its rows have no numbers that policy.keep could name"


def test_a_single_row_can_be_trained_on(tmp_path):
    node = write_node(tmp_path, "\n".join(ROWS.splitlines()[:2]), "test_share = 0.0")
    assert load_samples(node, parse_config(federation(**TABLE))).y_train.tolist() == [0]


def test_own_words_for_classes(tmp_path):
    words = ROWS.replace("normal", "RBC normal").replace("other", "RBC normal")
    refused(tmp_path, "class 'RBC normal' is not in the federation.*map it in ", rows=words)
    node = write_node(tmp_path, rows=words, more="classes = { 'RBC normal' = 'normal' }")
    samples = load_samples(node, parse_config(federation(**TABLE)))
    assert set(samples.y_train) == {0, 1}


def test_data_that_do_not_fit(tmp_path):
    refused(tmp_path, "column 'bmi' is missing", rows=ROWS.replace("bmi", "body_mass"), options="label = 'diagnosis', ignore = ['body_mass']")  # noqa: E501  # fmt: skip
    refused(tmp_path, "column 'weight' is not in the federation", rows=ROWS.replace("bmi", "weight"))
    refused(
        tmp_path,
        r"column 'sex' has a value that federation\.columns does not list; compare them, or replace the value$",
        rows=ROWS.replace(",m,", ",x,"),
    )
    refused(tmp_path, "column 'sex=f' is missing", options="label = 'diagnosis', ignore = ['sex']")
    refused(tmp_path, r"expected samples uint8 \(1, 8, 8\), got float32", config=federation(shape=[1, 8, 8]))
    refused(tmp_path, "the cell is missing", rows=ROWS.replace("20.000", ""))
    refused(tmp_path, "has no rows", rows="age,sex,bmi,diagnosis\n")


def nan_source() -> Source:
    """Return a table with a number that is none, as a careless function of a clinic's own might."""
    source = from_arrays(np.ones((30, 2)), np.arange(30) % 2, name="own")
    x = source.x_train.copy()
    x[3, 1] = np.nan
    return Source("own", x, source.y_train, source.x_test, source.y_test, ("normal", "sickle"), None, ("a", "b"), source.numeric)  # noqa: E501  # fmt: skip


def test_a_number_that_is_none_of_a_function_of_theirs(tmp_path):
    (tmp_path / "node.toml").write_text(f"source = '{__name__}:nan_source'")
    config = parse_config(federation(columns=["a", "b"]))
    with pytest.raises(DataError, match="own: x_train: row 3: expected finite numbers"):
        load_samples(load_node(tmp_path / "node.toml"), config)


def test_a_wrong_key_in_a_nodes_file_has_its_place(tmp_path):
    with pytest.raises(ArgumentError, match=r"node.toml:4:1: test_shar: unknown key; nearest: test_share"):
        write_node(tmp_path, more="test_shar = 0.2")
    with pytest.raises(ArgumentError, match=r"policy.tau: expected a number from 0 to 1, got 5"):
        write_node(tmp_path, more="policy = { tau = 5.0 }")


def test_statistics_are_those_of_all_samples_together(tmp_path):
    config = parse_config(federation(**TABLE, groups="counts", evaluate="clients"))
    node = write_node(tmp_path, more="test_share = 0.0\npolicy = { counts = true }")
    samples = load_samples(node, config)
    merged = merged_statistics(config, [own_statistics(config, node, samples)] * 2)
    numbers = samples.x_train[:, [0, 3]].astype(float)
    assert merged["mean"] == pytest.approx(numbers.mean(axis=0))
    assert merged["squares"] == pytest.approx(2 * 30 * numbers.var(axis=0))
    assert merged["classes"].tolist() == [20, 20, 20]
    silent = write_node(tmp_path, more="test_share = 0.0\npolicy = { statistics = false }")
    assert own_statistics(config, silent, samples) == {}
    with pytest.raises(DataError, match="no node reported any"):
        merged_statistics(config, [{}])


def test_the_stricter_of_federation_and_policy_applies(tmp_path):
    asked = {"tau": {"default": 0.3, "1": 0.01}, "forbidden": [[2, 0]], "class_tau": {"sickle": 0.5, "normal": 0.02}}
    config = parse_config(federation(**TABLE) | {"relabel": asked})
    own = "tau = 0.1, max_fraction = 0.2, forbidden = [['sickle', 'normal']], allowed = [[0, 1], ['normal', 'sickle']]"
    node = write_node(tmp_path, more=f"policy = {{ {own} }}")
    relabel, other = (within_policy(config, node, client).relabel for client in (0, 1))
    assert (relabel.tau, other.tau, relabel.max_fraction) == (0.1, 0.01, 0.2)
    numbers = {name: config.federation.classes.index(name) for name in ("normal", "sickle")}
    assert {*relabel.forbidden} == {(2, 0), (numbers["sickle"], numbers["normal"])}
    assert {*relabel.allowed} == {(0, 1), (numbers["normal"], numbers["sickle"])}
    # What the node permits at most applies to every class.
    assert relabel.class_tau == {str(numbers["normal"]): 0.02, str(numbers["sickle"]): 0.1}
    mild = write_node(tmp_path, more="policy = { class_tau = { sickle = 0.001 } }")
    assert within_policy(config, mild, 1).relabel.class_tau[str(numbers["sickle"])] == 0.001
    wrong = write_node(tmp_path, more="policy = { forbidden = [['sick', 'normal']] }")
    with pytest.raises(DataError, match=r"policy\.forbidden: unknown class 'sick'.*the federation's classes"):
        within_policy(config, wrong, 0)


def test_what_leaves_a_node_follows_algorithm_and_policy(tmp_path):
    table = federation(**TABLE, evaluate="clients", groups="counts")
    config = parse_config(table | {"algorithm": {"name": "fedmix"}})
    node = write_node(tmp_path, more="policy = { refuse = ['means', 'present'] }")
    assert within_policy(config, node, 0)
    assert "refuses 'means' (averages of its samples, and the shares " in refusal(config, node.policy)
    assert refusal(parse_config(table), node.policy) == ""
    creff = parse_config(table | {"algorithm": {"name": "creff"}})
    assert refusal(creff, node.policy) == "its policy refuses 'present' (which classes it has), which creff needs"
    said = dict(disclosures(config, node.policy))
    assert said["means (averages of its samples, and the shares of all classes in them)"] == "once, all clients"
    assert "hits and number of its test samples" in said
    assert "statistics (count, mean, squares of its samples)" in said
    assert "confusion matrix of its own test samples" in dict(disclosures(config))
    assert "statistics (count, mean, squares, number per class of its samples)" in dict(disclosures(config))


def test_a_mistyped_refusal_is_an_error_and_keeps_back_no_less(tmp_path):
    node = write_node(tmp_path, more="policy = { refuse = ['mean'] }")
    with pytest.raises(DataError, match=r"policy.refuse: no algorithm sends 'mean'; nearest: 'means'"):
        within_policy(parse_config(federation(**TABLE)), node, 0)


KEYS = {name: f"ssh-ed25519 AAAA{letter}== {name}@host\n" for name, letter in (("north", "n"), ("south", "s"))}


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ({"north": KEYS["north"]}, "'south' has none; expected a key for each node, or no keys at all"),
        (KEYS | {"south": "ssh-rsa AAAA"}, "expected the text of a .pub file, ecdsa "),
        (KEYS | {"south": KEYS["north"]}, "is also the key of 'north'"),
        (KEYS | {"east": KEYS["north"]}, "'east' is not one of the nodes"),
    ],
)
def test_each_node_has_a_key_of_its_own_or_none_has(keys, wrong):
    assert parse_config(federation(**TABLE, keys=KEYS)).federation.keys == KEYS
    with pytest.raises(ArgumentError, match=re.escape(wrong)):
        parse_config(federation(**TABLE, keys=keys))
