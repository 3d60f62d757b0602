"""`fedrela relabel FILE`: what it writes, what it refuses, and the way back."""

from __future__ import annotations

import csv
import os
import re
import sys

import numpy as np
import pytest

import fedrela
from fedrela.core.audit_log import AuditLog
from fedrela.text import percent

NAMES = ("healthy", "flu", "rare")


def column(path, name="new") -> list[str]:
    with open(path, newline="", encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file)]


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
    path = clinic.folder / "clinic.relabelled.csv"
    assert column(path) == [words[label] for label in expected.labels]
    assert column(path, "old") == [words[label] for label in clinic.labels]
    assert column(path, "id") == [str(row) for row in range(190)]
    moved = [row for row, said in enumerate(column(path, "moved")) if said == "true"]
    assert moved == expected.moved.tolist()
    of_new = clinic.posterior[np.arange(190), expected.labels]
    assert [float(cell) for cell in column(path, "posterior")] == of_new.tolist()
    assert [float(cell) for cell in column(path, "rho")] == expected.rho.max(axis=1).tolist()


def test_npz_keeps_the_dtype(run, clinic):
    done = run("relabel", clinic.npz(labels=clinic.labels.astype(np.uint8)), "--tau", "0.1")
    assert done.code == 0
    with np.load(clinic.folder / "clinic.relabelled.npz") as arrays:
        assert arrays.files == ["id", "old", "new", "moved", "posterior", "rho"]
        assert arrays["new"].dtype == arrays["old"].dtype == np.uint8
        assert np.array_equal(arrays["new"], fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1).labels)


@pytest.mark.parametrize("form", ["json", "npz"])
def test_the_ledger_leads_back(run, clinic, form):
    done = run("relabel", clinic.csv(), "--tau", "0.1", "--ledger-format", form)
    ledger = clinic.folder / f"clinic.ledger.{form}"
    assert f'fedrela ledger undo {ledger} --reason TEXT; in Python fedrela.undo("{ledger}") returns' in done.out
    assert np.array_equal(fedrela.undo(str(ledger)), clinic.labels)
    new = [NAMES.index(word) for word in column(clinic.folder / "clinic.relabelled.csv")]
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
        "params.evry: unknown parameter; nearest: every"
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
    assert f"moved {len(ledger)} of 190 labels ({percent(len(ledger) / 190, 2)})" in done.out
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
    assert "moved 0 of 190 labels (0.00 %)" in done.out
    assert flows(done.out) == {}
    assert column(clinic.folder / "clinic.relabelled.csv") == [NAMES[label] for label in clinic.labels]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tau", "0.005"), True),
        (("--tau", "0.5", "--class-tau", "0=0.005", "--class-tau", "1=0", "--class-tau", "2=0.005"), True),
        (("--tau", "0.005", "--method", "margin"), True),
        (("--tau", "0.005", "--class-tau", "2=0.1"), False),
        (("--tau", "0.005", "--threshold", "0.5"), False),
        (("--tau", "0.006"), False),
    ],
)
def test_a_tau_of_less_than_one_sample_is_said(run, clinic, options, said):
    done = run("relabel", clinic.csv(), *options)
    assert done.code == 0
    assert ("note: no label can move: tau 0.005 of 190 samples is less than one sample" in done.out) == said
    assert "no label can move" not in (clinic.folder / "clinic.ledger.json").read_text()
    if said:
        assert "moved 0 of 190 labels" in done.out


def test_several_rows_to_keep_are_given_one_by_one(run, clinic):
    for keep, end in (("3,5", "; several are listed one by one: repeat --keep"), ("p3", "'p3'")):
        refused = run("relabel", clinic.csv(), "--keep", keep)
        assert (refused.code, refused.line().endswith(end)) == (2, True)


def test_a_model_that_confirms_few_labels_is_warned_of(run, clinic):
    assert "warning" not in run("relabel", clinic.csv()).out
    clinic.posterior[:] = np.roll(clinic.posterior, 1, axis=1)
    assert "warning: the model agrees with" in run("relabel", clinic.csv(), "--force").out


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
    assert len(column(clinic.folder / "clinic.relabelled.csv")) == 190


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
    assert clinic.files() == {"clinic.csv", "clinic.ledger.json", "clinic.ledger.log"}


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
    assert done.line().endswith("a posterior file ends in .csv, .parquet or .npz")


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
    assert "label_column is for .csv and .parquet files" in done.line()


HOSTILE = ("\x1b[31mhot\x1b[0m", "[bold]flu[/] :smile:", "ra\nre\u202e")


def test_hostile_class_names_are_shown_inert_and_written_back_whole(run, clinic):
    done = run("relabel", clinic.csv(names=HOSTILE), "--tau", "0.2")
    assert (done.code, done.err) == (0, "")
    assert "\\x1b[31mhot\\x1b[0m" in done.out
    assert "[bold]flu[/] :smile:" in done.out
    assert "ra\\nre\\u202e" in done.out
    assert all(line.isprintable() for line in done.out.split("\n"))
    expected = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.2).labels
    assert column(clinic.folder / "clinic.relabelled.csv") == [HOSTILE[label] for label in expected]


def test_a_hostile_file_name_is_shown_inert_and_the_undo_line_still_works(run, clinic):
    path = clinic.csv(name='a"\x1b[2J[red]\\.csv')
    done = run("relabel", path)
    assert (done.code, done.err) == (0, "")
    assert all(line.isprintable() for line in done.out.split("\n"))
    call = re.search(r"^undo +(fedrela\.undo\(.*\)) returns", done.out, re.MULTILINE)[1]
    assert np.array_equal(eval(call, {"fedrela": fedrela}), clinic.labels)
    assert "\\x1b[2J[red]" in run("relabel", path).line()


def test_ids_and_string_labels_from_pandas(run, clinic):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(clinic.posterior, columns=[f"p_{name}" for name in NAMES])
    frame["age"], frame["diagnosis"] = 61, [NAMES[label] for label in clinic.labels]
    frame.index = [f"patient {row}" for row in range(190)]
    frame.to_csv(clinic.folder / "ward.csv")
    refused = run("relabel", clinic.folder / "ward.csv", "--label-column", "diagnosis")
    assert refused.code == 3
    assert "--prefix p_ makes class" in refused.line()
    done = run("relabel", clinic.folder / "ward.csv", "--label-column", "diagnosis", "--prefix", "p_", "--tau", "0.1")
    assert (done.code, done.err) == (0, "")
    expected = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1)
    back = pandas.read_csv(clinic.folder / "ward.relabelled.csv", index_col="id")
    assert back.index.tolist() == frame.index.tolist()
    assert back.new.tolist() == [NAMES[label] for label in expected.labels]
    assert back.moved.dtype == bool
    ledger = fedrela.Ledger.load(clinic.folder / "ward.ledger.json")
    assert (ledger.ids, ledger.class_names) == (tuple(frame.index), NAMES)


def test_parquet_from_pandas_and_back(run, clinic):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(clinic.posterior.astype(np.float32), columns=list(NAMES))
    frame["label"] = pandas.Categorical([NAMES[label] for label in clinic.labels])
    for index, ids in (
        (None, [str(row) for row in range(190)]),
        (pandas.Index([f"p{row}" for row in range(190)], name="patient"), [f"p{row}" for row in range(190)]),
        (pandas.Index(range(1000, 1190)), [str(row) for row in range(1000, 1190)]),
    ):
        (frame if index is None else frame.set_index(index)).to_parquet(clinic.folder / "ward.parquet")
        done = run("relabel", clinic.folder / "ward.parquet", "--tau", "0.1", "--force")
        assert (done.code, done.err) == (0, "")
        back = pandas.read_parquet(clinic.folder / "ward.relabelled.parquet")
        assert back.columns.tolist() == ["id", "old", "new", "moved", "posterior", "rho"]
        expected = fedrela.relabel(clinic.posterior.astype(np.float32).astype(float), clinic.labels, tau=0.1)
        assert back.id.astype(str).tolist() == ids
        assert back.new.tolist() == [NAMES[label] for label in expected.labels]
    assert run("relabel", clinic.folder / "ward.parquet", "--classes", "healthy,flu", "--dry-run").code == 3
    frame.assign(ward="East").to_parquet(clinic.folder / "ward.parquet")
    said = run("preview", clinic.folder / "ward.parquet")
    assert said.code == 3
    assert "column 'ward': expected the probability of class 'ward', got" in said.line()
    (clinic.folder / "ward.parquet").write_bytes(b"PAR1 no")
    assert (said := run("preview", clinic.folder / "ward.parquet")).code == 3
    assert "damaged or invalid Parquet file" in said.line()


def test_numbers_in_parquet_stay_numbers_also_of_a_class_without_samples(run, clinic):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(clinic.posterior, columns=["0", "1", "2"]).assign(label=np.minimum(clinic.labels, 1))
    frame.to_parquet(clinic.folder / "ward.parquet")
    assert run("relabel", clinic.folder / "ward.parquet", "--tau", "0.2").code == 0
    back = pandas.read_parquet(clinic.folder / "ward.relabelled.parquet")
    assert back.old.tolist() == frame.label.tolist()
    assert (back.new.dtype, 2 in back.new.tolist()) == (np.int64, True)


def test_parquet_without_pyarrow_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    done = run("preview", tmp_path / "a.parquet")
    assert done.code == 2
    assert "Parquet needs pyarrow: pip install 'fedrela[parquet]', or save as CSV" in done.line()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 3, ":1:2: 'age' is not a class probability: the rows already sum to 1 without it; --ignore leaves"),
        (("--ignore", "agee"), 2, "has no column 'agee'; nearest: 'age'"),
        (("--id", "age"), 3, ":3:2: duplicate id '61'"),
        (("--classes", "healthy,healthy"), 2, "--classes: expected distinct names, separated by commas"),
        (("--classes", "healthy,flue"), 2, "has no column 'flue'; nearest: 'flu'"),
        (("--prefix", "p_"), 2, "prefix: "),
    ],
)
def test_a_stray_column_is_settled_by_an_option(run, clinic, arguments, code, said):
    lines = clinic.csv().read_text().splitlines()
    rows = [line.split(",", 1) for line in lines]
    path = clinic.folder / "aged.csv"
    path.write_text("".join(f"{a},{'61' if row else 'age'},{b}\n" for row, (a, b) in enumerate(rows)))
    done = run("preview", path, *arguments)
    assert done.code == code
    assert said in done.line()
    plain = run("preview", clinic.folder / "clinic.csv").out.replace("clinic.csv", "aged.csv")
    for settled in (("--ignore", "age"), ("--classes", "healthy, flu, rare"), ("--ignore", "1")):
        assert run("preview", path, *settled).out == plain


def test_the_ledger_says_where_its_moves_come_from(run, clinic):
    run("relabel", clinic.csv(), "--tau", "0.1", "--seed", "4", "--preset", "official", "--forbid", "flu:rare")
    path = clinic.folder / "clinic.ledger.json"
    ledger, log = fedrela.Ledger.load(path), AuditLog(clinic.folder / "clinic.ledger.log")
    origin = ledger.provenance
    assert (origin.version, origin.seed, origin.preset) == (fedrela.__version__, 4, "official")
    assert origin.limits == {"max_fraction": 1.0, "forbidden": [[1, 2]], "ineligible": 0}
    assert origin.agreement == np.mean(clinic.posterior.argmax(axis=1) == clinic.labels)
    (entry,) = log.entries()
    assert (entry["event"], entry["ledger_sha256"], entry["moved"]) == ("relabel", ledger.sha256, len(ledger))
    assert {each.stat().st_mode & 0o777 for each in (path, log.path)} == {0o600}
    run("relabel", clinic.csv(), "--tau", "0.2", "--force")
    assert [entry["number"] for entry in log.entries()] == [1, 2]
    log.path.write_text(log.path.read_text().replace('"moved": ', '"moved": 1', 1))
    broken = run("relabel", clinic.csv(), "--force")
    assert (broken.code, "clinic.ledger.log:1: the chain of entries is broken" in broken.line()) == (4, True)
