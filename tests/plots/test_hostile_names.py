"""Names are text, whatever is in them, and no picture leaves its page."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.metrics.groups import Groups, evaluation_groups
from fedrela.plots import client_classes
from fedrela.report.page import Figure
from fedrela.text import printable
from helpers.batteries import examples
from helpers.svg_checks import check_safe, matrix, texts

HOSTILE = (
    "<script>alert(1)</script>", "</svg><script>1</script>", "<!--", "--> x", "]]>", "<![CDATA[x]]>", "&amp;&lt;&#60;",
    "\" onload='1'", "a\x00b", "\x1b[31mred", "line\nbreak\ttab", "\u202eturned round", "\ud800 half", "\ufffe\uffff",
    "<image href='https://example.org'/>", "url(https://example.org)", "}</style><style>*{display:none}", "%s {0} ${x}",
    "e" + "\u0301" * 200, "名" * 500, "", "   ", "x" * 100_000,
)  # fmt: skip


def picture(counts, names, groups=None, title="Who has what") -> str:
    return Figure("clients", title, partial(client_classes, counts, names=names, groups=groups), title).svg()


@pytest.mark.parametrize("name", HOSTILE, ids=[printable(name)[:20] or "empty" for name in HOSTILE])
def test_hostile_class_names_and_titles_are_text(name):
    groups = Groups((name or "-", "other"), np.array([0, 1, 0]), "counts")
    svg = picture(np.array([[3, 5, 8], [1, 0, 2]]), [name, "plain", name + "2"], groups, name or "x")
    root = check_safe(svg)
    assert len(svg) < 500_000
    shown = printable(name)
    labels = [text for text in texts(root) if text.strip() and shown.startswith(text.removesuffix("…"))]
    assert labels or not shown.strip()
    assert all(len(text) <= 60 for text in texts(root))


@pytest.mark.parametrize("classes", [100, 700])
def test_hostile_names_of_many_classes(classes):
    svg = picture(matrix(5, classes), [HOSTILE[c % len(HOSTILE)] for c in range(classes)])
    check_safe(svg)
    assert len(svg) < 1_000_000


names_of = st.lists(st.text(st.characters(codec=None), max_size=30), min_size=2, max_size=80)


@examples(40, 1_000)
@given(names_of, st.integers(1, 90), st.integers(0, 2**32 - 1), st.booleans())
def test_any_picture_is_safe(names, clients, seed, grouped):
    counts = matrix(clients, len(names), seed)
    check_safe(picture(counts, names, evaluation_groups(counts) if grouped else None))
