"""Sweeps: which runs they have, that none is done twice, what they say together, and which values they choose."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fedrela.errors import ArgumentError, FedrelaError
from fedrela.experiment import Sweep, run, sweep
from fedrela.experiment.load import load_config, parse_config
from fedrela.experiment.overlay import nested, overlay
from fedrela.experiment.result import Result
from fedrela.experiment.sweeps import SweepPlan, choice_of
from fedrela.report.sweep_page import choice_sentence
from fedrela.runfolder.grids import GridFolder
from helpers.small_runs import bytes_of, small

torch.set_num_threads(1)
QUICK = {"rounds": 2, "epochs": 1}
TAUS = {"relabel.tau": [0.1, 0.4]}


def quick(**tables):
    """Return a configuration of two rounds."""
    return small(**{"train": QUICK, "relabel": {"start": 2}} | tables)


def cells(**tables):
    return SweepPlan(parse_config(small(**tables)), "unused").grid.cells


def runs(folder) -> dict[str, dict[str, bytes]]:
    return {path.name: bytes_of(path) for path in (Path(folder) / "runs").iterdir()}


def test_every_value_goes_with_every_other():
    found = cells(sweep={"relabel.tau": [0.1, 0.4], "train": {"lr": [0.1, 0.2, 0.3]}})
    assert [tuple(cell.values.items()) for cell in found] == [
        (("relabel.tau", tau), ("train.lr", lr)) for tau in (0.1, 0.4) for lr in (0.1, 0.2, 0.3)
    ]
    assert all((cell.config.relabel.tau, cell.config.train.lr) == tuple(cell.values.values()) for cell in found)
    assert {(cell.baseline, cell.arm, cell.seed) for cell in found} == {("FedAvg", "as given", 5)}
    assert len({cell.name for cell in found}) == 6


def test_a_key_may_be_written_with_dots_or_in_tables():
    written = [
        {"data.partition.alpha": [1.0, 2.0]},
        {"data": {"partition": {"alpha": [1.0, 2.0]}}},
        {"data": {"partition.alpha": [1.0, 2.0]}},
    ]
    assert len({tuple(cell.name for cell in cells(sweep=table)) for table in written}) == 1


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("relabel.tau", [0.0, {"3": 0.1}]), ("relabel.start", [1, 0.5]), ("relabel.period", [0, 2]),
        ("relabel.normalize", ["zscore", "minmax", "none"]), ("relabel.preset", ["paper", "official"]),
        ("relabel.enabled", [True, False]), ("data.partition.alpha", [0.1, 10]), ("data.partition.clients", [5, 6]),
        ("data.imbalance.ratio", [2, 10]), ("train.participation", [0.5, 1.0]), ("algorithm.name", ["fedavg", "moon"]),
        ("model.name", ["mlp", "logistic"]), ("model.hidden", [[], [4, 4]]), ("algorithm", [{"name": "moon", "mu": 2}]),
        ("data.imbalance", [{"kind": "natural"}, {"kind": "long_tail", "factor": 9}]),
        ("data.options.separation", [1.0, 2.0]), ("relabel", [{"tau": 0.1}, {"tau": 0.2, "start": 5}]),
    ],
)  # fmt: skip
def test_any_key_of_any_table_can_be_swept(key, values):
    found = cells(sweep={key: values})
    assert [cell.values for cell in found] == [{key: value} for value in values]
    base = parse_config(small())
    for cell, value in zip(found, values, strict=True):
        assert cell.config == overlay(base, nested({key: value}))


def test_seeds_baselines_and_arms_come_from_the_comparison():
    baselines = ["fedavg", {"name": "fedprox", "mu": 1.0, "label": "pulled", "train": {"lr": 0.01}}]
    compare = {"seeds": [3, 8], "baselines": baselines, "arms": ["baseline-drop", "fedrela", "random"]}
    found = cells(sweep=TAUS, compare=compare)
    assert [(c.baseline, c.values["relabel.tau"], c.arm, c.seed) for c in found] == [
        (baseline, tau, arm, seed) for baseline in ("FedAvg", "pulled") for tau in (0.1, 0.4)
        for arm in ("baseline-drop", "fedrela", "random") for seed in (3, 8)
    ]  # fmt: skip
    last = found[-1].config
    assert (last.algorithm.params["mu"], last.train.lr, last.seed, last.relabel.moves) == (1.0, 0.01, 8, "random")
    assert (last.relabel.tau, found[0].config.train.lr) == (0.4, 0.05)
    swept = cells(sweep={"algorithm.mu": [0.5], "train.lr": [0.7]}, compare={"baselines": baselines[1:]})[0].config
    assert (swept.algorithm.params["mu"], swept.train.lr) == (0.5, 0.7), (
        "what is swept is laid over what a baseline says"
    )


def test_only_what_is_written_in_the_comparison_counts():
    found = cells(sweep=TAUS, compare={"seeds": 2})
    assert [(cell.arm, cell.seed) for cell in found] == [("as given", 1), ("as given", 2)] * 2


def test_runs_without_re_labelling_are_done_once():
    arms = ["baseline", "baseline-drop", "fedrela"]
    found = cells(sweep={"relabel.tau": [0.1, 0.4], "relabel.start": [2, 4]}, compare={"arms": arms})
    assert {arm: len({c.name for c in found if c.arm == arm}) for arm in arms} == {
        "baseline": 1, "baseline-drop": 2, "fedrela": 4,
    }  # fmt: skip
    assert len({cell.name for cell in cells(sweep={"relabel.enabled": [True, False], **TAUS})}) == 3
    many = {"relabel.start": [1, 2], "relabel.tau.3": [0.1, 0.2], "relabel.threshold": [1.0, "linear"]}
    short = cells(
        sweep={"train.rounds": [3], **many}, compare={"arms": ["baseline"]}
    )  # start = 4 would not do for them
    assert len(short) == 8
    assert len({cell.name for cell in short}) == 1


def test_a_swept_run_equals_the_same_run_alone(tmp_path):
    table = small(sweep={"relabel.tau": [0.1, 0.4], "relabel.start": [3, 5]}, compare={"arms": ["baseline", "fedrela"]})
    sweep(table, out=tmp_path / "sweep")
    for cell in SweepPlan(parse_config(table), tmp_path).grid.cells:
        alone = run(cell.config, out=tmp_path / "alone" / str(cell.values) / cell.arm)
        assert bytes_of(tmp_path / "sweep" / "runs" / cell.name) == bytes_of(alone.folder)


def test_more_values_seeds_and_keys_go_on_with_what_is_there(tmp_path):
    sweep(quick(sweep=TAUS), out=tmp_path)
    first = runs(tmp_path)
    assert len(first) == 2
    plans = [
        quick(sweep={"relabel.tau": [0.2, 0.1, 0.4]}),
        quick(sweep=TAUS, compare={"seeds": [5, 6]}),
        quick(sweep={**TAUS, "relabel.normalize": ["zscore", "none"]}, seed=5),
    ]
    for number, table in enumerate(plans, 2):
        plan = SweepPlan(parse_config(table), tmp_path)
        assert plan.grid.finished() == 2
        assert len(sweep(table, out=tmp_path).points) == len(plan.grid.cells) / (2 if number == 3 else 1)
    later = runs(tmp_path)
    assert len(later) == 2 + 1 + 2 + 2
    assert {name: later[name] for name in first} == first


def test_another_configuration_in_the_folder_is_refused(tmp_path):
    sweep(quick(sweep=TAUS), out=tmp_path)
    before = GridFolder.open(tmp_path).read("summary.json")
    with pytest.raises(ArgumentError, match=r": contains a sweep of another configuration; choose another folder"):
        sweep(quick(sweep=TAUS, model={"hidden": [9]}), out=tmp_path)
    assert GridFolder.open(tmp_path).read("summary.json") == before


def test_the_summary_says_what_the_runs_say(tmp_path):
    table = small(sweep=TAUS, compare={"seeds": [5, 7], "arms": ["baseline", "fedrela"]}, data={"validation": 0.3})
    found = sweep(table, out=tmp_path / "small")
    record = found.record
    assert record == Sweep.load(tmp_path / "small").record
    assert (record["kind"], record["name"], record["seeds"]) == ("sweep", "small", [5, 7])
    assert (record["metrics"], record["headline"]) == (["majority", "minority", "overall"], "overall")
    assert (record["keys"], record["values"]) == (["relabel.tau"], TAUS)
    rows = {(row["arm"], row["relabel.tau"], row["seed"]): row for row in found.rows()}
    assert len(rows) == len(found.rows()) == 8
    for cell in GridFolder.open(tmp_path / "small").cells:
        result = Result.load(tmp_path / "small" / cell["folder"])
        row = rows[cell["arm"], cell["values"]["relabel.tau"], cell["seed"]]
        assert (row["overall"], row["moved"]) == (result.accuracy["overall"], result.moved)
        assert (row["minority"], row["majority"]) == (result.groups["minority"], result.groups["majority"])
        assert row["validation"] == result.record["validation"]["balanced"]
    for point in found.points:
        of = [rows[point["arm"], point["values"]["relabel.tau"], seed]["overall"] for seed in (5, 7)]
        assert point["metrics"]["overall"]["mean"] == pytest.approx(sum(of) / 2)
        assert point["metrics"]["overall"]["deviation"] == pytest.approx(abs(of[0] - of[1]) / 2**0.5)
    assert [choice["arm"] for choice in found.choice] == ["fedrela"], "tau does nothing without re-labelling"
    (choice,) = found.choice
    taus = {point["values"]["relabel.tau"]: point for point in found.points if point["arm"] == "fedrela"}
    best = max(taus, key=lambda tau: taus[tau]["validation"]["mean"])
    assert choice["values"] == {"relabel.tau": best}
    assert choice["test"]["overall"] == taus[best]["metrics"]["overall"]["mean"]
    assert choice["best_test"] == max(point["metrics"]["overall"]["mean"] for point in taus.values())
    assert record["why_no_choice"] == ""


def point(value, validation, overall, moved):
    spread = {name: {"mean": mean} for name, mean in {"overall": overall, "moved": moved}.items()}
    scored = None if validation is None else {"mean": validation}
    return {"baseline": "h", "arm": "a", "values": {"k": value}, "metrics": spread, "validation": scored}


def test_of_equal_values_the_one_that_moves_less_is_chosen():
    points = [point(1, 0.8, 0.5, 9), point(2, 0.8, 0.6, 4), point(3, 0.7, 0.9, 0), point(4, None, 0.95, 1)]
    choice = choice_of(points, "overall")
    assert (choice["values"], choice["validation"], choice["test"]) == ({"k": 2}, 0.8, {"overall": 0.6})
    assert (choice["best_test_values"], choice["best_test"]) == ({"k": 4}, 0.95)
    assert choice_of([point(1, 0.8, 0.5, 3), point(2, 0.8, 0.6, 3)], "overall")["values"] == {"k": 1}
    assert choice_of([point(1, None, 0.5, 3)], "overall") is None


def test_without_validation_it_says_why_and_how(tmp_path):
    record = sweep(quick(sweep=TAUS), out=tmp_path / "a").record
    assert (record["choice"], record["points"][0]["validation"]) == ([], None)
    assert "data.validation = 0.1" in record["why_no_choice"]
    arms = {"arms": ["baseline"]}
    record = sweep(quick(sweep=TAUS, compare=arms, data={"validation": 0.3}), out=tmp_path / "b").record
    assert (record["choice"], record["why_no_choice"]) == (
        [],
        "There is nothing to choose: these values do not affect any run.",
    )


def test_values_that_change_baselines_and_groups(tmp_path):
    imbalances = [{"kind": "step", "ratio": 6, "minority": [0]}, {"kind": "long_tail", "factor": 6}]
    swept = {"algorithm.name": ["fedavg", "fedprox"], "data.imbalance": imbalances}
    found = sweep(quick(sweep=swept, data={"validation": 0.2}), out=tmp_path)
    assert found.record["metrics"] == ["majority", "minority", "head", "medium", "tail", "overall"]
    assert {point["baseline"] for point in found.points} == {"as swept"}
    for step, tailed in zip(found.points[::2], found.points[1::2], strict=True):
        assert step["metrics"]["head"]["mean"] is tailed["metrics"]["minority"]["mean"] is None
        assert None not in (step["metrics"]["minority"]["mean"], tailed["metrics"]["head"]["mean"])
    assert [choice["at"] for choice in found.choice] == [{"data.imbalance": each} for each in imbalances]
    assert all(set(choice["values"]) == {"algorithm.name"} for choice in found.choice), "nobody chooses the data"
    said = [choice_sentence(found.record, choice) for choice in found.choice]
    assert "kind" in said[0].partition(": balanced accuracy")[0]


def test_nobody_chooses_the_data(tmp_path):
    swept = {"data.partition.alpha": [0.5, 5.0]}
    record = sweep(quick(sweep=swept, data={"validation": 0.2}), out=tmp_path / "a").record
    assert (record["choice"], record["why_no_choice"]) == (
        [],
        "There is nothing to choose: these keys say what the data are.",
    )
    found = sweep(quick(sweep=swept | TAUS, data={"validation": 0.2}), out=tmp_path / "b")
    assert [(choice["at"], set(choice["values"])) for choice in found.choice] == [
        ({"data.partition.alpha": alpha}, {"relabel.tau"}) for alpha in (0.5, 5.0)
    ]


def test_a_run_that_fails_leaves_a_gap(tmp_path):
    table = quick(sweep={"train.lr": [0.05, 1e30]}, train={**QUICK, "give_up": 1}, data={"validation": 0.2})
    good, bad = sweep(table, out=tmp_path / "a").points
    assert "failed" not in good
    assert good["metrics"]["overall"]["mean"] > 0
    assert "fewer than 1 clients" in bad["failed"]
    assert (bad["metrics"]["overall"]["mean"], bad["validation"]) == (None, None)
    assert Sweep.load(tmp_path / "a").choice[0]["values"] == {"train.lr": 0.05}
    with pytest.raises(FedrelaError, match=r"no run succeeded: .*fewer than 1 clients"):
        sweep(quick(sweep={"train.lr": [1e29, 1e30]}, train={**QUICK, "give_up": 1}), out=tmp_path / "b")


def test_the_folder_keeps_what_it_was_made_from(tmp_path):
    table = quick(sweep={"relabel": {"tau": [0.1, {"2": 0.3}]}}, compare={"seeds": [5]})
    sweep(table, out=tmp_path)
    again = load_config(tmp_path / "config.toml")
    assert [cell.as_record() for cell in SweepPlan(again, tmp_path).grid.cells] == GridFolder.open(tmp_path).cells
    assert SweepPlan(again, tmp_path).grid.finished() == 2


def test_a_sweep_needs_keys(tmp_path):
    for table in ({}, {"sweep": {}}):
        with pytest.raises(ArgumentError, match=r"^<config>: sweep: expected keys with values to try, such as"):
            sweep(small(**table), out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
