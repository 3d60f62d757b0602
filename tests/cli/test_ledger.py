"""`fedrela ledger show | verify | undo`, on the ledgers of `fedrela relabel` and of the plug-in."""

from __future__ import annotations

import csv
import json
import os
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import fedrela
from fedrela.core.audit_log import AuditLog, log_beside
from fedrela.core.ledger import MOVES, record_digest
from fedrela.errors import DataError
from fedrela.flower.client_app import StateStore
from fedrela.plugin import LabelStore, OneShot, Policy
from fedrela.plugin.ledger_replay import load_rows
from helpers.plugin_toys import Scorer, judged, patients, points

NAMES = ("healthy", "flu", "rare")


@pytest.fixture
def made(run, clinic):
    """The ledger of a file with ids."""
    lines = clinic.csv().read_text().splitlines()
    (clinic.folder / "ward.csv").write_text("".join(f"{'id' if not k else f'p{k}'},{x}\n" for k, x in enumerate(lines)))
    assert run("relabel", clinic.folder / "ward.csv", "--tau", "0.1", "--forbid", "flu:rare").code == 0
    return clinic.folder / "ward.ledger.json"


def forge(path, change) -> None:
    """Change a ledger, with a digest that fits."""
    change(fedrela.Ledger.load(path)).save(path, overwrite=True)


def swap(path, old, new) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def without_first(ledger):
    return replace(ledger, **{name: getattr(ledger, name)[1:] for name in MOVES})


def test_show_says_what_was_done(run, made):
    shown = run("ledger", "show", made, "--moves", "2")
    assert (shown.code, shown.err) == (0, "")
    ledger = fedrela.Ledger.load(made)
    for said in (
        f"ward.ledger.json: {len(ledger)} of 190 labels moved", "tau 0.1", "seed 0, preset paper", "max_fraction 1.0",
        "flu:rare", "the model confirms", f"fedrela {fedrela.__version__}", ledger.sha256, ledger.labels_sha256,
        "relabel", f"... and {len(ledger) - 2} more", f"head {log_beside(made).entries()[-1]['sha256']}",
    ):  # fmt: skip
        assert said in shown.out
    best = ledger.ids[ledger.index[np.argmax(ledger.rho)]]
    assert f"\n{best} " in shown.out


def test_limits_are_shown_by_name_and_replayed(run, clinic):
    path, limits = clinic.csv(), ("--keep", "3", "--keep", "5", "--class-tau", "rare=0.05", "--no-absent")
    assert run("relabel", path, "--tau", "0.2", *limits).code == 0
    made = clinic.folder / "clinic.ledger.json"
    out = run("ledger", "show", made).out
    assert "protected  2 samples that must not move" in out
    assert "class_tau rare 0.05" in out
    assert "absent False" in out
    assert "replay equal: " in run("ledger", "verify", made, "--data", path).out


def test_verify_replays_the_moves(run, made):
    plain = run("ledger", "verify", made)
    assert (plain.code, plain.err) == (0, "")
    assert "ward.relabelled.csv: unchanged" in plain.out
    assert "ward.ledger.log: 1 entry, unbroken; head " in plain.out
    ward = made.with_name("ward.csv")
    again = run("ledger", "verify", made, "--data", ward)
    assert f"ward.ledger.json: replay equal: {len(fedrela.Ledger.load(made))} moves" in again.out
    head, *rows = ward.read_text().splitlines()
    ward.write_text("\n".join([head, *sorted(rows)]) + "\n")  # ids find their rows
    sorted_since = run("ledger", "verify", made, "--data", ward).out
    assert sorted_since.startswith(again.out)
    assert re.fullmatch(
        r"ward\.csv: not the bytes that entry 1 of \S+Z recorded: sorted or written anew, .*\n",
        sorted_since.removeprefix(again.out),
    )
    ward.write_text("\n".join([head, *rows[:-1]]) + "\n")
    refused = run("ledger", "verify", made, "--data", ward)
    assert (refused.code, "its labels are not the ledger's original labels" in refused.line()) == (4, True)


def test_a_probability_that_was_changed_is_noticed_though_the_moves_are_equal(run, made):
    ward = made.with_name("ward.csv")
    ledger, lines = fedrela.Ledger.load(made), ward.read_text().splitlines()
    row = next(row for row in range(190) if row not in ledger.index)
    cells = lines[1 + row].split(",")
    cells[1] = cells[1][:-1] + ("1" if cells[1][-1] != "1" else "2")  # its last digit
    lines[1 + row] = ",".join(cells)
    ward.write_text("\n".join(lines) + "\n")
    done = run("ledger", "verify", made, "--data", ward)
    assert (done.code, "the moves are equal, but the probabilities are not those" in done.line()) == (4, True)


def test_verify_says_where_moves_differ(run, made):
    """A ledger whose log was forged as well is still not what the data give."""
    forge(made, without_first)
    made.with_suffix(".log").unlink()
    AuditLog(made.with_suffix(".log")).append(
        "relabel", ledger=made.name, ledger_sha256=fedrela.Ledger.load(made).sha256, moved=0
    )
    assert run("ledger", "verify", made).code == 0
    said = run("ledger", "verify", made, "--data", made.with_name("ward.csv"))
    assert said.code == 4
    assert "not equal: row " in said.line()
    assert "(id 'p" in said.line()
    assert "the ledger leaves it in 'healthy', the replay moves it from 'healthy' to" in said.line()
    assert said.line().endswith("; 1 of 190 rows differ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: forge(path, without_first), "a move was changed or removed"),
        (lambda path: swap(path, '"tau": 0.1', '"tau": 0.2'), "does not match its digest"),
        (lambda path: path.with_suffix(".log").unlink(), "has no entry in ward.ledger.log: the log was removed or cut"),
        (lambda path: path.with_suffix(".log").write_text(""), "has no entry in ward.ledger.log"),
        (lambda path: path.with_name("ward.relabelled.csv").write_text("id,new\n"), "was changed after entry 1"),
        (
            lambda path: swap(path.with_suffix(".log"), "190", "191"),
            "ward.ledger.log:1: the chain of entries is broken",
        ),
    ],
)
def test_whatever_was_changed_is_noticed(run, made, change, said):
    change(made)
    done = run("ledger", "verify", made)
    assert done.code == 4
    assert said in done.line()


@pytest.mark.parametrize("form", ["json", "npz"])
def test_a_ledger_that_differs_by_a_byte_is_noticed(run, clinic, form):
    run("relabel", clinic.csv(), "--ledger-format", form)
    path = clinic.folder / f"clinic.ledger.{form}"
    data = path.read_bytes()
    assert run("ledger", "verify", path).code == 0
    for place in (1, len(data) // 2, len(data) - 1):
        other = bytes([data[place] ^ 1])
        for changed in (data[:place] + b" " + data[place:], data[:place] + other + data[place + 1 :]):
            path.write_bytes(changed)
            assert run("ledger", "verify", path).code == 4, (place, changed[place - 3 : place + 3])
    path.write_bytes(data + b" ")
    assert "its bytes were changed after entry 1" in run("ledger", "verify", path).line()


@pytest.mark.parametrize("key", ["ledger", "output"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/dev/zero", "expected the name of a file in its folder, got '/dev/zero'"),
        ("../clinic.csv", "expected the name of a file in its folder, got '../clinic.csv'"),
        ("..", "expected the name of a file in its folder, got '..'"),
        (["a"], "expected the name of a file in its folder, got a list"),
        ("pipe", "pipe: expected a plain file, got: not a plain file"),
        ("link", "link: expected a plain file, got: a link"),
        ("folder", "folder: expected a plain file, got: not a plain file"),
    ],
)
def test_the_log_names_plain_files_in_its_folder(run, made, key, name, said):
    """A pipe or a device would be read without end."""
    os.mkfifo(made.with_name("pipe"))
    made.with_name("link").symlink_to(made.with_name("ward.csv"))
    made.with_name("folder").mkdir()
    entry = AuditLog(made.with_suffix(".log")).entries()[0]
    facts = {each: entry[each] for each in ("ledger", "ledger_sha256", "moved", "output", "output_sha256")}
    AuditLog(made.with_suffix(".log")).append("relabel", **facts | {key: name})
    not_read = key == "output" and name in ("pipe", "link", "folder")  # undo takes nothing from the new labels
    for arguments in [("verify", made)] + [("undo", made, "--reason", "x")] * (not not_read):
        done = run("ledger", *arguments)
        assert done.code == 4
        assert said in done.line()
    assert not made.with_name("ward.original.csv").exists()


@pytest.mark.parametrize("reading", [[1], {"colour": 3}])
def test_the_log_names_the_columns_of_a_file(run, made, reading):
    log = AuditLog(made.with_suffix(".log"))
    log.append("relabel", ledger=made.name, ledger_sha256=log.entries()[0]["ledger_sha256"], reading=reading)
    done = run("ledger", "verify", made, "--data", made.with_name("ward.csv"))
    assert (done.code, "reading: expected the options of columns in entry 2" in done.line()) == (4, True)


def test_any_name_of_a_file_is_fine_in_the_log(run, clinic):
    """Also one that another operating system would refuse."""
    path = clinic.csv().rename(clinic.folder / ".ward: 3?.csv")
    assert run("relabel", path).code == 0
    assert run("ledger", "verify", clinic.folder / ".ward: 3?.ledger.json").code == 0


def test_entries_of_another_form_are_no_entries(run, made):
    log = AuditLog(made.with_suffix(".log"))
    log.append("relabel", ledger=made.name, ledger_sha256="0")
    assert "not the ledger of None moves that entry 2" in run("ledger", "verify", made).line()
    entry = {"number": 3, "time": 0, "event": 0, "previous": log.entries()[-1]["sha256"]}
    with log.path.open("a") as file:
        file.write(json.dumps(entry | {"sha256": record_digest(entry)}) + "\n")
    assert "ward.ledger.log:3: the chain of entries is broken" in run("ledger", "verify", made).line()


def test_links_and_pipes_are_no_ledgers(run, made):
    link, pipe = made.with_name("link.ledger.json"), made.with_name("pipe.ledger.json")
    link.symlink_to(made)
    os.mkfifo(pipe)
    for path, said in ((link, "a link; name the file itself"), (pipe, "not a plain file")):
        done = run("ledger", "show", path)
        assert (done.code, said in done.line()) == (3, True)


def test_a_pipe_has_no_rows(made):
    os.mkfifo(made.with_name("rows.npz"))
    with pytest.raises(DataError, match=r"rows\.npz: expected an \.npz file, found a folder, a pipe or a device$"):
        load_rows(str(made.with_name("rows.npz")))


def test_a_ledger_that_would_fill_the_memory_is_refused(run, made):
    """A file of a terabyte on no disk at all, and one that unpacks to more than it may."""
    huge, bomb = made.with_name("huge.ledger.json"), made.with_name("bomb.ledger.npz")
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.npy", b"")
        archive.getinfo("labels.npy").file_size = 1 << 31
    for path, code, said in ((huge, 3, "more than 1073741824 bytes"), (bomb, 4, "not a ledger: ValueError")):
        done = run("ledger", "show", path)
        assert (done.code, said in done.line()) == (code, True)


def test_a_head_that_was_noted_tells_a_log_that_was_rewritten(run, made):
    log = AuditLog(made.with_suffix(".log"))
    head = log.entries()[-1]["sha256"]
    log.append("read")
    assert run("ledger", "verify", made, "--head", head).code == 0
    entry = json.loads(log.path.read_text().splitlines()[0])
    log.path.unlink()
    log.append("relabel", ledger=entry["ledger"], ledger_sha256=entry["ledger_sha256"], moved=entry["moved"], by="me")
    assert run("ledger", "verify", made).code == 0
    refused = run("ledger", "verify", made, "--head", head)
    assert (refused.code, f"no entry has the digest {head}: the log was rewritten" in refused.line()) == (4, True)


@pytest.mark.parametrize("head", ["", "3897a1b2", "x" * 64])
def test_a_head_is_given_in_full(run, made, head):
    whole = AuditLog(made.with_suffix(".log")).entries()[-1]["sha256"]
    for given in (head, whole[:8], f"{whole}0"):
        refused = run("ledger", "verify", made, "--head", given)
        assert (refused.code, "--head: expected the 64 hexadecimal digits of a head" in refused.line()) == (2, True)
    assert run("ledger", "verify", made, "--head", whole.upper()).code == 0


@pytest.mark.parametrize("form", ["json", "npz"])
def test_undo_of_a_ledger_without_a_log_enters_it_as_found(run, clinic, form):
    """The first line of the log would else be an undo of nothing, which looks like a log that was cut short."""
    path = clinic.folder / f"ledger.{form}"
    done = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1)
    done.ledger.save(path)
    assert "has no log" in run("ledger", "verify", path).out
    assert "entry 2 of ledger.log" in run("ledger", "undo", path, "--reason", "x").out
    assert [entry["event"] for entry in AuditLog(path.with_suffix(".log")).entries()] == ["found", "undo"]
    after = run("ledger", "verify", path)
    assert (after.code, after.err) == (0, "")
    assert "or it was saved without one" in after.out


def test_undo_is_an_entry_with_its_reason(run, made, clinic):
    done = run("ledger", "undo", made, "--reason", "coded wrongly")
    assert (done.code, done.err) == (0, "")
    assert "entry 2 of ward.ledger.log" in done.out
    with open(made.with_name("ward.original.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == [NAMES[label] for label in clinic.labels]
    assert [row["id"] for row in rows][:2] == ["p1", "p2"]
    files = [made, *(made.with_name(f"ward.{name}") for name in ("ledger.log", "relabelled.csv", "original.csv"))]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert AuditLog(made.with_suffix(".log")).entries()[1]["reason"] == "coded wrongly"
    assert "reason coded wrongly" in run("ledger", "show", made).out
    assert re.search(r"undone on \S+Z, entry 2: coded wrongly\n", run("ledger", "verify", made).out)
    again = run("ledger", "undo", made, "--reason", "once more")
    assert (again.code, "was already undone on" in again.line()) == (3, True)


@pytest.mark.parametrize("spelling", ["{}", "{}.0", "0{}"])
def test_undo_writes_labels_as_the_file_had_them(run, clinic, spelling):
    header, *rows = clinic.csv().read_text().splitlines()
    labels = [spelling.format(label) for label in clinic.labels]
    rows = [f"{row.rpartition(',')[0]},{label}" for row, label in zip(rows, labels, strict=True)]
    (clinic.folder / "ward.csv").write_text("\n".join([header, *rows, ""]))
    assert run("relabel", clinic.folder / "ward.csv", "--tau", "0.1").code == 0
    with open(clinic.folder / "ward.relabelled.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["old"] for row in found] == labels
    assert {row["new"] for row in found} <= set(labels)
    assert run("ledger", "undo", clinic.folder / "ward.ledger.json", "--reason", "x").code == 0
    with open(clinic.folder / "ward.original.csv", newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == labels


def test_labels_written_anew_by_another_form_of_ledger_are_not_taken_for_forged(run, clinic):
    path = clinic.csv()
    assert run("relabel", path).code == 0
    assert run("relabel", path, "--seed", "5", "--ledger-format", "npz", "--force").code == 0
    for suffix in ("json", "npz"):
        done = run("ledger", "verify", clinic.folder / f"clinic.ledger.{suffix}")
        assert (done.code, done.out.count("clinic.relabelled.csv: unchanged")) == (0, 1)


def test_undo_needs_the_ledger_and_not_the_new_labels(run, made):
    (made.parent / "ward.relabelled.csv").write_text("saved by a spreadsheet")
    assert run("ledger", "verify", made).code == 4
    assert run("ledger", "undo", made, "--reason", "wrong ward").code == 0


def test_undo_keeps_a_file_that_is_there(run, made):
    target = made.with_name("ward.original.csv")
    target.write_text("corrected by hand\n")
    refused = run("ledger", "undo", made, "--reason", "coded wrongly")
    assert (refused.code, refused.line()) == (2, f"{target}: exists already; --force overwrites it")
    assert target.read_text() == "corrected by hand\n"
    assert len(AuditLog(made.with_suffix(".log")).entries()) == 1
    assert run("ledger", "undo", made, "--reason", "coded wrongly", "--force").code == 0
    assert target.read_text().startswith("id,label\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "none.json"), 3, "none.json: cannot be read: No such file"),
        (("show", "clinic.csv"), 2, "a ledger is a .json or .npz file"),
        (("verify", "."), 3, "no ledger here; expected a ledger file, or a client's folder"),
        (("undo", "ward.ledger.json", "--reason", " "), 2, "--reason: expected a reason, got nothing"),
        (("undo", "ward.ledger.log", "--reason", "x"), 2, "is a log; expected the ledger beside it"),
        (("undo", "ward.ledger.json"), 2, "Missing option '--reason'"),
        (("verify", "ward.ledger.json", "--model", "a"), 2, "--model, --net and --data belong together"),
        (("verify", "ward.ledger.json", "--data", "none.csv"), 3, "none.csv: cannot be read"),
        (("verify", "ward.ledger.json", "--data", "clinic.csv", "--net", "math:sqrt", "--model", "x"), 2, "math:sqrt"),
    ],
)
def test_bad_input_in_one_line(run, made, monkeypatch, arguments, code, said):
    monkeypatch.chdir(made.parent)
    done = run("ledger", *arguments)
    assert done.code == code
    assert said in done.line()


@pytest.fixture
def client(tmp_path):
    """A client of the plug-in that re-labelled, its weights and its rows as files."""
    x, y = points()
    model = Scorer()
    once = OneShot((x, y), experiment="icu", client="ward-3", store=tmp_path / "labels", start=2, tau=0.2, seed=5)
    once.before_round(2, model)
    assert len(once.ledger)
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    np.savez(tmp_path / "rows.npz", x=x.numpy(), y=y.numpy())
    return tmp_path


def test_a_pass_of_the_plug_in_is_replayed_from_model_and_data(run, client):
    folder = client / "labels" / "icu" / "ward-3"
    net = ("--net", "helpers.plugin_toys:Scorer", "--model", client / "w.safetensors", "--data", client / "rows.npz")
    done = run("ledger", "verify", folder, *net)
    assert (done.code, done.err) == (0, "")
    assert "pass-0001.json: replay equal: " in done.out
    assert "client     ward-3 of icu, round 2" in run("ledger", "show", folder).out
    other = Scorer(shifted=1)
    save_file(other.state_dict(), client / "w.safetensors")
    assert "model: not the one that made these moves" in (wrong := run("ledger", "verify", folder, *net)).line()
    assert wrong.code == 4
    save_file(Scorer().state_dict(), client / "w.safetensors")
    x, y = points()
    np.savez(client / "rows.npz", x=x.numpy()[::-1].copy(), y=y.numpy())
    assert "not the inputs that the model scored" in (wrong := run("ledger", "verify", folder, *net)).line()
    assert wrong.code == 4
    np.savez(client / "rows.npz", z=y.numpy())
    assert "expected the arrays x and y" in (wrong := run("ledger", "verify", folder, *net)).line()
    assert wrong.code == 3
    (client / "w.safetensors").write_bytes(b"no")
    np.savez(client / "rows.npz", x=x.numpy(), y=y.numpy())
    assert "not the weights of helpers.plugin_toys:Scorer" in (wrong := run("ledger", "verify", folder, *net)).line()
    assert wrong.code == 3
    assert run("ledger", "verify", folder, "--data", client / "rows.npz").code == 2


def test_passes_of_several_models_and_rows_of_any_form(run, tmp_path):
    """Each model replays its own pass, a refused one as well; rows and the way to score them are functions."""
    how = {"label": "diagnosis", "forward": judged, "policy": Policy(passes=2, min_agreement=0.6)}
    once = OneShot(patients(), experiment="icu", client=3, store=tmp_path, start=2, period=1, tau=0.2, **how)
    models = {"refused": Scorer(shifted=1), "good": Scorer()}
    for round, (name, model) in enumerate(models.items(), 2):
        once.before_round(round, model)
        save_file(model.state_dict(), tmp_path / f"{name}.safetensors")
    assert [ledger.refusal is None for ledger in once.store.passes()] == [False, True]
    toys = "helpers.plugin_toys"
    options = ("--net", f"{toys}:Scorer", "--forward", f"{toys}:judged", "--label", "diagnosis")
    for name, own, other in (("refused", "pass-0001", "pass-0002"), ("good", "pass-0002", "pass-0001")):
        weights = ("--model", tmp_path / f"{name}.safetensors", "--data", f"{toys}:patients")
        done = run("ledger", "verify", once.store.folder, *weights, *options)
        assert (done.code, done.err) == (0, "")
        assert f"{own}.json: replay equal: " in done.out
        assert f"{other}.json: not replayed: another model made it" in done.out
    wrong = run("ledger", "verify", once.store.folder, *weights[:3], f"{toys}:Scorer", *options)
    assert (wrong.code, "data: expected a data set" in wrong.line()) == (2, True)
    wrong = run("ledger", "verify", once.store.folder, *weights, *options[:-1], "point")
    assert (wrong.code, "expected one class number" in wrong.line()) == (3, True)


def test_a_client_of_the_plug_in_is_undone(run, client):
    folder = client / "labels" / "icu" / "ward-3"
    done = run("ledger", "undo", folder, "--reason", "consent was withdrawn")
    assert (done.code, done.err) == (0, "")
    store = LabelStore(client / "labels", "icu", "ward-3")
    assert store.undone
    assert store.log.entries()[-1]["reason"] == "consent was withdrawn"
    once = OneShot(points(), experiment="icu", client="ward-3", store=client / "labels", start=2, tau=0.2, seed=5)
    assert once.before_round(3, Scorer()) is None
    assert torch.equal(torch.as_tensor([once.dataset[row][1] for row in range(5)]), points()[1][:5])


@pytest.mark.parametrize(
    ("private", "said"),
    [(True, "a node of a federation, which reads no undo; set enabled = false under [policy] in its node.toml"),
     (False, "a client of an exported app, which reads no undo; fedrela.undo returns the original labels")],
)  # fmt: skip
def test_the_ledger_of_a_node_is_undone_by_its_policy(run, clinic, monkeypatch, private, said):
    """Nobody would read the undo: the node would go on with the changed labels."""
    store = StateStore(clinic.folder, "app-1", 0)
    if private:
        store.check_data("0" * 64)
    path = store.ledger_path(2)
    fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1).ledger.save(path)
    kept = clinic.files()
    assert said in run("ledger", "undo", path, "--reason", "x").line()
    monkeypatch.chdir(path.parent)
    assert run("ledger", "undo", path.name, "--reason", "x").code == 2
    assert run("ledger", "verify", path).code == 0
    assert clinic.files() == kept


def test_the_ledger_of_a_run_folder_has_no_log(run, made, tmp_path):
    (tmp_path / "run" / "ledgers").mkdir(parents=True)
    path = tmp_path / "run" / "ledgers" / "client-000000.json"
    replace(fedrela.Ledger.load(made), provenance=None).save(path)
    (tmp_path / "run" / "manifest.json").write_text("{}")
    assert "has no log; matches its own digest" in run("ledger", "verify", path).out
    assert "no log beside it" in run("ledger", "show", path).out
    assert "belongs to a run folder" in run("ledger", "undo", path, "--reason", "x").line()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with path.open("a") as file:
        file.write(" ")
    changed = run("ledger", "verify", path)
    assert (changed.code, "expected the bytes that its ledger writes" in changed.line()) == (4, True)
    packed = path.with_suffix(".npz")
    replace(fedrela.Ledger.load(made), provenance=None).save(packed)
    assert "not the bytes" not in run("ledger", "verify", packed).out
    with zipfile.ZipFile(packed, "a") as archive:
        archive.comment = b" "
    assert (
        "client-000000.npz: not the bytes that fedrela writes: it was changed, or"
        in run("ledger", "verify", packed).out
    )
