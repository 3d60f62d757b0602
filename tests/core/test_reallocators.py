"""Re-allocators: the contract, its battery, and what each member proposes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import fedrela
from fedrela.core import REALLOCATORS, Candidates, Reallocator
from fedrela.core.reallocators import proposal, reallocator
from fedrela.core.reallocators.base import _fault
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import ArgumentError, DataError
from fedrela.options import Options, option
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


class Unsure(Sound):
    """Is broken."""

    def propose(self, posterior, labels, options, rng):
        return replace(super().propose(posterior, labels, options, rng), rho=None)


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
        (Unsure, "proposes possible moves: method: Unsure: propose: sample: expected a NumPy array"),
        (Moody, "repeats with the same seed"),
        (Greedy, "keeps the budget"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_battery_finds_what_is_broken(method, check):
    with pytest.raises(DataError, match=f"^{check}"):
        check_reallocator(method)


KIND = "expected a re-allocator, a class derived from fedrela.core.Reallocator"


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("fedrelo", "expected one of confident, fedrela, margin, random, got 'fedrelo'; nearest: fedrela"),
        (3, f"{KIND}, or one of the names confident, fedrela, margin, random, got 3"),
        (Candidates, f"{KIND}, or one of the names confident, fedrela, margin, random, got a Python type"),
        ("fedrela.core:Ledger", f"{KIND}, but 'fedrela.core:Ledger' is a Python type"),
        ("no.such.module:Mine", "no module 'no'; is it installed, or below the current folder?"),
    ],
)
def test_what_is_no_re_allocator_is_refused_by_name(method, said):
    with pytest.raises(ArgumentError) as error:
        fedrela.relabel([[0.5, 0.5]], [0], method=method)
    assert (str(error.value), error.value.argument) == (f"method: {said}", "method")


class Graded(Sound):
    """Has parameters."""

    @dataclass(frozen=True)
    class Params(Options):
        grade: int = option(1, "a grade", ge=1)
        share: float = option(0.5, "a share", ge=0, le=1)

        def __post_init__(self):
            super().__post_init__()
            if self.grade == 7:
                raise ArgumentError("expected another grade")


@pytest.mark.parametrize(
    ("method", "params", "said", "item"),
    [
        (Graded, {"grade": 1, "grad": 1}, "params.grad: unknown parameter; nearest: grade", ("grad",)),
        ("margin", {2: 1}, "params.2: unknown parameter; method 'Posterior margin' has none", ("2",)),
        (Graded, {"grade": 0}, "params.grade: expected an integer >= 1, got 0", ("grade",)),
        (Graded, {"grade": 7}, "params: expected another grade", ()),
        (Graded(), {"grade": 2}, "params: the method is an object with its own parameters; leave these out", ()),
    ],
)
def test_a_wrong_parameter_is_named(method, params, said, item):
    with pytest.raises(ArgumentError) as error:
        reallocator(method, params)
    assert (str(error.value), error.value.argument, error.value.item) == (said, "params", item)


def test_parameters_reach_the_re_allocator():
    assert reallocator(Graded, {"grade": 2}).params == Graded.Params(grade=2, share=0.5)
    assert reallocator(f"{__name__}:Graded").params == reallocator(Graded, {}).params == Graded.Params()
    own = Graded(share=1.0)
    assert reallocator(own) is reallocator(own, {}) is own


def test_an_installed_package_offers_a_re_allocator(tmp_path, monkeypatch):
    there = tmp_path / "mine-1.0.dist-info"
    there.mkdir()
    (there / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (there / "entry_points.txt").write_text(f"[fedrela.reallocators]\nmine = {__name__}:Sound\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert type(reallocator("mine")) is Sound


def test_a_re_allocator_is_described_by_its_class():
    class Plain(Reallocator):
        """One line.

        More lines.
        """

    class Named(Plain):
        label, description = "By name", "In words."

    class Bare(Named):
        pass

    assert [(each.label, each.description) for each in (Plain, Named, Bare)] == [
        ("Plain", "One line."),
        ("By name", "In words."),
        ("Bare", ""),
    ]


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


def test_the_margin_takes_the_threshold_that_is_asked_for():
    """The margins of class 1 are -0.8 six times, then 0.8, 0.2 and twice 0; class 2 is absent."""
    Q = np.array([[0.9, 0.1, 0.0]] * 6 + [[0.1, 0.9, 0.0], [0.4, 0.6, 0.0], [0.2, 0.8, 0.0], [0.3, 0.7, 0.0]])
    own, method, rng = Q[np.arange(10), RARE], REALLOCATORS["margin"](), np.random.default_rng(0)
    margin = (Q - own[:, None]).T
    for rule, expected in (("higher", [0.0, 0.2]), ("linear", None)):
        found = method.propose(Q, RARE, RelabelOptions(tau=0.15, threshold=rule), rng)
        np.testing.assert_allclose(found.threshold, np.quantile(margin, 0.85, axis=1, method=rule))
        assert expected is None or found.threshold[:2] == pytest.approx(expected)
        assert found.varpi.tolist() == [0.0, 0.75, 1.0]
    found = method.propose(Q, RARE, RelabelOptions(threshold=0.1), rng)
    assert found.threshold.tolist() == [0.1, 0.1, 0.1]
    assert (found.sample.tolist(), found.target.tolist()) == ([6, 7], [1, 1])
    assert found.rho == pytest.approx(np.tanh([0.7, 0.1]) * 0.75)
    done = fedrela.relabel(Q, RARE, tau=1.0, threshold=[0.3, 0.1, 0.2], method="margin")
    assert (done.threshold.tolist(), done.weights.tolist()) == ([0.3, 0.1, 0.2], [0.0, 0.75, 1.0])


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

    with pytest.raises(ArgumentError) as error:
        fedrela.relabel([[0.9, 0.1], [0.2, 0.8]], [0, 0], method=Bare)
    assert (str(error.value), error.value.argument) == ("method: Bare: does not implement propose", "method")


def test_confident_learning_takes_the_largest_margins_first():
    """Two of four samples that look like the other class are estimated to be mislabelled: the two surest."""
    own, other = [0.9, 0.1], [0.1, 0.9]
    doubtful = [[0.45, 0.55], [0.05, 0.95], [0.4, 0.6], [0.02, 0.98]]
    Q = np.array([own] * 8 + doubtful + [other] * 8)
    labels = np.repeat([0, 1], [12, 8])
    assert fedrela.relabel(Q, labels, tau=1.0, method="confident").moved.tolist() == [9, 11]


def test_a_class_of_one_sample_is_as_confident_as_that_sample():
    """At 0.6 a sample counts for class 1, at 0.55 it does not: one of the ten labels is estimated to be wrong."""
    Q = np.array([[0.9, 0.1]] * 8 + [[0.45, 0.55], [0.4, 0.6], [0.4, 0.6]])
    assert fedrela.relabel(Q, np.repeat([0, 1], [10, 1]), tau=1.0, method="confident").moved.tolist() == [9]


def test_the_samples_that_count_stand_for_their_whole_class():
    """Of class 1 only the first sample counts, for class 0: all three labels are estimated to be wrong."""
    Q = np.array([[0.5, 0.3, 0.2]] * 2 + [[0.55, 0.45, 0.0], [0.48, 0.3, 0.22], [0.47, 0.3, 0.23]])
    done = fedrela.relabel(Q, [0, 0, 1, 1, 1], num_classes=3, tau=1.0, method="confident")
    assert done.moved.tolist() == [2, 3, 4]


def test_every_sample_counts_for_a_class_that_its_own_samples_deny():
    """The threshold of class 2 is 0, so the three doubtful samples of class 0 count for it, and not for class 1."""
    Q = np.array([[1.0, 0.0, 0.0]] * 2 + [[0.4, 0.6, 0.0]] * 3 + [[0.2, 0.8, 0.0]] * 2 + [[1.0, 0.0, 0.0]])
    done = fedrela.relabel(Q, [0, 0, 0, 0, 0, 0, 1, 2], tau=1.0, method="confident")
    assert done.moved.tolist() == [5, 7]
    assert done.labels[[5, 7]].tolist() == [1, 0]


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
        ({"rho": [0.5]}, "rho: expected a NumPy array with one number per move"),
        ({"sample": np.array([[1]])}, "sample: expected a NumPy array with one number per move"),
        ({"sample": np.array([1.0])}, "sample: unexpected dtype float64"),
        ({"sample": np.array([True])}, "sample: unexpected dtype bool"),
        ({"score": np.array([1])}, "score: unexpected dtype int64"),
        ({"rho": np.array([1])}, "rho: unexpected dtype int64"),
        ({"sample": np.array([4])}, "sample: expected numbers from 0 to 3"),
        ({"sample": np.array([-1])}, "sample: expected numbers from 0 to 3"),
        ({"target": np.array([2])}, "target: expected numbers from 0 to 1"),
        ({"target": np.array([-1])}, "target: expected numbers from 0 to 1"),
        ({"score": np.array([np.nan])}, "score: expected finite numbers"),
        ({"score": np.array([-np.inf])}, "score: expected finite numbers"),
        ({"rho": np.array([-0.1])}, "rho: expected probabilities from 0 to 1"),
        ({"rho": np.array([1.1])}, "rho: expected probabilities from 0 to 1"),
        ({"rho": np.array([np.nan])}, "rho: expected probabilities from 0 to 1"),
        ({"target": np.array([1])}, "target: a sample has that label already"),
        ({"sample": np.array([3]), "rho": np.array([0.0])}, ""),
        ({"sample": np.array([0], np.uint8), "target": np.array([1]), "rho": np.array([1.0], np.float32)}, ""),
        ({name: values[:0] for name, values in ONE.items()}, ""),
    ],
)
def test_a_proposal_of_another_form_is_named(change, said):
    assert _fault(Candidates(**ONE | change), np.array([0, 1, 1, 1]), 2) == said


def test_proposals_are_sorted_by_class_and_completed():
    class Backwards(Reallocator):
        def propose(self, posterior, labels, options, rng):
            assert not posterior.flags.writeable
            assert not labels.flags.writeable
            return Candidates(np.arange(40), np.arange(40) % 3 + 1, np.zeros(40), np.ones(40), **given)

    Q, y = np.full((44, 4), 0.25), np.repeat([0, 1], [40, 4])
    options, rng = RelabelOptions(), np.random.default_rng(0)
    for given in ({}, {"threshold": np.arange(4.0)}, {"varpi": np.ones(4)}):
        found = proposal(Backwards(), Q, y, 4, options, rng)
        assert found.sample.tolist() == [*range(0, 40, 3), *range(1, 40, 3), *range(2, 40, 3)]
        assert np.all(np.diff(found.target) >= 0)
        assert found.threshold.tolist() == ([0, 1, 2, 3] if "threshold" in given else [np.inf] * 4)
        assert found.varpi.tolist() == [0.0, 0.9, 1.0, 1.0]
    given = {"threshold": np.arange(4.0), "varpi": np.ones(4)}
    assert proposal(Backwards(), Q, y, 4, options, rng).varpi.tolist() == [1.0] * 4
    assert Q.flags.writeable
    nothing = proposal(Backwards(), Q[:0], y[:0], 4, options, rng)
    assert (len(nothing.sample), nothing.threshold.tolist()) == (0, [np.inf] * 4)


def test_a_new_re_allocator_is_one_file_and_one_line(tmp_path):
    text = (PACKAGE / "core" / "reallocators" / "margin.py").read_text().replace("Margin", "Gap")
    text = text.replace("Posterior margin", "Posterior gap")
    run = contributed(tmp_path, "core/reallocators/gap.py", text, '"gap": "gap:Gap",', '"fedrela": "fedrela:FedReLa",')
    assert any(line.split()[:3] == ["gap", "Posterior", "gap"] for line in run("-c", COMMAND, "list").splitlines())
    check = "from fedrela.testing import check_reallocator; print(len(check_reallocator('gap')))"
    assert run("-c", check).strip() == "8"
