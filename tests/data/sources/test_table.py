"""Tables from CSV, .npy and .npz: numbers, categories, missing cells, clients, splits, and wrong files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.federation import Recipe, build_federation
from fedrela.data.partition.plan import PartitionPlan
from fedrela.data.sources import load
from fedrela.errors import ArgumentError, DataError, FedrelaError
from helpers.batteries import examples

GOOD = """age,colour,site,label
1,red,north,yes
2.5,blue,south,no
-3e2,red,north,yes
4,green,south,no
5,"blue",north,yes
6,red,south,no
"""


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="set.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def everything(source):
    """All rows of a source, training rows first."""
    return np.concatenate([source.x_train, source.x_test]), np.concatenate([source.y_train, source.y_test])


def test_numbers_stay_and_categories_get_a_column_a_value(csv_file):
    test = "age,colour,site,label\n7,red,north,no\n8,purple,east,yes\n"
    csv_file(test, "test.csv")
    source = load("csv", csv_file(GOOD), test_file="test.csv", ignore=["site"])
    assert source.feature_names == ("age", "colour=blue", "colour=green", "colour=red")
    assert source.numeric.tolist() == [True, False, False, False]
    assert source.x_train[:, 0].tolist() == [1, 2.5, -300, 4, 5, 6]
    assert source.x_train[:3, 1:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert source.x_test.tolist() == [[7, 0, 0, 1], [8, 0, 0, 0]]  # purple is no training category
    assert source.class_names == ("no", "yes")
    assert source.y_train.tolist() == [1, 0, 1, 0, 1, 0]
    assert source.name == "csv:set.csv"


def test_natural_clients_follow_the_training_rows(csv_file):
    source = load("csv", csv_file(GOOD), client="site", test_share=0.34)
    assert len(source.y_train) == len(source.client_train) == 4
    assert source.client_train.tolist() == [0 if y == 1 else 1 for y in source.y_train]
    assert not any(name.startswith("site") for name in source.feature_names)


def test_a_column_of_ids_names_the_rows_and_is_no_feature(csv_file):
    text = "who,x,y\n" + "\n".join(f"{i:03},{i},{'ab'[i % 2]}" for i in range(20))
    source = load("csv", csv_file(text), label="y", id="who", test_share=0.3)
    assert source.feature_names == ("x",)
    for ids, x in ((source.ids_train, source.x_train), (source.ids_test, source.x_test)):
        assert ids == tuple(f"{int(value):03}" for value in x[:, 0])
    assert (len(source.ids_train), len(source.ids_test)) == (14, 6)
    with pytest.raises(DataError, match=r":14: column 'who': '007' is also the id at .*:9$"):
        load("csv", csv_file(text.replace("012", "007")), label="y", id="who")
    with pytest.raises(DataError, match=r":5: column 'who': expected an id in every row"):
        load("csv", csv_file(text.replace("003,", ",")), label="y", id="who")
    assert load("csv", csv_file(text), label="y", ignore=["who"]).ids_train == ()


def test_the_split_is_stratified_and_addressed(csv_file):
    lines = [f"{i},{'abc'[i % 3]}" for i in range(300)]
    path = csv_file("x,label\n" + "\n".join(lines))
    one, two, other = load("csv", path), load("csv", path), load("csv", path, seed=1)
    assert np.bincount(one.y_test).tolist() == [20, 20, 20]
    assert np.array_equal(one.x_test, two.x_test)
    assert not np.array_equal(one.x_test, other.x_test)
    rows, labels = everything(one)
    assert sorted(rows[:, 0].tolist()) == list(range(300))
    assert (rows[:, 0] % 3 == labels).all()


def test_labels_that_are_numbers_are_sorted_as_numbers(csv_file):
    rows = "".join(f"{i},{10 - i % 2}\n{i},2\n" for i in range(6))
    assert load("csv", csv_file("x,label\n" + rows)).class_names == ("2", "9", "10")


def test_columns_by_position_without_header_and_with_other_delimiters(csv_file):
    path = csv_file("1;a\n2;b\n3;a\n4;b\n")
    source = load("csv", path, header=False, delimiter=";", label=-1, test_share=0.5)
    assert source.feature_names == ("0",)
    tabs = csv_file("x\tlabel\n1\ta\n2\tb\n3\ta\n4\tb\n", "set.tsv")
    assert load("csv", tabs).class_names == ("a", "b")


def test_a_typo_among_numbers_is_named_and_no_category(csv_file):
    rows = [f"{20 + i},{i % 7},{'yes' if i % 3 else 'no'}" for i in range(70)]
    rows[20] = "4O,1,yes"
    rows[44] = "64 kg,2,no"
    path = csv_file("\n".join(["age,dose,label", *rows]))
    with pytest.raises(DataError) as error:
        load("csv", path)
    assert str(error.value) == (
        f"{path}:22: column 'age': 2 of 70 cells are not numbers: '4O' at 22, '64 kg' at 46; "
        "correct them, or name the column in categories = ['age']"
    )
    assert len(load("csv", path, categories=["age"]).feature_names) > 50


@pytest.mark.parametrize(("column", "place"), [("label", 2), ("ward", 3)])
def test_a_typo_among_numbered_classes_or_clients_adds_none(csv_file, column, place):
    rows = [[str(i), str(i % 7), str(i % 3), str(i % 4)] for i in range(60)]
    rows[7][place] = rows[8][place] = "O"
    path = csv_file("\n".join(["age,dose,label,ward", *map(",".join, rows)]))
    with pytest.raises(DataError, match=rf":9: column '{column}': 2 of 60 cells are not numbers: 'O' at 9, 'O' at 10;"):
        load("csv", path, client="ward")
    named = load("csv", path, client="ward", categories=[column])
    assert (len(named.class_names), named.client_train.max()) == ((4, 3) if column == "label" else (3, 4))


def test_a_typo_in_a_short_table_is_no_category_either(csv_file):
    lines = ["age,label", *(f"{20 + i},{'ab'[i % 2]}" for i in range(8)), "4O,a"]
    with pytest.raises(DataError, match="1 of 9 cells are not numbers: '4O' at 10"):
        load("csv", csv_file("\n".join(lines)))
    mixed = ["stage,label", *(f"{x},{'ab'[i % 2]}" for i, x in enumerate("1122IIXX"))]
    assert all(name.startswith("stage=") for name in load("csv", csv_file("\n".join(mixed))).feature_names)


@pytest.mark.parametrize(("typos", "refused"), [(12, True), (49, True), (50, False), (80, False)])
def test_typos_are_refused_while_most_cells_are_numbers(csv_file, typos, refused):
    """Twelve typos among a hundred numbers would make sixty features of one."""
    cells = [f"{i % 60}o" if i < typos else str(i % 60) for i in range(100)]
    path = csv_file("\n".join(["age,label", *(f"{cell},{'ab'[i % 2]}" for i, cell in enumerate(cells))]))
    if refused:
        advice = r"correct them, or name the column in categories = \['age'\]$"
        with pytest.raises(DataError, match=rf"{typos} of 100 cells are not numbers: '0o' at 2, .* more; {advice}"):
            load("csv", path)
        return
    assert all(name.startswith("age=") for name in load("csv", path, max_categories=200).feature_names)


@pytest.mark.parametrize(
    "word", ["", "?", "-", "NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "none", "None"]
)
def test_words_for_a_missing_number_are_one(csv_file, word):
    cells = [word if i % 3 == 0 else str(i) for i in range(12)]
    path = csv_file("\n".join(["age,label", *(f"{cell},{'ab'[i % 2]}" for i, cell in enumerate(cells))]))
    with pytest.raises(DataError, match=r"set\.csv:2: column 'age': the cell is missing; fill it, or set missing to"):
        load("csv", path)
    assert load("csv", path, missing="indicate").feature_names == ("age", "age missing")
    with pytest.warns(UserWarning, match="left out"):
        assert len(everything(load("csv", path, missing="drop"))[0]) == 8


def test_the_same_words_may_be_categories(csv_file):
    cells = ["none", "mild", "-", "severe", "na", "2"]
    rows = [f"{cell},{'ab'[i % 2]}" for i, cell in enumerate(cells * 4)]
    names = tuple(f"pain={cell}" for cell in sorted(cells))
    assert load("csv", csv_file("\n".join(["pain,label", *rows]))).feature_names == names
    codes = [f"{'none' if i % 3 == 0 else i % 3},{'ab'[i % 2]}" for i in range(24)]
    source = load("csv", csv_file("\n".join(["pain,label", *codes])), categories=["pain"])
    assert source.feature_names == ("pain=1", "pain=2", "pain=none")


@pytest.mark.parametrize(("column", "place"), [("label", 1), ("ward", 2)])
def test_two_spellings_of_a_number_are_no_two_classes(csv_file, column, place):
    rows = [[str(i), str(i % 2), str(i % 2)] for i in range(9)]
    rows[5][place] = "1.0"
    path = csv_file("\n".join(["x,label,ward", *map(",".join, rows)]))
    with pytest.raises(DataError) as error:
        load("csv", path, client="ward")
    what = f"expected one spelling of a number, got '1' and, at {path}:7, '1.0'"
    assert str(error.value) == f"{path}:3: column '{column}': {what}"


@pytest.mark.parametrize("form", ["{},{}", "1,00{},00{}", "${}.{}", "{}{} %", "{} {}00"])
def test_numbers_with_commas_and_signs_are_no_categories(csv_file, form):
    text = "dose;label\n" + "".join(f"{form.format(i, i % 3)};{'ab'[i % 2]}\n" for i in range(9))
    with pytest.raises(DataError, match=r":2: column 'dose': .* is not a plain number; write plain numbers with decim"):
        load("csv", csv_file(text), delimiter=";")
    assert len(load("csv", csv_file(text), delimiter=";", categories=["dose"]).feature_names) > 5


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_the_index_of_a_frame_is_no_feature(csv_file, name):
    path = csv_file(f"{name},x,label\n" + "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(9)))
    with pytest.raises(
        DataError, match=r"looks like the index of a pandas DataFrame; leave it out with ignore = \[0\]"
    ):
        load("csv", path)
    assert load("csv", path, ignore=[0]).feature_names == ("x",)


def test_codes_that_look_like_numbers_are_categories_on_request(csv_file):
    source = load("csv", csv_file("zip,label\n10,a\n20,b\n10,a\n20,b\n"), categories=["zip"], test_share=0.5)
    assert source.feature_names == ("zip=10", "zip=20")
    assert source.numeric.tolist() == [False, False]


HOLES = "age,colour,label\n1,red,a\n,blue,b\n3,?,a\n4,red,b\n5,NA,a\n6,blue,b\n"


def test_a_missing_cell_is_an_error_with_line_and_column(csv_file):
    with pytest.raises(DataError, match=r"set\.csv:3: column 'age': the cell is missing"):
        load("csv", csv_file(HOLES))


def test_missing_cells_drop(csv_file):
    with pytest.warns(UserWarning, match=r"set\.csv: [23] of [56] rows left out, since cells are missing"):
        rows, _ = everything(load("csv", csv_file(HOLES), missing="drop", test_share=0.5))
    assert sorted(rows[:, 0].tolist()) == [1, 4, 6]


def test_missing_cells_indicate(csv_file):
    csv_file("age,colour,label\n7,,a\n", "test.csv")
    source = load("csv", csv_file(HOLES), missing="indicate", test_file="test.csv")
    assert source.feature_names == ("age", "age missing", "colour=blue", "colour=missing", "colour=red")
    assert source.numeric.tolist() == [True, False, False, False, False]
    mean = np.float32((1 + 3 + 4 + 5 + 6) / 5)
    assert source.x_train[:3].tolist() == [[1, 0, 0, 0, 1], [mean, 1, 1, 0, 0], [3, 0, 0, 1, 0]]
    assert source.x_test.tolist() == [[7, 0, 0, 1, 0]]


def test_a_missing_number_is_0_after_standardisation(csv_file):
    rng = np.random.default_rng(0)
    rows = [f"{'' if i % 4 == 1 else rng.normal(1000, 9):.5},{'ab'[i % 2]}" for i in range(80)]
    csv_file("\n".join(["x,label", ",b", "2000,a", ""]), "test.csv")
    path = csv_file("\n".join(["x,label", *rows, ""]))
    source = load("csv", path, missing="indicate", test_file="test.csv")
    federation = build_federation(source, Recipe(1, partition=PartitionPlan("iid", clients=4)))
    absent = source.x_train[:, 1] == 1
    assert absent.sum() == 20
    assert np.abs(federation.x_train[absent, 0]).max() < 1e-5
    assert np.abs(federation.x_train[~absent, 0]).min() > 1e-5
    assert abs(federation.x_test[0, 0]) < 1e-5


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_column_without_any_number_is_0(csv_file, share):
    path = csv_file("x,z,label\n" + "".join(f",{i},{'ab'[i % 2]}\n" for i in range(8)))
    x, _ = everything(load("csv", path, missing="indicate", test_share=share))
    assert (x[:, :2] == [0, 1]).all()


@pytest.mark.parametrize("rule", ["error", "drop", "indicate"])
def test_a_missing_label_or_client_is_always_an_error(csv_file, rule):
    with pytest.raises(DataError, match=r"set\.csv:3: column 'label'"):
        load("csv", csv_file("x,label\n1,a\n2,\n3,a\n"), missing=rule)
    with pytest.raises(DataError, match=r"set\.csv:2: column 'who'"):
        load("csv", csv_file("x,who,label\n1,,a\n2,b,b\n3,b,a\n4,b,b\n"), client="who", missing=rule)


WRONG_FILES = {
    "ragged": ("x,label\n1,a\n2\n", r"set\.csv:3: expected 2 columns as in the first line, got 1"),
    "too wide": ("x,label\n1,a,b\n", r"set\.csv:2: expected 2 columns"),
    "no row": ("x,label\n", "has no rows"),
    "empty": ("", "has no columns"),
    "name twice": ("x,x,label\n1,2,a\n", "two columns have the name 'x'"),
    "open quote": ('x,label\n"1,a\n', r"set\.csv:2:1: unexpected end of data"),
    "infinite": ("x,label\n1,a\ninf,b\n2,a\n", r"set\.csv:3: column 'x': inf is not finite"),
    "too large": ("x,label\n1,a\n1e39,b\n2,a\n", "not finite as a 32-bit number"),
    "typing mistake": (
        "x,label\n" + "".join(f"{i},a\n" for i in range(150)) + "1O,a\n",
        r"set\.csv:152: column 'x': 1 of 151 cells are not numbers: '1O' at 152;",
    ),
    "one of each class": ("x,label\n1,a\n2,b\n", "a class needs two samples"),
    "endless label": (f"x,label\n1,{'a' * 201}\n2,b\n", "longer than 200 characters"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_wrong_files(csv_file, case):
    text, message = WRONG_FILES[case]
    with pytest.raises(DataError, match=message) as caught:
        load("csv", csv_file(text))
    assert "\n" not in str(caught.value)


def test_wrong_options(csv_file):
    path = csv_file(GOOD)
    for options, message in (
        ({"label": "lable"}, "no column 'lable'; nearest: 'label'"),
        ({"label": 9}, "has 4 columns, got position 9"),
        ({"client": "who"}, "client: .* has no column 'who'"),
        ({"missing": "mean"}, "one of error, drop, indicate"),
        ({"test_share": 1.5}, "test_share: expected a number from 0 to 1, got 1.5"),
        ({"test_share": -0.1, "test_file": path.name}, "test_share: expected a number from 0 to 1, got -0.1"),
        ({"delimiter": ",,"}, "one character"),
        ({"seed": -3}, "seed: expected an integer >= 0, got -3"),
        ({"ignore": ["age", "colour", "site"]}, "no column is left"),
    ):
        with pytest.raises(ArgumentError, match=message):
            load("csv", path, **options)
    with pytest.raises(ArgumentError, match=r"expected a \.csv"):
        load("csv", csv_file(GOOD, "set.xlsx"))


@pytest.mark.parametrize(("mark", "name"), [(";", "set.csv"), ("\t", "set.csv"), ("|", "set.txt"), (",", "set.tsv")])
def test_another_delimiter_is_hinted_at(csv_file, mark, name):
    text = "".join(f"{mark.join(row)}\n" for row in (["a", "label"], *([str(i), "xy"[i % 2]] for i in range(8))))
    hint = re.escape(f"its only column is {f'a{mark}label'!r}: set the option delimiter to {mark!r}")
    with pytest.raises(ArgumentError, match=f"no column 'label'; {hint}$"):
        load("csv", csv_file(text, name))
    with pytest.raises(ArgumentError, match=f"no column is left as a feature; {hint}$"):
        load("csv", csv_file(text, name), label=0)
    assert load("csv", csv_file(text, name), delimiter=mark).class_names == ("x", "y")


def test_a_delimiter_is_hinted_at_beside_decimal_commas(csv_file):
    with pytest.raises(
        DataError, match=r"set\.csv:2: expected 1 columns .*, got 2; its only .* set the option delimiter to ';'"
    ):
        load("csv", csv_file("a;label\n1,5;x\n"))


def test_arrays_of_endless_columns_and_no_row(tmp_path):
    np.save(tmp_path / "set.npy", np.zeros((0, 10**15)))
    with pytest.raises(DataError, match="expected at least one value, got shape"):
        load("csv", tmp_path / "set.npy")


def test_a_test_file_must_fit(csv_file):
    path = csv_file(GOOD)
    csv_file("age,colour,label\n1,red,yes\n", "narrow.csv")
    with pytest.raises(DataError, match=r"narrow\.csv: its columns differ .* 'site' is in one only"):
        load("csv", path, test_file="narrow.csv")
    csv_file("age,colour,site,label\n1,red,north,maybe\n", "new.csv")
    with pytest.raises(DataError, match=r"new\.csv:2: class 'maybe' has no training sample"):
        load("csv", path, test_file="new.csv")
    csv_file("label,site,colour,age\nyes,north,red,9\n", "turned.csv")
    assert load("csv", path, test_file="turned.csv", ignore=["site", "colour"]).x_test.tolist() == [[9]]


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "set.csv").write_bytes(b"x,label\n\xff\xfe,a\n")
    with pytest.raises(DataError, match=r"set\.csv:2:1: byte 0xff is not text in UTF-8"):
        load("csv", tmp_path / "set.csv")


def test_npy_tables(tmp_path):
    table = np.column_stack([np.arange(10.0), np.arange(10) % 2 + 3])
    np.save(tmp_path / "set.npy", table)
    source = load("csv", tmp_path / "set.npy", label=-1)
    assert source.class_names == ("3", "4")
    assert source.feature_names == ("0",)
    table[3, 0] = np.nan
    np.save(tmp_path / "set.npy", table)
    with pytest.raises(DataError, match=r"set\.npy: row 3: column '0': the cell is missing"):
        load("csv", tmp_path / "set.npy", label=-1)
    table[:, 1] += 0.5
    np.save(tmp_path / "set.npy", table)
    with pytest.warns(UserWarning, match="1 of 10 rows left out"), pytest.raises(DataError, match=r"or text, got 3\.5"):
        load("csv", tmp_path / "set.npy", label=-1, missing="drop")


def test_npz_tables(tmp_path):
    arrays = {"x": np.arange(24.0).reshape(8, 3), "kind": np.array(["p", "q"] * 4), "who": np.arange(8) // 2}
    np.savez(tmp_path / "set.npz", **arrays, y=np.array(["no", "yes"] * 4))
    source = load("csv", tmp_path / "set.npz", label="y", client="who", test_share=0.25)
    assert source.feature_names == ("x.0", "x.1", "x.2", "kind=p", "kind=q")
    assert source.client_train.tolist() == [int(row[0]) // 6 for row in source.x_train]
    test = {"x": np.full((2, 3), 7), "kind": np.array([b"q", b"p"]), "who": [0, 0], "y": ["no", "yes"]}
    np.savez(tmp_path / "test.npz", **test)
    source = load("csv", tmp_path / "set.npz", label="y", client="who", test_file="test.npz")
    assert source.x_test.tolist() == [[7, 7, 7, 0, 1], [7, 7, 7, 1, 0]]
    np.savez(tmp_path / "test.npz", **test | {"kind": np.array([1, 2])})
    source = load("csv", tmp_path / "set.npz", label="y", client="who", test_file="test.npz")
    assert source.x_test[:, 3:].tolist() == [[0, 0], [0, 0]]
    np.savez(tmp_path / "set.npz", x=np.zeros((8, 3)), y=np.zeros(7))
    with pytest.raises(DataError, match="columns of one length"):
        load("csv", tmp_path / "set.npz", label="y")


def test_npz_tables_hold_tables_and_columns_only(tmp_path):
    np.savez(tmp_path / "set.npz", x=np.zeros((8, 3, 2)), y=np.zeros(8))
    with pytest.raises(DataError, match="x: expected a table or a column"):
        load("csv", tmp_path / "set.npz", label="y")


def test_every_row_dropped_and_too_many_codes(csv_file):
    with pytest.raises(DataError, match="every row has a missing cell"):
        load("csv", csv_file("x,label\n,a\n,b\n"), missing="drop")
    rows = "".join(f"{i},a\n" for i in range(12))
    with pytest.raises(DataError, match="12 different values, more than max_categories = 10"):
        load("csv", csv_file("x,label\n" + rows), categories=["x"], max_categories=10)


cells = st.text(st.characters(codec="utf-8"), max_size=6)


@given(rows=st.lists(st.lists(cells, min_size=0, max_size=4), max_size=6), header=st.booleans())
@examples(80, 3000)
def test_any_text_gives_a_source_or_one_line(tmp_path_factory, rows, header):
    path = tmp_path_factory.mktemp("csv") / "set.csv"
    path.write_text("\n".join(",".join(row) for row in rows), encoding="utf-8", newline="")
    try:
        source = load("csv", path, label=-1, header=header, missing="indicate", test_share=0.5)
    except FedrelaError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert np.isfinite(source.x_train).all()
        assert len(source.y_test)


def test_missing_codes_count_once(tmp_path):
    codes = np.arange(400) % 3 + 0.0
    codes[::2] = np.nan
    np.savez(tmp_path / "t.npz", code=codes, label=np.arange(400) % 2)
    source = load("csv", tmp_path, file="t.npz", label="label", categories=["code"], missing="indicate")
    assert sum(name.startswith("code=") for name in source.feature_names) <= 4


def test_timestamps_in_seconds_are_refused(csv_file):
    rows = [f"{1700000000 + second},{second % 2}" for second in range(60)]
    with pytest.raises(DataError, match="column 't': 32-bit numbers cannot tell its values apart"):
        load("csv", csv_file("\n".join(["t,label", *rows, ""])), label="label")


@pytest.mark.parametrize(("share", "sizes"), [(0, (6, 0)), (1, (0, 6)), (0.5, (4, 2))])
def test_a_share_of_0_or_1_counts_for_both_tables(csv_file, share, sizes):
    path = csv_file("x,label\n1,a\n2,b\n3,a\n4,b\n")
    path.with_name("more.csv").write_text("x,label\n5,a\n6,b\n")
    source = load("csv", path, test_file="more.csv", test_share=share)
    assert (len(source.y_train), len(source.y_test)) == sizes
