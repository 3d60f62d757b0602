"""The tables of model, algorithm, training, re-labelling, engine and report: what they take and what they then say."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from dataclasses import dataclass

import pytest

from fedrela.algorithms import ALGORITHMS
from fedrela.algorithms.base import Algorithm
from fedrela.core import Schedule
from fedrela.errors import ArgumentError
from fedrela.experiment.load import commented_toml, config_sha256, config_toml, parse_config
from fedrela.experiment.schema import Config, check_fits
from fedrela.losses import LOSSES
from fedrela.models import MODELS, model_options
from fedrela.options import Options, option

VALID = [
    "[model]\nname = 'logistic'",
    "[model]\nhidden = []",
    "[model]\nhidden = [1, 1000000]\nprojection = 1000000\ndtype = 'float64'",
    "[model]\nname = 'resnet20'\nwidth = 8\nnorm = 'group'",
    "[algorithm]\nname = 'fedprox'\nmu = 0",
    "[train]\nrounds = 1000000\nparticipation = 1e-9\nepochs = 1\nbatch_size = 1000000000\nlr = 1e9\nmomentum = 0",
    "[train]\nschedule = 'step'",
    "[train]\nschedule = 'step'\nmilestones = [60, 1, 0.5]\ngamma = 1",
    "[train]\nschedule = 'step'\nmilestones = []\nrounds = 1",
    "[train]\nschedule = 'cosine'\nlr_end = 1",
    "[train]\nnorm_limit = 1\nclip = 5\ndeadline = 0.5\nmin_clients = 10\nevaluate_every = 100\nlocal_test = true",
    "[train]\nnorm_limit = 0\nparticipation = 0.25\nmin_clients = 2",
    "[train]\nmin_clients = 1000\n[data]\nsource = 'csv'\npartition = { kind = 'natural' }\n[relabel.tau]\n999 = 0",
    "[relabel]\nstart = 60",
    "[relabel]\nstart = 1.0\nperiod = 5\nlate = false\ntau = 1\nmax_fraction = 0\nmin_agreement = 1",
    "[relabel]\nstart = 1\ntau = 0",
    "[relabel]\ntau = {}",
    "[relabel.tau]\n9 = 1\n'0' = 0\n2 = 0.5\ndefault = 0.3",
    "[relabel]\npreset = 'official'\nspread = 'sample'\nthreshold = 'linear'\ntarget = 'argmax'\nnormalize = 'none'",
    "[relabel]\nthreshold = -2",
    "[relabel]\nthreshold = [1, -2.5, 0]\nforbidden = [[0, 1], [1, 0], [0, 1]]\nlr_scale = 10\nmoves = 'random'",
    "[relabel]\npasses = 5\naugment = true\ntrain_mode = true",
    "[relabel]\ncollected = true\npasses = 1\naugment = false\nenabled = false",
    "[engine]\nworkers = 1024\ndevice = 'xpu:12'\ncheckpoint_every = 1",
    "[engine]\nworkers = 1\ndevice = 'mps'",
    "[report]\nsamples = false\ngallery_size = 1000",
    *(f"train.loss = '{name}'" for name in LOSSES),
    *(f"model.name = '{name}'" for name in MODELS),
    *(f"algorithm.name = '{name}'" for name in ALGORITHMS),
]


@pytest.mark.parametrize("text", VALID)
def test_what_is_allowed_is_written_and_read_back(text):
    config = parse_config(text)
    for write in (config_toml, commented_toml):
        again = parse_config(write(config), folder="elsewhere")
        assert again == config
        assert write(again) == write(config)
        assert config_sha256(again) == config_sha256(config)


def test_the_names_that_need_no_look_are_there():
    config = Config()
    assert config.model.name in MODELS
    assert config.algorithm.name in ALGORITHMS
    assert config.train.loss in LOSSES


def test_defaults_written_down_are_the_defaults():
    written = parse_config("[model]\nhidden = [200]\n[algorithm]\nname = 'fedprox'\nmu = 0.01")
    silent = parse_config("[algorithm]\nname = 'fedprox'")
    assert written == silent
    assert config_sha256(written) == config_sha256(silent) != config_sha256(Config())
    assert (written.model.options, written.algorithm.params) == ({}, {})
    assert parse_config("algorithm = { name = 'fedprox', mu = 1 }").algorithm.params == {"mu": 1.0}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_parameter_of_every_algorithm_is_a_checked_key(name):
    table = parse_config({"algorithm": {"name": name}}).algorithm.as_table()
    assert table == {"name": name} | dataclasses.asdict(ALGORITHMS[name]().params)
    comments = parse_config({"algorithm": {"name": name}}).algorithm.comments()
    for key in set(table) - {"name"}:
        assert comments[key]
        with pytest.raises(
            ArgumentError, match=rf"run.toml:3:{len(key) + 4}: algorithm\.{key}: expected .+, got a table"
        ):
            parse_config(f"[algorithm]\nname = '{name}'\n{key} = {{}}", name="run.toml")


@pytest.mark.parametrize("name", MODELS)
def test_every_option_of_every_model_is_a_checked_key(name):
    assert set(parse_config({"model": {"name": name}}).model.as_table()) == {
        "name", "projection", "dtype", *model_options(name),
    }  # fmt: skip
    for key in model_options(name):
        with pytest.raises(ArgumentError, match=rf"run.toml:3:{len(key) + 4}: model\.{key}: expected .+, got a table"):
            parse_config(f"[model]\nname = '{name}'\n{key} = {{}}", name="run.toml")
    with pytest.raises(ArgumentError, match=r"model\.hidden: expected at most 1000 layers, got 1001"):
        parse_config({"model": {"hidden": [1] * 1001}})


@dataclass(frozen=True)
class PairParams(Options):
    low: float = option(0.1, "lower end", symbol="l", ge=0)
    high: int = option(1, "upper end", symbol="h", ge=0)
    way: str = option("up", "direction", symbol="w", choices=("up", "down"))
    swap: bool = option(False, "whether to swap", symbol="s")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ArgumentError(f"expected at most high, {self.high}, got {self.low}", argument="low")


class Pair(Algorithm):
    name, paper, Params, own_loss = "pair", "nobody", PairParams, True


def test_parameters_of_every_type_and_rules_between_them(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "pair", Pair)
    config = parse_config("[algorithm]\nname = 'pair'\nlow = 2\nhigh = 3\nway = 'down'\nswap = true")
    assert config.algorithm.params == {"low": 2.0, "high": 3, "way": "down", "swap": True}
    assert Pair(**config.algorithm.params).params == PairParams(2.0, 3, "down", True)
    with pytest.raises(ArgumentError, match=r"high: expected an integer >= 0, got 'x'$"):
        parse_config("[algorithm]\nname = 'pair'\nlow = 2\nhigh = 'x'")
    for key, words in {
        "low = 2": "algorithm.low: expected at most high, 1, got 2.0",
        "high = 1.0": "algorithm.high: expected an integer >= 0, got 1.0",
        "way = 'dwn'": "algorithm.way: expected one of up, down, got 'dwn'; nearest: down",
        "swap = 1": "algorithm.swap: expected true or false, got 1",
    }.items():
        place = f"run.toml:3:{key.index('=') + 3}: "
        with pytest.raises(ArgumentError) as error:
            parse_config(f"[algorithm]\nname = 'pair'\n{key}", name="run.toml")
        assert str(error.value) == place + words


def test_a_loss_beside_an_algorithm_that_has_its_own(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "pair", Pair)
    assert parse_config("algorithm.name = 'pair'\ntrain.loss = 'cross_entropy'").train.loss == "cross_entropy"
    with pytest.raises(ArgumentError) as error:
        parse_config("algorithm.name = 'pair'\ntrain.loss = 'focal'", name="run.toml")
    assert str(error.value) == "run.toml:2:14: train.loss: algorithm 'pair' has its own loss; leave this out"


def test_how_many_clients_take_part():
    shares = {(1.0, 10): 10, (0.25, 10): 2, (0.35, 10): 4, (0.01, 10): 1, (0.1, 200): 20}
    for (share, clients), chosen in shares.items():
        assert parse_config({"train": {"participation": share}}).train.clients_per_round(clients) == chosen


def test_when_and_with_which_tau():
    plain = parse_config("[relabel]\nstart = 12\nperiod = 3\nlate = false\ntau = 0.1").relabel
    assert plain.schedule == Schedule(start=12, period=3, late=False)
    assert (plain.tau_of(), plain.tau_of(3)) == (0.1, 0.1)
    table = parse_config("[relabel.tau]\n3 = 0.2\n'1' = 0").relabel
    assert (table.tau_of(), table.tau_of(1), table.tau_of(3)) == (0.05, 0.0, 0.2)
    assert table.tau == {"default": 0.05, "1": 0.0, "3": 0.2}
    assert parse_config("[relabel.tau]\ndefault = 0.3").relabel.tau_of(7) == 0.3


def test_forms_of_a_threshold_and_of_forbidden_moves():
    relabel = parse_config("[relabel]\nthreshold = [1, 2.5]\nforbidden = [[0, 1], [2, 1]]").relabel
    assert relabel.threshold == (1.0, 2.5)
    assert relabel.forbidden == ((0, 1), (2, 1))
    assert parse_config("relabel.threshold = 2").relabel.threshold == 2.0
    assert parse_config("").relabel.threshold is None


FITS = """
[train]
participation = 0.5
min_clients = 3
[relabel]
forbidden = [[0, 3], [4, 5]]
threshold = [1, 2, 3]
[relabel.tau]
7 = 0.1
[data]
source = "csv"
partition = { kind = "natural" }
"""


def test_what_shows_only_when_the_data_are_there():
    config = parse_config(FITS, name="run.toml")
    check_fits(parse_config(""), clients=1, classes=["a", "b"], rows=9)
    with pytest.raises(ArgumentError) as error:
        check_fits(config, clients=4, classes=["a", "b", "c", "d"], rows=9)
    assert list(error.value.lines(9)) == [
        "run.toml:4:15: train.min_clients: expected at most 2, the number of clients in a round, got 3",
        "run.toml:6:23: relabel.forbidden[1][0]: expected a class number from 0 to 3 or a class name, got 4",
        "run.toml:6:26: relabel.forbidden[1][1]: expected a class number from 0 to 3 or a class name, got 5",
        "run.toml:7:13: relabel.threshold: expected 4 z values, one per class, got 3",
        "run.toml:9:1: relabel.tau.7: expected a client id from 0 to 3",
    ]
    with pytest.raises(ArgumentError, match=r"threshold: expected 6 z values, one per class, got 3$"):
        check_fits(config, clients=8, classes=list("abcdef"), rows=9)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "after test samples were held out; name them by a column, the option id"),
        (
            ', missing = "drop", test_file = "b.csv"',
            'after missing = "drop" left some out; fill the cells, or use "indicate"',
        ),
        (', test_file = "b.csv"', ""),
        (", test_share = 0", ""),
    ],
)
def test_rows_of_a_table_that_is_split_have_no_numbers(options, said):
    config = parse_config(
        f'[data]\nsource = "csv"\nroot = "a.csv"\noptions = {{ label = "y"{options} }}\n[relabel]\nkeep = [3]\n',
        name="run.toml",
    )
    with pytest.raises(ArgumentError) if said else contextlib.nullcontext() as error:
        check_fits(config, clients=1, classes=["well", "ill"], rows=9)
    if said:
        assert str(error.value) == f"run.toml:6:8: relabel.keep: rows have other numbers {said}"


def test_limits_that_name_classes_and_rows():
    text = """
[relabel]
forbidden = [["ill", "well"], ["ill", "wel"]]
allowed = [["well", "ill"]]
keep = [8, 9, "p3"]
class_tau = { ill = 0.1, sick = 0.2, 0 = 0.05, 2 = 0.05 }
"""
    config = parse_config(text, name="run.toml")
    with pytest.raises(ArgumentError) as error:
        check_fits(config, clients=1, classes=["well", "ill"], rows=9)
    assert list(error.value.lines(9)) == [
        "run.toml:3:39: relabel.forbidden[1][1]: unknown class 'wel'; nearest: 'well'",
        "run.toml:5:12: relabel.keep[1]: expected a row of the training data from 0 to 8, got 9",
        "run.toml:5:15: relabel.keep[2]: expected a row of the training data from 0 to 8, got 'p3'",
        "run.toml:6:26: relabel.class_tau.sick: unknown class 'sick'",
        "run.toml:6:48: relabel.class_tau.2: expected a class number from 0 to 1 or a class name, got '2'",
    ]
    assert parse_config(config_toml(config)) == config


def test_torch_is_loaded_only_for_what_needs_it():
    text = (
        "[model]\nname = 'mlp'\ndtype = 'float64'\n[algorithm]\nname = 'fedavg'\n[train]\nloss = 'cross_entropy'\n"
        "min_clients = 2\n[relabel]\ntau = 0.1\nthreshold = 2\n[engine]\nworkers = 2\n[report]\nsamples = false"
    )
    load = f"from fedrela.experiment.load import parse_config\nparse_config({text!r})"
    code = f"import sys\nsys.modules['torch'] = None\n{load}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
