"""`fedrela relabel FILE`: what it writes, what it refuses, and the way back."""

from __future__ import annotations

import csv
import os
import re

import numpy as np
import pytest

import fedrela

NAMES = ("healthy", "flu", "rare")


def column(path) -> list[str]:
    with open(path, newline="", encoding="utf-8") as file:
        return [row[0] for row in csv.reader(file)]


def flows(out: str) -> dict[tuple[str, str], int]:
    """The table of moves."""
    block = re.search(r"^from .*?\n(.*?)\n\n", out, re.DOTALL | re.MULTILINE)
    rows = [line.split() for line in block[1].splitlines() if not line.startswith("...")] if block else []
    return {(old, new): int(moves) for old, new, moves in rows}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("as_names", [True, False])
def test_csv_labels_come_back_as_they_came(run, clinic, header, as_names):
    path = clinic.csv(header=header, as_names=as_names and header, label="Klass")
    done = run("relabel", path, "--tau", "0.1", "--seed", "4")
    assert (done.code, done.err) == (0, "")
    expected = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1, seed=4)
    assert expected.moved.size > 5
    words = NAMES if as_names and header else ("0", "1", "2")
    wanted = (["Klass"] if header else []) + [words[label] for label in expected.labels]
    assert column(clinic.folder / "clinic.relabelled.csv") == wanted


def test_npz_keeps_the_dtype(run, clinic):
    done = run("relabel", clinic.npz(labels=clinic.labels.astype(np.uint8)), "--tau", "0.1")
    assert done.code == 0
    with np.load(clinic.folder / "clinic.relabelled.npz") as arrays:
        assert arrays.files == ["labels"]
        assert arrays["labels"].dtype == np.uint8
        assert np.array_equal(arrays["labels"], fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1).labels)


@pytest.mark.parametrize("form", ["json", "npz"])
def test_the_ledger_leads_back(run, clinic, form):
    done = run("relabel", clinic.csv(), "--tau", "0.1", "--ledger-format", form)
    ledger = clinic.folder / f"clinic.ledger.{form}"
    assert f'fedrela.undo("{ledger}")' in done.out
    assert np.array_equal(fedrela.undo(str(ledger)), clinic.labels)
    new = [NAMES.index(word) for word in column(clinic.folder / "clinic.relabelled.csv")[1:]]
    assert np.array_equal(fedrela.Ledger.load(ledger).labels, new)


def test_a_method_of_ones_own_has_its_parameters(run, clinic):
    own = ("--method", "helpers.own_parts:Swap", "--tau", 1, "--dry-run")
    every, some = (run("relabel", clinic.csv(), *own, "--params", f"every = {k}") for k in (1, 4))
    assert (every.code, some.code) == (0, 0)
    assert every.out != some.out
    assert (
        run("relabel", clinic.csv(), *own, "--params", "every").line()
        == "--params: expected NAME = VALUE, ..., got 'every'"
    )
    assert (
        "params: 'evry': unknown parameter; nearest: every"
        in run("relabel", clinic.csv(), *own, "--params", "evry=1").line()
    )


def test_csv_and_npz_of_the_same_data_give_the_same(run, clinic):
    runs = [run("relabel", make(), "--out", clinic.folder / make.__name__) for make in (clinic.csv, clinic.npz)]
    tables = [done.out.split("\n", 1)[1].split("labels  ")[0] for done in runs]
    assert tables[0] == tables[1]
    ledgers = [(clinic.folder / kind / "clinic.ledger.json").read_bytes() for kind in ("csv", "npz")]
    assert ledgers[0] == ledgers[1]


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_same_seed_same_bytes(run, clinic, kind):
    path = getattr(clinic, kind)()
    for folder, seed in (("one", 7), ("two", 7), ("three", 8)):
        run("relabel", path, "--tau", "0.2", "--seed", seed, "--out", clinic.folder / folder)
    for name in (f"clinic.relabelled.{kind}", "clinic.ledger.json"):
        one, two, three = ((clinic.folder / folder / name).read_bytes() for folder in ("one", "two", "three"))
        assert one == two
        assert one != three


def test_what_is_shown_is_what_happened(run, clinic):
    done = run("relabel", clinic.csv(), "--tau", "0.2", "--max-fraction", "0.1")
    ledger = fedrela.Ledger.load(clinic.folder / "clinic.ledger.json")
    flow = ledger.flow
    wanted = {(NAMES[a], NAMES[b]): flow[a, b] for a, b in np.argwhere(flow)}
    shown = flows(done.out)
    assert shown == wanted
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert f"moved {len(ledger)} of 190 labels ({len(ledger) / 190:.2%})" in done.out
    assert "note: cap reached" in done.out
    before, after = (np.bincount(labels, minlength=3) for labels in (ledger.original, ledger.labels))
    for name, b, a in zip(NAMES, before, after, strict=True):
        assert re.search(rf"^{name} +{b} +{a} +[+-]{abs(a - b)}$", done.out, re.MULTILINE)


def test_long_tables_are_cut_and_say_so(run, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), np.arange(62, 2, -2))
    np.savez(tmp_path / "many.npz", posterior=rng.dirichlet(np.ones(30), labels.size), labels=labels)
    done = run("relabel", tmp_path / "many.npz", "--tau", "0.2", "--dry-run")
    assert len(flows(done.out)) == 20
    assert re.search(r"^\.\.\. and \d+ more pairs of classes$", done.out, re.MULTILINE)
    assert "... and 10 more classes" in done.out


def test_nothing_moves_at_tau_0(run, clinic):
    done = run("relabel", clinic.csv(), "--tau", "0")
    assert "moved 0 of 190 labels (0.00%)" in done.out
    assert flows(done.out) == {}
    assert column(clinic.folder / "clinic.relabelled.csv")[1:] == [NAMES[label] for label in clinic.labels]


def test_dry_run_shows_the_same_and_writes_nothing(run, clinic):
    path = clinic.csv()
    dry = run("relabel", path, "--tau", "0.1", "--dry-run")
    assert dry.code == 0
    assert clinic.files() == {"clinic.csv"}
    wet = run("relabel", path, "--tau", "0.1")
    assert dry.out.replace("dry run: nothing was written\n", "") == wet.out.split("labels  ")[0]


@pytest.mark.parametrize("name", ["clinic.relabelled.csv", "clinic.ledger.json"])
def test_nothing_is_overwritten_without_force(run, clinic, name):
    path, old = clinic.csv(), clinic.folder / name
    old.write_text("precious")
    done = run("relabel", path)
    assert done.code == 2
    assert done.line() == f"{old}: exists already; --force overwrites it, --out chooses another folder"
    assert old.read_text() == "precious"
    assert clinic.files() == {"clinic.csv", name}
    assert run("relabel", path, "--dry-run").code == 0
    assert run("relabel", path, "--force").code == 0
    assert np.array_equal(fedrela.undo(clinic.folder / "clinic.ledger.json"), clinic.labels)
    assert len(column(clinic.folder / "clinic.relabelled.csv")) == 191


def test_a_link_that_leads_nowhere_is_not_written_through(run, clinic):
    os.symlink(clinic.folder / "elsewhere", clinic.folder / "clinic.ledger.json")
    assert run("relabel", clinic.csv()).code == 2
    assert not (clinic.folder / "elsewhere").exists()


def test_the_ledger_is_written_first(run, clinic, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fedrela.cli.relabel.write_bytes", full)
    done = run("relabel", clinic.csv())
    assert done.code == 2
    assert done.line().startswith(f"{clinic.folder}/clinic.relabelled.csv: cannot be written: No space left")
    assert clinic.files() == {"clinic.csv", "clinic.ledger.json"}


def test_out_must_be_a_folder(run, clinic):
    path = clinic.csv()
    done = run("relabel", path, "--out", path)
    assert (done.code, done.line()) == (2, f"--out: {path} is a file; expected a folder")


BAD_ROWS = {
    "not finite: row 41: column 1 is nan": (0.5, "nan", 0.5),
    "not finite: row 41: column 0 is inf": ("inf", "-inf", 1.0),
    "not normalised: row 41: column 2 is negative (-0.1)": (0.6, 0.5, -0.1),
    "not normalised: row 41: expected a sum of 1, got 6; if these are logits, take the softmax first": (1.0, 2.0, 3.0),
}


@pytest.mark.parametrize("reason", BAD_ROWS)
def test_a_refusal_has_code_3_the_row_and_the_line(run, clinic, reason):
    clinic.posterior[41] = BAD_ROWS[reason]
    for path, place in ((clinic.csv(), "clinic.csv:43"), (clinic.npz(), "clinic.npz")):
        done = run("relabel", path)
        assert done.code == 3
        assert done.line() == f"{clinic.folder}/{place}: refused: {reason}"
    assert clinic.files() == {"clinic.csv", "clinic.npz"}


def test_a_label_out_of_range_in_npz_is_refused(run, clinic):
    done = run("relabel", clinic.npz(labels=np.where(clinic.labels == 2, 3, clinic.labels)))
    assert done.code == 3
    first = int(np.argmax(clinic.labels == 2))
    assert f"refused: label out of range: row {first}: expected a label from 0 to 2, got 3" in done.line()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tau", "5"), "tau: expected a fraction from 0 to 1, got 5.0; the official code counts in per cent"),
        (("--preset", "papre"), "preset: expected one of paper, official, got 'papre'"),
        (("--spread", "wide"), "spread: expected one of sample, population"),
        (("--threshold", "lower"), "expected one of higher, order, linear, or z values, got 'lower'"),
        (("--threshold", "nan"), "expected finite numbers"),
        (("--target", "best"), "target: expected one of argmax, winner"),
        (("--normalize", "max"), "normalize: expected one of zscore, minmax, none"),
        (("--max-fraction", "30"), "max_fraction: expected a fraction from 0 to 1, got 30.0"),
        (("--ledger-format", "xml"), "--ledger-format: expected one of json, npz, got 'xml'"),
        (("--label-column", "lable"), "has no column 'lable'; nearest: 'label'"),
        (("--label-column", "7"), "has no column '7'"),
    ],
)
def test_wrong_options_have_code_2_and_write_nothing(run, clinic, arguments, said):
    done = run("relabel", clinic.csv(), *arguments)
    assert done.code == 2
    assert said in done.line()
    assert clinic.files() == {"clinic.csv"}


@pytest.mark.parametrize("name", ["data.txt", "data", "."])
def test_other_endings_have_code_2(run, tmp_path, name):
    done = run("relabel", tmp_path / name, "--out", tmp_path / "out")
    assert done.code == 2
    assert done.line().endswith("a posterior file ends in .csv or .npz")


def test_the_label_column_may_lie_anywhere(run, clinic):
    text = clinic.csv(label="diagnosis").read_text().splitlines()
    rows = [line.rsplit(",", 1) for line in text]
    moved = clinic.folder / "moved.csv"
    moved.write_text("".join(f"{label},{rest}\n" for rest, label in rows))
    outputs = [
        run("relabel", moved, "--label-column", "diagnosis", "--dry-run").out,
        run("relabel", moved, "--label-column", "0", "--dry-run").out,
        run("relabel", clinic.folder / "clinic.csv", "--dry-run").out.replace("clinic.csv", "moved.csv"),
    ]
    assert outputs[0] == outputs[1] == outputs[2]
    assert "moved" in outputs[0]


def test_label_column_is_for_csv(run, clinic):
    done = run("relabel", clinic.npz(), "--label-column", "0")
    assert done.code == 2
    assert "label_column is for .csv files" in done.line()


HOSTILE = ("\x1b[31mhot\x1b[0m", "[bold]flu[/] :smile:", "ra\nre\u202e")


def test_hostile_class_names_are_shown_inert_and_written_back_whole(run, clinic):
    done = run("relabel", clinic.csv(names=HOSTILE), "--tau", "0.2")
    assert (done.code, done.err) == (0, "")
    assert "\\x1b[31mhot\\x1b[0m" in done.out
    assert "[bold]flu[/] :smile:" in done.out
    assert "ra\\nre\\u202e" in done.out
    assert all(line.isprintable() for line in done.out.split("\n"))
    expected = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.2).labels
    assert column(clinic.folder / "clinic.relabelled.csv")[1:] == [HOSTILE[label] for label in expected]


def test_a_hostile_file_name_is_shown_inert_and_the_undo_line_still_works(run, clinic):
    path = clinic.csv(name='a"\x1b[2J[red]\\.csv')
    done = run("relabel", path)
    assert (done.code, done.err) == (0, "")
    assert all(line.isprintable() for line in done.out.split("\n"))
    call = re.search(r"^undo +(fedrela\.undo\(.*\)) returns", done.out, re.MULTILINE)[1]
    assert np.array_equal(eval(call, {"fedrela": fedrela}), clinic.labels)
    assert "\\x1b[2J[red]" in run("relabel", path).line()
