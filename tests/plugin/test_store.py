"""The label store: made once, read ever after, whatever is killed, restarted, damaged or done at the same moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedrela
from fedrela.core.ledger import MOVES
from fedrela.errors import DataError, IntegrityError
from fedrela.plugin import LabelStore
from fedrela.plugin.store import default_folder
from helpers.batteries import examples
from helpers.forks import memory
from helpers.plugin_toys import labels_in_round, points, relabel_in_round


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the process that forks reported."""
    command = [sys.executable, "-m", "helpers.killed_passes", str(tmp_path_factory.mktemp("passes"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_kill_leaves_the_whole_pass_or_nothing(found, tmp_path):
    first, second = relabel_in_round(tmp_path / "a", 3, seed=1), relabel_in_round(tmp_path / "b", 4, seed=2)
    assert first != second
    kills = found["kills"]
    assert {verb for verb, *_ in kills} == {
        "make_folder", "sync_folder", "write_temporary", "sync", "link", "remove", "append",
    }  # fmt: skip
    for verb, moment, code, after, later, names in kills:
        assert code == 9, (verb, moment)
        assert after == later, "labels were made anew with another model"
        assert names == "log.jsonl pass-0001.json"
        assert after in (first, second)
    linked = [verb for verb, *_ in kills].index("link")
    kept = [after == first for _, _, _, after, _, _ in kills]
    assert not any(kept[: linked + 1])  # up to the moment before the link nothing is there
    assert all(kept[linked + 1 :])


def test_of_several_at_once_one_makes_the_labels_of_all(found):
    assert len(found["together"]) == 6
    assert len(set(found["together"])) == 1
    assert found["events"] == ["relabel"]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8))
@examples(60, 2000)
def test_a_client_reads_the_labels_of_its_first_pass_for_ever(rounds):
    """Rounds in any order: a server may go back; every round comes with another model, in a new process."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        made = None
        for seed, round in enumerate(rounds):
            store = LabelStore(folder, "toy", "7")
            ledger = labels_in_round(store, round, seed, start=4)
            if made is None and round >= 4:
                made = (round, ledger.labels.tolist())
            if made is None or round < made[0]:
                assert ledger is None
            else:
                assert ledger.labels.tolist() == made[1]
        assert len(LabelStore(folder, "toy", "7").passes()) == (made is not None)


def test_experiments_and_clients_are_kept_apart(tmp_path):
    relabel_in_round(tmp_path, 3, 1)
    assert LabelStore(tmp_path, "toy", "8").passes() == LabelStore(tmp_path, "other", "7").passes() == []
    (tmp_path / "toy" / "8").mkdir()
    (tmp_path / "toy" / "7" / "pass-0001.json").rename(tmp_path / "toy" / "8" / "pass-0001.json")
    with pytest.raises(IntegrityError, match="not made by client 8 in toy"):
        LabelStore(tmp_path, "toy", "8").passes()


@pytest.mark.parametrize("name", ["..", "a/b", "", "nul"])
def test_names_lead_nowhere_else(tmp_path, name):
    with pytest.raises(DataError, match="not a plain file name"):
        LabelStore(tmp_path, "toy", name)


def test_a_damaged_file_is_never_replaced(tmp_path):
    relabel_in_round(tmp_path, 3, 1)
    path = tmp_path / "toy" / "7" / "pass-0001.json"
    path.write_bytes(path.read_bytes().replace(b'"tau": 0.2', b'"tau": 0.3'))
    with pytest.raises(IntegrityError, match="does not match its digest"):
        relabel_in_round(tmp_path, 4, 2)


def test_other_data_are_refused(tmp_path):
    relabel_in_round(tmp_path, 3, 1)
    store = LabelStore(tmp_path, "toy", "7")
    labels = store.passes()[0].original.copy()
    store.check_data(store.passes()[0], labels.astype(np.int16))
    labels[5] += 1
    with pytest.raises(DataError, match="made for other data than client 7 has now"):
        store.check_data(store.passes()[0], labels)


def test_the_ledger_is_one_that_everybody_can_undo(tmp_path):
    relabel_in_round(tmp_path, 3, 1)
    store = LabelStore(tmp_path, "toy", "7")
    original = points()[1].tolist()
    assert fedrela.undo(store.folder / "pass-0001.json").tolist() == original
    assert store.undo("the label source was wrong").tolist() == original
    assert [(entry["event"], entry.get("reason")) for entry in store.log.entries()] == [
        ("relabel", None), ("undo", "the label source was wrong"),
    ]  # fmt: skip
    again = LabelStore(tmp_path, "toy", "7")
    assert again.undone
    (store.folder / "undone").unlink()  # the log knows it as well
    assert again.undone
    assert labels_in_round(again, 9, 5) is None
    with pytest.raises(DataError, match="nothing to undo"):
        LabelStore(tmp_path, "toy", "none").undo()


def test_files_are_for_their_owner_alone(tmp_path):
    relabel_in_round(tmp_path, 3, 1)
    LabelStore(tmp_path, "toy", "7").undo()
    files = list((tmp_path / "toy" / "7").iterdir())
    assert sorted(path.name for path in files) == ["log.jsonl", "pass-0001.json", "undone"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_removed_or_forged_move_is_noticed(tmp_path):
    """Also by whoever gives the forged ledger a digest that fits."""
    relabel_in_round(tmp_path, 3, 1)
    store = LabelStore(tmp_path, "toy", "7")
    path, (ledger,) = store.folder / "pass-0001.json", store.passes()
    for forged in (
        replace(ledger, **{name: getattr(ledger, name)[1:] for name in MOVES}),
        replace(ledger, new=np.r_[3 - ledger.new[0] - ledger.old[0], ledger.new[1:]]),
        replace(ledger, options=ledger.options | {"tau": 0.3}),
    ):
        forged.save(path, overwrite=True)
        assert fedrela.Ledger.load(path) == forged
        with pytest.raises(IntegrityError, match=r"entry 1 of log\.jsonl recorded on .* a move was changed or removed"):
            relabel_in_round(tmp_path, 4, 2)
    path.unlink()
    with pytest.raises(IntegrityError, match=r"pass-0001\.json: was removed; log\.jsonl has an entry for it"):
        relabel_in_round(tmp_path, 4, 2)


def test_a_ledger_whose_entry_is_missing_is_entered_as_found(tmp_path, caplog):
    relabel_in_round(tmp_path, 3, 1)
    (tmp_path / "toy" / "7" / "log.jsonl").unlink()
    relabel_in_round(tmp_path, 4, 2)
    assert [entry["event"] for entry in LabelStore(tmp_path, "toy", "7").log.entries()] == ["found"]
    assert "pass-0001.json has no entry in log.jsonl: its writer was killed, or the log was removed" in caplog.text


def test_what_killed_writers_left_is_swept(tmp_path):
    folder = tmp_path / "toy" / "7"
    folder.mkdir(parents=True)
    (folder / ".pass-0001.json.0123456789ab.part").write_bytes(b"half")
    relabel_in_round(tmp_path, 3, 1)
    assert sorted(path.name for path in folder.iterdir()) == ["log.jsonl", "pass-0001.json"]


def test_the_usual_place_is_below_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "fedrela" / "labels"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_folder() == Path.home() / ".local/share/fedrela/labels"
