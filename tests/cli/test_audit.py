"""`fedrela audit FILE`: a page to look at before anything is changed."""

from __future__ import annotations

import html
import os
import re

import numpy as np
import pytest
from PIL import Image

import fedrela

NAMES = ("healthy", "flu", "rare")


def cells(page: str) -> list[list[str]]:
    """The rows of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


def test_the_page_shows_what_the_library_expects(run, clinic):
    done = run("audit", clinic.csv())
    assert (done.code, done.err) == (0, "")
    path = clinic.folder / "clinic.audit.html"
    assert f"page  {path}" in done.out
    assert path.stat().st_mode & 0o777 == 0o600
    assert clinic.files() == {"clinic.csv", "clinic.audit.html"}
    page, expected = path.read_text(), fedrela.preview(clinic.posterior, clinic.labels)
    for row in expected.rows():
        assert [f"{row['tau']:g}", f"{row['moves']:,.1f}"] in [found[:2] for found in cells(page)]
    for text in (f"{expected.total[2]:,.1f}", f"{expected.kappa:.2f}", *NAMES, "No label was changed"):
        assert text in page
    taken = clinic.posterior.argmax(axis=1)
    confirmed = [f"{100 * np.mean(taken[clinic.labels == c] == c):.1f}\xa0%" for c in range(3)]
    shown = {row[0]: row[2] for row in cells(page) if row and row[0] in NAMES and len(row) == 4}
    assert [shown[name].replace(" ", "\xa0") for name in NAMES] == confirmed
    assert "<script" not in page


def test_the_most_probable_moves_by_id(run, clinic):
    done = run("audit", clinic.npz(ids=np.array([f"p{row}" for row in range(190)])), "--tau", "0.1", "--rows", "5")
    assert done.code == 0
    expected = fedrela.relabel(clinic.posterior, clinic.labels, tau=0.1).rho
    order = np.argsort(-expected.max(axis=1), kind="stable")[:5]
    rows = [row for row in cells((clinic.folder / "clinic.audit.html").read_text()) if row and row[0].startswith("p")]
    assert [row[:3] for row in rows] == [[f"p{i}", NAMES[clinic.labels[i]], NAMES[expected[i].argmax()]] for i in order]
    shown = [[clinic.posterior[i, expected[i].argmax()], expected[i].max()] for i in order]
    assert [row[3:5] for row in rows] == [[f"{value:.3f}" for value in pair] for pair in shown]


def test_without_rows_the_page_still_says_how_many_may_move(run, clinic):
    assert run("audit", clinic.csv(), "--tau", "0.1", "--rows", "0").code == 0
    page = (clinic.folder / "clinic.audit.html").read_text()
    assert "rows may move; none is shown." in page
    assert "No row can move" not in page


def test_thumbnails_of_a_folder(run, clinic):
    scans = clinic.folder / "scans"
    scans.mkdir()
    ids = np.array([f"p{row}.png" if row % 2 else f"p{row}" for row in range(190)])
    for row in range(0, 150):
        Image.fromarray(np.full((20, 30), row, np.uint8)).save(scans / f"p{row}.png")
    done = run("audit", clinic.npz(ids=ids), "--images", scans, "--rows", "40")
    assert done.code == 0
    page = (clinic.folder / "clinic.audit.html").read_text()
    rows = [row[0] for row in cells(page) if row and re.match(r"p\d", row[0])]
    there = [name for name in rows if int(re.findall(r"\d+", name)[0]) < 150]
    assert page.count("<img src=") == len(there) > 0
    missing = len(rows) - len(there)
    assert f"{missing} rows of them have no picture" in page if missing != 1 else "1 row of them" in page
    (scans / f"{there[0].removesuffix('.png')}.png").write_bytes(b"no picture")
    broken = run("audit", clinic.folder / "clinic.npz", "--images", scans, "--rows", "40", "--force")
    assert broken.code == 3
    assert "not a readable image" in broken.line()


def test_ids_lead_nowhere_else(run, clinic):
    (clinic.folder / "scans").mkdir()
    Image.new("L", (8, 8)).save(clinic.folder / "secret.png")
    ids = np.array([f"../secret{' ' * row}" for row in range(190)])
    assert run("audit", clinic.npz(ids=ids), "--images", clinic.folder / "scans").code == 0
    assert "<img" not in (clinic.folder / "clinic.audit.html").read_text()


@pytest.mark.parametrize("place", ["p0", "p0.png", "in/0.png"])
@pytest.mark.parametrize("what", ["link", "pipe"])
def test_pictures_are_files_of_the_folder(run, clinic, place, what):
    """A link out of it would put a stranger's picture on the page; a pipe is no row without a picture."""
    scans, outside = clinic.folder / "scans", clinic.folder / "outside"
    for folder in (scans, outside):
        folder.mkdir()
    Image.new("L", (8, 8)).save(outside / "0.png")
    if what == "link" and "/" in place:
        (scans / "in").symlink_to(outside)
    else:
        (scans / place).parent.mkdir(exist_ok=True)
        (scans / place).symlink_to(outside / "0.png") if what == "link" else os.mkfifo(scans / place)
    clinic.posterior[0], clinic.labels[0] = (0.35, 0.33, 0.32), 0
    ids = np.array([place.removesuffix(".png"), *(f"q{row}" for row in range(1, 190))])
    done = run("audit", clinic.npz(ids=ids), "--images", scans, "--rows", "1000", "--tau", "1")
    said = "a link points out of" if what == "link" else "expected an image, got a folder, a pipe or a device"
    assert (done.code, said in done.line()) == (3, True)
    assert not (clinic.folder / "clinic.audit.html").exists()


def test_links_inside_the_folder_of_pictures(run, clinic):
    scans = clinic.folder / "scans"
    (scans / "q0").mkdir(parents=True)  # a folder is no picture, but q0.png is one
    Image.new("L", (8, 8)).save(scans / "one.png")
    for row in range(190):
        (scans / f"q{row}.png").symlink_to("one.png")
    done = run("audit", clinic.npz(ids=np.array([f"q{row}" for row in range(190)])), "--images", scans, "--rows", "9")
    assert (done.code, (clinic.folder / "clinic.audit.html").read_text().count("<img src=")) == (0, 9)


def test_names_are_inert_and_warnings_are_shown(run, clinic):
    hostile = ("<script>alert(1)</script>", "</table>", "ra\u202ere")
    path = clinic.csv(names=hostile)
    assert run("audit", path, "--tau", "0.2").code == 0
    page = (clinic.folder / "clinic.audit.html").read_text()
    assert "<script" not in page
    assert "\u202e" not in page
    clinic.posterior[:] = np.roll(clinic.posterior, 1, axis=1)
    done = run("audit", clinic.csv(), "--force")
    assert "warning: the model agrees with" in done.out
    assert '<p class="warning">the model agrees with' in (clinic.folder / "clinic.audit.html").read_text()


@pytest.mark.parametrize("tau", ["0", "0.3"])
def test_a_page_with_nothing_or_much_to_move(run, clinic, tau):
    assert run("audit", clinic.csv(), "--tau", tau, "--forbid", "*:rare", "--rows", "0").code == 0
    page = (clinic.folder / "clinic.audit.html").read_text()
    assert "moves that must not happen" in page
    assert ("no label would move" in page) == (tau == "0")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--tau", "5"), 2, "tau: expected a fraction from 0 to 1"),
        (("--images", "none"), 2, "--images: expected a folder, got none"),
        (("--forbid", "flu"), 2, "--forbid: expected FROM:TO"),
        (("--label-column", "x"), 2, "has no column 'x'"),
    ],
)
def test_bad_input_in_one_line(run, clinic, arguments, code, said):
    done = run("audit", clinic.csv(), *arguments)
    assert done.code == code
    assert said in done.line()
    assert clinic.files() == {"clinic.csv"}


def test_refusals_and_pages_that_are_there(run, clinic):
    path = clinic.csv()
    (clinic.folder / "clinic.audit.html").write_text("archived")
    assert run("audit", path).line().endswith("exists already; --force overwrites it, --out chooses another folder")
    clinic.posterior[41] = (0.5, np.nan, 0.5)
    done = run("audit", clinic.csv(), "--force")
    assert (done.code, done.line()) == (3, f"{path}:43: refused: not finite: row 41: column 1 is nan")
    assert (clinic.folder / "clinic.audit.html").read_text() == "archived"
