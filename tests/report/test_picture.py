"""The client-by-class picture: what it shows is what was counted, for any names and any size."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import evaluation_groups
from fedrela.report import client_class_picture
from fedrela.report.clients.picture import client_class_drawing
from fedrela.report.clients.view import view
from fedrela.report.figures.palette import DARK, LIGHT
from fedrela.report.figures.shapes import Boxes, Disc, Word
from helpers.picture_checks import SVG, check_safe, matrix, stays_on_page, texts


def test_every_dot_has_the_area_of_its_count():
    counts = np.array([[100, 0, 7], [25, 64, 1], [0, 3, 0], [36, 9, 50]])
    root = ET.fromstring(client_class_picture(counts, ["cat", "dog", "owl"]))
    radius = {c.find(SVG + "title").text: float(c.get("r")) for c in root.iter(SVG + "circle") if len(c)}
    names = {
        (k, c): f"client {k}, {name}: {counts[k, c]}" for k in range(4) for c, name in enumerate(("cat", "dog", "owl"))
    }
    assert set(radius) == {name for cell, name in names.items() if counts[cell]}
    largest = radius["client 0, cat: 100"]
    for cell, name in names.items():
        if counts[cell]:
            assert radius[name] == pytest.approx(largest * np.sqrt(counts[cell] / 100), abs=0.0006)


def test_dots_stand_in_their_cells():
    counts = np.array([[5, 1], [2, 8], [4, 4]])
    root = ET.fromstring(client_class_picture(counts, ["a", "b"]))
    at = {
        c.find(SVG + "title").text: (float(c.get("cx")), float(c.get("cy")))
        for c in root.iter(SVG + "circle")
        if len(c)
    }
    across = {t.text: float(t.get("x")) for t in root.iter(SVG + "text") if t.get("text-anchor") == "middle"}
    for k in range(3):
        for c, name in enumerate("ab"):
            assert at[f"client {k}, {name}: {counts[k, c]}"][0] == across[str(k)]
    assert at["client 0, a: 5"][1] == at["client 2, a: 4"][1] < at["client 0, b: 1"][1]


def test_a_dot_too_small_to_see_gets_a_ring_and_the_key_says_which():
    root = ET.fromstring(client_class_picture([[100_000, 3], [40, 0]], ["many", "few"]))
    rings = [c for c in root.iter(SVG + "circle") if c.get("class") == "g0-ring"]
    assert len(rings) == 2
    assert any(text.startswith("40 or fewer, in a ring") for text in texts(root))
    plain = client_class_picture([[10, 8], [9, 10]], ["a", "b"])
    assert "ring because" not in plain
    assert '-ring"' not in plain


def test_the_key_shows_sizes_to_the_same_scale():
    drawing = client_class_drawing([[200, 20], [50, 5]], ["a", "b"])
    discs = [shape for shape in drawing.shapes if isinstance(shape, Disc)]
    largest = max(disc.radius for disc in discs if disc.tip)
    key = [disc for disc in discs if not disc.tip and disc.style == "muted"]
    words = [shape for shape in drawing.shapes if isinstance(shape, Word)]
    numbers = [int(next(w.text for w in words if w.x > d.x and abs(w.y - 4 - d.y) < 0.01)) for d in key]
    assert numbers == [200, 50, 10, 1]
    assert [d.radius for d in key] == pytest.approx([largest * np.sqrt(number / 200) for number in numbers])


@pytest.mark.parametrize(
    ("clients", "classes"),
    [(1, 2), (1, 60), (1, 1000), (2, 61), (60, 60), (61, 10), (60, 120), (10_000, 2), (10_000, 60), (2_000, 1000)],
)
def test_from_one_client_to_very_many(clients, classes):
    counts = matrix(clients, classes)
    names = [f"class {c}" for c in range(classes)]
    groups = evaluation_groups(counts)
    picture = client_class_picture(counts, names, groups=groups, title="Sizes")
    root = check_safe(picture)
    assert len(picture) < 400_000
    stays_on_page(client_class_drawing(counts, names, groups=groups, title="Sizes"))
    said = " ".join(texts(root))
    assert f"{clients:,} client" in said
    assert ("are shown" in said) == (clients > 60)
    assert ("Each row" in said) == (classes > 60)
    assert ("class 1" in texts(root)) == (classes <= 60)


def test_60_of_many_clients_from_the_largest_to_the_smallest_and_totals_of_all():
    counts = np.stack([np.arange(1000) % 7, np.random.default_rng(1).permutation(1000)], axis=1)
    sizes = counts.sum(axis=1)
    shown = view(counts, ["a", "b"])
    assert len(set(shown.clients.tolist())) == 60
    assert (np.diff(shown.client_sizes) <= 0).all()
    assert (shown.client_sizes[0], shown.client_sizes[-1]) == (sizes.max(), sizes.min())
    ranks = np.searchsorted(np.sort(sizes), shown.client_sizes)
    assert np.abs(np.diff(ranks)).max() < 1000 / 60 + 10
    assert shown.totals.tolist() == counts.sum(axis=0).tolist()
    text = client_class_picture(counts, ["a", "b"])
    for part in ("60 of the 1,000 clients are shown", "ranking by size", f"{counts[:, 1].sum():,}"):
        assert part in " ".join(texts(ET.fromstring(text)))


@pytest.mark.parametrize("classes", [61, 100, 121, 200, 1000])
def test_rows_of_many_classes_hold_each_class_once_by_group_and_count(classes):
    counts = matrix(7, classes, seed=3)
    groups = evaluation_groups(counts)
    shown = view(counts, [str(c) for c in range(classes)], groups=groups)
    order = [c for row in shown.rows for c in row.classes]
    total = counts.sum(axis=0)
    assert sorted(order) == list(range(classes))
    assert len(shown.rows) <= 123
    assert order == sorted(order, key=lambda c: (groups.of_class[c], -total[c], c))
    for i, row in enumerate(shown.rows):
        assert {groups.of_class[c] for c in row.classes} == {row.group}
        assert np.allclose(shown.cells[i], counts[:, list(row.classes)].mean(axis=1))
        assert shown.totals[i] == pytest.approx(total[list(row.classes)].mean())


def test_cells_of_many_classes_have_the_colour_of_their_count():
    counts = np.zeros((4, 70), np.int64)
    counts[:, 0] = (0, 1, 9, 10)
    counts[:, 1] = (99, 100, 1, 0)
    drawing = client_class_drawing(counts, [str(c) for c in range(70)])
    words = [shape for shape in drawing.shapes if isinstance(shape, Word)]
    boxes = [shape for shape in drawing.shapes if isinstance(shape, Boxes)]
    cells = [box for box in boxes if box.style.startswith("s") and box.tip]
    key = {box.style: box.places[0] for box in boxes if box.style.startswith("s") and not box.tip}

    def named(style: str) -> str:
        x, y, *_ = key[style]
        return next(word.text for word in words if word.x > x and abs(word.y - 9 - y) < 0.01)

    found = {(box.tip, round(place[0])): named(box.style) for box in cells for place in box.places}
    left = min(place[0] for box in cells for place in box.places)
    column = cells[0].places[0][2]
    for c in (0, 1):
        for k in range(4):
            text = found.get((str(c), round(left + k * column)))
            n = counts[k, c]
            assert (text is None) == (n == 0)
            if text == f"{n}" or text is None:
                continue
            low, _, high = text.partition(" to ") if " to " in text else (text.split()[0], "", "inf")
            assert float(low) <= n <= float(high)


def test_groups_colour_dots_and_the_key_names_them():
    groups = evaluation_groups([[9, 9, 1]], minority=[2])
    root = ET.fromstring(client_class_picture([[9, 9, 1], [1, 1, 1]], ["a", "b", "c"], groups=groups))
    classes = {
        c.find(SVG + "title").text.split(", ")[1][0]: c.get("class") for c in root.iter(SVG + "circle") if len(c)
    }
    assert {name: style.partition("-")[0] for name, style in classes.items()} == {"a": "g0", "b": "g0", "c": "g1"}
    assert {"majority: 2 classes", "minority: 1 class"} <= set(texts(root))
    style = root.find(SVG + "style").text
    light, dark = style.split("@media screen and (prefers-color-scheme: dark)")
    for part, palette in ((light, LIGHT), (dark, DARK)):
        assert f".g1 {{ fill: {palette.groups[2]} }}" in part
        assert f".paper {{ fill: {palette.paper} }}" in part
        assert f".ink {{ fill: {palette.ink} }}" in part


def test_the_description_says_it_in_words():
    root = ET.fromstring(client_class_picture([[90, 0], [9, 1]], ["cat", "dog"], title="Pets"))
    assert root.find(SVG + "title").text == "Pets"
    assert root.find(SVG + "desc").text == (
        "100 training samples of 2 classes at 2 clients. Clients have from 10 to 90 samples, half of them at most 50. "
        "The most frequent class is cat with 99 samples, the rarest dog with 1. "
        "Of all pairs of a client and a class, 25% have no sample."
    )


def test_no_samples_at_all_is_a_picture_too():
    for classes in (3, 80):
        root = check_safe(client_class_picture(np.zeros((2, classes), int), [str(c) for c in range(classes)]))
        assert "0 training samples" in " ".join(texts(root))


def test_same_bytes_in_another_process():
    code = (
        "import numpy as np; from fedrela.report import client_class_picture as p; "
        "n = np.random.default_rng(0).integers(0, 50, (70, 65)); print(p(n, [str(c) for c in range(65)]), end='')"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            timeout=60,
            env=os.environ | {"PYTHONHASHSEED": s},
        ).stdout
        for s in ("1", "2")
    }
    counts = np.random.default_rng(0).integers(0, 50, (70, 65))
    assert outputs == {client_class_picture(counts, [str(c) for c in range(65)]).encode()}


@pytest.mark.parametrize(
    ("counts", "names", "said"),
    [
        ([1, 2], ["a", "b"], "integers"),
        ([[1.5, 2]], ["a", "b"], "integers"),
        ([[-1, 2]], ["a", "b"], "integers"),
        (np.zeros((0, 2), int), ["a", "b"], "integers"),
        ([[1, 2]], ["a"], "2 names are needed, one a class, got 1"),
    ],
)
def test_wrong_arguments(counts, names, said):
    with pytest.raises(ArgumentError, match=said):
        client_class_picture(counts, names)


def test_groups_of_another_data_set():
    with pytest.raises(ArgumentError, match="groups: expected 2 classes, got 3"):
        client_class_picture([[1, 2]], ["a", "b"], groups=evaluation_groups([3, 2, 1]))
