"""Re-allocators: the contract, its battery, and what each member proposes."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from fedrela.core import REALLOCATORS, Candidates, Reallocator
from fedrela.core.reallocators.base import _fault
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import ArgumentError, DataError
from fedrela.testing import check_reallocator
from helpers.contributed import COMMAND, PACKAGE, contributed

RARE = np.array([0] * 8 + [1] * 2)


class Sound(Reallocator):
    """Moves every sample to the next class."""

    def propose(self, posterior, labels, options, rng):
        sample = np.arange(labels.size)
        return Candidates(sample, (labels + 1) % posterior.shape[1], np.zeros(sample.size), np.ones(sample.size))


class Silent(Sound):
    description = " "


class Twice(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        found = super().propose(posterior, labels, options, rng)
        return found.take(np.repeat(np.arange(labels.size), 2))


class Meddling(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        if labels.flags.writeable:
            labels[:] = 0
        return super().propose(posterior, labels, options, rng)


class Moody(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        found = super().propose(posterior, labels, options, rng)
        return found.take(np.random.random(labels.size) < 0.5)  # noqa: NPY002


class Greedy(Sound):
    """Is broken."""

    own_budget = True


class Impossible(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        found = super().propose(posterior, labels, options, rng)
        return Candidates(found.sample, labels, found.score, found.rho)


class Likely(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        found = super().propose(posterior, labels, options, rng)
        return Candidates(found.sample, found.target, found.score, found.rho * np.nan)


class Listing(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        return [(0, 1)]


@pytest.mark.parametrize(
    "method",
    [*REALLOCATORS, Sound, Sound(), f"{__name__}:Sound"],
    ids=lambda method: type(method).__name__ if isinstance(method, Sound) else None,
)
def test_the_battery_passes(method):
    assert len(check_reallocator(method)) == 8


@pytest.mark.parametrize(
    ("method", "check"),
    [
        (Silent, "is described: description"),
        (Twice, "proposes possible moves: a sample is proposed"),
        (Impossible, "proposes possible moves: method: Impossible: propose: target: a sample has that label already"),
        (Likely, "proposes possible moves: method: Likely: propose: rho"),
        (Listing, "proposes possible moves: method: Listing: propose: expected fedrela.core.Candidates, got list"),
        (Meddling, "leaves its inputs alone"),
        (Moody, "repeats with the same seed"),
        (Greedy, "keeps the budget"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_battery_finds_what_is_broken(method, check):
    with pytest.raises(DataError, match=f"^{check}"):
        check_reallocator(method)


@pytest.mark.parametrize("method", ["fedrelo", 3, Candidates, "fedrela.core:Ledger", "no.such.module:Mine"])
def test_what_is_no_re_allocator_is_refused_by_name(method):
    with pytest.raises(ArgumentError) as error:
        fedrela.relabel([[0.5, 0.5]], [0], method=method)
    assert error.value.argument == "method"


def test_the_ledger_names_the_method():
    Q = np.full((10, 2), 0.5)
    for method, name in (("margin", "margin"), (Sound, f"{__name__}:Sound"), (Sound(), f"{__name__}:Sound")):
        assert fedrela.relabel(Q, RARE, method=method).ledger.options["method"] == name
    assert fedrela.relabel(Q, RARE).ledger.options["method"] == "fedrela"


def test_the_budget_keeps_the_largest_rho_then_score():
    class Graded(Reallocator):
        def propose(self, posterior, labels, options, rng):
            rho = np.array([0.5, 1.0, 1.0, 1.0, 0.2])
            return Candidates(np.arange(5), np.ones(5, int), np.array([9.0, 1.0, 2.0, 3.0, 4.0]), rho)

    done = fedrela.relabel(np.full((10, 2), 0.5), RARE, tau=0.2, method=Graded())
    assert done.moved.tolist() == [2, 3]
    assert np.isinf(done.threshold).all()
    assert done.weights.tolist() == [0.0, 1.0]


def test_the_margin_prefers_what_the_model_prefers():
    Q = np.array([[0.9, 0.1]] * 6 + [[0.1, 0.9], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]])
    found = fedrela.relabel(Q, RARE, tau=0.25, method="margin").candidates
    assert found.sample.tolist() == [6, 7]
    assert found.score == pytest.approx([0.8, 0.2])
    assert found.rho == pytest.approx(np.tanh([0.8, 0.2]))  # the threshold is 0, that of the rare samples themselves


def test_confident_learning_moves_in_any_direction():
    Q = np.array([[0.9, 0.1]] * 7 + [[0.05, 0.95]] + [[0.2, 0.8], [0.95, 0.05]])
    done = fedrela.relabel(Q, RARE, tau=1.0, method="confident")
    assert done.moved.tolist() == [7, 9]
    assert done.labels[[7, 9]].tolist() == [1, 0]
    Q[9] = [0.55, 0.45]  # its own class is above its mean self-confidence no more, nor is the other: not counted
    assert fedrela.relabel(Q, RARE, tau=1.0, method="confident").moved.tolist() == [7]


def test_random_moves_do_not_look_at_the_posterior():
    one, other = np.full((10, 2), 0.5), np.eye(2)[RARE]
    moved = [fedrela.relabel(Q, RARE, tau=0.3, method="random", seed=4).moved.tolist() for Q in (one, other)]
    assert moved[0] == moved[1]
    assert len(moved[0]) == 3
    assert max(moved[0]) < 8


def test_preview_and_relabel_agree_about_a_certain_method():
    Q, options = np.full((10, 2), 0.5), {"method": Sound}
    done = fedrela.relabel(Q, RARE, tau=0.3, **options)
    expected = fedrela.preview(Q, RARE, taus=(0.3,), **options)
    np.testing.assert_array_equal(expected.flow[0], done.ledger.flow)


def test_options_that_a_method_does_not_use_are_options():
    names = set(RelabelOptions.__annotations__)
    assert all(set(kind.unused) <= names for kind in REALLOCATORS.values())


def test_a_re_allocator_without_propose_is_told_so():
    class Bare(Reallocator):
        """Nothing yet."""

    with pytest.raises(ArgumentError, match="Bare: does not implement propose"):
        fedrela.relabel([[0.9, 0.1], [0.2, 0.8]], [0, 0], method=Bare)


def test_confident_learning_takes_the_largest_margins_first():
    """Two of four samples that look like the other class are estimated to be mislabelled: the two surest."""
    own, other = [0.9, 0.1], [0.1, 0.9]
    doubtful = [[0.45, 0.55], [0.05, 0.95], [0.4, 0.6], [0.02, 0.98]]
    Q = np.array([own] * 8 + doubtful + [other] * 8)
    labels = np.repeat([0, 1], [12, 8])
    assert fedrela.relabel(Q, labels, tau=1.0, method="confident").moved.tolist() == [9, 11]


def test_confident_learning_moves_nothing_into_a_class_without_samples():
    Q = np.array([[0.6, 0.1, 0.3]] * 6 + [[0.1, 0.2, 0.7]] * 2 + [[0.1, 0.8, 0.1]] * 2)
    assert fedrela.relabel(Q, RARE, num_classes=3, tau=1.0, method="confident").moved.tolist() == []


ONE = {"sample": np.array([1]), "target": np.array([0]), "score": np.array([0.5]), "rho": np.array([0.5])}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sample": [1]}, "sample: expected a NumPy array with one number per move"),
        ({"score": np.array([0.5, 0.5])}, "score: expected a NumPy array with one number per move"),
        ({"target": np.array([0.0])}, "target: unexpected dtype float64"),
        ({"sample": np.array([4])}, "sample: expected numbers from 0 to 3"),
        ({"target": np.array([-1])}, "target: expected numbers from 0 to 1"),
        ({"score": np.array([np.nan])}, "score: expected finite numbers"),
    ],
)
def test_a_proposal_of_another_form_is_named(change, said):
    assert _fault(Candidates(**ONE | change), np.array([0, 1, 1, 1]), 2) == said


def test_a_new_re_allocator_is_one_file_and_one_line(tmp_path):
    text = (PACKAGE / "core" / "reallocators" / "margin.py").read_text().replace("Margin", "Gap")
    text = text.replace("Posterior margin", "Posterior gap")
    run = contributed(tmp_path, "core/reallocators/gap.py", text, '"gap": "gap:Gap",', '"fedrela": "fedrela:FedReLa",')
    assert any(line.split()[:3] == ["gap", "Posterior", "gap"] for line in run("-c", COMMAND, "list").splitlines())
    check = "from fedrela.testing import check_reallocator; print(len(check_reallocator('gap')))"
    assert run("-c", check).strip() == "8"
