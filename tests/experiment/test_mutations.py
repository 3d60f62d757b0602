"""Battery B17, second part: random mutations of a valid file load, or end in one line with a place in the file."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError
from fedrela.experiment.load import commented_toml, config_toml, parse_config
from helpers.batteries import examples, tried
from helpers.layouts import DRESSES, LAYOUTS, MARK

VALID = {
    "data": {
        "source": '"csv"',
        "root": '"data"',
        "validation": "0.1",
        "standardize": '"local"',
        "protocol": '"counts"',
    },
    "data.options": {"file": '"a.csv"', "label": '"y"', "ignore": '["a", "b"]', "header": "true"},
    "data.imbalance": {"kind": '"step"', "ratio": "20", "minority": "[0, 1, 2]", "largest": "100", "order": '"random"'},
    "data.partition": {"kind": '"dirichlet"', "clients": "10", "alpha": "0.3", "scheme": '"equal"', "min_size": "5"},
    "model": {"name": '"mlp"', "hidden": "[64, 32]", "projection": "0", "dtype": '"float64"'},
    "algorithm": {"name": '"fedprox"', "mu": "0.1"},
    "train": {
        "rounds": "40", "participation": "0.5", "epochs": "2", "batch_size": "16", "lr": "0.05", "momentum": "0.9",
        "weight_decay": "1e-5", "loss": '"focal"', "schedule": '"step"', "milestones": "[0.5, 30]", "gamma": "0.1",
        "clip": "0.0", "precision": '"float32"', "augment": "false", "evaluate_every": "1", "local_test": "false",
        "min_clients": "2", "deadline": "0.0", "norm_limit": "50.0", "give_up": "5",
    },
    "relabel": {
        "enabled": "true", "start": "32", "period": "0", "late": "true", "preset": '"official"', "spread": '"sample"',
        "threshold": "[1.0, 2.5]", "target": '"winner"', "normalize": '"minmax"', "max_fraction": "0.5",
        "min_agreement": "0.1", "forbidden": "[[0, 1], [2, 1]]", "lr_scale": "0.1", "moves": '"random"',
        "collected": "false", "passes": "5", "augment": "true", "train_mode": "true", "keep": "[3, 17]",
        "absent": "false", "allowed": '[[0, 1], ["well", "ill"]]', "class_tau": "{ ill = 0.1, 0 = 0.05 }",
    },
    "relabel.tau": {"0": "0.1", '"3"': "0", "default": "0.05"},
    "engine": {"workers": "2", "device": '"cuda:1"', "checkpoint_every": "5"},
    "report": {"samples": "false", "gallery_size": "24"},
}  # fmt: skip
LITERALS = [
    '""', '"x"', "''", "true", "false", "0", "-1", "1", "0.0", "1e400", "-inf", "nan", "0x7f", "1_000", "[]", "[[]]",
    "{}", "[1, 'a']", "{ a = { b = 1 } }", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", '"""\n"""', "'''a\n'''",
    "tru", "1__0", "01", ".5", "5.", "+", "None", "null", "%", "$HOME", "[1,, 2]", "{ a = 1, }", "[", "{", '"', "'",
    '"\\x"', "=", "", "#", "9" * 30, "'\\u0000'", '"\\u0000"', '"\\ud800"', "\x00",
]  # fmt: skip
SIGNS = st.sampled_from("[]{}=\"'#,.\n\r\t \\\0é😀\u202e\ufeffx0-") | st.characters(codec="utf-8")
PLACE = re.compile(r"run\.toml:(\d+):(\d+): \S.*")

numbers = st.one_of(st.integers(), st.floats()).map(repr)
words = st.one_of(
    st.sampled_from([key for pairs in VALID.values() for key in pairs] + ["", "a.b", "seed", "data"]),
    st.text("abcdeilnopst_", max_size=9),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A valid file with up to three keys or values exchanged, in any layout, then perhaps broken by characters."""
    pairs = [[table, key, value] for table, inner in VALID.items() for key, value in inner.items()]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(pairs) - 1))
        part = draw(st.sampled_from(["table", "key", "key", "value", "value", "number", "number", "gone", "twice"]))
        if part == "table":
            pairs[place][0] = draw(st.sampled_from([*VALID, "sweep", "dota", "data.imbalance.x"]))
        elif part == "key":
            pairs[place][1] = draw(words)
        elif part == "value":
            pairs[place][2] = draw(st.sampled_from(LITERALS) | words)
        elif part == "number":
            pairs[place][2] = draw(numbers)
        elif part == "gone":
            pairs.pop(place)
        else:
            pairs.insert(draw(st.integers(0, len(pairs))), list(pairs[place]))
    text, layout = "", "dotted"
    for table in dict.fromkeys(table for table, *_ in pairs):
        lines = [f"{key} = {value}" for owner, key, value in pairs if owner == table]
        layout = draw(st.sampled_from(["header", "dotted"])) if layout == "dotted" else "header"
        text += LAYOUTS[layout](table, lines).replace(MARK, "")
    text = DRESSES[draw(st.sampled_from(list(DRESSES)))](text)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        start, length = draw(st.integers(0, len(text))), draw(st.sampled_from([0, 0, 1, 3, 40, len(text)]))
        text = text[:start] + draw(st.text(SIGNS, max_size=3)) + text[start + length :]
    return text


def outcome(text: str) -> str:
    """Load a text and return ``valid`` or the message, after checking what must hold for each."""
    try:
        config = parse_config(text, name="run.toml")
    except ArgumentError as error:
        message = str(error)
        found = PLACE.fullmatch(message)
        assert found, message
        line, column = int(found[1]), int(found[2])
        lines = text.removeprefix("\ufeff").split("\n")
        assert 1 <= line <= len(lines), message
        assert 1 <= column <= len(lines[line - 1]) + 1, message
        assert message.isprintable()
        assert "ydantic" not in message
        return message
    for write in (config_toml, commented_toml):
        again = parse_config(write(config))
        assert again == config
        assert write(again) == write(config)
    return "valid"


@given(texts())
@examples(500, 10_000)
def test_a_mutated_file_loads_or_is_refused_in_one_line(text):
    outcome(text)


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_file_before_mutation_is_valid(layout, dress):
    pairs = {table: [f"{key} = {value}" for key, value in inner.items()] for table, inner in VALID.items()}
    if layout == "inline":
        for table in [table for table in pairs if "." in table]:
            parent, name = table.split(".")
            pairs[parent].append(f"{name} = {{ {', '.join(pairs.pop(table))} }}")
    text = "".join(LAYOUTS[layout](table, lines) for table, lines in pairs.items())
    assert outcome(DRESSES[dress](text.replace(MARK, ""))) == "valid"


def test_truncated_at_every_character():
    text = config_toml(parse_config({"data": {"source": "csv", "root": "a", "options": {"ignore": ["é", "b"]}}}))
    outcomes = [outcome(text[:end]) for end in range(len(text) + 1)]
    tried(len(outcomes))
    assert outcomes[0] == outcomes[-1] == "valid"
    assert len(set(outcomes)) > 200
