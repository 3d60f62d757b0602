"""The stricter of server and client wins, whatever they say; a wrong file is named with its key in one line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError
from fedrela.plugin import OneShot, Policy, read_policy
from helpers.batteries import examples
from helpers.plugin_toys import Scorer, points

fractions = st.floats(0, 1)
moves = st.frozensets(
    st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda pair: pair[0] != pair[1]), max_size=6
)
policies = st.builds(
    Policy,
    enabled=st.booleans(),
    tau=fractions,
    max_fraction=fractions,
    passes=st.integers(1, 9),
    min_agreement=fractions,
    share=st.booleans(),
    allowed=st.none() | moves,
    forbidden=moves,
    keep=st.frozensets(st.integers(0, 9), max_size=3),
    absent=st.booleans(),
    class_tau=st.none() | st.dictionaries(st.sampled_from("0123"), fractions, min_size=1),
)


def may(policy: Policy) -> np.ndarray:
    found = policy.allowed_moves(4)
    return np.ones((4, 4), bool) if found is None else found


@given(policies, policies)
@examples(150, 5000)
def test_what_both_permit_is_permitted_and_nothing_more(asked, own):
    both = asked.stricter(own)
    assert both.enabled == (asked.enabled and own.enabled)
    assert both.share == (asked.share and own.share)
    assert both.tau == min(asked.tau, own.tau)
    assert both.max_fraction == min(asked.max_fraction, own.max_fraction)
    assert both.passes == min(asked.passes, own.passes)
    assert both.min_agreement == max(asked.min_agreement, own.min_agreement)
    assert np.array_equal(may(both), may(asked) & may(own))
    assert both.keep == asked.keep | own.keep
    assert both.absent == (asked.absent and own.absent)
    taus = [each.class_taus(each.tau, 4) for each in (both, asked, own)]
    assert np.array_equal(taus[0], np.minimum(*taus[1:]))


@given(policies, policies, policies)
@examples(100, 2000)
def test_order_does_not_matter(a, b, c):
    assert a.stricter(b) == b.stricter(a)
    assert a.stricter(b).stricter(c) == a.stricter(b.stricter(c))
    assert a.stricter(a) == a


@given(policies)
@examples(60, 1000)
def test_a_file_says_what_the_object_says(policy):
    lines = [f"{key} = {str(getattr(policy, key)).lower()}" for key in ("enabled", "share", "absent")]
    lines += [f"{key} = {getattr(policy, key)!r}" for key in ("tau", "max_fraction", "passes", "min_agreement")]
    lines += [f"forbidden = {sorted(map(list, policy.forbidden))}", f"keep = {sorted(policy.keep)}"]
    lines += [f"class_tau.{c} = {tau!r}" for c, tau in (policy.class_tau or {}).items()]
    lines += [] if policy.allowed is None else [f"allowed = {sorted(map(list, policy.allowed))}"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.toml")
        path.write_text("\n".join(lines))
        assert read_policy(path) == policy


def test_a_client_without_a_file_lets_three_tenths_move_once():
    assert (Policy().max_fraction, Policy().passes, Policy().share) == (0.3, 1, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tau = 5", "policy.toml:tau: expected a number from 0 to 1, got 5"),
        ("max_fraction = '0.3'", "policy.toml:max_fraction: expected a number from 0 to 1, got '0.3'"),
        ("max_fractions = 0.3", "policy.toml:max_fractions: unknown key; nearest: max_fraction"),
        ("enabled = 1", "policy.toml:enabled: expected true or false, got 1"),
        ("passes = 0", "policy.toml:passes: expected an integer >= 1, got 0"),
        ("forbidden = [[1, 2, 3]]", "policy.toml:forbidden: expected a pair of classes [from, to], got a list"),
        ("forbidden = [1, 2]", "policy.toml:forbidden: expected a pair of classes [from, to], got 1"),
        ("allowed = [[0, -1]]", "policy.toml:allowed: expected a class number >= 0 or a class name, got -1"),
        ("class_tau = { ill = 2 }", "policy.toml:class_tau: expected a fraction from 0 to 1, got 2"),
        ("keep = [1.5]", "policy.toml:keep: expected a row number >= 0 or an id, got 1.5"),
        ("tau = = 1", "policy.toml: not TOML:"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(ArgumentError) as error:
        read_policy("policy.toml")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read"):
        read_policy(tmp_path / "none.toml")


def test_a_class_that_the_model_lacks_is_an_error():
    with pytest.raises(ArgumentError, match="forbidden: expected classes from 0 to 3, got 9"):
        Policy(forbidden=[(9, 0)]).allowed_moves(4)


@pytest.mark.parametrize(
    ("before", "now", "looser"),
    [
        ({}, {}, []),
        ({"tau": 0.1}, {"tau": 0.2}, ["tau"]),
        ({"tau": 0.2}, {"tau": 0.1}, []),
        ({"max_fraction": 0.1}, {"max_fraction": 0.2, "min_agreement": 0.5}, ["max_fraction"]),
        ({"min_agreement": 0.5}, {}, ["min_agreement"]),
        ({"allowed": [(0, 1)]}, {}, ["allowed"]),
        ({}, {"allowed": [(0, 1)]}, []),
        ({"forbidden": [(0, 1)], "keep": [3]}, {"forbidden": [(0, 2)]}, ["forbidden", "keep"]),
        ({"absent": False}, {"absent": True}, ["absent"]),
        ({"tau": 0.05, "class_tau": {2: 0.3}}, {"tau": 0.05}, []),
        ({"tau": 0.2, "class_tau": {2: 0.1}}, {"tau": 0.2}, ["class_tau"]),
        ({"tau": 0.2}, {"tau": 0.1, "class_tau": {2: 0.3}}, ["class_tau"]),
    ],
)
def test_which_limits_have_become_looser(before, now, looser):
    record = Policy(**before).as_record() | {"of_another_version": 1}
    assert sorted(Policy(**now).looser_than(record)) == looser


@pytest.mark.parametrize("where", ["toy", "toy/3"])
@pytest.mark.parametrize("round", [1, 8])
def test_a_policy_in_the_wrong_folder_of_the_store_is_an_error(tmp_path, where, round):
    client = OneShot(points(), experiment="toy", client=3, rounds=10, store=tmp_path)
    if round > 1:
        client.before_round(1, Scorer())
    wrong = tmp_path / where / "policy.toml"
    wrong.parent.mkdir(parents=True, exist_ok=True)
    wrong.write_text("enabled = false\n")
    with pytest.raises(ArgumentError, match=f"^{wrong}: a policy is not read there; move it to {tmp_path}/policy.toml"):
        client.before_round(round, Scorer())
    named = OneShot(points(), experiment="toy", client=3, rounds=10, store=tmp_path, policy=wrong)
    assert named.before_round(8, Scorer()) is None  # a file that is named may be anywhere
    assert not named.policy.enabled


@pytest.mark.parametrize("kind", ["none", "file", "object"])
def test_the_log_says_once_which_policy_is_in_force(tmp_path, caplog, kind):
    if kind == "file":
        (tmp_path / "policy.toml").write_text("enabled = false\n")
    given = Policy(tau=0.01) if kind == "object" else None
    client = OneShot(points(), experiment="toy", client=3, rounds=10, store=tmp_path, policy=given)
    with caplog.at_level("INFO", "fedrela"):
        for round in (1, 2):
            client.before_round(round, Scorer())
    (said,) = [line for line in caplog.messages if "the client's own policy is" in line]
    assert said.startswith("FedReLa, round 1, client 3: the client's own policy is ")
    wanted = {"none": f"there is no {tmp_path}/policy.toml", "file": f"{tmp_path}/policy.toml", "object": "policy="}
    assert said.endswith(wanted[kind]) if kind != "none" else wanted[kind] in said
