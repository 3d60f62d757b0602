"""The ledger: both file forms, exact undo, and what it refuses to believe."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedrela
from fedrela.core import Provenance
from fedrela.core.ledger import MOVES, arrays_digest, labels_digest, record_digest, to_record
from fedrela.errors import ArgumentError, DataError, IntegrityError
from helpers.batteries import examples
from helpers.core_cases import make

CASE = make(120, 5, 0.2, 4, skew=1.5, skill=1.0, digits=None)
DONE = fedrela.relabel(CASE.Q, CASE.y.astype(np.uint8), tau=0.2, threshold=[1.0] * 5, seed=2)
LEDGER = DONE.ledger


@pytest.fixture(params=["json", "npz"])
def file(request, tmp_path):
    path = tmp_path / f"a.{request.param}"
    LEDGER.save(path)
    return path


def test_round_trip(file):
    back = fedrela.Ledger.load(file)
    assert len(back) == len(LEDGER) > 0
    assert back == LEDGER
    assert back.original.dtype == np.uint8
    np.testing.assert_array_equal(back.labels, DONE.labels)
    np.testing.assert_array_equal(fedrela.undo(file), CASE.y)


def test_equality():
    assert LEDGER != "ledger"
    assert changed(notes=("other",)) != LEDGER
    assert changed() == LEDGER


def test_both_forms_carry_the_same_digest(tmp_path):
    LEDGER.save(tmp_path / "a.json")
    LEDGER.save(tmp_path / "a.npz")
    read = json.loads((tmp_path / "a.json").read_text())
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert json.loads(arrays["record"].tobytes()) == {key: read[key] for key in read.keys() - {"moves", "labels"}}


def test_the_digest_of_a_record_is_that_of_canonical_json():
    """So files of earlier versions stay valid, and other programs can check them."""
    expected = hashlib.sha256(b'{"a":"\\u00e9","b":[1,0.5,null]}').hexdigest()
    assert record_digest({"b": [1, 0.5, None], "a": "é"}) == expected


def test_json_is_for_people():
    assert LEDGER.options["tau"] == 0.2
    assert LEDGER.options["threshold"] == [1.0] * 5
    assert LEDGER.options["spread"] == "sample"
    assert LEDGER.options["seed"] == 2
    assert fedrela.relabel(CASE.Q, CASE.y, uniforms=CASE.U).ledger.options["seed"] is None


def test_an_existing_file_is_kept(file):
    before = file.read_bytes()
    with pytest.raises(ArgumentError, match="exists already"):
        LEDGER.save(file)
    assert file.read_bytes() == before
    LEDGER.save(file, overwrite=True)
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_the_ledger_cannot_be_written_to():
    original = LEDGER.original.copy()
    made = changed(original=original)
    for name in ("original", *MOVES):
        with pytest.raises(ValueError, match="read-only"):
            getattr(made, name)[0] = 1
    original[0] += 1  # the caller's own array is not frozen, nor is it the ledger's
    assert made == LEDGER
    with pytest.raises(dataclasses.FrozenInstanceError):
        LEDGER.refusal = "x"


def test_class_names_travel_with_it(tmp_path):
    named = dataclasses.replace(LEDGER, class_names=tuple("abcde"))
    named.save(tmp_path / "a.npz")
    assert fedrela.Ledger.load(tmp_path / "a.npz").class_names == ("a", "b", "c", "d", "e")


def test_undo_of_nothing_it_knows():
    with pytest.raises(ArgumentError, match="ledger: expected a ledger or the path of one, got int"):
        fedrela.undo(3)


def test_undo_checks_the_labels_it_is_shown():
    np.testing.assert_array_equal(fedrela.undo(LEDGER, DONE.labels), CASE.y)
    np.testing.assert_array_equal(fedrela.undo(LEDGER, CASE.y), CASE.y)
    other = DONE.labels.copy()
    other[0] = (other[0] + 1) % 5
    for labels in (other, DONE.labels[:-1]):
        with pytest.raises(IntegrityError) as error:
            fedrela.undo(LEDGER, labels)
        assert str(error.value) == "ledger: it did not produce these labels; is it another client's ledger?"


@pytest.mark.parametrize("dtype", ["U", "O", np.dtypes.StringDType()])
def test_undo_answers_in_class_names_if_asked_in_class_names(dtype):
    names = np.array(["ant", "bee", "cat", "dog", "eel"], dtype)
    named = changed(class_names=tuple(names))
    for labels in (DONE.labels, CASE.y):
        assert fedrela.undo(named, names[labels]).tolist() == names[CASE.y].tolist()
        assert fedrela.undo(named, labels.astype(np.uint8)).tolist() == CASE.y.tolist()
    with pytest.raises(IntegrityError, match="it did not produce these labels"):
        fedrela.undo(named, names[CASE.y[::-1]])
    with pytest.raises(IntegrityError, match="it did not produce these labels"):
        fedrela.undo(LEDGER, names[DONE.labels])


def changed(**fields):
    return dataclasses.replace(LEDGER, **fields)


UNORDERED, UNMOVED = "its sample indices are not ascending or out of range", "a move does not end in another class"


@pytest.mark.parametrize(
    ("ledger", "message"),
    [
        (changed(original=LEDGER.original[::-1]), "the original labels do not match their digest"),
        (changed(index=LEDGER.index[:-1]), "its columns differ in length"),
        (changed(index=LEDGER.index[::-1]), UNORDERED),
        (changed(index=LEDGER.index + 1000), UNORDERED),
        (changed(index=np.r_[LEDGER.index[:-1], LEDGER.original.size]), UNORDERED),
        (changed(index=np.r_[LEDGER.index[0], LEDGER.index[:-1]]), UNORDERED),
        (changed(new=np.r_[LEDGER.new[:-1], LEDGER.num_classes]), UNMOVED),
        (changed(index=LEDGER.index - 1000), UNORDERED),
        (changed(old=LEDGER.new), "a move does not start from the sample's original label"),
        (changed(new=LEDGER.old), UNMOVED),
        (changed(new=LEDGER.new + 5), UNMOVED),
        (changed(new=LEDGER.new - 5), UNMOVED),
    ],
)
def test_contradictions_are_integrity_errors(ledger, message):
    with pytest.raises(IntegrityError) as error:
        fedrela.undo(ledger)
    assert (str(error.value), error.value.exit_code) == (f"ledger: {message}", 4)


def test_a_changed_file_is_noticed(file):
    if file.suffix == ".json":
        text = file.read_text()
        file.write_text(text.replace('"rho": [0.', '"rho": [1.', 1))
    else:
        with np.load(file) as arrays:
            forged = dict(arrays)
        forged["rho"] = forged["rho"] * 0.5
        np.savez(file, **forged)
    with pytest.raises(IntegrityError, match="does not match its digest"):
        fedrela.Ledger.load(file)


@pytest.mark.parametrize("header", ["{'descr': (", "{'descr': '|O'}", "0" * 90, "{'descr': '<i8', 'shape': (10**15,)}"])
def test_hostile_array_headers(tmp_path, header):
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name in ("record", "labels", "index"):
            archive.writestr(f"{name}.npy", member)
    with pytest.raises(IntegrityError, match="not a ledger"):
        fedrela.Ledger.load(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", ["json", "npz"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\x80\x04N.", b"PK\x03\x04", b'{"sha256": 3}'])
def test_what_is_no_ledger(tmp_path, suffix, content):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match="not a ledger"):
        fedrela.Ledger.load(path)


def test_sound_digest_over_an_unsound_record(tmp_path):
    """Whoever rewrites the digest as well still meets the ledger's own checks."""
    from fedrela.core import ledger as ledger_module

    for key, value in (
        ("class_names", 3),
        ("labels", [0, 1]),
        ("moves", {}),
        ("dtype", "nonsense"),
        ("num_classes", "x"),
        ("notes", 3),
    ):
        record = ledger_module.to_record(LEDGER) | {key: value}
        record["sha256"] = ledger_module.record_digest(record)
        path = tmp_path / f"{key}.json"
        path.write_text(json.dumps(record))
        with pytest.raises(IntegrityError, match="not a sound ledger"):
            fedrela.Ledger.load(path)


def forged(folder, **fields):
    """A file of other fields with a digest that fits."""
    record = to_record(NAMED) | fields
    path = folder / "forged.json"
    path.write_text(json.dumps(record | {"sha256": record_digest(record)}))
    return path


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"num_classes": 10**9}, "num_classes: expected an integer from 1 to 65536, got 1000000000"),
        ({"num_classes": 5.0}, "num_classes: expected an integer from 1 to 65536, got 5.0"),
        ({"num_classes": True}, "num_classes: expected an integer from 1 to 65536, got true"),
        ({"num_classes": 0}, "num_classes: expected an integer from 1 to 65536, got 0"),
        ({"num_classes": 4, "moves": {name: [] for name in MOVES}}, "ledger: a label is not one of its 4 classes"),
        ({"ids": "abc"}, "ids: expected a list of texts, got 'abc'"),
        ({"class_names": ["a"]}, "class_names: expected 5 or none, got 1"),
        ({"class_names": ["a", 1, 2, 3, 4]}, "class_names: expected a list of texts, got a list"),
        ({"notes": "abc"}, "notes: expected a list of texts, got 'abc'"),
        ({"refusal": 5}, "refusal: expected a text or null, got 5"),
        ({"labels_sha256": 3}, "labels_sha256: expected a text, got 3"),
        ({"dtype": "<f8"}, "dtype: expected that of integers, got '<f8'"),
        ({"dtype": "|O"}, "dtype: expected that of integers, got '|O'"),
        ({"options": [1]}, "options: expected a table, got a list"),
        ({"options": {"forbidden": 5}}, "options.forbidden: expected pairs of classes below 5, got 5"),
        ({"options": {"forbidden": [[99, 1]]}}, "options.forbidden: expected pairs of classes below 5, got a list"),
        ({"options": {"ineligible": "x"}}, "options.ineligible: expected an integer from 0 to 120, got 'x'"),
        ({"options": {"ineligible": 121}}, "options.ineligible: expected an integer from 0 to 120, got 121"),
        ({"options": {"ineligible_rows": [120]}}, "options.ineligible_rows: expected rows below 120, got a list"),
        ({"options": {"client": 1}}, "options: expected client, experiment and round, got a list"),
        ({"provenance": {"limits": [1]}}, "provenance.limits: expected a table, got a list"),
        (
            {"provenance": {"limits": {"class_tau": [1]}}},
            "provenance.limits.class_tau: expected a table of numbers, got a list",
        ),
        (
            {"provenance": {"limits": {"class_tau": {"a": "x"}}}},
            "provenance.limits.class_tau: expected a table of numbers, got a table",
        ),
        ({"provenance": {"agreement": "x"}}, "provenance.agreement: expected a number or null, got 'x'"),
        ({"provenance": {"version": 3}}, "provenance.version: expected a text or null, got 3"),
    ],
)
def test_a_field_of_another_type_is_named(tmp_path, fields, said):
    path = forged(tmp_path, **fields)
    with pytest.raises(IntegrityError) as error:
        fedrela.Ledger.load(path)
    assert str(error.value) == f"{path}: not a sound ledger: {said}"


@pytest.mark.parametrize(("samples", "classes"), [(0, 2), (3, 1)])
def test_the_ledger_of_no_sample_or_one_class_comes_back(tmp_path, samples, classes):
    ledger = fedrela.relabel(np.full((samples, classes), 1 / classes), np.zeros(samples, int)).ledger
    for each in (ledger, dataclasses.replace(ledger, options={})):
        each.save(tmp_path / "a.json", overwrite=True)
        assert fedrela.Ledger.load(tmp_path / "a.json") == each


def test_a_ledger_that_no_reader_would_read_is_not_written(tmp_path):
    with pytest.raises(ArgumentError, match=r"a\.json: expected at most 65536 classes, got 65537$"):
        changed(num_classes=2**16 + 1).save(tmp_path / "a.json")
    changed(num_classes=2**16).save(tmp_path / "a.json")
    assert fedrela.Ledger.load(tmp_path / "a.json").num_classes == 2**16


def test_numbers_as_names_and_ids(tmp_path):
    ledger = fedrela.relabel(CASE.Q, CASE.y, class_names=[3, 4, 5, 6, 7], ids=list(range(120))).ledger
    ledger.save(tmp_path / "a.json")
    assert fedrela.Ledger.load(tmp_path / "a.json") == ledger


def test_a_refused_ledger_keeps_labels_of_no_class(tmp_path):
    ledger = fedrela.relabel(CASE.Q, CASE.y + 3).ledger
    assert ledger.refusal
    ledger.save(tmp_path / "a.json")
    np.testing.assert_array_equal(fedrela.undo(tmp_path / "a.json"), CASE.y + 3)


def test_missing_file_and_wrong_ending(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        fedrela.Ledger.load(tmp_path / "none.json")
    for call in (LEDGER.save, fedrela.Ledger.load):
        with pytest.raises(ArgumentError, match=r"\.json or \.npz"):
            call(tmp_path / "a.pkl")


def test_a_link_is_not_followed(tmp_path):
    LEDGER.save(tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    with pytest.raises(DataError) as error:
        fedrela.Ledger.load(tmp_path / "b.json")
    assert str(error.value) == f"{tmp_path / 'b.json'}: cannot be read: a link; name the file itself"


@examples(150, 5000)
@given(st.data(), st.sampled_from(["json", "npz"]))
def test_damage_is_never_believed(tmp_path_factory, data, suffix):
    """Any flipped bit or cut gives the same ledger or an integrity error, never another ledger."""
    path = tmp_path_factory.mktemp("damage") / f"a.{suffix}"
    LEDGER.save(path)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path.write_bytes(content)
    with contextlib.suppress(IntegrityError):
        assert fedrela.Ledger.load(path) == LEDGER


WHERE_FROM = Provenance(
    version="0.1.0", seed=2, preset="paper", limits={"max_fraction": 0.3, "forbidden": [[3, 0]]}, policy_sha256="ab",
    model_sha256=arrays_digest({"w": np.ones(3)}), inputs_sha256="cd", agreement=0.75,
)  # fmt: skip
NAMED = changed(ids=tuple(f"p{row:03}" for row in range(LEDGER.original.size)), provenance=WHERE_FROM)


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_ids_and_provenance_travel_with_it(tmp_path, suffix):
    NAMED.save(tmp_path / f"a.{suffix}")
    back = fedrela.Ledger.load(tmp_path / f"a.{suffix}")
    assert back == NAMED != LEDGER
    assert (back.ids, back.provenance) == (NAMED.ids, WHERE_FROM)


def test_a_ledger_without_them_has_no_such_keys():
    """So the bytes of a run folder's ledgers stay as they were."""
    assert not {"ids", "provenance"} & to_record(LEDGER).keys()


@pytest.mark.parametrize("ids", [NAMED.ids[1:], (*NAMED.ids[1:], NAMED.ids[1])])
def test_ids_are_one_per_label_and_different(ids):
    with pytest.raises(IntegrityError, match=r"^ledger: its row ids are not one per label, all distinct$"):
        changed(ids=ids).check()


@given(st.permutations(range(LEDGER.original.size)))
@examples(20, 500)
def test_a_ledger_follows_its_rows(order):
    ids = [NAMED.ids[row] for row in order]
    moved = NAMED.for_rows(ids)
    moved.check()
    np.testing.assert_array_equal(moved.original, LEDGER.original[list(order)])
    np.testing.assert_array_equal(moved.labels, LEDGER.labels[list(order)])
    assert {ids[i]: r for i, r in zip(moved.index, moved.rho, strict=True)} == {
        NAMED.ids[i]: r for i, r in zip(LEDGER.index, LEDGER.rho, strict=True)
    }
    assert moved.for_rows(NAMED.ids) == NAMED


@pytest.mark.parametrize(
    ("ledger", "ids", "said"),
    [
        (NAMED, ["p000"], "expected 120 rows, got 1 distinct"),
        (NAMED, [*NAMED.ids[:-1], "x"], "no row 'x'"),
        (NAMED, [*NAMED.ids[:-1], "p000"], "expected 120 rows, got 119 distinct"),
        (LEDGER, NAMED.ids, "it has no row ids"),
        (LEDGER, [], "it has no row ids"),
    ],
)
def test_other_rows_are_refused(ledger, ids, said):
    with pytest.raises(DataError, match=f"made for other rows: {said}"):
        ledger.for_rows(ids)


def test_the_digest_of_arrays_is_of_names_shapes_and_values_in_any_byte_order():
    a = np.arange(6, dtype=">i4")
    same = arrays_digest({"b": np.ones(2), "a": a})
    assert same == arrays_digest({"a": a.astype("<i4"), "b": np.ones(2)})
    others = ({"a": a.reshape(2, 3), "b": np.ones(2)}, {"a": a, "c": np.ones(2)}, {"a": a + 1, "b": np.ones(2)})
    assert same not in [arrays_digest(each) for each in others]


def test_the_digest_of_labels_does_not_depend_on_their_dtype():
    expected = hashlib.sha256(np.array([3, 0, 100], "<i8").tobytes()).hexdigest()
    for dtype in ("i1", "u1", ">i4", "<i8", ">u8"):
        assert labels_digest(np.array([3, 0, 100], dtype)) == expected
