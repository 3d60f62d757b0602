"""The paper's numbers as data: complete, and every contradiction that arithmetic finds in them is marked, no other."""

from __future__ import annotations

import pytest

from fedrela.reproduction.paper_table import NAMES, paper_table, paper_tables

PUBLISHED_ARMS = ("baseline", "+FedReLa")

# table -> entries, sum of all published figures
COUNTS = {
    "step": (120, 20676.36), "lt": (48, 10446.94), "imagenet_lt": (4, 548.55), "norm_ablation": (3, 563.63),
    "lr_step": (16, 3649.42), "ir10_50percent": (30, 3033.66), "cifar100_lt_clients": (16, 2205.76),
    "tail_improvement": (12, 289.91), "sensitive": (8, 0.0), "sensitivity": (8, 2995.6),
    "trelabel_sensitivity": (16, 3940.28), "zscore": (3, 731.0), "period_sensitivity": (14, 643.36),
    "ablation": (50, 7115.98),
}  # fmt: skip
ROUNDING = 0.0101  # of a figure and of those that it is computed from


def entries(name):
    return paper_table(name).cells


def marked(name, *words):
    """Return the places of the entries whose mark has one of some words."""
    return {place(e) for e in entries(name) if any(word in e.doubtful for word in words)}


def place(entry):
    return (*entry.at.values(), entry.arm)


def off_by(entry, *classes):
    """Return how far overall is from what head, medium and tail of so many classes give."""
    groups = [entry.published[name] for name in ("head", "medium", "tail")]
    mean = sum(number * share for number, share in zip(classes, groups, strict=True)) / sum(classes)
    return abs(mean - entry.published["overall"])


def share(table, entry):
    return float(table.place(entry)["minority share"].rstrip("%")) / 100


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_there(name):
    table = paper_table(name)
    number, total = COUNTS[name]
    assert len(table.cells) == len({place(entry) for entry in table.cells}) == number
    assert sum(sum(entry.published.values()) for entry in table.cells) == pytest.approx(total, abs=0.005)
    assert {entry.arm for entry in table.cells} <= set(PUBLISHED_ARMS)
    wanted = set() if name == "sensitive" else {figure.of for figure in table.metrics}
    assert all(set(entry.published) == wanted for entry in table.cells)
    assert all(0 <= value <= 100 or of == "moved" for e in table.cells for of, value in e.published.items())
    assert all(list(entry.at) == list(table.cells[0].at) for entry in table.cells)
    assert set(table.cells[0].at) == {*table.rows, *table.columns}


def test_all_tables_in_the_order_of_the_paper():
    assert [table.label.partition(":")[2] for table in paper_tables()] == list(NAMES)
    assert [table.label for table in paper_tables() if table.label.startswith("fig:")] == ["fig:sensitive"]


@pytest.mark.parametrize("name", ["step", "lr_step"])
def test_overall_is_the_mean_of_majority_and_minority(name):
    table, wrong = paper_table(name), set()
    for entry in table.cells:
        rare = share(table, entry) if name == "step" else 0.5
        mean = rare * entry.published["minority"] + (1 - rare) * entry.published["majority"]
        if abs(mean - entry.published["overall"]) > ROUNDING:
            wrong.add(place(entry))
            assert f"give {mean:.2f}"[:-1] in entry.doubtful
    assert wrong == marked(name, "majority and minority give")
    assert len(wrong) == (0 if name == "step" else 4)


@pytest.mark.parametrize("name", ["ir10_50percent", "ablation"])
def test_no_majority_is_above_100(name):
    table, wrong = paper_table(name), set()
    for entry in table.cells:
        rare = share(table, entry)
        if (entry.published["overall"] - rare * entry.published["minority"]) / (1 - rare) > 100:
            wrong.add(place(entry))
    assert wrong == marked(name, "majority accuracy would have to be")
    assert wrong == ({("CIFAR-10", "CLIMB", arm) for arm in PUBLISHED_ARMS} if name == "ir10_50percent" else set())


def test_minority_figures_that_are_no_mean_of_three_runs():
    """One class of 1,000 test images gives multiples of 0.1, and three such runs a mean with thirds of 0.1."""
    rare = [entry for entry in entries("step") if entry.at["minority share"] == "10%"]
    odd = [e for e in rare if abs(e.published["minority"] - round(30 * e.published["minority"]) / 30) > 0.00501]
    assert {place(entry) for entry in odd} == marked("step", "no mean of three runs")
    others = [entry.published["minority"] for entry in rare if entry not in odd]
    assert len(others) == 40  # as a note of the table says
    assert all(round(10 * value, 6).is_integer() for value in others)


def test_groups_of_the_long_tailed_tables_give_overall():
    sizes = {("CIFAR-10", "50"): (4, 3, 3), ("CIFAR-10", "100"): (3, 3, 4)}
    for entry in entries("lt"):
        if entry.at["dataset"] == "CIFAR-10":
            assert off_by(entry, *sizes["CIFAR-10", entry.at["IF"]]) <= ROUNDING
    of_hundred = {("50", "0.1"): (33, 33, 34), ("50", "0.3"): (33, 32, 35), ("50", "10"): (32, 31, 37),
                  ("100", "0.1"): (29, 30, 41), ("100", "0.3"): (28, 29, 43), ("100", "10"): (27, 27, 46)}  # fmt: skip
    for entry in entries("lt"):
        if entry.at["dataset"] == "CIFAR-100":
            assert off_by(entry, *of_hundred[entry.at["IF"], entry.at["alpha"]]) < 0.1
    wrong = {place(entry) for entry in entries("sensitivity") if off_by(entry, 33, 33, 34) > 0.1}
    assert wrong == marked("sensitivity", "head, medium and tail give")
    assert all(off_by(entry, 3, 3, 4) <= ROUNDING for entry in entries("trelabel_sensitivity")[:8])
    assert all(off_by(entry, 4, 3, 3) <= 0.1 for entry in entries("zscore"))


def test_divisions_of_the_classes_that_differ_within_a_table():
    own = {"50": (27, 28, 45), "100": (26, 26, 48)}
    found = entries("cifar100_lt_clients")
    strange = [entry for entry in found if off_by(entry, *own[entry.at["clients"]]) > 0.3]
    other = {place(entry) for entry in strange if off_by(entry, 35, 35, 30) < 0.1}
    assert other == marked("cifar100_lt_clients", "35, 35 and 30")
    assert {place(entry) for entry in strange} - other == marked("cifar100_lt_clients", "no division")
    assert {method for method, *_ in other} == {"FedYoYo"}
    assert {place(e) for e in entries("imagenet_lt") if off_by(e, 385, 479, 136) > 0.3} == marked("imagenet_lt", "385")


def by(name, *axes):
    return {(*(entry.at[axis] for axis in axes), entry.arm): entry for entry in entries(name)}


def test_what_two_tables_say_of_one_setting():
    step = by("step", "dataset", "IR", "method", "minority share")
    for name, ir, dataset in (("ablation", "20", "F-MNIST"), ("ir10_50percent", "10", None)):
        differ, repeat = set(), set()
        for entry in entries(name):
            other = step[entry.at.get("dataset", dataset), ir, entry.at["method"], "30%", entry.arm]
            same = all(other.published[of] == value for of, value in entry.published.items())
            repeat |= {place(entry)} if same else set()
            differ |= {place(entry)} if not same and entry.at.get("alpha") == "0.3" else set()
        assert differ == marked(name, "tab:step has")
        if name == "ir10_50percent":
            assert repeat == marked(name, "digit for digit")
    assert marked("step", "tab:ablation has") == {("F-MNIST", "20", "CLIMB", "30%", arm) for arm in PUBLISHED_ARMS}


def test_gains_are_those_of_the_table_they_name():
    lt = {(method.lower(), *rest): e for (method, *rest), e in by("lt", "method", "dataset", "IF", "alpha").items()}
    for entry in entries("tail_improvement"):
        key = (entry.at["method"].lower(), "CIFAR-10", entry.at["IF"], entry.at["alpha"])
        baseline, treated = (lt[*key, arm].published for arm in PUBLISHED_ARMS)
        gain = sum(treated[group] - baseline[group] for group in ("medium", "tail"))
        assert entry.published["medium_tail_gain"] == pytest.approx(gain, abs=0.001)
        assert entry.published["overall_gain"] == pytest.approx(treated["overall"] - baseline["overall"], abs=0.001)


def test_the_long_tailed_tables_against_tab_lt():
    lt = by("lt", "dataset", "IF", "method", "alpha")
    for entry in entries("period_sensitivity"):
        if entry.at["period"] in ("FedETF", "one-shot"):
            same = lt[entry.at["dataset"], entry.at["IF"], "FedETF", entry.at["alpha"], entry.arm]
            assert same.published["overall"] == entry.published["overall"]
    for entry in entries("sensitivity"):
        if entry.at["tau"] in ("Original", "5%"):  # which are rounded to one digit
            same = lt["CIFAR-100", "50", "FedETF", "0.1", entry.arm].published
            assert all(abs(same[of] - entry.published[of]) <= 0.0501 for of in same)
    start = by("trelabel_sensitivity", "dataset", "start", "alpha")
    for dataset in ("CIFAR-10", "CIFAR-100"):
        for at, arm in (("FedETF baseline", "baseline"), ("80%", "+FedReLa")):
            here, there = start[dataset, at, "10", arm], lt[dataset, "100", "FedETF", "10", arm]
            assert abs(here.published["overall"] - there.published["overall"]) > 1
            assert f"tab:lt has {there.published['overall']:.2f} overall" in here.doubtful
            assert f"tab:trelabel_sensitivity has {here.published['overall']:.2f} overall" in there.doubtful
    norm = by("norm_ablation", "strategy")
    same = {"Baseline (FedETF)": ("FedETF baseline", "baseline"), "Z-score + tanh": ("80%", "+FedReLa")}
    for strategy, (at, arm) in same.items():
        assert norm[strategy, arm].published == start["CIFAR-100", at, "10", arm].published
        assert "tab:lt has" in norm[strategy, arm].doubtful
    for entry in entries("zscore")[:2]:
        there = lt["CIFAR-10", "50", "FedLOGE", "0.1", entry.arm]
        assert abs(there.published["overall"] - entry.published["overall"]) > 0.1
        assert "tab:lt has" in entry.doubtful
        assert "tab:zscore has" in there.doubtful


def test_nothing_else_is_marked():
    marks = {name: sum(bool(entry.doubtful) for entry in entries(name)) for name in NAMES}
    assert {name: number for name, number in marks.items() if number} == {
        "step": 22, "lt": 6, "imagenet_lt": 4, "norm_ablation": 2, "lr_step": 4, "ir10_50percent": 6,
        "cifar100_lt_clients": 8, "sensitivity": 4, "trelabel_sensitivity": 4, "zscore": 2, "ablation": 2,
    }  # fmt: skip
