"""Tables of the paper run on digits: three of them every day, all of them nightly."""

from __future__ import annotations

import csv
import functools
import io
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fedrela.engine.executors.serial import SerialExecutor
from fedrela.errors import ArgumentError, DataError, FedrelaError, RunFailedError
from fedrela.experiment.result import Result
from fedrela.report.grid_page import all_tables
from fedrela.report.reproduction_page import reproduce_tables
from fedrela.reproduction.baselines import with_changes
from fedrela.reproduction.measurement import Reproduction, reproduce
from fedrela.reproduction.paper_table import NAMES, PROTOCOLS, paper_table
from fedrela.runfolder.grids import GridFolder, copy_without_samples
from helpers import batteries

torch.set_num_threads(1)
TABLES = (
    NAMES if batteries.NIGHTLY else ("tail_improvement", "sensitive", "step")
)  # gains, labels moved, five baselines


Done = tuple[Reproduction, dict[str, Any]]


def carried_out(name: str, out: Path) -> tuple[Reproduction, int]:
    plan = Reproduction(paper_table(name), "smoke", out, seeds=1)
    with SerialExecutor() as executor:
        return plan, sum(1 for _ in plan.grid.run(executor))


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Callable[[str], Done]:
    """What runs a table at the scale smoke, once, and returns it with its summary."""

    @functools.cache
    def measure(name: str) -> Done:
        plan, rounds = carried_out(name, tmp_path_factory.mktemp("grid") / name)
        assert rounds == plan.grid.rounds
        assert plan.grid.failures == {}
        return plan, plan.conclude()

    return measure


@pytest.fixture(scope="module", params=TABLES)
def done(request, measured) -> Done:
    """Return one table after the other: all tests of a table run together, and one process measures it."""
    return measured(request.param)


def test_every_chosen_entry_is_measured_and_no_other(done):
    plan, summary = done
    chosen = plan.table.chosen("smoke")
    assert len(summary["entries"]) == len(plan.table.cells)
    for entry, record in zip(plan.table.cells, summary["entries"], strict=True):
        assert (record["at"], record["arm"], record["published"]) == (entry.at, entry.arm, entry.published)
        assert record["doubtful"] == entry.doubtful
        assert (record["measured"] is not None) == (entry in chosen)
        for figure in plan.table.metrics:
            if record["measured"]:
                assert len(record["measured"][figure.of]["values"]) == 1


def test_figures_are_those_of_the_run_folders(done):
    """Found anew through grid.json, without the objects that made them."""
    plan, summary = done
    folder = GridFolder.open(plan.grid.out)
    runs = {}
    for cell in folder.cells:
        runs[cell["baseline"], tuple(cell["values"].items()), cell["arm"]] = Result.load(folder.place(cell))

    def shown(result, of):
        return result.moved if of == "moved" else {**result.groups, "overall": result.accuracy["overall"]}[of]

    for record in filter(lambda record: record["measured"], summary["entries"]):
        baseline = {**plan.table.fixed, **record["at"]}["method"]
        values = tuple((axis, value) for axis, value in record["at"].items() if axis != "method")
        treated = runs[baseline, values, "baseline" if record["arm"] == "baseline" else "fedrela"]
        for figure in plan.table.metrics:
            expected = sum(shown(treated, of) for of in figure.sum or (figure.of,))
            if figure.gain:
                expected -= sum(shown(runs[baseline, values, "baseline"], of) for of in figure.sum)
            value = pytest.approx(expected, abs=1e-12)
            assert record["measured"][figure.of] == {"mean": value, "deviation": None, "values": [value]}


def test_arms_share_what_comes_before_re_labelling(done):
    plan, _ = done
    for task in plan.grid.tasks:
        if task.cell is not None:
            assert task.prefix is not None
            assert task.first == task.config.relabel.schedule.first(task.config.train.rounds)
    moved: dict[str, list[int]] = {}
    for cell in plan.grid.cells:
        moved.setdefault(cell.arm, []).append(plan.grid.result(cell).moved)
    assert set(moved["baseline"]) == {0}
    assert max(moved["fedrela"]) > 0


def test_summary_says_what_is_ours_and_what_is_reduced(done):
    plan, summary = done
    assert summary["ours"] == list(plan.table.ours)
    assert summary["reduction"] == list(plan.table.scales["smoke"].reduction)
    assert "baseline and fedrela, at the same learning rate, after the last round" in summary["notes"][-1]
    assert GridFolder.open(plan.grid.out).read_json("summary.json") == summary
    assert GridFolder.open(plan.grid.out).status == "done"


def test_what_is_done_is_not_done_again(done):
    plan, summary = done
    again, rounds = carried_out(plan.table.label, plan.grid.out)
    assert rounds == 0
    assert again.conclude() == summary


def test_more_labels_move_as_tau_grows(measured):
    _, summary = measured("sensitive")
    moved = {record["at"]["tau"]: record["measured"]["moved"]["mean"] for record in summary["entries"]}
    assert moved["Original"] == 0
    assert 0 < moved["5%"] < moved["9%"] < moved["20%"]
    assert moved["20%"] > 1.5 * moved["5%"]


def test_re_labelling_helps_one_rare_digit_on_average_over_baselines(measured):
    """By far more than seeds differ with one rare class; with three or five of them digits are too few to say."""
    _, summary = measured("step")
    minority: dict[str, list[float]] = {"baseline": [], "+FedReLa": []}
    for record in summary["entries"]:
        if record["measured"] and record["at"]["minority share"] == "10%":
            minority[record["arm"]].append(record["measured"]["minority"]["mean"])
    baseline, treated = (sum(values) / len(values) for values in minority.values())
    assert treated > baseline + 0.1


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Done:
    """Return the smallest table by both protocols, FedLoGe's, in a store that it shares."""
    plan = Reproduction(
        paper_table("zscore"),
        "smoke",
        tmp_path_factory.mktemp("store") / "zscore",
        protocol="both",
        seeds=1,
        shared=True,
    )
    plan.grid.complete(1)
    return plan, plan.conclude()


def test_both_protocols_are_measured_from_their_own_runs_and_rounds(both):
    plan, summary = both
    folder = GridFolder.open(plan.grid.out)
    cells = {(cell["values"]["variant"], cell["values"].get("protocol", "matched")): cell for cell in folder.cells}
    assert {arm for _, arm in {(key[1], cell["arm"]) for key, cell in cells.items()}} == {
        "baseline", "fedrela", "fedrela-drop"
    }  # fmt: skip
    for entry in summary["entries"]:
        matched, published = (Result.load(folder.place(cells[entry["at"]["variant"], w])) for w in PROTOCOLS)
        assert entry["measured"]["overall"]["mean"] == matched.accuracy["overall"]
        best = max(record["accuracy"]["overall"] for record in published.history())
        assert entry["published_protocol"]["overall"]["mean"] == best
        assert len([record for record in published.history() if record["accuracy"]]) == published.rounds
        params = tomllib.loads((published.folder / "config.toml").read_text())["algorithm"]
        assert params.get("scored", "global") == ("global" if entry["arm"] == "baseline" else "frame")
    assert summary["protocol"] == "both"
    assert {"setting": "relabel.lr_scale (+FedReLa)", "matched": "1.0", "published": "0.1"} in summary["differences"]
    assert summary["unlike"] == list(plan.table.protocols["published"].unlike)


def test_the_gap_to_the_printed_gain_splits_into_protocol_and_rest(both):
    _, summary = both
    *_, differing, gains = reproduce_tables(summary)
    assert differing.columns == ("setting", "matched", "published")
    row = dict(zip(gains.columns, next(row for row in gains.rows if row[:2] == ["+FedReLa", "Overall"]), strict=True))
    printed, published, matched, protocol, rest = (float(cell) for cell in list(row.values())[2:])
    values = {entry["at"]["variant"]: entry for entry in summary["entries"]}
    base, treated = (values[name]["measured"]["overall"]["mean"] for name in ("FedLOGE", "+FedReLa"))
    assert printed == 12.5
    assert matched == pytest.approx(100 * (treated - base), abs=0.006)
    assert printed - matched == pytest.approx(protocol + rest, abs=0.02)
    assert protocol == pytest.approx(published - matched, abs=0.02)


def test_a_store_serves_the_tables_beside_each_other(both, tmp_path):
    plan, _ = both
    place = plan.grid.out.parent / "again"
    again = Reproduction(paper_table("zscore"), "smoke", place, seeds=1, shared=True)
    assert again.grid.remaining() == []
    again.grid.begin()
    assert GridFolder.open(place).done == 3
    assert not (place / "runs").exists()
    copy_without_samples(GridFolder.open(plan.grid.out), tmp_path / "copy")
    copied = GridFolder.open(tmp_path / "copy")
    assert copied.status == "done"
    assert (tmp_path / "copy" / "runs").is_dir()


def test_periods_are_also_scored_by_the_best_test_round_and_labelled_so(tmp_path):
    plan = Reproduction(paper_table("period_sensitivity"), "smoke", tmp_path / "g", seeds=1)
    plan.chosen[:] = []
    assert {cell.config.train.evaluate_every for cell in plan.grid.cells} == {1}
    cell = plan.grid.cells[0]
    runs = [other for other in plan.grid.cells if other.name != cell.name]
    plan.grid.failures.update({other.name: RunFailedError("left out") for other in runs})
    with SerialExecutor() as executor:
        for task in plan.grid.remaining():
            if task.cell is None or task.cell.name == cell.name:
                for _ in plan.grid._carry_out(task, executor):
                    pass
    summary = plan.summary()
    (entry,) = [entry for entry in summary["entries"] if entry["measured"]][:1]
    history = [record["accuracy"]["overall"] for record in plan.grid.result(cell).history()]
    assert entry["best_test"]["overall"]["mean"] == max(history)
    assert entry["measured"]["overall"]["mean"] == history[-1]
    words = ("measured on digits", "measured on digits, best-test")
    assert tuple(summary["measured"].values()) == words
    (table,) = reproduce_tables(summary | {"kind": "reproduce", "name": "tab:period_sensitivity"})
    assert {row[len(table.left) - 1] for row in table.rows} == {"published", *words}


@pytest.mark.parametrize("protocol", ["matched", "published", "both"])
def test_what_was_measured_on_another_data_set_is_labelled_so(tmp_path, protocol):
    """Published values are of CIFAR-10, as the table says of its rows; measured ones are of digits, in every format."""
    changes = {"train": {"rounds": 1, "epochs": 1}}
    options = {"seeds": 1, "workers": 1, "protocol": protocol, "changes": changes}
    summary = reproduce("trelabel_sensitivity", out=tmp_path, **options)
    tables = {name: data.decode() for name, data in all_tables(summary).items()}
    for name, sign in (("table.md", "|"), ("table.tex", "&")):
        lines = [line for line in tables[name].splitlines() if "CIFAR-10 " in line and line.count(sign) > 3]
        rows = [line for line in lines if f"{sign} published {sign}" not in line]
        assert 0 < len(rows) < len(lines)
        assert all(" on digits" in row for row in rows)
    rows = list(csv.DictReader(io.StringIO(tables["table.csv"])))
    assert {(row["dataset"], row["measured_on"]) for row in rows if row["measured_mean"]} == {("CIFAR-10", "digits")}
    assert {row["measured_on"] for row in rows if not row["measured_mean"]} == {""}
    assert {entry["measured_on"] for entry in summary["entries"]} == {"digits", None}


def test_what_was_measured_on_the_papers_data_set_needs_no_label(tmp_path):
    lt, imagenet, own = (
        Reproduction(with_changes(paper_table(name), changes), "cpu", tmp_path / name)
        for name, changes in (("lt", {}), ("imagenet_lt", {}), ("zscore", {"data": {"source": "gaussians"}}))
    )
    assert [next(iter(plan._rows().values()))[0] for plan in (lt, imagenet, own)] == [
        "measured", "measured on cifar100", "measured on gaussians",
    ]  # fmt: skip
    assert {lt._source(cell) for cell in lt.chosen} == {"cifar10", "cifar100"}


def test_a_table_goes_on_with_more_seeds_and_entries(tmp_path):
    plan = Reproduction(paper_table("zscore"), "smoke", tmp_path / "g", seeds=1)
    more = Reproduction(paper_table("zscore"), "smoke", tmp_path / "g", seeds=2)
    plan.grid.begin()
    assert len(GridFolder.open(tmp_path / "g").cells) == 3
    more.grid.begin()
    assert len(GridFolder.open(tmp_path / "g").cells) == 6
    with pytest.raises(ArgumentError, match="contains a reproduce of another configuration"):
        Reproduction(paper_table("zscore"), "cpu", tmp_path / "g").grid.begin()


def test_entries_that_are_asked_for_one_after_the_other_fill_the_table(tmp_path):
    quick = {"train": {"rounds": 2, "epochs": 1}, "relabel": {"start": 2}}
    first, second = (
        reproduce("zscore", out=tmp_path / "g", seeds=1, workers=1, changes=quick, only=only)
        for only in ("+FedReLa", "variant=FedLOGE")
    )
    done = [[entry["measured"] is not None for entry in found["entries"]] for found in (first, second)]
    assert (sum(done[0]), sum(done[1])) == (1, 2)
    assert all(after for before, after in zip(*done, strict=True) if before)
    kept = [entry["measured"] for entry in first["entries"] if entry["measured"]]
    assert all(each in [entry["measured"] for entry in second["entries"]] for each in kept)


def test_missing_data_is_one_line_with_the_way_to_get_it(tmp_path):
    plan = Reproduction(paper_table("lt"), "cpu", tmp_path / "g", root=tmp_path)
    with pytest.raises(
        DataError, match=r"^tab:lt at scale cpu: cifar10: .*fedrela data fetch cifar10.*--data"
    ) as caught:
        plan.check_data()
    assert "\n" not in str(caught.value)


def test_a_run_that_fails_leaves_its_entry_empty(tmp_path):
    plan = Reproduction(paper_table("zscore"), "smoke", tmp_path / "g", seeds=1)
    plan.grid.failures.update({cell.name: RunFailedError("diverged") for cell in plan.grid.cells})
    with pytest.raises(FedrelaError, match="no run succeeded: diverged"):
        plan.summary()


@pytest.mark.parametrize("seeds", [0, -1])
def test_a_wrong_number_of_seeds_is_one_line(tmp_path, seeds):
    with pytest.raises(ArgumentError, match=f"seeds: expected an integer >= 1, got {seeds}"):
        Reproduction(paper_table("zscore"), "smoke", tmp_path, seeds=seeds)
