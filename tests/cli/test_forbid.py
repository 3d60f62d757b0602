"""`--forbid FROM:TO`, and the rules that an .npz carries itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fedrela
from fedrela.cli.posterior_options import allowed_moves
from fedrela.data.posteriors import PosteriorFile
from fedrela.errors import ArgumentError


def file_of(*names: str, allowed=None) -> PosteriorFile:
    return PosteriorFile(Path("x.npz"), np.ones((0, len(names))), np.zeros(0, int), names, allowed)


def forbidden(data: PosteriorFile, *rules: str) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in np.argwhere(~allowed_moves(data, rules))}


@pytest.mark.parametrize(
    ("rule", "pairs"),
    [
        ("a:b", {(0, 1)}),
        ("0:1", {(0, 1)}),
        ("a:1", {(0, 1)}),
        (" a : b ", {(0, 1)}),
        ("a:*", {(0, 0), (0, 1), (0, 2)}),
        ("*:c", {(0, 2), (1, 2), (2, 2)}),
        ("2:a", {(2, 0)}),
    ],
)
def test_names_numbers_and_wildcards(rule, pairs):
    assert forbidden(file_of("a", "b", "c"), rule) == pairs


def test_several_rules_and_those_of_the_file_add_up():
    given = np.ones((3, 3), bool)
    given[2, 1] = False
    data = file_of("a", "b", "c", allowed=given)
    assert forbidden(data, "a:b", "1:2") == {(0, 1), (1, 2), (2, 1)}
    assert given.sum() == 8
    assert allowed_moves(data, ()) is given


def test_names_win_over_numbers_and_may_hold_colons():
    assert forbidden(file_of("1", "0"), "1:0") == {(0, 1)}
    assert forbidden(file_of("a:b", "c"), "a:b:c") == {(0, 1)}
    with pytest.raises(ArgumentError, match=r"'a:b:c' can be read in 2 ways"):
        forbidden(file_of("a:b", "c", "a", "b:c"), "a:b:c")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("ab", "expected FROM:TO, such as cat:dog"),
        ("cta:dog", "got 'cta'; nearest: 'cat'"),
        ("cat:2", "got '2'"),
        ("cat:-1", "got '-1'"),
        ("cat:" + "9" * 5000, "got '999"),
        (":", "got ''"),
        ("cat:cat", "two different classes"),
        ("cat:0", "two different classes"),
        ("*:*", "two different classes, or '[*]' on one side"),
    ],
)
def test_wrong_rules(rule, said):
    with pytest.raises(ArgumentError, match=said):
        forbidden(file_of("cat", "dog"), rule)


def test_a_forbidden_move_does_not_happen(run, clinic):
    free = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.2).ledger.flow
    assert free[0, 2] > 0
    assert free[1, 2] > 0
    for rules, closed in ((("healthy:rare",), [(0, 2)]), (("*:2",), [(0, 2), (1, 2)])):
        arguments = [part for rule in rules for part in ("--forbid", rule)]
        assert run("relabel", clinic.csv(), "--tau", "0.2", "--force", *arguments).code == 0
        flow = fedrela.Ledger.load(clinic.folder / "clinic.ledger.json").flow
        assert all(flow[pair] == 0 for pair in closed)
        assert flow.sum() > 0


def test_rows_that_stay_absent_classes_and_tau_by_class(run, clinic):
    free = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.2).ledger
    kept = [part for row in free.index[:2] for part in ("--keep", str(row))]
    limits = [*kept, "--no-absent", "--class-tau", "rare=0", "--class-tau", "1=0.3"]
    assert run("relabel", clinic.csv(), "--tau", "0.2", "--force", *limits).code == 0
    ledger = fedrela.Ledger.load(clinic.folder / "clinic.ledger.json")
    assert ledger.options["ineligible_rows"] == free.index[:2].tolist()
    assert ledger.flow[:, 2].sum() == 0
    assert ledger.flow[:, 1].sum() > 0
    assert (ledger.options["absent"], ledger.options["class_tau"]) == (False, {"1": 0.3, "2": 0.0})
    for wrong, said in (("rare", "--class-tau: expected CLASS=SHARE"), ("rar=0.1", "unknown class 'rar'")):
        done = run("preview", clinic.csv(), "--class-tau", wrong)
        assert done.code == 2
        assert said in done.line()


def test_preview_knows_the_same_rules(run, clinic):
    done = run("preview", clinic.csv(), "--tau", "0.2", "--forbid", "*:rare", "--forbid", "*:flu")
    assert "\n0.2              0.0   0.00 %   -\n" in done.out


def test_a_wrong_rule_has_code_2(run, clinic):
    done = run("relabel", clinic.csv(), "--forbid", "helthy:*")
    assert done.code == 2
    assert "got 'helthy'; nearest: 'healthy'" in done.line()
    assert clinic.files() == {"clinic.csv"}


def test_rules_inside_an_npz_are_kept(run, clinic):
    allowed = np.ones((3, 3), bool)
    allowed[0, 2] = False
    eligible = np.arange(190) % 2 == 0
    done = run("relabel", clinic.npz(allowed=allowed, eligible=eligible), "--tau", "0.2")
    assert done.code == 0
    ledger = fedrela.Ledger.load(clinic.folder / "clinic.ledger.json")
    assert len(ledger) > 3
    assert ledger.flow[0, 2] == 0
    assert np.all(ledger.index % 2 == 0)
