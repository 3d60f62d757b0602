"""The CSV form of posterior files: what is read, and the line and column that every other file gets."""

from __future__ import annotations

import csv
import io
import re
import time

import numpy as np
import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

from fedrela.data.posteriors import encode_columns, read_posteriors
from fedrela.errors import ArgumentError, DataError
from helpers.batteries import examples


def put(folder, content: str | bytes):
    path = folder / "p.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


GOOD = {
    "names": ("cat,dog,label\n0.75,0.25,cat\n0.5,0.5,dog\n", ("cat", "dog"), True, [2, 3]),
    "ids": ("cat,dog,label\n0.75,0.25,0\n0.5,0.5,1\n", ("cat", "dog"), False, [2, 3]),
    "no header": ("0.75,0.25,0\n0.5,0.5,1\n", ("0", "1"), True, [1, 2]),
    "numbers as savetxt writes them": ("7.5e-01,0.25,0.000e+00\n.5,+5e-1,1.0e+00\n", ("0", "1"), False, [1, 2]),
    "label first": ("Label,cat,dog\ncat,0.75,0.25\ndog,0.5,0.5\n", ("cat", "dog"), True, [2, 3]),
    "label inside": ("cat,TARGET,dog\n0.75,cat,0.25\n0.5,dog,0.5\n", ("cat", "dog"), True, [2, 3]),
    "another name, last": ("cat,dog,Befund\n0.75,0.25,cat\n0.5,0.5,dog\n", ("cat", "dog"), True, [2, 3]),
    "label before class": ("class,y,label\n0.75,0.25,class\n0.5,0.5,y\n", ("class", "y"), True, [2, 3]),
    "names that are numbers win": ("1,0,label\n0.75,0.25,1\n0.5,0.5,0\n", ("1", "0"), True, [2, 3]),
    "byte order mark, CRLF, blank lines": (
        "\ufeffcat,dog,label\r\n\r\n0.75,0.25,cat\r\n  \r\n0.5,0.5,dog\r\n\r\n", ("cat", "dog"), True, [3, 5],
    ),
    "old Mac lines": ("cat,dog,label\r0.75,0.25,cat\r0.5,0.5,dog", ("cat", "dog"), True, [2, 3]),
    "quotes and blanks": (
        '"a ""cat"", big", dog , label\n"0.75", "0.25","a ""cat"", big"\n 0.5 ,0.5, dog\n',
        ('a "cat", big', "dog"), True, [2, 3],
    ),
    "an index from pandas": (",cat,dog,label\n7,0.75,0.25,cat\n3,0.5,0.5,dog\n", ("cat", "dog"), True, [2, 3]),
    "an id": ("cat,ID,dog,label\n0.75,p1,0.25,cat\n0.5,p2,0.5,dog\n", ("cat", "dog"), True, [2, 3]),
    "a name of two lines": ('"c\nat",dog,label\n0.75,0.25,"c\nat"\n0.5,0.5,dog\n', ("c\nat", "dog"), True, [3, 5]),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_csv_forms(tmp_path, case):
    text, names, as_names, lines = GOOD[case]
    data = read_posteriors(put(tmp_path, text))
    assert data.posterior.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert data.labels.tolist() == [0, 1]
    assert (data.class_names, data.lines.tolist()) == (names, lines)
    assert [int(float(label)) for label in data.written] == [0, 1] if not as_names else data.written == names
    assert data.place(1) == f"{tmp_path}/p.csv:{lines[1]}"


@pytest.mark.parametrize(
    ("header", "labels", "found"),
    [("1,2,3", "1.0 2.0 1.0", [0, 1, 0]), ("1,0", "1.0 0.0 0", [0, 1, 1]), ("0,1", "1.0 0.0 1", [1, 0, 1])],
)
def test_classes_named_by_numbers_are_found_by_value(tmp_path, header, labels, found):
    rows = [",".join(["0.5"] + ["0.25"] * (header.count(",")) + [label]) for label in labels.split()]
    data = read_posteriors(put(tmp_path, "\n".join([f"{header},label", *rows, ""])))
    assert data.labels.tolist() == found
    written = dict(zip(reversed(found), reversed(labels.split()), strict=True))
    assert data.written == tuple(written.get(c, f"{name}.0") for c, name in enumerate(header.split(",")))


@pytest.mark.parametrize(
    ("header", "labels"), [("p_0,p_1,p_10,p_2", "2 0"), ("p1,p2,p3", "1 2"), ("q_1,q_0", "0 1"), ("p1,p2,p3", "01 2.0")]
)
def test_columns_with_numbers_in_another_order_need_a_prefix(tmp_path, header, labels):
    rows = ["0.5,0.5" + ",0" * (header.count(",") - 1) + f",{label}" for label in labels.split()]
    file = put(tmp_path, "\n".join([f"{header},label", *rows, ""]))
    prefix = header[: 1 + header.startswith(("p_", "q_"))]
    with pytest.raises(DataError, match=rf"p\.csv:1:1: the first class is .* --prefix {prefix} reads these as the num"):
        read_posteriors(file)
    data = read_posteriors(file, prefix=prefix)
    assert [int(data.class_names[c]) for c in data.labels] == [int(float(label)) for label in labels.split()]
    if "10" not in header:
        given = read_posteriors(put(tmp_path, file.read_text()), classes=tuple(header.split(",")))
        assert given.labels.tolist() == [int(float(label)) for label in labels.split()]


def test_labels_from_0_beside_columns_from_1_are_positions(tmp_path):
    data = read_posteriors(put(tmp_path, "p1,p2,label\n0.5,0.5,0\n0.5,0.5,1\n"))
    assert data.labels.tolist() == [0, 1]


def test_a_number_that_names_no_class_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"got '0\.0'"):
        read_posteriors(put(tmp_path, "1,2,label\n0.5,0.5,0.0\n0.5,0.5,1.0\n"))


def test_numbers_that_are_no_probabilities_come_through(tmp_path):
    data = read_posteriors(put(tmp_path, "nan,inf,0\n-1,1e999,1\n"))
    assert np.isnan(data.posterior[0, 0])
    assert data.posterior[1].tolist() == [-1.0, np.inf]


def test_a_header_alone_is_an_empty_table(tmp_path):
    data = read_posteriors(put(tmp_path, "a,b,label\n"))
    assert data.posterior.shape == (0, 2)
    assert (data.labels.size, data.ids) == (0, ())


@pytest.mark.parametrize(("wanted", "text"), [("truth", "a,truth,b\n"), ("1", "a,truth,b\n"), ("1", "")])
def test_the_label_column_by_name_or_number(tmp_path, wanted, text):
    data = read_posteriors(put(tmp_path, text + "0.75,0,0.25\n"), label_column=wanted)
    assert (data.posterior.tolist(), data.labels.tolist()) == ([[0.75, 0.25]], [0])
    assert data.class_names == (("a", "b") if text else ("0", "1"))


@pytest.mark.parametrize(
    ("wanted", "text", "said"),
    [
        ("turth", "a,truth,b\n", "no column 'turth'; nearest: 'truth'"),
        ("3", "a,truth,b\n", "no column '3'"),
        ("x", "a,x,x\n", "2 columns 'x'; give a number"),
        ("label", "", "has no header: expected a number from 0 to 2, got 'label'"),
        ("-1", "", "has no header: expected a number from 0 to 2, got '-1'"),
        ("9" * 5000, "", "no header"),
    ],
)
def test_a_label_column_that_is_not_there(tmp_path, wanted, text, said):
    with pytest.raises(ArgumentError, match=said):
        read_posteriors(put(tmp_path, text + "0.75,0,0.25\n"), label_column=wanted)


HEAD = "cat,dog,label\n0.5,0.5,cat\n"
BAD = {
    "empty": ("", "1:1: expected at least two probability columns and a label column, got 0 columns"),
    "blank": ("\n \n\r\n", "1:1: expected at least two"),
    "one column": ("a\n1\n", "1:2: expected at least two probability columns and a label column, got 1 column"),
    "two columns": ("a,label\n1,a\n", "1:3: expected at least two"),
    "semicolons": ("\na;b;label\n1;0;a\n", "2:2: expected at least two probability columns and a label "
                   "column, got 1 column; is the separator a comma?"),
    "short row": (HEAD + "\n0.5,0.5\n", "4:3: expected 3 columns, got 2"),
    "long row": (HEAD + "0.5,0.5,cat,dog,cat\n", "3:4: expected 3 columns, got 5"),
    "short row without header": ("0.5,0.5,0\n1\n", "2:2: expected 3 columns, got 1"),
    "word": (HEAD + "0.5,half,cat\n", "3:2: expected the probability of class 'dog', got 'half'"),
    "empty cell": (HEAD + ",1,cat\n", "3:1: expected the probability of class 'cat', got ''"),
    "underscore": (HEAD + "0.5,1_0,cat\n", "3:2: expected the probability of class 'dog', got '1_0'"),
    "after the label": ("y,cat,dog\ncat,1,x\n", "2:3: expected the probability of class 'dog', got 'x' "
                        "(the label column is 1)"),
    "hexadecimal": ("0.5,0.5,0\n0x1,0.5,0\n", "2:1: expected the probability of class '0', got '0x1'"),
    "unknown label": (HEAD + "0.5,0.5,Dgo\n", "3:3: expected a class name or a number from 0 to 1, "
                      "got 'Dgo'; nearest: 'dog'"),
    "empty label": (HEAD + "0.5,0.5,\n", "3:3: expected a class name or a number from 0 to 1, got ''"),
    "id too large": ("0.5,0.5,0\n0.5,0.5,2\n", "2:3: expected a class name or a number from 0 to 1, got '2'"),
    "negative id": ("0.5,0.5,-1\n", "1:3: expected a class name or a number from 0 to 1, got '-1'"),
    "half id": ("0.5,0.5,0.5\n", "1:3: expected a class name or a number from 0 to 1, got '0.5'"),
    "endless id": ("0.5,0.5,inf\n", "1:3: expected a class name or a number from 0 to 1, got 'inf'"),
    "names and ids": ("cat,dog,y\n1,0,0\n1,0,dog\n1,0,1\n", "3:3: label 'dog' is a class name but others are class "
                      "numbers; use one kind"),
    "duplicate class": ("cat,dog,cat,label\n", "1:3: class 'cat' is already column 1"),
    "a nameless column": ("cat,,dog,label\n1,0,0,cat\n", "1:2: a column without a name; --ignore leaves a column out"),
    "an id twice": ("id,cat,dog,label\na,1,0,cat\nb,1,0,cat\na,1,0,cat\n", "4:1: duplicate id 'a'; --ignore"),
    "an empty id": (",cat,dog,label\n,1,0,cat\n", "2:1: an empty id; --ignore leaves the column out"),
    "a column of words": ("cat,dog,ward,label\n1,0,East,cat\n", "2:3: expected the probability of class 'ward', got "
                          "'East' (the label column is 4); --ignore leaves a column out, --id makes it the row's id"),
    "a prefix": ("p_cat,p_dog,label\n1,0,cat\n", "2:3: expected a class name or a number from 0 to 1, got 'cat'; "
                 "--prefix p_ makes class 'cat' of column 'p_cat'"),
    "a number": ("cat,age,dog,label\n0.75,61,0.25,cat\n0.5,48,0.5,dog\n", "1:2: 'age' is not a class "
                 "probability: the rows already sum to 1 without it; --ignore leaves a column out, --id makes it the "
                 "row's id, --classes or --prefix says which columns are classes"),
    "several": ("age,cat,loss,dog,label\n61,0.75,0.01,0.25,cat\n48,0.5,0.02,0.5,cat\n", "1:1: 'age' and 'loss' are "
                "not class probabilities: the rows already sum to 1 without them"),
    "class numbers": ("cat,dog,loss,label\n0.75,0.25,0.01,0\n0.5,0.5,0.02,1\n", "1:3: 'loss' is not a class"),
    "without a header": ("0.75,0.25,61,0\n0.5,0.5,48,1\n", "1:3: '2' is not a class probability"),
    "two label columns": ("Label,cat,label,dog\n", "1:3: a second column 'label'; choose one with label_column"),
    "a word in the first row": ("0.25,O.75,0\n0.5,0.5,1\n", "1:1: '0.25' as a class name looks like a probability"),
    "not UTF-8": (b"cat,dog,label\n1,0,\"c,\xe4t\"\n", "2:3: byte 0xe4 is not text in UTF-8; save the file as UTF-8"),
    "not UTF-8 after a mark": (b"\xef\xbb\xbfcat,d\xffg,label\n", "1:2: byte 0xff is not text in UTF-8"),
    "UTF-16": ("cat,dog,label\n".encode("utf-16"), "1:1: byte 0xff is not text in UTF-8"),
    "NUL": (b"cat,dog,label\r\n1,0,c\0t\r\n", "2:3: byte 0x00 is not text in UTF-8"),
    "NUL at a line's start": (b"cat,dog,label\n\x001,0,cat\n", "2:1: byte 0x00 is not text in UTF-8"),
    "open quote": (HEAD + '0.5,"0.5,cat\n1,0,cat\n', "3:2: unexpected end of data; quotes enclose a whole field"),
    "text after a quote": (HEAD + '0.5,0.5,"cat"s\n', "3:3: ',' expected after '\"'"),
    "text after a quote, first": (HEAD + '"0.5"5,0.5,cat\n', "3:1: ',' expected after '\"'"),
    "endless field": (HEAD + "0.5," + "5" * 200_000 + ",cat\n", "3:2: field larger than field limit"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_csv_errors_name_line_and_column(tmp_path, case):
    content, said = BAD[case]
    with pytest.raises(DataError) as caught:
        read_posteriors(put(tmp_path, content))
    assert str(caught.value).startswith(f"{tmp_path}/p.csv:{said}")
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("posteriors")


@examples(50, 2000)
@given(st.data())
def test_any_bytes_are_read_or_refused_in_one_line(place, data):
    mess = st.one_of(st.binary(max_size=60), st.text(',"\r\n 01.ab;_\0', max_size=60).map(str.encode))
    path = put(place, data.draw(st.sampled_from([b"", HEAD.encode()])) + data.draw(mess))
    try:
        found = read_posteriors(path)
    except DataError as error:
        line = str(error)
    else:
        line = ""
        assert found.posterior.shape == (len(found.labels), len(found.class_names))
    assert "\n" not in line


NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).map(str.strip)


@examples(50, 2000)
@given(data=st.data(), names=st.lists(NAME.filter(bool), min_size=2, max_size=6, unique=True))
def test_what_is_written_is_read(place, data, names):
    assume(not any(name.casefold() in ("label", "id", "ids", "index", "row_id") or is_number(name) for name in names))
    assume(not names[0].startswith("\ufeff"))  # at the start of a file it is the mark of the encoding
    C = len(names)
    rows = data.draw(st.lists(st.lists(st.floats(), min_size=C, max_size=C), max_size=8))
    labels = data.draw(st.lists(st.integers(0, C - 1), min_size=len(rows), max_size=len(rows)))
    as_names, label_at = data.draw(st.booleans()), data.draw(st.integers(0, C))
    text = io.StringIO(newline="")
    ending, quoting = data.draw(st.sampled_from([("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)]))
    writer = csv.writer(text, lineterminator=ending, quoting=quoting)
    for cells, label in zip([names, *rows], ["label", *(names[c] if as_names else c for c in labels)], strict=True):
        cells = [*map(str, cells)]
        writer.writerow([*cells[:label_at], label, *cells[label_at:]])
    try:
        found = read_posteriors(put(place, text.getvalue()))
    except DataError as error:  # rows that sum to 1 without one of them
        reject() if re.search("not (a )?class probabilit|is 0 in every row", str(error)) else None
        raise
    assert np.array_equal(found.posterior, np.array(rows).reshape(-1, C), equal_nan=True)
    assert (found.labels.tolist(), found.class_names) == (labels, tuple(names))
    assert found.written == tuple(names if as_names or not rows else map(str, range(C)))
    words = [found.written[c] for c in labels]
    written = encode_columns({"label": words, "x": np.arange(len(words)) / 7}, ".csv").decode()
    back = list(csv.reader(io.StringIO(written, newline="")))
    assert back == [["label", "x"], *([str(word), str(row / 7)] for row, word in enumerate(words))]


def is_number(name: str) -> bool:
    try:
        return bool(str(float(name)))
    except ValueError:
        return False


TABLE = "pid,age,p_cat,p_dog,p_owl,species,split\na1,61,0.75,0.125,0.125,cat,train\na2,48,0.25,0.5,0.25,dog,test\n"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"prefix": "p_", "label_column": "species"}, ("cat", "dog", "owl")),
        ({"prefix": "p_", "classes": ("owl", "cat", "dog"), "label_column": "5"}, ("owl", "cat", "dog")),
        ({"prefix": "p_", "ignore": ("age", "split")}, ("cat", "dog", "owl")),
    ],
)
def test_named_columns(tmp_path, options, names):
    data = read_posteriors(put(tmp_path, TABLE), id="pid", **options)
    assert (data.class_names, data.ids, data.written) == (names, ("a1", "a2"), names)
    assert [names[c] for c in data.labels] == ["cat", "dog"]
    assert data.posterior[:, names.index("cat")].tolist() == [0.75, 0.25]


def test_ignored_columns_leave_classes_of_their_own_name(tmp_path):
    text = TABLE.replace("p_", "").replace("species", "label")
    data = read_posteriors(put(tmp_path, text), id="0", ignore=("age", "split"))
    assert (data.class_names, data.ids) == (("cat", "dog", "owl"), ("a1", "a2"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"id": "pdi"}, "id: .* has no column 'pdi'; nearest: 'pid'"),
        ({"ignore": ("agee",)}, "ignore: .* has no column 'agee'; nearest: 'age'"),
        ({"prefix": "q_"}, "prefix: .* expected two columns or more that begin with 'q_', got 0"),
        ({"prefix": "p_", "classes": ("cat", "fox")}, "classes: .* has no column 'p_fox'"),
        ({"id": "species", "label_column": "species"}, "column 6 is the label"),
        ({"prefix": "p_", "ignore": ("age",)}, "label_column: .* the name of one of 'pid', 'species', 'split'"),
    ],
)
def test_columns_that_are_not_there(tmp_path, options, said):
    with pytest.raises(ArgumentError, match=said):
        read_posteriors(put(tmp_path, TABLE), **options)


def test_a_column_of_zeros_does_not_change_what_a_label_number_means(tmp_path):
    text = "flag,cat,dog,label\n0,0.75,0.25,0\n0,0.5,0.5,1\n"
    with pytest.raises(DataError, match=r"p.csv:1:1: 'flag' is 0 in every row, .*: is it a class\? --ignore leaves"):
        read_posteriors(put(tmp_path, text))
    assert read_posteriors(put(tmp_path, text), ignore=("flag",)).class_names == ("cat", "dog")
    assert read_posteriors(put(tmp_path, text), classes=("flag", "cat", "dog")).class_names == ("flag", "cat", "dog")
    by_name = text.replace(",0\n", ",cat\n").replace(",1\n", ",dog\n")
    assert read_posteriors(put(tmp_path, by_name)).labels.tolist() == [1, 2]


def test_classes_of_a_file_without_a_header(tmp_path):
    path = put(tmp_path, "0.75,0.25,0\n0.5,0.5,1\n")
    assert read_posteriors(path, classes=("cat", "dog")).class_names == ("cat", "dog")
    with pytest.raises(ArgumentError, match=r"classes: .* has 2 probability columns, got 1 class name"):
        read_posteriors(path, classes=("cat",))


@examples(50, 2000)
@example(C=3, n=9, digits=2, seed=12)  # every value of one column is what rounding added to its row
@given(st.integers(2, 6), st.integers(2, 40), st.sampled_from([2, 3, 16]), st.integers(0, 2**32 - 1))
def test_rounded_probabilities_are_no_stray_columns(place, C, n, digits, seed):
    """Not one column of a posterior is taken for something else, whatever its rounding and however rare its class."""
    rng = np.random.default_rng(seed)
    Q = rng.dirichlet(rng.choice([0.02, 0.5, 5.0], C), n).round(digits)
    rows = "".join(
        ",".join(map(str, [*row, label])) + "\n" for row, label in zip(Q, rng.integers(0, C, n), strict=True)
    )
    header = ",".join(f"c{c}" for c in range(C)) + ",label\n"
    assert np.array_equal(read_posteriors(put(place, header + rows)).posterior, Q)


def test_the_index_of_a_frame_is_left_out_where_ids_are_another_column(tmp_path):
    path = put(tmp_path, ",patient,cat,dog,label\n0,p7,0.75,0.25,cat\n1,p3,0.5,0.5,dog\n")
    data = read_posteriors(path, id="patient")
    assert (data.class_names, data.ids) == (("cat", "dog"), ("p7", "p3"))


def test_a_header_of_many_columns_is_refused_at_once(tmp_path):
    """Comparing every column with every other one would take minutes."""
    path = put(tmp_path, ",".join(map("c{}".format, range(200_000))) + ",label\n")
    before = time.process_time()
    with pytest.raises(DataError, match=r"expected 2 to 65536 probability columns, got 200000$"):
        read_posteriors(path)
    assert time.process_time() - before < 10
