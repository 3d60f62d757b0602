"""A comparison: what it runs, what it says of it, and that nothing is done twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fedrela.experiment
from fedrela.algorithms.fedavg import FedAvg
from fedrela.arms import MATCHED, PAIRS
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.errors import ArgumentError, DataError, FedrelaError
from fedrela.experiment.comparison import Compare, Comparison, base_digest, compare
from fedrela.experiment.load import load_config, parse_config
from fedrela.plots.folders import GridData
from fedrela.report.compare_page import compare_page, compare_table
from fedrela.runfolder.grids import GridFolder
from helpers.small_runs import small

torch.set_num_threads(1)
PROX = {"name": "fedprox", "mu": 0.5, "label": "Prox", "train": {"lr": 0.2}}
DIVERGES = {"name": "fedprox", "label": "bad", "train": {"lr": 1e30, "give_up": 1}}


@pytest.fixture
def executor():
    with SerialExecutor() as pool:
        yield pool


def config(table=None, **tables):
    return parse_config(small(compare={"seeds": 2} | (table or {}), data={"validation": 0.2}, **tables))


def rounds_of(plan, executor):
    return [
        (each.task.baseline, each.task.config.seed, each.task.cell and each.task.cell.arm)
        for each in plan.grid.run(executor)
    ]


def test_every_baseline_is_run_in_every_arm_with_every_seed(tmp_path, executor):
    plan = Compare(config({"baselines": ["fedavg", PROX], "arms": ["baseline", "fedrela"]}), tmp_path / "c")
    done = rounds_of(plan, executor)
    assert list(dict.fromkeys(done)) == [
        (baseline, seed, arm)
        for baseline in ("FedAvg", "Prox")
        for seed in (1, 2)
        for arm in (None, "baseline", "fedrela")
    ]
    assert len(done) == plan.grid.rounds == 4 * (3 + 2 * 3)
    prox = plan.grid.cells[-1].config
    assert (prox.algorithm.params, prox.train.lr, prox.train.epochs, prox.seed) == ({"mu": 0.5}, 0.2, 1, 2)
    assert prox.compare is None
    assert rounds_of(Compare(plan_config := config({"arms": ["baseline", "fedrela"]}), tmp_path / "c"), executor) == []
    assert GridFolder.open(tmp_path / "c").record["base"] == base_digest(plan_config)


def test_the_summary_says_what_the_runs_say(tmp_path, executor):
    plan = Compare(config({"arms": [*MATCHED, "random"]}), tmp_path / "c")
    rounds_of(plan, executor)
    found = plan.conclude()
    assert Comparison.load(tmp_path / "c") == found
    record, baseline = found.record, found.record["baselines"][0]
    assert (record["kind"], record["name"], record["score"], record["seeds"]) == ("compare", "c", "last", [1, 2])
    assert (record["headline"], record["metrics"]) == ("overall", ["majority", "minority", "overall"])
    assert (baseline["label"], baseline["algorithm"], list(baseline["arms"])) == (
        "FedAvg",
        "fedavg",
        [*MATCHED, "random"],
    )
    frame, plain = found.to_pandas(), found.to_dict()
    assert list(frame.columns) == ["baseline", "arm", "metric", "mean", "deviation", "values"]
    assert len(frame) == 5 * 4
    assert plain == record
    assert plain is not record
    results = {(cell.arm, cell.seed): plan.grid.result(cell) for cell in plan.grid.cells}
    for arm, found in baseline["arms"].items():
        overall = [results[arm, seed].accuracy["overall"] for seed in (1, 2)]
        assert found["overall"]["values"] == overall
        assert np.isclose(found["overall"]["mean"], np.mean(overall))
        assert np.isclose(found["overall"]["deviation"], np.std(overall, ddof=1))
        assert found["minority"]["values"] == [results[arm, seed].groups["minority"] for seed in (1, 2)]
        assert found["moved"]["values"] == [results[arm, seed].moved for seed in (1, 2)]
    assert baseline["arms"]["fedrela"]["moved"] == baseline["arms"]["random"]["moved"]
    assert baseline["arms"]["fedrela"]["moved"]["mean"] > baseline["arms"]["baseline"]["moved"]["mean"] == 0
    assert [(pair["base"], pair["treated"]) for pair in baseline["pairs"]] == list(PAIRS[:3])
    for pair in baseline["pairs"]:
        before, after = (np.array(baseline["arms"][pair[side]]["majority"]["values"]) for side in ("base", "treated"))
        difference = pair["differences"]["majority"]
        assert difference["values"] == (after - before).tolist()
        half = 12.706204736 * np.std(after - before, ddof=1) / np.sqrt(2)
        assert np.allclose([difference["low"], difference["high"]], np.mean(after - before) + np.array([-half, half]))
        assert set(pair["differences"]) == {"majority", "minority", "overall"}


def test_more_of_it_goes_on_with_what_is_finished(tmp_path, executor):
    def go(**table):
        plan = Compare(config({"seeds": 1, "arms": ["baseline"], **table}, report={"samples": False}), tmp_path)
        done = rounds_of(plan, executor)
        return done, plan.conclude().record

    first, _ = go()
    assert first == [("FedAvg", 1, "baseline")] * 6
    with_seeds, record = go(seeds=[1, 4])
    assert with_seeds == [("FedAvg", 4, "baseline")] * 6
    assert record["seeds"] == [1, 4]
    with_arms, _ = go(seeds=[1, 4], arms=["baseline", "fedrela"])
    assert {(seed, arm) for _, seed, arm in with_arms} == {(seed, arm) for seed in (1, 4) for arm in (None, "fedrela")}
    with_baselines, record = go(baselines=["fedavg", PROX])
    assert with_baselines == [("Prox", 1, "baseline")] * 6
    assert [baseline["label"] for baseline in record["baselines"]] == ["FedAvg", "Prox"]
    assert go() == ([], go()[1])


def test_another_configuration_is_refused(tmp_path, executor):
    rounds_of(Compare(config({"seeds": 1, "arms": ["baseline"]}), tmp_path), executor)
    other = Compare(config({"seeds": 1, "arms": ["baseline"]}, train={"rounds": 5}), tmp_path)
    with pytest.raises(ArgumentError, match="contains a compare of another configuration; choose another folder"):
        rounds_of(other, executor)


def test_what_may_change_in_a_folder():
    base = base_digest(config())
    same = [
        config({"seeds": 5, "baselines": [PROX], "score": "best-test"}),
        config(seed=9),
        config(engine={"workers": 2}),
    ]
    assert {base_digest(each) for each in [*same, config(report={"samples": False})]} == {base}
    assert len({base, base_digest(config(train={"lr": 0.3})), base_digest(config(relabel={"tau": 0.3}))}) == 3


@pytest.mark.parametrize("score", ["best-validation", "best-test"])
def test_the_best_round(tmp_path, executor, score):
    plan = Compare(config({"score": score, "arms": ["baseline", "fedrela"]}, train={"rounds": 6, "lr": 0.5}), tmp_path)
    rounds_of(plan, executor)
    record = plan.conclude().record
    assert record["score"] == score
    chosen = []
    for cell in plan.grid.cells:
        rounds = plan.grid.result(cell).history()
        place, figure = ("validation", "balanced") if score == "best-validation" else ("accuracy", "overall")
        first = cell.config.relabel.schedule.first(6) if score == "best-validation" else 1
        judged = [each[place][figure] if each["round"] >= first else -1.0 for each in rounds]
        chosen.append(judged.index(max(judged)))
        at = record["baselines"][0]["arms"][cell.arm]
        assert at["majority"]["values"][cell.seed - 1] == rounds[chosen[-1]]["accuracy"]["groups"]["majority"]
        assert at["overall"]["values"][cell.seed - 1] == rounds[chosen[-1]]["accuracy"]["overall"]
    assert min(chosen) < 5 or score == "best-validation"  # or the last round would have done as well
    assert f"({score} round)" in str(Comparison(tmp_path, record))


class Fragile(FedAvg):
    """Its client 1 fails."""

    label = "Fragile"

    def client(self, context):
        if context.client == 1:
            raise RuntimeError("boom")
        super().client(context)


def test_lost_clients_are_named(tmp_path, executor):
    tables = {"baselines": ["fedavg", f"{__name__}:Fragile"], "arms": ["baseline", "fedrela"]}
    plan = Compare(config(tables), tmp_path)
    rounds_of(plan, executor)
    found = plan.conclude()
    sound, fragile = found.record["baselines"]
    assert "lost" not in sound
    said = dict.fromkeys(("baseline", "fedrela"), "seed 1: excluded 6 updates of 1 client, last client 1 in round 6: ")
    assert {arm: words.partition("Runtime")[0] for arm, words in fragile["lost"].items()} == said
    assert [line for line in str(found).splitlines() if "boom" in line] == list(found.lost())
    page = compare_page(GridData([], [], found.record), "")
    assert any("Fragile, FedReLa, seed 1: excluded 6 updates" in str(block) for block in page.sections[0].blocks)


def test_a_baseline_that_fails_is_left_out(tmp_path, executor):
    plan = Compare(config({"seeds": 1, "baselines": [DIVERGES, "fedavg"]}), tmp_path)
    rounds_of(plan, executor)
    found = plan.conclude()
    bad, good = found.record["baselines"]
    assert (bad["label"], bad["arms"], bad["pairs"]) == ("bad", {}, [])
    assert "not finite" in bad["failed"]
    assert list(good["arms"]) == list(MATCHED)
    assert found.failures == {"bad": bad["failed"]}
    assert str(found).splitlines()[-1] == f"bad: failed: {bad['failed']}"


def test_where_no_baseline_can_be_run(tmp_path, executor):
    plan = Compare(config({"seeds": 1, "baselines": [DIVERGES], "arms": ["baseline"]}), tmp_path)
    rounds_of(plan, executor)
    with pytest.raises(FedrelaError, match=r"no baseline could be run: round 1: .* not finite"):
        plan.conclude()


def test_an_unfinished_comparison_has_no_summary(tmp_path, executor):
    plan = Compare(config({"seeds": 1, "arms": ["baseline"]}), tmp_path)
    begun = plan.grid.run(executor)
    next(begun)
    begun.close()
    with pytest.raises(DataError, match="resume it first"):
        plan.conclude()
    with pytest.raises(DataError, match="interrupted, 0 of 1 runs done; finish it first"):
        Comparison.load(tmp_path)


def test_from_python(tmp_path):
    found = fedrela.experiment.compare(
        small(compare={"seeds": 2, "arms": ["baseline", "fedrela"]}), out=tmp_path / "py", workers=1
    )
    assert isinstance(found, fedrela.experiment.Comparison)
    assert fedrela.experiment.compare is compare
    (tmp_path / "given.toml").write_text("[compare]\nseeds = 1\n")
    assert Compare(load_config(tmp_path / "given.toml"), tmp_path).grid.name == "given"
    [line] = str(found).splitlines()
    assert line.startswith("FedAvg, fedrela against baseline: majority ")
    assert line.count("noise (95 % interval") == 3


def test_any_pair_of_arms_that_was_run(tmp_path, executor):
    chosen = [["baseline", "fedrela-drop"], ["baseline", "baseline-drop"]]
    plan = Compare(
        config({"seeds": 2, "arms": ["baseline", "baseline-drop", "fedrela-drop"], "pairs": chosen}), tmp_path
    )
    rounds_of(plan, executor)
    found = plan.conclude()
    (baseline,) = found.record["baselines"]
    assert [[pair["base"], pair["treated"]] for pair in baseline["pairs"]] == chosen
    for pair in baseline["pairs"]:
        before, after = (baseline["arms"][pair[side]]["overall"]["values"] for side in ("base", "treated"))
        expected = [b - a for a, b in zip(before, after, strict=True)]
        assert pair["differences"]["overall"]["values"] == pytest.approx(expected)
    assert "fedrela-drop against baseline" in str(found)
    assert [row[1] for row in compare_table(found.record).rows] == [
        "FedReLa, lr / 10 over baseline", "baseline, lr / 10 over baseline"
    ]  # fmt: skip
