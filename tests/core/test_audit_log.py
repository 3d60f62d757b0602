"""The log beside a ledger: a chain that holds, and every way to break it."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import numpy as np
import pytest

import fedrela
from fedrela.core.audit_log import AuditLog, check_ledger, ledgers_at, log_beside, record_ledger, verify
from fedrela.core.ledger import record_digest
from fedrela.errors import DataError, IntegrityError

Q = np.random.default_rng(3).dirichlet([1, 1, 1], 60)
LEDGER = fedrela.relabel(Q, np.repeat([0, 1, 2], [40, 15, 5]), tau=0.2).ledger


@pytest.fixture
def log(tmp_path):
    made = AuditLog(tmp_path / "deep" / "a.log")
    LEDGER.save(tmp_path / "deep" / "a.json")
    record_ledger(made, "a.json", LEDGER, round=8)
    made.append("read")
    made.append("undo", reason="a « wrong » source\n")
    return made


def test_entries_come_back_as_they_were_written(log):
    first, second, third = log.entries()
    assert first["ledger_sha256"] == LEDGER.sha256
    assert (first["moved"], first["samples"], first["round"]) == (len(LEDGER), 60, 8)
    assert (second["event"], third["reason"]) == ("read", "a « wrong » source\n")
    assert [entry["number"] for entry in (first, second, third)] == [1, 2, 3]
    assert third["previous"] == second["sha256"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["time"])
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert AuditLog(log.path.parent / "none").entries() == []


def test_a_ledger_is_the_one_that_was_recorded(log):
    assert check_ledger(log, "a.json", LEDGER)
    assert not check_ledger(log, "b.json", LEDGER)
    other = fedrela.relabel(Q, LEDGER.original, tau=0.5).ledger
    with pytest.raises(IntegrityError, match=r"a\.json: not the ledger of \d+ moves that entry 1 of a\.log recorded"):
        check_ledger(log, "a.json", other)
    record_ledger(log, "a.json", other)
    assert check_ledger(log, "a.json", other)


def rewritten(line: str) -> str:
    """An entry that claims more moves, with a digest that fits."""
    entry = json.loads(line) | {"moved": 1000}
    del entry["sha256"]
    return json.dumps(entry | {"sha256": record_digest(entry)})


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda a, b, c: (a.replace('"moved": ', '"moved": 1'), b, c), 1),
        (lambda a, b, c: (rewritten(a), b, c), 2),
        (lambda a, b, c: (b, c), 1),
        (lambda a, b, c: (a, c), 2),
        (lambda a, b, c: (b, a, c), 1),
        (lambda a, b, c: (a, b, b, c), 3),
        (lambda a, b, c: (a[:-9], b, c), 2),
    ],
)
def test_a_broken_chain_names_the_line(log, change, line):
    log.path.write_text("".join(f"{each}\n" for each in change(*log.path.read_text().splitlines())))
    for call in (log.entries, lambda: log.append("read")):
        with pytest.raises(IntegrityError, match=f"a.log:{line}: the chain of entries is broken"):
            call()


def test_a_line_that_a_kill_cut_short_is_passed_over(log):
    with open(log.path, "ab") as file:
        file.write(b'{"number": 4, "ti')
    assert len(log.entries()) == 3
    assert log.append("read")["number"] == 4
    assert [entry["event"] for entry in log.entries()] == ["relabel", "read", "undo", "read"]


def test_writers_take_turns(log):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: log.append("read", by=number), range(24)))
    assert sorted(entry["by"] for entry in log.entries()[3:]) == list(range(24))


def test_times_are_utc_and_the_labels_have_their_digest(log, monkeypatch):
    monkeypatch.setenv("TZ", "Etc/GMT+11")
    time.tzset()
    try:
        then = datetime.fromisoformat(log.append("read")["time"])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert abs((datetime.now(UTC) - then).total_seconds()) < 3600
    assert log.entries()[0]["labels_sha256"] == LEDGER.labels_sha256


def test_a_log_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        AuditLog(tmp_path).entries()


def test_ledgers_that_were_found_later_and_files_that_are_gone(log):
    folder = log.path.parent
    LEDGER.save(folder / "b.json")
    record_ledger(log, "b.json", LEDGER, event="found", output="b.csv", output_sha256="0")
    findings = verify(log, {"a.json": LEDGER, "b.json": LEDGER})
    last, head = log.entries()[-1]["time"], log.entries()[-1]["sha256"]
    undone = log.last_undo()["time"]
    assert findings[1:] == [
        f"b.json: matches entry 4 of {last}: {len(LEDGER)} moves",
        "b.json: logged when it was found, not when it was made: "
        "its writer was killed, the log was removed, or it was saved without one",
        "b.csv: no longer exists",
        f"undone on {undone}, entry 3: a « wrong » source\n",
        f"a.log: 4 entries, unbroken; head {head}",
    ]
    (folder / "b.json").unlink()
    with pytest.raises(IntegrityError, match=r"b\.json: was removed; entry 4 recorded it on"):
        verify(log, {"a.json": LEDGER})


def test_an_undo_counts_until_the_next_re_labelling(log):
    assert AuditLog(log.path.with_name("none")).last_undo() is None
    assert log.last_undo()["number"] == 3
    log.append("read")
    assert log.last_undo()["number"] == 3
    log.append("relabel")
    assert log.last_undo() is None
    log.append("undo")
    assert log.last_undo()["number"] == 6


def test_a_refusal_is_logged_as_one(log):
    refused = fedrela.relabel(Q, LEDGER.original + 1).ledger
    assert refused.refusal
    assert record_ledger(log, "a.json", refused)["event"] == "refusal"
    assert record_ledger(log, "a.json", LEDGER)["event"] == "relabel"


def test_a_log_is_beside_its_ledgers(tmp_path):
    """One for all passes of a client, else one for each ledger."""
    assert log_beside(tmp_path / "pass-0012.json").path == tmp_path / "log.jsonl"
    assert log_beside(tmp_path / "pass-12.json").path == tmp_path / "pass-12.log"
    LEDGER.save(tmp_path / "pass-0001.json")
    log, ledgers = ledgers_at(tmp_path)
    assert (log.path, ledgers) == (tmp_path / "log.jsonl", {"pass-0001.json": LEDGER})
    log.append("read")
    (tmp_path / "pass-0001.json").unlink()
    assert ledgers_at(tmp_path)[1] == {}
    assert verify(*ledgers_at(tmp_path)) == [f"log.jsonl: 1 entry, unbroken; head {log.entries()[0]['sha256']}"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "/a", 3])
def test_an_entry_names_a_file_in_the_folder_of_its_log(log, name):
    log.append("relabel", ledger=name, ledger_sha256="0")
    with pytest.raises(IntegrityError) as error:
        log.ledger_entries()
    what = f"expected the name of a file in its folder, got {name!r}"
    assert str(error.value) == f"{log.path}: entry 4: ledger: {what}"
