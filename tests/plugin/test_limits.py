"""What an owner protects in the plug-in and in a policy file: proven rows, classes by name, tau by class."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.errors import ArgumentError
from fedrela.plugin import OneShot
from helpers.plugin_toys import Scorer, points

X, Y = points()
NAMES = ["well", "cold", "flu"]
IDS = [f"patient-{row}" for row in range(len(Y))]


def ledger(folder, policy="", data=(X, Y), **options):
    folder.mkdir(exist_ok=True)
    (folder / "policy.toml").write_text(policy)
    given = {"experiment": "toy", "client": 3, "rounds": 10, "store": folder, "tau": 0.3, "class_names": NAMES}
    return OneShot(data, **given | options).before_round(8, Scorer())


def test_every_limit_by_argument_and_by_policy_file(tmp_path):
    plain = ledger(tmp_path / "plain")
    proven = plain.index[:3].tolist()
    assert {(0, 2), (1, 2)} <= set(zip(plain.old.tolist(), plain.new.tolist(), strict=True))
    trials = {
        f"keep = {proven}": {"keep": proven},
        'forbidden = [["well", "flu"]]': {"forbidden": [("well", "flu")]},
        'allowed = [["cold", "flu"]]': {"allowed": [("cold", "flu")]},
        "class_tau = { flu = 0.01 }": {"class_tau": {"flu": 0.01}},
    }
    for number, (policy, options) in enumerate(trials.items()):
        by_file, by_argument = ledger(tmp_path / f"a{number}", policy), ledger(tmp_path / f"b{number}", **options)
        assert by_file.labels.tolist() == by_argument.labels.tolist() != plain.labels.tolist()
        if "keep" in options:
            assert not set(proven) & set(by_file.index.tolist())
        if "forbidden" in options:
            assert by_file.flow[0, 2] == 0
        if "allowed" in options:
            assert by_file.flow.sum() == by_file.flow[1, 2] > 0
        if "class_tau" in options:
            assert by_file.flow[:, 2].sum() <= 0.01 * len(Y)


def test_classes_whose_names_are_other_numbers(tmp_path):
    """The class called 3 is number 2, in every limit and only once."""
    plain = ledger(tmp_path / "plain", class_names=["1", "2", "3"])
    assert plain.flow[:, 2].sum() > 0
    for number, policy in enumerate(("class_tau = { 3 = 0.0 }", 'forbidden = [["1", "3"], ["2", "3"]]')):
        made = ledger(tmp_path / str(number), policy, class_names=["1", "2", "3"])
        assert made.flow[:, 2].sum() == 0 < made.flow.sum()
        assert made.class_names == ("1", "2", "3")


def test_rows_are_kept_by_their_ids(tmp_path):
    plain = ledger(tmp_path / "plain", ids=IDS)
    kept = ledger(tmp_path / "kept", f'keep = ["{IDS[plain.index[0]]}"]', ids=IDS)
    assert set(plain.index) - set(kept.index) == {plain.index[0]}


def test_no_move_into_an_absent_class(tmp_path):
    present = np.flatnonzero(Y != 2)
    data = (X[present], Y[present])
    assert ledger(tmp_path / "a", data=data).flow[:, 2].sum() > 0
    assert ledger(tmp_path / "b", "absent = false", data=data).flow[:, 2].sum() == 0


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ('forbidden = [["wel", "flu"]]', "forbidden: unknown class 'wel'; nearest: 'well'"),
        ("keep = [999]", "keep: expected a row from 0 to 115, got 999"),
        ("class_tau = { 7 = 0.1 }", "class_tau.7: expected a class from 0 to 2, got '7'"),
    ],
)
def test_what_a_limit_names_is_looked_up_in_round_1(tmp_path, policy, said):
    (tmp_path / "policy.toml").write_text(policy)
    once = OneShot((X, Y), experiment="toy", client=3, rounds=10, store=tmp_path, class_names=NAMES)
    with pytest.raises(ArgumentError, match=said):
        once.before_round(1, Scorer())


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ('forbidden = [["wel", "flu"]]', "policy.toml:forbidden: unknown class 'wel'; nearest: 'well'"),
        ("forbidden = [[7, 0]]", "policy.toml:forbidden: expected classes from 0 to 2, got 7"),
        ("keep = ['P1']", "policy.toml:keep: expected a row from 0 to 115, got 'P1'"),
        ("class_tau = { 7 = 0.1 }", "policy.toml:class_tau.7: expected a class from 0 to 2, got '7'"),
    ],
)
@pytest.mark.parametrize("round", [1, 8, 9])
def test_an_error_in_a_policy_names_its_file_and_key_in_every_round(tmp_path, policy, said, round):
    once = OneShot((X, Y), experiment="toy", client=3, rounds=10, store=tmp_path, class_names=NAMES)
    for before in range(1, round):
        once.before_round(before, Scorer())
    (tmp_path / "policy.toml").write_text(policy)
    with pytest.raises(ArgumentError, match=f"^{tmp_path}/{said}"):
        once.before_round(round, Scorer())
    (tmp_path / "policy.toml").write_text("")
    with pytest.raises(ArgumentError, match=r"^forbidden: expected classes"):  # a limit of the app's
        OneShot((X, Y), experiment="b", client=3, start=8, store=tmp_path, forbidden=[(7, 0)]).before_round(1, Scorer())
