"""A configuration written as TOML loads as the same configuration, and its digest sees all but the engine."""

from __future__ import annotations

import datetime
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.experiment.load import config_sha256, config_toml, parse_config
from fedrela.experiment.toml.writer import toml_text
from helpers.batteries import examples
from helpers.valid_files import EXAMPLE, IMBALANCES, PARTITIONS

DEFAULT = """seed = 1

[data]
source = "digits"
validation = 0.0
standardize = "pooled"
scaling = "fit"
protocol = "counts"

[data.options]

[data.imbalance]
kind = "natural"

[data.partition]
kind = "dirichlet"
clients = 10
alpha = 0.3
scheme = "proportional"
min_size = 10

[model]
name = "mlp"
hidden = [200]
projection = 0
dtype = "float32"

[algorithm]
name = "fedavg"
server = "average"
server_lr = 0.0
beta = 0.9
beta2 = 0.99
eps = 0.001

[train]
rounds = 60
participation = 1.0
epochs = 2
batch_size = 16
lr = 0.05
momentum = 0.9
weight_decay = 1e-05
loss = "cross_entropy"
schedule = "constant"
clip = 0.0
precision = "float32"
augment = false
evaluate_every = 1
local_test = false
min_clients = 1
deadline = 0.0
norm_limit = 50.0
give_up = 5

[relabel]
enabled = true
start = 0.8
period = 0
late = true
tau = 0.05
max_fraction = 1.0
min_agreement = 0.0
lr_scale = 1.0
moves = "fedrela"
collected = false
passes = 1
augment = false
train_mode = false
forbidden = []
keep = []
absent = true
preset = "paper"
normalize = "zscore"
method = "fedrela"

[engine]
workers = "auto"
device = "auto"
checkpoint_every = 5

[report]
samples = true
gallery_size = 24
"""


def test_the_default_in_full():
    assert config_toml(parse_config("")) == DEFAULT


@pytest.mark.parametrize(
    "raw",
    [
        EXAMPLE,
        *({"data": {"imbalance": table}} for table, _ in IMBALANCES),
        *({"data": {"partition": table}} for table, _ in PARTITIONS),
        {
            "data": {
                "root": 'a "b"\\c é\u202e',
                "source": "csv",
                "options": {"ignore": ["a", 1], "label": 3, "file": "\n"},
            }
        },
        "[engine]\n[sweep]\n'relabel.tau' = [0, { 3 = 0.1 }]\nmodel.hidden = [[], [8, 4]]\n"
        "[[sweep.data.imbalance]]\nkind = 'natural'\n[[sweep.data.imbalance]]\nkind = 'step'\nratio = 2",
    ],
    ids=str,
)
def test_round_trip(raw):
    config = parse_config(raw)
    text = config_toml(config)
    again = parse_config(text, folder="elsewhere")
    assert again == config
    assert config_toml(again) == text
    assert config_sha256(again) == config_sha256(config)


plain = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans(), st.text(), st.dates(), st.times(),
        st.datetimes(timezones=st.sampled_from([None, datetime.UTC])),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=15,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=5), plain, max_size=4))
@examples(300, 5_000)
def test_the_writer_is_read_back_exactly(table):
    assert tomllib.loads(toml_text(table)) == table


def test_the_digest_leaves_out_the_engine_alone():
    digest = config_sha256(parse_config(EXAMPLE))
    assert len(digest) == 64
    assert config_sha256(parse_config(EXAMPLE.replace('workers = "auto"', "workers = 2"))) == digest
    assert (
        config_sha256(parse_config(EXAMPLE.split("[engine]")[0] + "[compare]" + EXAMPLE.split("[compare]")[1]))
        == digest
    )
    for old, new in [("seed = 1", "seed = 2"), ("tau = 0.05", "tau = 0.06"), ("alpha = 0.3", "alpha = 0.31"),
                     ('# root = "data"', 'root = "data"'), ("start = 0.8", "start = 1")]:  # fmt: skip
        assert config_sha256(parse_config(EXAMPLE.replace(old, new, 1))) != digest
    assert config_sha256(parse_config("relabel.start = 1")) != config_sha256(parse_config("relabel.start = 1.0"))


def test_the_digest_does_not_see_layout_order_or_written_defaults():
    first = parse_config("seed = 1\n[train]\nlr = 0.1\nclip = 0.0\n[model]\nname = 'mlp'")
    second = parse_config("model.name = 'mlp'\n[data]\nvalidation = 0\n[train]\nclip = 0.0\nlr = 1e-1")
    assert config_sha256(first) == config_sha256(second)
