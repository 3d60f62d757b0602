"""Settings behind every entry at every scale: they load, are what the paper states, and speak of real axes."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from fedrela.data.sources import SOURCES, load
from fedrela.errors import ArgumentError
from fedrela.experiment.overlay import merge
from fedrela.models import build
from fedrela.reproduction.estimate import (
    GPU_SAMPLES,
    GPU_STEP,
    expected_seconds,
    gpu_hours,
    round_work,
    training_samples,
)
from fedrela.reproduction.measurement import Reproduction, differences
from fedrela.reproduction.paper_table import NAMES, SCALES, Setting, paper_table, paper_tables
from fedrela.text import stated_number

IDLE_PRICE = 70e-6  # seconds of a sample of cnn_small on one core of the development machine, nothing else running
PLACES = [(name, scale) for name in NAMES for scale in SCALES]


def config(name, scale, arm="+FedReLa", **at):
    """Return the configuration of the one entry with some values."""
    table = paper_table(name)
    found = [e for e in table.cells if e.arm == arm and at.items() <= table.place(e).items()]
    assert found
    return table.config(found[0], table.arms(found[0])[-1], scale, 1)


@pytest.mark.parametrize(("name", "scale"), PLACES)
def test_every_entry_has_a_sound_configuration(name, scale):
    table = paper_table(name)
    for entry in table.cells:
        for arm in table.arms(entry):
            found = table.config(entry, arm, scale, 1)
            assert found.relabel.enabled == (arm == "fedrela")
            assert found.relabel.lr_scale == 1
            assert found.algorithm.name.startswith(table.place(entry)["method"].lower())
            assert round_work(found) > 0
            assert (found.data.source == "digits") == (scale == "smoke")


def test_networks_have_features_for_a_frame_of_all_classes():
    kinds = set()
    for table in paper_tables():
        for entry in table.cells:
            for scale in ("cpu", "smoke"):
                found = table.config(entry, table.arms(entry)[-1], scale, 1)
                if found.algorithm.name in ("fedetf", "fedloge"):
                    kinds.add((found.model.name, tuple(found.model.options.items()), found.data.source))
    assert len(kinds) == 3
    for model, options, source in kinds:
        size = SOURCES[source].size
        assert build(model, size.shape, size.classes, **dict(options)).num_features >= size.classes


def test_the_size_that_digits_declares_is_that_of_its_arrays():
    digits = load("digits")
    assert SOURCES["digits"].size == (len(digits.y_train), len(digits.y_test), digits.num_classes, (1, 8, 8))


@pytest.mark.parametrize("table", list(paper_tables()), ids=lambda table: table.label)
def test_overlays_name_axes_and_values_that_exist(table):
    values: dict[str, set[str]] = {}
    for each in paper_tables():  # a family speaks of all its tables
        for entry in each.cells:
            for axis, value in each.place(entry).items():
                values.setdefault(axis, set()).add(value)
    values["arm"] = {"baseline", "+FedReLa"}
    overlays = [*table.settings, *table.protocols["published"].settings]
    overlays += [at for s in table.scales.values() for at in (*s.settings, *s.only)]
    for overlay in overlays:
        for axis, wanted in overlay.at.items():
            assert set(wanted) <= values[axis]
    own = {axis for entry in table.cells for axis in table.place(entry)}
    assert not {*table.rows, *table.columns} - own
    assert not set(table.fixed) & {*table.rows, *table.columns}


@pytest.mark.parametrize("table", list(paper_tables()), ids=lambda table: table.label)
def test_every_scale_says_what_it_reduces(table):
    assert table.scales["paper"].reduction == ()
    assert table.scales["paper"].seeds == (1, 2, 3)
    assert table.chosen("paper") == list(table.cells)
    for scale in ("cpu", "smoke"):
        assert len(table.scales[scale].reduction) >= 4
        assert table.chosen(scale)
        assert table.chosen(scale, every=True) == list(table.cells)
    assert table.ours


@pytest.mark.parametrize(("scale", "minutes"), [("cpu", 150), ("smoke", 2)])
@pytest.mark.parametrize("name", NAMES)
def test_the_choice_of_a_scale_ends_in_time_on_two_idle_cores(name, scale, minutes, tmp_path):
    plan = Reproduction(paper_table(name), scale, tmp_path)
    assert 1 < expected_seconds(plan.grid.tasks, 2, IDLE_PRICE) < 60 * minutes


def test_the_published_setting_of_step_imbalance():
    found = config("step", "paper", dataset="F-MNIST", IR="20", method="FedAvg", **{"minority share": "30%"})
    assert (found.data.source, found.data.partition.clients, found.data.partition.alpha) == ("fashion_mnist", 100, 0.3)
    assert (found.data.imbalance.ratio, found.data.imbalance.minority) == (20, (0, 2, 4))
    assert (found.train.rounds, found.train.momentum, found.train.weight_decay) == (500, 0.9, 1e-5)
    assert (found.train.participation, found.relabel.start, found.relabel.tau) == (1.0, 0.8, 0.05)
    assert training_samples(found) == 7 * 6000 + 3 * 300
    rounds = {d: config("step", "paper", method="CLIMB", dataset=d).train.rounds for d in ("CIFAR-10", "CIFAR-100")}
    assert rounds == {"CIFAR-10": 2000, "CIFAR-100": 1000}
    assert config("step", "paper", dataset="CIFAR-100").data.partition.clients == 10
    assert config("step", "paper", method="MOON").model.projection == 256
    assert config("ablation", "paper", alpha="5").data.partition.alpha == 5


@pytest.mark.parametrize(
    ("share", "of_ten", "of_a_hundred"), [("10%", (0,), 0.1), ("30%", (0, 2, 4), 0.3), ("50%", (0, 2, 4, 6, 8), 0.5)]
)
def test_the_rare_classes_of_step_imbalance(share, of_ten, of_a_hundred):
    place = {"name": "ir10_50percent"} if share == "50%" else {"name": "step", "minority share": share}
    expected = {"F-MNIST": of_ten, "CIFAR-10": of_ten, "CIFAR-100": of_a_hundred}
    for dataset, minority in expected.items():
        assert config(scale="paper", dataset=dataset, **place).data.imbalance.minority == minority


def test_the_published_setting_of_long_tails():
    found = config("lt", "paper", dataset="CIFAR-10", IF="100", method="FedLOGE", alpha="0.1")
    assert (found.model.name, found.data.partition.clients, found.data.partition.alpha) == ("resnet18", 40, 0.1)
    assert (found.train.momentum, found.train.weight_decay, found.train.rounds) == (0.5, 0.0, 500)
    assert training_samples(found) == 12_406
    assert training_samples(config("lt", "paper", dataset="CIFAR-100", IF="50")) == 12_608
    many = config("cifar100_lt_clients", "paper", clients="100", method="FedYoYo")
    assert (many.data.partition.clients, many.train.participation, many.train.momentum) == (100, 0.1, 0.9)
    large = config("imagenet_lt", "paper", method="FedLoGe")
    assert (large.data.source, large.data.partition.clients, large.train.participation) == ("imagenet_lt", 20, 0.4)
    half = config("lr_step", "paper", IR="20", alpha="0.3")
    assert (half.data.imbalance.kind, half.data.imbalance.minority, half.data.partition.clients) == ("step", 0.5, 100)


@pytest.mark.parametrize(("name", "scale"), PLACES)
def test_every_entry_has_a_sound_configuration_by_the_published_protocol(name, scale):
    table = paper_table(name)
    protocol = table.protocols["published"]
    assert (protocol.pair, protocol.score) == (("baseline", "fedrela-drop"), "best-test")
    assert protocol.unlike
    for entry in table.cells:
        for arm in table.arms(entry, "published"):
            found = table.config(entry, arm, scale, 1, protocol="published")
            treated = arm == "fedrela-drop"
            assert (found.relabel.enabled, found.relabel.lr_scale) == (treated, 0.1 if treated else 1)
            assert found.train.evaluate_every == 1
            assert (found.relabel.passes, found.relabel.train_mode, found.relabel.preset, found.relabel.late) == (
                (5, True, "official", False) if treated else (1, False, "paper", True)
            )
            assert not (found.relabel.augment and scale == "smoke")
            if found.algorithm.name == "fedetf":
                assert found.algorithm.params["bn_mode"] == "official"
            if found.algorithm.name == "fedloge":
                assert found.algorithm.params.get("scored", "global") == ("frame" if treated else "global")


def test_the_published_protocol_has_the_rounds_and_the_start_of_the_official_command_lines():
    table = paper_table("lt")
    found = {}
    for entry in table.cells:
        if entry.arm == "+FedReLa":
            config = table.config(entry, "fedrela-drop", "paper", 1, protocol="published")
            found[entry.at["dataset"]] = (config.train.rounds, config.relabel.start, config.relabel.augment)
    assert found == {"CIFAR-10": (500, 0.9, True), "CIFAR-100": (200, 0.9, True)}
    early = paper_table("trelabel_sensitivity")
    treated = [entry for entry in early.cells if entry.arm == "+FedReLa"]
    starts = {early.config(e, "fedrela-drop", "paper", 1, protocol="published").relabel.start for e in treated}
    assert starts == {0.4, 0.6, 0.8}, "what a table varies stays as it varies it"


def test_the_protocols_differ_in_what_is_listed_and_in_nothing_else():
    table = paper_table("lt")
    rows = {row["setting"]: (row["matched"], row["published"]) for row in differences(table, "paper", table.cells)}
    assert rows == {
        "round that counts": ("last", "best-test"),
        "train.rounds (CIFAR-100)": ("500", "200"),
        "algorithm.bn_mode (FedETF)": ('"aggregated"', '"official"'),
        "algorithm.frame_bias (FedLOGE)": ('"zero"', '"official"'),
        "algorithm.scored (FedLOGE, baseline)": ('"frame"', '"global"'),
        "relabel.start (+FedReLa)": ("0.8", "0.9"),
        "relabel.late (+FedReLa)": ("true", "false"),
        "relabel.lr_scale (+FedReLa)": ("1.0", "0.1"),
        "relabel.passes (+FedReLa)": ("1", "5"),
        "relabel.augment (+FedReLa)": ("false", "true"),
        "relabel.train_mode (+FedReLa)": ("false", "true"),
        "relabel.preset (+FedReLa)": ('"paper"', '"official"'),
    }
    many = paper_table("cifar100_lt_clients")
    listed = [row["setting"] for row in differences(many, "paper", many.cells)]
    assert "train.participation (FedETF, clients 50)" in listed


def test_tables_share_runs_of_one_configuration():
    def names(name):
        return {cell.name for cell in Reproduction(paper_table(name), "paper", "x", seeds=1).grid.cells}

    assert names("tail_improvement") <= names("lt")
    assert len(names("sensitivity") & names("lt")) == 2, "the baseline, and tau = 5 %"
    assert len(names("period_sensitivity") & names("lt")) >= 2


def test_the_time_of_the_published_setting_is_in_hours_of_a_gpu(tmp_path):
    hours = {
        name: gpu_hours(Reproduction(paper_table(name), "paper", tmp_path).grid.tasks) for name in ("lt", "ablation")
    }
    one = config("lt", "paper", dataset="CIFAR-10", IF="100", method="FedETF")
    samples = training_samples(one) * one.train.epochs * one.train.rounds
    assert samples / GPU_SAMPLES / 3600 < hours["lt"] < 48 * 3 * 10 * samples / GPU_SAMPLES / 3600
    steps = 42_900 * 5 / 64 * 500 * GPU_STEP / 3600  # of one run of simple_cnn, which no GPU does faster
    assert hours["ablation"] > 5 * 5 * 3 * steps
    assert hours["ablation"] < 2 * hours["lt"]


def test_what_a_table_varies():
    assert config("norm_ablation", "paper", strategy="Min-max norm").relabel.normalize == "minmax"
    assert config("zscore", "paper", variant="+FedReLa w/o Z-score").relabel.normalize == "none"
    assert config("zscore", "paper", variant="+FedReLa").relabel.normalize == "zscore"
    assert config("sensitivity", "paper", tau="7%").relabel.tau == pytest.approx(0.07)
    assert config("trelabel_sensitivity", "paper", start="40%").relabel.start == pytest.approx(0.4)
    assert [config("period_sensitivity", "cpu", period=p).relabel.period for p in ("one-shot", "3")] == [0, 3]


def test_a_folder_for_data_is_for_sources_that_have_files(tmp_path):
    table = paper_table("step")
    entry = table.cells[0]
    assert table.config(entry, "baseline", "cpu", 1, tmp_path).data.root == tmp_path
    assert table.config(entry, "baseline", "smoke", 1, tmp_path).data.root is None


def test_names():
    assert paper_table("tab:step") is not None
    assert {paper_table(name).label for name in ("lt", "tab:lt")} == {"tab:lt"}
    assert paper_table("fig:sensitive").label == "fig:sensitive"
    with pytest.raises(ArgumentError, match=r"table: expected one of step, lt, .*, got 'stepp'"):
        paper_table("stepp")


def test_a_setting_holds_at_some_places():
    setting = Setting.of({"at": {"method": ["A", "B"], "IR": "10"}, "train": {"lr": 0.1, "rounds": 3}})
    assert setting.tables == {"train": {"lr": 0.1, "rounds": 3}}
    assert setting.applies({"method": "B", "IR": "10", "dataset": "x"})
    assert not setting.applies({"method": "C", "IR": "10"})
    assert not setting.applies({"method": "A"})


def test_another_source_drops_the_options_of_the_former_one():
    former = {"data": {"source": "a", "options": {"size": 1}, "imbalance": {"kind": "step"}}}
    assert merge(former, {"data": {"source": "a"}}) == former
    assert merge(former, {"data": {"source": "b"}}) == {"data": {"source": "b", "imbalance": {"kind": "step"}}}


@pytest.mark.parametrize(("text", "value"), [("40%", 0.4), ("1", 1), ("0.1", 0.1), ("one-shot", None), ("", None)])
def test_numbers(text, value):
    assert stated_number(text) == value
    assert type(stated_number(text)) is type(value)


@pytest.mark.parametrize("name", [*(f"{name}.toml" for name in NAMES), "families/step.toml", "families/long_tail.toml"])
def test_files_have_no_key_that_nobody_reads(name):
    sheet = tomllib.loads(resources.files("fedrela").joinpath("reproduction", "tables", name).read_text())
    known = {"base", "when", "scale", "published", "keys", "ours", "notes"}
    own = {"label", "title", "caption", "family", "rows", "columns", "metrics", "fixed", "best_test"}
    assert set(sheet) <= known | (set() if name.startswith("families") else own)
    for scale, table in sheet.get("scale", {}).items():
        assert scale in SCALES
        assert set(table) <= {"seeds", "reduction", "set", "when"} | ({"only"} if sheet.get("label") else set())
