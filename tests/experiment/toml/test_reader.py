"""Places of keys: every layout by hand, and random documents whose writer knows where each key is."""

from __future__ import annotations

import random
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError
from fedrela.experiment.toml.reader import DEEPEST, Position, locate
from helpers.batteries import examples
from helpers.documents import Writer, position, tables

RATIO = ("data", "imbalance", "ratio")

# «: the key, »: its value, in each place where data.imbalance.ratio can stand
LAYOUTS = {
    "inline": '[data]\nimbalance = { kind = "step", «ratio = »20 }\n',
    "inline in inline": 'data = { imbalance = { «ratio = »20 }, source = "x" }',
    "header": '[data]\nsource = "x"\n\n[data.imbalance]\n  «ratio = »20',
    "dotted": 'data.source = "x"\ndata.imbalance.«ratio = »20',
    "dotted below a header": "[data]\nimbalance.«ratio = »20",
    "dotted in inline": "data = { imbalance.«ratio = »20 }",
    "quoted": '"data" . \'imbalance\' . «"r\\u0061tio" = »20',
    "after a long string": 'a = """\n[data.imbalance]\nratio = 1"" \\""""""\n[data.imbalance]\n«ratio = »20',
    "after a long literal": "a = '''\n[data]\n'''''\n[data.imbalance]\n«ratio = »20",
    "after a comment": '# ratio = 1 """\n[data.imbalance] # [x]\n# ratio = 2\n«ratio = »20 # ratio = 3',
    "after an array": '[data.imbalance]\nx = [ # ]\n "]", [1, 2], { ratio = 3 },\n]\n«ratio = »20',
    "after a date": "[data.imbalance]\nx = [1979-05-27 07:32:00, 07:32:00]\n«ratio = »20",
    "wide characters": '[data.imbalance]\n"語é😀" = 1\n\t«ratio\t=\t»20',
    "a table of the same name": "[ratio]\nratio = 1\n[x.data.imbalance]\nratio = 2\n[data.imbalance]\n«ratio = »20",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_key_and_its_value_in_every_layout(layout):
    marked = LAYOUTS[layout]
    text = marked.replace("«", "").replace("»", "")
    place = locate(text).of(RATIO)
    assert tomllib.loads(text)["data"]["imbalance"]["ratio"] == 20
    assert place.key == position(marked.replace("»", ""), marked.index("«"))
    assert place.value == position(marked.replace("«", ""), marked.replace("«", "").index("»"))


def test_tables_and_items():
    places = locate('[[sweep]]\na = [1,\n  "x"]\n[[sweep]]\n[sweep.b]\n[data.x]\n[data]\n').known
    assert {path: tuple(map(tuple, place)) for path, place in places.items()} == {
        (): ((1, 1), (1, 1)),
        ("sweep",): ((1, 3), (1, 1)),
        ("sweep", 0): ((1, 3), (1, 1)),
        ("sweep", 0, "a"): ((2, 1), (2, 5)),
        ("sweep", 0, "a", 0): ((2, 6), (2, 6)),
        ("sweep", 0, "a", 1): ((3, 3), (3, 3)),
        ("sweep", 1): ((4, 3), (4, 1)),
        ("sweep", 1, "b"): ((5, 8), (5, 1)),
        ("data",): ((6, 2), (7, 1)),  # mentioned first in line 6, its own header in line 7
        ("data", "x"): ((6, 7), (6, 1)),
    }


def test_what_is_not_there_is_sought_in_the_table_around_it():
    places = locate("\n[data.partition]\nkind = 'iid'")
    assert places.of(("data", "partition", "clients", 3)).value == (2, 1)
    assert places.of(("model", "name")).value == (1, 1)
    assert locate("").of(("seed",)).key == (1, 1)


def test_statements_name_the_key_of_a_broken_line():
    places = locate("a = 1 # c\n[b]\nc = [1,\n2 oops\nd = 4")
    assert places.statement_at(Position(1, 3)) == ("a",)
    assert places.statement_at(Position(2, 4)) == ("b",)
    assert places.statement_at(Position(4, 3)) == ("b", "c")
    assert locate("\n\n a = 1").statement_at(Position(2, 1)) == ()


@given(tables, st.randoms(use_true_random=False))
@examples(300, 5_000)
def test_every_key_of_a_random_document_is_found_exactly(table, chance: random.Random):
    document = Writer(table, chance)
    assert tomllib.loads(document.text) == table
    found = {path: tuple(map(tuple, place)) for path, place in locate(document.text).known.items() if path}
    assert found == document.places()


@given(st.text(st.sampled_from("ab=.[]{}\"',#\\ \n1")) | st.text())
@examples(300, 5_000)
def test_any_text_is_survived(text):
    for path, (key, value) in locate(text).known.items():
        assert all(1 <= place.line <= text.count("\n") + 1 and place.column >= 1 for place in (key, value)), path


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("\n" + "a." * DEEPEST + "b = 1", (2, 2 * DEEPEST + 1)),
        ("a = " + "[" * 100_000, (1, 5 + DEEPEST)),
        ("a = " + "{b=" * 100_000, (1, 5 + 3 * DEEPEST)),
        ("x = 1\na = " + "9" * 5000, (2, 5)),
        ("a = 0x" + "f" * 5000, (1, 5)),
    ],
    ids=["dots", "arrays", "inline tables", "long number", "long hexadecimal"],
)
def test_texts_that_only_an_enemy_writes(text, where):
    with pytest.raises(ArgumentError) as error:
        locate(text, "file")
    assert str(error.value).startswith(f"file:{where[0]}:{where[1]}: ")
