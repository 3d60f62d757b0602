"""Every plot carries the numbers of its run, draws onto given axes, and leaves everything else alone."""

from __future__ import annotations

import json
import os
from functools import partial

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.figure import Figure

from fedrela import plots
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.experiment import compare, run, sweep
from fedrela.metrics.groups import Groups, evaluation_groups
from fedrela.plots.classes import heat_map
from fedrela.plots.clients import client_rows
from fedrela.plots.folders import RunData
from fedrela.plots.style import COLUMN, PAGE, new_figure
from fedrela.runfolder import RunFolder
from fedrela.theory import Clients, TwoGaussians, aggregated_threshold, printed_threshold
from helpers.small_runs import small
from helpers.summaries import compare_summary, reproduce_summary, sweep_summary
from helpers.svg_checks import matrix

torch.set_num_threads(1)
DIGITS = {"source": "digits", "options": {}, "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]}}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A Result; its folder is what plots read."""
    config = small(data=DIGITS, train={"rounds": 4, "epochs": 1}, relabel={"start": 3, "tau": 0.1})
    return run(config, out=tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def record(done):
    return RunData(RunFolder.open(done.folder))


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    table = {"seeds": [1, 2], "arms": ["baseline", "fedrela"], "baselines": ["fedavg", {"name": "fedprox", "mu": 0.1}]}
    return compare(small(compare=table), out=tmp_path_factory.mktemp("compared") / "grid", workers=1)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    config = small(sweep={"relabel.tau": [0.05, 0.2]}, compare={"seeds": [1, 2]})
    return sweep(config, out=tmp_path_factory.mktemp("swept") / "grid", workers=1)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return Figure().add_subplot()


def lines(ax) -> dict[str, np.ndarray]:
    return {line.get_label(): np.asarray(line.get_xydata()) for line in ax.get_lines() if line.get_label()[0] != "_"}


def heights(ax) -> list[float]:
    return [bar.get_height() for bar in ax.patches]


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points_2d(x):
    p = 1 / (1 + np.exp(-x[:, 0]))
    return np.stack([1 - p, p], axis=1)


CLIENTS = Clients.of([[9, 1], [5, 400], [0, 30]])
PLAIN = {
    "accuracy_over_rounds": partial(plots.accuracy_over_rounds, {"a": [0.1, 0.2, 0.3]}, start=2),
    "boundaries": partial(plots.boundaries, CLIENTS, 0.3),
    "class_changes": partial(plots.class_changes, ([0.5, 0.5], [0.7, 0.4])),
    "class_counts": partial(plots.class_counts, ([90, 10], [80, 20])),
    "client_classes": partial(plots.client_classes, [[3, 0], [1, 2]]),
    "confusion": partial(plots.confusion, [[3, 1], [0, 4]]),
    "cost": partial(plots.cost, {"training": [1.0, 2.0]}),
    "decision_boundary": partial(plots.decision_boundary, points_2d, [[-1.0, 0.0], [1.0, 1.0]], [0, 1]),
    "gains": partial(plots.gains, compare_summary()),
    "gallery": partial(plots.gallery, {"samples": np.zeros((2, 1, 4, 4), np.uint8), "old": [0, 1], "new": [1, 0]}),
    "label_flows": partial(plots.label_flows, [[0, 2], [1, 0]]),
    "moves_into_classes": partial(plots.moves_into_classes, [1, 2], expected=[1.5, 1.5], limit=3),
    "posteriors": partial(plots.posteriors, CLIENTS, 0.3),
    "published_and_measured": partial(plots.published_and_measured, reproduce_summary()),
    "score_histogram": partial(plots.score_histogram, [0.1, 0.2, 3.0], thresholds=[2.0]),
    "sensitivity": partial(plots.sensitivity, sweep_summary(1)),
}


def test_all_plots_are_listed_here():
    assert {*PLAIN, "Gain", "use_style"} == set(plots.__all__)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plot_draws_onto_given_axes_and_leaves_everything_else_alone(name):
    mine, _ = pyplot.subplots()
    other = Figure(figsize=(4, 3))
    ax = other.add_subplot()
    before = dict(mpl.rcParams)
    assert PLAIN[name](ax=ax) is ax
    assert ax.has_data() or ax.texts
    assert dict(mpl.rcParams) == before
    assert pyplot.gcf() is mine
    assert other.get_size_inches().tolist() == [4, 3]
    other.draw_without_rendering()


@pytest.mark.parametrize("name", PLAIN)
def test_without_axes_a_plot_makes_a_figure_in_our_style(name):
    before = dict(mpl.rcParams)
    ax = PLAIN[name]()
    assert pyplot.gcf() is ax.figure
    assert ax.xaxis.label.get_color() == "#57606A"
    assert dict(mpl.rcParams) == before


def test_a_plot_that_fails_leaves_no_figure():
    with pytest.raises(ArgumentError, match="before, after"):
        plots.class_changes(([0.5], [0.5, 0.6]))
    assert pyplot.get_fignums() == []


def test_accuracy_of_a_run(done, record, ax):
    for source in (done, done.folder, str(done.folder), RunFolder.open(done.folder), record):
        ax.clear()
        plots.accuracy_over_rounds(source, ax=ax)
        drawn = lines(ax)
        assert list(drawn) == ["overall", "majority", "minority"]
        for name, places in drawn.items():
            shares = [{**r.accuracy, **r.accuracy["groups"]}[name] for r in record.rounds]
            np.testing.assert_array_equal(places, np.column_stack([[1, 2, 3, 4], shares]))
    assert texts(ax) == ["T = 3: re-labelling"]
    assert [line.get_xdata()[0] for line in ax.get_lines() if line.get_label()[0] == "_"] == [3]


def test_accuracy_of_a_comparison_has_shared_rounds_once_and_bands(compared, ax):
    plots.accuracy_over_rounds(compared, baseline="FedProx", metric="minority", ax=ax)
    drawn = lines(ax)
    assert list(drawn) == ["shared by all arms", "baseline", "FedReLa"]
    assert drawn["shared by all arms"][:, 0].tolist() == [1, 2, 3]  # T is 4
    assert drawn["FedReLa"][:, 0].tolist() == [3, 4, 5, 6]
    summary = json.loads((compared.folder / "summary.json").read_text())
    spread = summary["baselines"][1]["arms"]["fedrela"]["minority"]
    assert drawn["FedReLa"][-1, 1] == pytest.approx(spread["mean"])
    band = ax.collections[-1].get_paths()[0].vertices
    at_the_end = band[band[:, 0] == 6][:, 1]
    assert at_the_end.max() == pytest.approx(min(spread["mean"] + spread["deviation"], 1))
    with pytest.raises(ArgumentError, match="baseline: expected one of FedAvg, FedProx, got 'x'"):
        plots.accuracy_over_rounds(compared, baseline="x", ax=ax)


def test_accuracy_of_plain_numbers_over_seeds(ax):
    plots.accuracy_over_rounds({"a": [[0.1, 0.2], [0.3, 0.4]]}, ax=ax)
    np.testing.assert_allclose(lines(ax)["a"], [[1, 0.2], [2, 0.3]])
    assert len(ax.collections) == 1


def test_seconds_of_a_run(done, record, ax):
    plots.cost(done, ax=ax)
    train, score, relabel = (
        np.array([t[f"{key}_seconds"] for t in record.timing]) for key in ("train", "evaluate", "relabel")
    )
    inside = np.minimum(relabel, train)
    np.testing.assert_allclose(heights(ax), np.concatenate([train - inside, score, inside]))
    assert [label.split(" (")[0] for label in legend(ax)] == ["training", "evaluation", "re-labelling"]


def test_many_rounds_share_bars(ax):
    plots.cost({"training": np.arange(300.0)}, ax=ax)
    assert len(heights(ax)) == 100
    assert heights(ax)[:2] == [1.0, 4.0]


def test_changes_by_class_of_a_run(done, record, ax):
    plots.class_changes(done, ax=ax)
    before, after = (np.array(record.rounds[n].accuracy["per_class"]) for n in (1, 3))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [record.classes[c] for c in np.argsort(record.groups.of_class, kind="stable")]
    for y, name in enumerate(names):
        c = record.classes.index(name)
        dots = [line.get_xydata()[0] for line in ax.get_lines()[3 * y + 1 : 3 * y + 3]]
        np.testing.assert_allclose(dots, [[before[c], y], [after[c], y]])
        assert float(texts(ax)[y]) == pytest.approx(100 * (after[c] - before[c]), abs=0.051)
    assert legend(ax) == ["before round 3", "after round 4", "majority", "minority"]


def test_changes_by_class_of_a_comparison_are_means_over_seeds(compared, ax):
    plots.class_changes(compared, baseline="FedAvg", ax=ax)
    assert legend(ax)[:2] == ["baseline", "FedReLa"]
    assert len(texts(ax)) == 4


def test_of_many_classes_the_extremes_are_shown(ax):
    before, after = np.full(100, 0.5), np.linspace(0, 1, 100)
    groups = Groups(("head", "tail"), np.repeat([0, 1], 50), "counts")
    plots.class_changes((before, after), groups=groups, ax=ax)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:3] == ["mean of head", "mean of tail", "99"]
    assert (len(names), names[-1]) == (26, "0")


def test_counts_by_class_of_all_clients_and_of_one(done, record, ax):
    plots.class_counts(done, ax=ax)
    assert heights(ax) == [*record.relabelling["before"], *record.relabelling["after"]]
    total = np.zeros(20)
    for client in range(5):
        ax.clear()
        plots.class_counts(done, client=client, ax=ax)
        total += heights(ax)
        assert heights(ax)[:10] == record.client_counts[client].tolist()
    assert total.tolist() == [*record.relabelling["before"], *record.relabelling["after"]]
    with pytest.raises(ArgumentError, match="client: expected an integer from 0 to 4, got 5"):
        plots.class_counts(done, client=5, ax=ax)


def test_moves_into_classes(done, record, ax):
    plots.moves_into_classes(done, ax=ax)
    moved = np.sum(record.relabelling["flow"], axis=0)
    assert heights(ax) == moved.tolist()
    assert texts(ax) == [str(number) for number in moved]
    expected = [path.vertices[0, 1] for path in ax.collections[0].get_paths()]
    np.testing.assert_allclose(expected, record.relabelling["expected"])


def test_confusion_before_after_and_difference(done, record, ax):
    shares = {}
    for panel, counts in (("before", record.confusion_before), ("after", record.result["confusion"])):
        n = np.array(counts, float)
        shares[panel] = n / n.sum(axis=1, keepdims=True)
    shares["difference"] = shares["after"] - shares["before"]
    for panel, expected in shares.items():
        ax.clear()
        plots.confusion(done, panel=panel, ax=ax)
        np.testing.assert_allclose(ax.collections[0].get_array().filled(0), expected, atol=1e-12)
        written = [float(text) for text in texts(ax)]
        np.testing.assert_allclose(written, 100 * expected[np.abs(expected) > 1e-12], atol=0.051)
    with pytest.raises(ArgumentError, match="panel: expected one of before, after, difference, got 'afterr'"):
        plots.confusion(done, panel="afterr", ax=ax)


def test_flows_of_labels(done, record, ax):
    plots.label_flows(done, ax=ax)
    flow = np.array(record.relabelling["flow"])
    assert ax.collections[0].get_array().filled(0).tolist() == flow.tolist()
    assert texts(ax) == [str(number) for number in flow[flow > 0]]


def test_numbers_of_means_have_at_most_one_decimal(ax):
    heat_map(ax, [[1 / 3, 2.0], [1234.5678, 0.04]], ["a", "b"], ["c", "d"])
    assert texts(ax) == ["0.3", "2", "1,234.6", "0"]


def test_a_threshold_between_two_scores_sets_no_limit(record, monkeypatch):
    assert record.bound == record.label_moves["bound"] > 0
    monkeypatch.setitem(record.config["relabel"], "threshold", "linear")
    assert record.bound is None


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (partial(plots.cost, {}), "expected lists of equal length"),
        (partial(plots.cost, {"training": [1.0], "evaluation": []}), "expected lists of equal length"),
        (partial(plots.class_counts, ([1, 2], [1])), "as many classes before as after, got 2 and 1"),
        (partial(plots.score_histogram, [1.0, np.inf]), "expected finite scores"),
    ],
)
def test_numbers_that_do_not_fit_are_named(draw, words):
    with pytest.raises(ArgumentError, match=words):
        draw()


def test_large_matrices_of_accuracies_are_drawn_in_blocks_of_their_mean(ax):
    n = np.full((130, 3), 0.8)
    n[:3, 0] = np.nan
    heat_map(ax, n, [str(k) for k in range(130)], ["a", "b", "c"], percent=True, average=True)
    shown = np.ma.filled(ax.collections[0].get_array(), np.nan).astype(float)
    assert np.nanmax(shown) == pytest.approx(0.8)
    assert np.nanmin(shown) == pytest.approx(0.8)


def test_large_matrices_are_drawn_in_blocks_that_add_up(ax):
    n = np.arange(130 * 130).reshape(130, 130)
    heat_map(ax, n, [str(k) for k in range(130)], [str(k) for k in range(130)])
    cells = ax.collections[0].get_array().filled(0)
    assert cells.shape == (44, 44)
    assert cells.sum() == n.sum()


def test_scores_of_a_run(done, record, ax):
    plots.score_histogram(done, group="minority", ax=ax)
    members = record.groups.members("minority")
    counts = np.array(record.relabelling["z"]["counts"])[members].sum(axis=0)
    assert heights(ax) == counts.tolist()
    limits = [f["threshold"][c] for f in record.relabelling["clients"].values() for c in members]
    limits = [z for z in limits if z is not None]
    drawn = [line.get_xdata()[0] for line in ax.get_lines()]
    np.testing.assert_allclose(drawn, [min(limits), np.median(limits), max(limits)])


def test_a_gallery_that_unpacks_to_too_much_and_a_ledger_that_is_a_pipe_are_refused(done, tmp_path, monkeypatch):
    folder = RunFolder.open(done.folder)
    record = RunData(folder)
    assert record.gallery is not None
    client = next(iter(record.ledgers))
    assert len(record.moves_of(client)[0])
    monkeypatch.setattr("fedrela.plots.folders.LIMIT", folder.path.joinpath("gallery.npz").stat().st_size // 2)
    with pytest.raises(IntegrityError, match=r"gallery\.npz: is damaged$"):
        assert RunData(folder).gallery
    os.mkfifo(tmp_path / "pipe.json")
    record.ledgers[client] = tmp_path / "pipe.json"
    with pytest.raises(IntegrityError, match=r"pipe\.json: not a sound ledger$"):
        record.moves_of(client)


def test_the_gallery_of_a_run(done, record, ax):
    plots.gallery(done, most=7, ax=ax)
    assert len(ax.images) == 7
    old, new = (record.classes[record.gallery[key][0]] for key in ("old", "new"))
    assert texts(ax)[0] == f"{old} → {new}"
    assert texts(ax)[1] == f"posterior {record.gallery['posterior'][0]:.3f}"


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("shape", [(12, 1, 8, 8), (12, 7)])
def test_captions_of_samples_do_not_overlap(shape, width):
    rng = np.random.default_rng(0)
    found = {"samples": rng.integers(0, 255, shape).astype(np.uint8), "old": [0] * 12, "new": [1] * 12}
    found |= {"posterior": rng.random(12), "rho": rng.random(12), "feature_names": [f"reading {k}" for k in range(7)]}
    figure = new_figure(partial(plots.gallery, found, names=["healthy", "sepsis"]), width)
    texts = figure.axes[0].texts
    assert any("reading" in text.get_text() for text in texts) == (len(shape) == 2)
    boxes = [text.get_window_extent() for text in texts]
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    beside = [(a, b) for a in boxes for b in boxes if a.x0 < b.x0 and abs(a.y0 - b.y0) < 1]
    assert all(a.x1 < b.x0 for a, b in beside)


def test_a_posterior_below_a_thousandth_is_not_zero(ax):
    found = {"samples": np.zeros((2, 1, 4, 4), np.uint8), "old": [0, 0], "new": [1, 1], "posterior": [0.00004, 0.0]}
    plots.gallery(found, ax=ax)
    assert [text for text in texts(ax) if text.startswith("posterior")] == ["posterior 4e-05", "posterior 0.000"]


def test_dots_have_the_area_of_their_count(ax):
    counts = np.array([[100, 0, 7], [25, 64, 1], [0, 3, 0], [36, 9, 50]])
    plots.client_classes(counts, names=["cat", "dog", "owl"], ax=ax)
    dots = ax.collections[0]
    drawn = {tuple(at): size for at, size in zip(dots.get_offsets().tolist(), dots.get_sizes(), strict=True)}
    assert set(drawn) == {(k, c) for k, c in np.ndindex(counts.shape) if counts[k, c]}
    for (k, c), size in drawn.items():
        assert size == pytest.approx(drawn[0, 0] * counts[int(k), int(c)] / 100)
    assert texts(ax)[:3] == ["161", "76", "58"]


@pytest.mark.parametrize(("clients", "classes"), [(1, 2), (60, 60), (61, 10), (2, 61), (2_000, 1_000)])
def test_from_one_client_to_very_many(clients, classes, ax):
    counts = matrix(clients, classes)
    rows = client_rows(counts, evaluation_groups(counts))
    assert rows.clients.size == min(clients, 60)
    assert sorted(c for band in rows.bands for c in band) == list(range(classes))
    sizes = np.array([len(band) for band in rows.bands])
    assert (rows.totals * sizes).sum() == pytest.approx(counts.sum())
    plots.client_classes(counts, groups=evaluation_groups(counts), ax=ax)


def test_wrong_counts_are_refused(ax):
    with pytest.raises(ArgumentError, match="counts: expected integers >= 0"):
        plots.client_classes([[1.5]], ax=ax)
    with pytest.raises(ArgumentError, match="names: expected 2, one per class, got 1"):
        plots.client_classes([[1, 2]], names=["a"], ax=ax)


def test_gains_of_a_comparison(compared, ax):
    plots.gains(compared, ax=ax)
    summary = json.loads((compared.folder / "summary.json").read_text())
    found = [p["differences"][f] for b in summary["baselines"] for p in b["pairs"] for f in summary["metrics"]]
    dots = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    size, gap = len(summary["metrics"]), 0.7
    np.testing.assert_allclose(dots, [[100 * d["mean"], k + gap * (k // size)] for k, d in enumerate(found)])
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [b["label"] for b in summary["baselines"] for _ in b["pairs"]]
    colours = [line.get_color() for line in ax.get_lines() if line.get_marker() == "o"]
    assert colours[:size] == colours[-size:]
    assert len(set(colours)) == size
    whiskers = [line.get_xdata() for line in ax.get_lines() if line.get_marker() == "|"]
    np.testing.assert_allclose(whiskers, [[100 * d["low"], 100 * d["high"]] for d in found])
    filled = [line.get_markerfacecolor() != "#ffffff" for line in ax.get_lines() if line.get_marker() == "o"]
    assert filled == [d["low"] > 0 or d["high"] < 0 for d in found]
    assert not any("…" in text.get_text() for text in ax.get_legend().get_texts())


def test_a_sweep_of_one_key(swept, ax):
    plots.sensitivity(swept, ax=ax)
    points = json.loads((swept.folder / "summary.json").read_text())["points"]
    for name, places in lines(ax).items():
        np.testing.assert_allclose(places, [[p["values"]["relabel.tau"], p["metrics"][name]["mean"]] for p in points])
    ax.clear()
    plots.sensitivity(swept, metric="moved", ax=ax)
    np.testing.assert_allclose(lines(ax)["FedAvg"][:, 1], [p["metrics"]["moved"]["mean"] for p in points])
    with pytest.raises(ArgumentError, match="metric: expected one of"):
        plots.sensitivity(swept, metric="x", ax=ax)


def test_a_sweep_of_two_keys_is_a_heat_map_and_of_three_none(ax):
    plots.sensitivity(sweep_summary(2), metric="minority", ax=ax)
    assert texts(ax) == ["50", "51", "52", "53"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("relabel.start", "relabel.tau")
    with pytest.raises(DataError, match="expected a sweep of one or two keys, got 3"):
        plots.sensitivity(sweep_summary(3), ax=ax)


def test_values_that_are_words_make_rows(ax):
    text = json.dumps(sweep_summary(1)).replace("[0.05, 0.1]", '["paper", "official"]')
    for number, word in ((0.05, "paper"), (0.1, "official")):
        text = text.replace(f'"relabel.tau": {number}', f'"relabel.tau": "{word}"')
    summary = json.loads(text)
    plots.sensitivity(summary, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["paper", "official"]
    assert texts(ax) == ["50", "80", "70", "51", "81", "69"]


def test_published_against_measured_gains(ax):
    plots.published_and_measured(reproduce_summary(), ax=ax)
    np.testing.assert_allclose(lines(ax)["Majority"], [[-1.03, 2.0]])
    np.testing.assert_allclose(lines(ax)["Minority"], [[24.5, 20.0]])


def test_boundaries_before_and_after(ax):
    def shifted(x):
        return points_2d(x - 0.5)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    plots.decision_boundary({"before": points_2d, "after": shifted}, x, (x[:, 0] > 0).astype(int), moved=[1, 2], ax=ax)
    curves = [c.get_paths()[0].vertices[:, 0] for c in ax.collections if type(c).__name__ == "QuadContourSet"]
    assert len(curves) == 2
    np.testing.assert_allclose(curves[0], 0, atol=0.01)
    np.testing.assert_allclose(curves[1], 0.5, atol=0.01)
    assert legend(ax) == ["class 0", "class 1", "re-labelled", "before", "after"]
    np.testing.assert_array_equal(ax.collections[2].get_offsets(), x[[1, 2]])


def test_of_what_is_not_there_a_plot_says_so(compared, tmp_path, ax):
    with pytest.raises(DataError, match="this plot shows one run"):
        plots.label_flows(compared, ax=ax)
    with pytest.raises(DataError, match="expected the summary of a finished sweep"):
        plots.sensitivity(compared, ax=ax)
    with pytest.raises(DataError, match="no run found"):
        plots.confusion(tmp_path, ax=ax)
    off = run(small(train={"rounds": 1}, relabel={"enabled": False, "start": 1}), out=tmp_path / "run")
    with pytest.raises(DataError, match="has no record of scores"):
        plots.score_histogram(off, ax=ax)


def test_boundaries_before_and_after_relabelling(ax):
    plots.boundaries(CLIENTS, 0.3, ax=ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        "3 clients", "aggregated, as printed", "aggregated, corrected",
    ]  # fmt: skip
    gaussians, drawn = TwoGaussians(2.0), [float(line.get_xdata()[0]) for line in ax.lines[2:6]]
    wanted = [printed_threshold(CLIENTS, rho) for rho in (0.0, 0.3)]
    wanted += [aggregated_threshold(CLIENTS, rho) for rho in (0.0, 0.3)]
    assert drawn == pytest.approx([gaussians.point(each) for each in wanted])
    assert texts(ax)[-4] == "1 never"
    assert legend(ax)[2:] == ["before", "re-labelled"]


def test_boundaries_and_posteriors_without_relabelling(ax):
    plots.boundaries(CLIENTS, ax=ax)
    assert legend(ax)[2:] == ["before"]
    other = plots.posteriors(CLIENTS, ax=Figure().add_subplot())
    assert legend(other) == ["clients", "average"]


def test_the_average_of_posteriors_crosses_one_half_at_the_corrected_boundary(ax):
    plots.posteriors(CLIENTS, 0.3, ax=ax)
    for label, rho in (("average", 0.0), ("average, re-labelled", 0.3)):
        x, y = lines(ax)[label].T
        assert np.interp(0.5, y, x) == pytest.approx(
            TwoGaussians(2.0).point(aggregated_threshold(CLIENTS, rho)), abs=0.01
        )


def test_a_difference_of_many_classes_is_the_difference_of_the_panels():
    names, found = [str(k) for k in range(100)], {}
    before, after = (np.where(np.eye(100) > 0, share, 0.005) for share in (0.5, 0.7))
    for panel, shares in (("before", before), ("after", after), ("difference", after - before)):
        ax = Figure().add_subplot()
        heat_map(ax, shares, names, names, percent=True, diverging=panel == "difference")
        found[panel] = np.asarray(ax.collections[0].get_array().filled(0))
    np.testing.assert_allclose(found["difference"], found["after"] - found["before"], atol=1e-9)


def test_an_accuracy_of_zero_is_no_missing_cell(ax):
    heat_map(ax, [[0.0, 0.5], [np.nan, 0.25]], ["a", "b"], ["c", "d"], percent=True, from_zero=False)
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["0", "50", "25"]
