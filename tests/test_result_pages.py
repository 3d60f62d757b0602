"""Pages of results: what they say of made records."""

from __future__ import annotations

import gzip
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import make_results
import result_records
import result_sections

SEEDS = (1, 2, 3)
PLACE = {"data.imbalance.minority": [0, 2, 4], "data.imbalance.ratio": 20}


def cell(arm: str, seed: int, minority: float, values: dict, baseline: str = "FedAvg") -> dict:
    majority = 0.9 if arm == "baseline" else 0.88
    return {
        "baseline": baseline, "arm": arm, "seed": seed, "values": values, "headline": "overall", "moved": 7,
        "groups": {"majority": majority, "minority": minority}, "overall": 0.7 * majority + 0.3 * minority,
        "validation": {"balanced": minority}, "last_ten": 0.002, "rounds": 60, "per_class": [minority, majority],
        "weights_sha256": f"{arm} {seed} {minority} {baseline}",
    }  # fmt: skip


def study(name: str, cells: list[dict], page: str = "fashion-mnist", runs: int | None = None):
    made = result_records.Study(name, "made", page, 5, "made")
    made.__dict__["summary"] = {"cells": cells, "runs": runs or len(cells)}
    return made


@pytest.fixture
def fedavg():
    arms = {"baseline": (0.5, 0.01), "fedrela": (0.68, 0.02)}
    cells = [cell(arm, seed, x + step * seed, PLACE) for arm, (x, step) in arms.items() for seed in SEEDS]
    return study("fmnist-fedavg", cells)


def test_data_sets_are_compared_by_their_arrays(tmp_path, capsys):
    check = runpy.run_path(str(Path(__file__).parents[1] / "results/check_data.py"))
    rows = {name: np.arange(4) for name in ("x_train", "y_train", "x_test", "y_test")}
    np.savez(tmp_path / "a.npz", **rows)
    np.savez_compressed(tmp_path / "b.npz", **rows, class_names=["no", "yes"])
    np.savez(tmp_path / "c.npz", **rows | {"y_test": np.arange(4)[::-1]})
    first, second, other = (check["digest"](tmp_path / f"{name}.npz") for name in "abc")
    assert first == second != other
    (tmp_path / "credit.npz").write_bytes((tmp_path / "a.npz").read_bytes())
    assert check["main"](tmp_path) == 1
    assert f"{tmp_path / 'credit.npz'}: DIFFERENT\n" in capsys.readouterr().out


def test_data_sets_are_made_from_their_public_files(tmp_path, capsys):
    make = runpy.run_path(str(Path(__file__).parents[1] / "results/make_data.py"))
    row = ["0", "tcp", "http", "SF", *map(str, range(37))]
    lines = [
        ",".join([str(i % 4), "udp" if i % 2 else "tcp", *row[2:], "normal." if i < 6 else "smurf."]) for i in range(8)
    ]
    (tmp_path / "kdd.gz").write_bytes(gzip.compress("\n".join([*lines, lines[0]]).encode()))
    assert make["main"]("kdd", tmp_path / "kdd.gz", tmp_path) == 1
    assert "kdd.gz is DIFFERENT from what the recorded runs used\n" in capsys.readouterr().out
    made = dict(np.load(tmp_path / "kdd.npz"))
    assert (made["x_train"].shape, made["x_test"].shape, made["x_train"].dtype) == ((4, 41), (2, 41), np.float32)
    assert sorted(np.concatenate([made["x_train"], made["x_test"]])[:, 1].tolist()) == [0, 0, 0, 1, 1, 1], "duplicates"
    before = (tmp_path / "kdd.npz").read_bytes()
    (tmp_path / "more.gz").write_bytes(gzip.compress(lines[0].encode()))
    assert make["main"]("kdd", tmp_path / "more.gz", tmp_path) == 1
    assert (tmp_path / "kdd.npz").read_bytes() == before
    with pytest.raises(SystemExit, match=r"none\.gz: is not the public file of kdd: "):
        make["main"]("kdd", tmp_path / "none.gz", tmp_path)
    (tmp_path / "rows.csv").write_text("a,class\n" + "".join(f"{i},'{1 - 2 * (i % 2)}'\n" for i in range(10)))
    made = make["table"](tmp_path / "rows.csv")
    assert made["y_train"].tolist() == [int(x) % 2 == 0 for x in made["x_train"][:, 0]]
    assert made["class_names"].tolist() == ["-1", "1"]


def test_a_study_shows_means_gains_and_what_the_paper_prints(fedavg):
    pictures = {}
    text = "\n".join(result_sections.section(fedavg, pictures))
    setting = "| FedAvg | classes 0, 2 and 4 rare, IR 20"
    assert f"{setting} | baseline | 3 | 90.0 ± 0.0 | 52.0 ± 1.0 | 78.6 ± 0.3 | 7 ± 0 |" in text
    assert "| **+20.0** [+17.5, +22.5] | **+4.6** [+3.9, +5.3] |" in text
    printed = "90.4 to 87.3 (-3.1) | 50.5 to 75.7 (+25.2) | 78.5 to 83.8 (+5.4)"
    assert f"{setting} | printed | {printed} |" in text
    assert f"{setting} | measured, no drop | 90.0 to 88.0 (-2.0) | 52.0 to 72.0 (+20.0) | 78.6 to 83.2 (+4.6) |" in text
    assert "best test round of each\narm, after 500 rounds; here it is the best of every tenth round." in text
    assert "last ten rounds: +0.2 points; none of 3 runs gained a point or more." in text
    assert "recorded so far" not in text
    assert list(pictures) == ["fmnist-fedavg"]


def test_a_long_table_is_unfolded_on_request(fedavg):
    shown = "\n".join(result_sections.section(fedavg, {}))
    assert "<details>" not in shown
    ratios = range(10, 23)
    cells = [cell("baseline", 1, 0.5, {**PLACE, "data.imbalance.ratio": ratio}) for ratio in ratios]
    lines = list(result_sections.section(study("fmnist-fedavg", cells), {}))
    start = next(i for i, line in enumerate(lines) if line.startswith("<details>"))
    assert lines[start].endswith("over seeds (13 rows)</summary>")
    assert lines[start + 1] == "", "Markdown begins after an empty line"
    assert lines[start + 2].startswith("| baseline | setting |")
    assert lines[lines.index("</details>") + 1] == ""


def test_the_best_test_round_stands_beside_what_is_printed():
    best = {"majority": 0.91, "minority": 0.6, "overall": 0.8}
    cells = [
        cell(arm, seed, 0.5, PLACE) | {"best_test": best} for arm in ("baseline", "fedrela-drop") for seed in SEEDS
    ]
    words = "measured, the drop with FedReLa alone, best test round"
    same = "91.0 to 91.0 (0.0) | 60.0 to 60.0 (0.0) | 80.0 to 80.0 (0.0) |"
    assert f"{words} | {same}" in "\n".join(result_sections.section(study("fmnist-fedavg", cells), {}))
    del cells[0]["best_test"]
    assert words not in "\n".join(result_sections.section(study("fmnist-fedavg", cells), {}))


def test_a_row_of_both_protocols_is_found_in_print():
    values = {"dataset": "CIFAR-10", "IF": "100", "alpha": "0.1", "protocol": "published"}
    cells = [cell(arm, 1, 0.5, values, "FedETF") for arm in ("baseline", "fedrela-drop")]
    text = "\n".join(result_sections.section(study("cifar-protocols", cells, "cifar-10"), {}))
    printed = next(line for line in text.splitlines() if "| printed |" in line)
    assert printed.startswith("| FedETF | dataset CIFAR-10, IF 100, alpha 0.1, protocol published | printed | - | - | ")
    assert printed.count(" to ") == 1


def test_a_row_has_only_the_seeds_of_all_its_arms(fedavg):
    cells = [each for each in fedavg.cells if (each["arm"], each["seed"]) != ("fedrela", 2)]
    text = "\n".join(result_sections.section(study("fmnist-fedavg", cells, runs=6), {}))
    assert "*5 of 6 runs are recorded so far*" in text
    assert "| baseline | 2 | 90.0" in text


def test_the_first_page_counts_what_is_beyond_noise_and_names_what_is_missing(fedavg):
    found = {(0.05, "baseline"): 0.5, (0.05, "fedrela"): 0.6, (0.5, "baseline"): 0.5, (0.5, "fedrela"): 0.3}
    tried = [cell(arm, 1, minority, {"relabel.tau": tau}) for (tau, arm), minority in found.items()]
    tau = study("sensitivity-tau", tried, "sensitivity")
    text = "\n".join(make_results.index([fedavg, tau, study("kdd", [], "tables", 4)], {}))
    assert "gain in 1 of 1 setting; the median gain in points is\n  +20.0 (Fashion-MNIST)." in text
    assert "the headline accuracy by +4.6 (Fashion-MNIST)." in text
    assert "| Fashion-MNIST | 1, 1 with several seeds | -2.0 (-2.0 to -2.0) | +20.0 (+20.0 to +20.0) |" in text
    fall = "The headline accuracy falls in 1 of 2 settings of [harm](harm.md) and [sensitivity](sensitivity.md)"
    assert f"{fall}, beyond noise in 0: tau 0.5 (-7.4)." in text
    again = study("sensitivity-cap", tried, "sensitivity")  # the same runs count once
    assert "falls in 1 of 2 settings" in "\n".join(make_results.index([fedavg, tau, again], {}))
    assert "| made | tau 0.05 | 1 | 60.0 | 88.0 | 60.0 | 79.6 |" in text
    assert "- [made](tables.md): not begun; about 5 minutes of one core in all." in text


def test_baselines_that_have_hardly_learnt_are_not_counted(fedavg):
    poor = [cell(arm, 1, minority, {}, "FedYoYo") for arm, minority in (("baseline", 0.1), ("fedrela", 0.9))]
    poor = [each | {"overall": 0.14, "per_class": [0.1] * 10} for each in poor]
    text = "\n".join(make_results.index([fedavg, study("cifar10-more", poor, "cifar-10")], {}))
    assert "the median gain in points is\n  +20.0 (Fashion-MNIST)." in text
    assert "(less than 10 % of the way from chance to a perfect\nmodel) are left out: made, FedYoYo." in text


def test_remedies_stand_beside_fedavg_with_fedrela_at_the_same_place(fedavg):
    elsewhere = [cell("fedrela", seed, 0.1, {**PLACE, "data.imbalance.ratio": 10}) for seed in SEEDS]
    plain = study("fmnist-fedavg", [*fedavg.cells, *elsewhere])
    found = {"SMOTE": 0.65, "Re-weighting": 0.75}
    peers = study("fmnist-peers", [cell("baseline", 2, minority, {}, name) for name, minority in found.items()])
    text = "\n".join(result_sections.section(peers, {}, [plain, peers]))
    assert "| SMOTE | -2.0 | +7.0 | +0.7 |" in text
    assert "| Re-weighting | -2.0 | -3.0 | -2.3 |" in text
    assert "against each" not in "\n".join(result_sections.section(peers, {}, [peers]))
    models = {"CNN": ("fedrela", 0.6), "CNN, class weights": ("baseline", 0.7), "CNN, SMOTE": ("baseline", 0.5)}
    cells = [cell(arm, seed, x, {}, name) for name, (arm, x) in models.items() for seed in SEEDS]
    cells += [cell("baseline", seed, 0.4, {}, "CNN") for seed in SEEDS]
    cells[0] = cell("fedrela", 1, 0.602, {}, "CNN")
    text = "\n".join(make_results.index([plain, peers, study("chula", cells, "tables")], {}))
    assert "choose is ahead of FedReLa's defaults in 1 of 1 model; on benchmark images FedAvg with FedReLa is" in text
    assert "ahead of another method alone in 1 of 2, without it in 0." in text
    defaults = "is ahead of FedReLa's defaults in 1\n  of 1 model, beyond noise in 1; the median difference is\n  +4.4"
    assert f"{defaults} points." in text
    assert "in 1 of 2 on [Fashion-MNIST](fashion-mnist.md) (without it in 0)\n  by headline accuracy," in text
    assert "on the rare classes in 1 (without it in 0) of them all\n  (1 seed; nearly all at" in text
    assert "| made | CNN, class weights | 75.0 ± 0.0 | 84.0 ± 0.0 | 79.6 ± 0.0 | **-4.4** [-4.5, -4.3] |" in text
    part = [each for each in cells if each["seed"] == 1 or "SMOTE" not in each["baseline"]]
    text = "\n".join(make_results.index([plain, peers, study("chula", part, "tables")], {}))
    assert "| made | CNN, class weights | 75.0 | 84.0 | 79.7 | -4.3 |" in text, "the seed that all have"


def test_remedies_stand_beside_the_tau_that_validation_chooses():
    models = {"CNN": ("baseline", 0.4), "CNN, SMOTE": ("baseline", 0.7)}
    cells = [cell(arm, seed, x, {}, name) for name, (arm, x) in models.items() for seed in SEEDS]
    cells += [cell("fedrela", seed, 0.6, {}, "CNN") for seed in SEEDS]
    tried = {(0.05, "fedrela"): 0.6, (0.1, "fedrela"): 0.65, (0.1, "fedrela-drop"): 0.8}
    tau = [cell(arm, seed, x, {"relabel.tau": tau}, "CNN") for (tau, arm), x in tried.items() for seed in SEEDS]
    found = [study("chula", cells, "tables"), study("chula-tau", tau, "tables")]
    text = "\n".join(make_results.index(found, {}))
    assert (
        "| CNN, SMOTE | 75.0 ± 0.0 | 84.0 ± 0.0 | 79.6 ± 0.0 | -4.4 | tau 0.1 with the drop | 85.6 ± 0.0 | +1.6 |"
        in text
    )
    assert "in 1 of 1 model, with a tau that they choose in 0 of 1." in text
    part = study("chula-tau", tau[:-1], "tables", len(tau))
    assert "tau 0.1 with the drop" not in "\n".join(make_results.index([found[0], part], {})), "not all seeds"


def test_random_moves_stand_beside_those_of_fedrela(fedavg):
    moved = [cell("random", seed, 0.4 + 0.01 * seed, PLACE) for seed in SEEDS]
    text = "\n".join(make_results.index([study("fmnist-fedavg", [*fedavg.cells, *moved])], {}))
    row = "| made | FedAvg | 3 | 0.0 [0.0, 0.0] | **+30.0** [+27.5, +32.5] | **+9.0** [+8.3, +9.7] |"
    assert "random moves](random.md) between the same classes, in points:\n\n| study" in text
    assert row in text
    assert "random.md" not in "\n".join(make_results.index([fedavg], {})).partition("## The studies")[0]


def test_two_classes_are_compared_with_a_threshold():
    shares = {"baseline": (0.6, 0.85), "fedrela": (0.8, 0.84)}
    cells = [
        cell(arm, seed, 0.5, {}, "CNN")
        | {"balanced": usual, "auroc": 0.9, "at_threshold": {"balanced": moved + 0.01 * seed}}
        for arm, (usual, moved) in shares.items()
        for seed in SEEDS
    ]
    cells += [cell("baseline", seed, 0.5, {}, "CNN, class weights") for seed in SEEDS]
    made = study("pneumonia", cells, "tables")
    text = "\n".join(make_results.index([made], {}))
    assert "| made | CNN | 60.0 ± 0.0 | 80.0 ± 0.0 | 87.0 ± 1.0 | 86.0 ± 1.0 | **-7.0** [-9.5, -4.5] |" in text
    assert "chosen on validation samples is ahead of FedReLa's defaults in\n  1 of 1, by +7.0 in the median" in text
    del cells[0]["at_threshold"]
    assert "threshold" not in "\n".join(make_results.index([study("pneumonia", cells, "tables")], {}))


def test_other_baselines_stand_beside_fedavg_with_fedrela_in_each_of_their_settings():
    settings = [{"data.imbalance.factor": factor, "data.partition.alpha": 0.3} for factor in (100, 50)]
    cells = [cell("fedrela", 1, x, at) for x, at in zip((0.5, 0.4), settings, strict=True)]
    cells += [cell("baseline", 1, x, at, "CReFF") for x, at in zip((0.6, 0.3), settings, strict=True)]
    made = study("cifar10-lt", cells, "cifar-10")
    text = "\n".join(result_sections.section(made, {}, [made]))
    for row in (
        "| CReFF | IF 100, alpha 0.3 | -2.0 | -10.0 | -4.4 |",
        "| CReFF | IF 50, alpha 0.3 | -2.0 | +10.0 | +1.6 |",
    ):
        assert row in text
    assert len(list(result_sections.beside(made, [made]))) == 2, "FedAvg is not compared with itself"
    assert "left out" not in text
    other = study("cifar10-lt", [*cells, cell("baseline", 1, 0.1, settings[0], "FedLoGe")], "cifar-10")
    assert list(result_sections.beside(other, [other])) == list(result_sections.beside(made, [made]))
    assert "; FedLoGe is left out, since it is scored by its frame" in "\n".join(
        result_sections.section(other, {}, [other])
    )


def test_the_first_page_says_what_the_drop_alone_does_and_what_the_paper_prints():
    place = {"data.imbalance.minority": [0, 2, 4]}
    arms = {"baseline": 0.5, "baseline-drop": 0.7, "fedrela": 0.6, "fedrela-drop": 0.75}
    cells = [cell(arm, 1, x, place) for arm, x in arms.items()]
    scored = [
        each | {"best_test": {"majority": 0.9, "minority": x, "overall": 0.8}}
        for each, x in zip(cells, arms.values(), strict=True)
    ]
    text = "\n".join(make_results.index([study("fmnist-published", scored)], {}))
    assert "the learning-rate drop alone is ahead of FedReLa alone in 1 of 1 (Fashion-MNIST)." in text
    assert "the rare classes gain +25.0; the paper prints +25.2." in text
    assert "the paper prints" not in "\n".join(make_results.index([study("fmnist-fedavg", cells)], {}))


def test_of_two_classes_each_is_a_group():
    made = study("pneumonia", [cell(arm, 1, 0.5, {}, "CNN") for arm in ("baseline", "fedrela")], "tables")
    assert made.class_counts == [1214, 3494]
    assert made.metrics == ["common class", "rare class", "overall"]
    assert made.cells[0]["groups"] == {"common class": 0.9, "rare class": 0.5}
    assert (result_records.common(made), result_records.rare(made)) == ("common class", "rare class")
